"""Parties that sum: `base` over any engine, `local` for one process."""
