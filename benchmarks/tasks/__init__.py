"""Snippets of `tasks.py`, a folder for each library, and what runs them."""
