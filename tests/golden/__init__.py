"""Stored bytes of every format, and tests that the present code reads and writes the same."""
