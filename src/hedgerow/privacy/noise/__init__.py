"""Noise and secret randomness."""
