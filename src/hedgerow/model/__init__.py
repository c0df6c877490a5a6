"""Trees, ensembles and their files; losses and the statement.

tree.py        one tree as flat arrays
ensemble.py    trees, schema and statement; released values only
files.py       .hedge files
statement.py   the guarantee as a value, in words and as JSON
changes.py     what a statement is worth for replaced units and groups
tradeoff.py    what a Gaussian promise is worth: epsilon for a delta, the best guess
trust.py       who is trusted: noise shares, least set, words; one class per trust
losses.py      the loss of a label; logistic, softmax, hazards: what one row adds at most, proven
number_losses.py  squared, quantile, Huber, Poisson: the same for numbers and counts
row_bound.py   the most that one row can add, as losses state it
rounding.py    what follows from releases, the same on every processor
splitting.py   the best split of (noisy or exact) histograms
exact.py       what exact growers share: gradients on an integer grid
routing.py     trees in code space: where each code sends a row
code_trees.py  one tree in code space, kept while it is used
stacking.py    several trees as one set of arrays
leaf_noise.py  what trees know of their own noise
hashes.py      hashes of trees and models
"""
