"""Parties that hold different columns of the same people (FedXGBoost, Le et al. 2021)."""
