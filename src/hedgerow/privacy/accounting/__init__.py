"""What a run costs: accountants, and the plan that is fixed before the first query.

plan.py          slots, their prices, and the slots priced during a run
plan_reading.py  plans from plain tables, such as TOML
gaussian.py      exact Gaussian composition; Renyi for comparison; calibration
pure.py          pure epsilon: rounds, samples, composition
paths.py         pure epsilon on the paths of a tree, and its filter
"""
