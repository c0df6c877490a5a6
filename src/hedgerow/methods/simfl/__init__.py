"""Similarity instead of noise (SimFL, Li et al. 2020): no differential privacy, and it says so."""
