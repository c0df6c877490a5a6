"""Whole runs through real processes."""
