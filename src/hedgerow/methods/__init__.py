"""Methods: what is asked, and what is made of releases. They see the gate and nothing behind it.

registry.py    methods by name, with their defaults; `plan_for`
auto/          the default method (ours)
maddock/       the framework of Maddock et al. 2022: random trees, histograms, batches
dp_xgboost/    DP-XGBoost (Grislain and Gonzalez 2021), pure epsilon
private_tree/  one readable tree (Gubler 2023), pure epsilon
simfl/         SimFL (Li et al. 2020), not differentially private
fedxgboost/    FedXGBoost (Le et al. 2021), columns of several parties
"""
