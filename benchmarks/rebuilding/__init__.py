"""Rows rebuilt from trees; used by reconstruction.py.

cells.py   rows as codes, and how many cells are matched
search.py  a table that fits the sums of all leaves, by swaps of cells
"""
