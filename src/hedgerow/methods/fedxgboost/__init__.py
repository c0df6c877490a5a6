"""Boosted trees over parties that hold different columns of the same people (FedXGBoost, Le 2021).

An active party has the labels, passive parties have further columns. What the parties show each
other follows from the protection that they agreed on; only `ldp` has an epsilon, for labels alone.
"""
