"""The framework of Maddock et al. (2022)."""
