"""What a run costs: accountants, and the plan that is fixed before the first query.

plan.py             what a run will ask, and the budget that it may cost
request.py          who asks for a run, what for and until when
plan_reading.py     plans from plain tables, such as TOML
budget.py           what slots may cost together: the interface of every kind of budget
accountant.py       what a run has charged so far, and what may still be charged
gaussian_budget.py  slots with a mu, listed or priced during the run, and their filter
path_budget.py      slots priced on the paths of trees, and their filter
gaussian.py         calibration: the largest mu for an epsilon and a delta
pure.py             pure epsilon: what it books as, sampling, composition
mixed.py            Gaussian and pure runs of one ledger together
rounds.py           rounds of pure queries, each about one tree
paths.py            pure epsilon on the paths of a tree: what nodes pay, the filter's proof
"""
