"""Similarity instead of noise (SimFL, Li et al. 2020): no differential privacy, and it says so.

settings.py    what parties agree on
run.py         agreements and models: SimFL, TFL, SOLO, ALL-IN
role.py        a party's side of a run (algorithm 2)
messages.py    what parties write to each other
finding.py     a party's search for similar rows
hashing.py     p-stable hashes of rows
neighbours.py  the most similar row of another party
kept.py        what a party keeps, for runs with rows added
memory.py      the same between fits of one process
boosting.py    the exact histogram grower
"""
