"""The framework of Maddock et al. (2022): split methods, candidates, updates, batches.

boosting.py      the boosting loop and its plan
splits/          how trees are shaped
candidates/      where columns may be cut
leaves.py        leaf values from noisy sums, and their noise
growing_tree.py  a tree under construction
times.py         trees of times to an event: what they refuse, their base line
"""
