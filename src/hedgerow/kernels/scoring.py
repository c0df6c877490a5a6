"""Running scores: the value of every row's leaf is added, tree after tree, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import loops
from hedgerow.kernels.arrays import Bools, CodeArrays, Floats, Int32s, Ints
from hedgerow.kernels.sweeps import LeafFinder, RouteArrays, stretches
from hedgerow.kernels.threads import over_rows

_FEW = 256  # rows; for fewer, values are not laid out by code or leaf first
_RUN = 4  # trees of one column, one after another, that are worth adding by code
_MOST_NARROW = 256  # codes that a byte tells apart
_MOST_VALUES = 1 << 20  # that are laid out by leaf


class LeafValues:
    """What the leaves of some trees add, and the same laid out for the loops when it is needed.

    It follows from the trees alone: parties of one process, who add the same ones, share it.
    """

    def __init__(self, routes: RouteArrays, values: NDArray[np.float32]) -> None:
        self.routes, self.values = routes, values  # (leaf, output)

    @cached_property
    def by_leaf(self) -> Floats | None:
        """See `_values_by_leaf`."""
        return _values_by_leaf(self.routes.trees, self.values)

    @cached_property
    def by_code(self) -> tuple[Floats, Ints, list[tuple[bool, int, int]]]:
        """See `_values_by_code`; and the stretches of trees that are added by code, or not."""
        by_code, lines = _values_by_code(self.routes, self.values)
        return by_code, lines, list(_runs(lines >= 0))


def add_scores(codes: CodeArrays, scores: Floats, added: LeafValues) -> None:
    """Add each tree's leaf value to the running scores, in tree order, in float64."""
    routes, values = added.routes, added.values
    n_rows, n_trees = scores.shape[0], len(routes.trees)
    by_leaf = added.by_leaf if n_rows >= _FEW else None
    if by_leaf is None:
        _add_by_leaf(codes, scores, routes, values)
        return
    # A tree of one narrow column needs no leaf: its values are laid out by code.
    by_code, lines, runs = added.by_code
    flat = scores.reshape(-1)

    def work(first: int, stop: int) -> None:
        finder = LeafFinder(codes, routes, stop - first, len(values))
        for begin, size in stretches(first, stop):
            for is_code, *run in runs:
                if is_code:
                    # As wide as leaves are, or the loop would be compiled once more for bytes.
                    of, n = slice(*run), run[1] - run[0]
                    some = codes.narrow[lines[of], begin : begin + size].astype(np.uint16)
                    loops.add_by_code(flat, begin, size, some, 0, by_code[of], n)
                    continue
                for trees in finder.chunks(run[0], run[1]):
                    finder.find(trees, begin, size)
                    table, n = by_leaf[trees[0] :], trees[1] - trees[0]
                    loops.add_by_code(flat, begin, size, finder.leaf, 0, table, n)

    over_rows(work, n_rows, n_trees)


def _add_by_leaf(
    codes: CodeArrays, scores: Floats, routes: RouteArrays, values: NDArray[np.float32]
) -> None:
    """Do the same for several outputs, few rows or large trees."""
    n_trees = len(routes.trees)

    def work(first: int, stop: int) -> None:
        finder = LeafFinder(codes, routes, stop - first, len(values))
        for begin, size in stretches(first, stop):
            for trees in finder.chunks(0, n_trees):
                finder.find(trees, begin, size)
                loops.add_by_leaf(scores, begin, size, finder.leaf, 0, routes.trees, *trees, values)

    over_rows(work, scores.shape[0], n_trees)


def add_kept(scores: Floats, kept: NDArray[np.uint16], added: LeafValues) -> None:
    """Add trees' leaf values where every row's leaf in each of them is known: (tree, row)."""
    n_trees, by_leaf = len(kept), added.by_leaf
    trees, values = added.routes.trees, added.values
    if by_leaf is None:

        def work(first: int, stop: int) -> None:
            loops.add_by_leaf(scores, first, stop - first, kept, first, trees, 0, n_trees, values)
    else:
        flat = scores.reshape(-1)

        def work(first: int, stop: int) -> None:
            loops.add_by_code(flat, first, stop - first, kept, first, by_leaf, n_trees)

    over_rows(work, scores.shape[0])


def _runs(is_code: Bools) -> Iterator[tuple[bool, int, int]]:
    """Trees in their order: whether they are added by code, the first, and the one behind them.

    Short runs by code join their neighbours: every run is a call for each stretch of rows.
    """
    lengths = [(by_code, len(list(run))) for by_code, run in groupby(is_code.tolist())]
    at, joined = 0, list[tuple[bool, int, int]]()
    for by_code, length in lengths:
        by_code = by_code and length >= _RUN
        if joined and joined[-1][0] == by_code:
            joined[-1] = (by_code, joined[-1][1], at + length)
        else:
            joined.append((by_code, at, at + length))
        at += length
    yield from joined


def _values_by_code(routes: RouteArrays, values: NDArray[np.float32]) -> tuple[Floats, Ints]:
    """Return what each code adds in trees that are tables of one narrow column: (tree, code).

    And where these codes lie, -1 for other trees: (tree,).
    """
    trees, place, start, after = routes.trees, routes.place, routes.start, routes.after
    lines, which = np.full(len(trees), -1), np.flatnonzero(trees[:, 1] == 1)
    by_code = np.zeros((len(trees) if len(which) else 0, _MOST_NARROW))
    if not len(which):
        return by_code, lines
    which = which[place[trees[which, 0]] >= 0]
    roots = trees[which, 0]
    lines[which] = place[roots]
    begins, ends = start[roots], start[roots + 1]  # behind the codes lie the leaves of cells
    lengths = ends - begins
    code = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    leaf = after[np.repeat(ends, lengths) + after[np.repeat(begins, lengths) + code]]
    by_code[np.repeat(which, lengths), code] = values[leaf, 0]
    return by_code, lines


def _values_by_leaf(trees: Int32s, values: NDArray[np.float32]) -> Floats | None:
    """Return what each leaf adds, counted in its tree: (tree, leaf).

    None where there are several outputs, or too many values if all trees are as the largest.
    """
    if values.shape[1] > 1:
        return None
    if len(trees) == 1:
        return values.reshape(1, -1).astype(np.float64) if len(values) <= _MOST_VALUES else None
    first_leaf = trees[:, 3].tolist()
    n_leaves = [stop - first for first, stop in pairwise([*first_leaf, len(values)])]
    most = max(n_leaves, default=0)
    if len(trees) * most > _MOST_VALUES:
        return None
    by_leaf = np.zeros((len(trees), most))
    by_leaf[np.arange(most) < np.array(n_leaves).reshape(-1, 1)] = values[:, 0]
    return by_leaf
