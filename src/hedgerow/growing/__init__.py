"""Growers: programs of sum queries that see the gate and nothing behind it."""
