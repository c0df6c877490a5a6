"""Attacks on methods without noise, measured."""
