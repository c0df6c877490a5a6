"""Drives a run: the gate, the federation, who is present."""
