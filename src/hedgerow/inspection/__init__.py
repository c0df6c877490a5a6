"""Explain, report, readable trees, advice."""
