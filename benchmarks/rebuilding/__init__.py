"""Rows rebuilt from trees; used by reconstruction.py.

cells.py        rows as codes, and how many cells are matched
search.py       a table that fits the sums of all leaves, by swaps of cells
counting.py     a table that fits noisy class counts best, by an integer programme
federations.py  what a server of Flower or NVFlare sees of one party
summary.py      what many draws say together
"""
