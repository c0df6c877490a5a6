"""Sweeps over the rows of a table: stretches of rows, on all cores, each through compiled loops.

A stretch is short enough for its statistics and leaves to stay in the processor's cache, and long
enough that calling a loop for it costs next to nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import loops
from hedgerow.kernels.arrays import CodeArrays, Floats, Int32s, Ints
from hedgerow.kernels.statistics import (
    HAZARDS,
    NEWTON,
    NO_CLIP,
    SOFTMAX,
    UNWEIGHTED,
    Gradients,
    weighed_statistics,
)
from hedgerow.kernels.threads import BLOCK, over_items, over_rows, ranges_of

STRETCH = 8 * BLOCK  # rows
_TREES = 16  # of a full stretch whose leaves are found before they are used


class RouteArrays(NamedTuple):
    """Several trees in code space, one after another; see `model.routing.Routes`."""

    # (tree, 5): first node; columns of a table, or -depth or 0 to walk; nodes to blend; first leaf;
    # first node to blend
    trees: Int32s
    place: Int32s  # (node,): where the node's column lies in the codes
    start: Ints  # (node,): where its codes begin in `after`
    after: Int32s  # (code of all nodes,): next node, -1 - k for leaf k; in tables what a code adds
    nodes: Int32s  # (node to blend, 5): place, first code, how many more, elsewhere, there
    runs: list[tuple[Any, int, int]]  # what `loops_for` says of the trees


class ColumnBins(NamedTuple):
    """Columns whose codes are added up in bins, counted over all of these columns."""

    place: Int32s  # (column,): where its codes lie, as in `CodeArrays`
    bins: Int32s  # (column, code): the bin of every code
    n_bins: int  # of all columns


class _Scratch(threading.local):
    """Memory of one thread for sums that do not leave it: large blocks are slow to allocate."""

    def __init__(self) -> None:
        self._flat = np.zeros(0, np.int64)

    def zeros(self, *shape: int) -> Ints:
        size = math.prod(shape)
        if self._flat.size < size:
            self._flat = np.zeros(size, np.int64)
            return self._flat.reshape(shape)
        memory = self._flat[:size].reshape(shape)
        memory[...] = 0
        return memory


_scratch = _Scratch()


def stretches(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """First row and number of rows of every stretch."""
    for begin in range(first, stop, STRETCH):
        yield begin, min(STRETCH, stop - begin)


def _statistics(gradients: Gradients, first: int, stop: int) -> Iterator[tuple[int, int, Ints]]:
    """First row, number of rows and what they add, (row, statistic), of every stretch."""
    rows = np.empty((min(STRETCH, max(stop - first, 0)), gradients.room), np.int64)
    for begin, size in stretches(first, stop):
        weighed_statistics(gradients, begin, size, rows)
        yield begin, size, rows


class LeafFinder:
    """Finds the leaves of a stretch of rows, in some trees at a time."""

    def __init__(self, codes: CodeArrays, routes: RouteArrays, n_rows: int, n_leaves: int) -> None:
        self._codes, self._routes = codes, routes
        self._n_rows = min(n_rows, STRETCH)
        self._at_once = max(1, _TREES * STRETCH // max(self._n_rows, 1))
        few = n_leaves <= 1 << 16 or _largest(routes, n_leaves) <= 1 << 16
        # (tree, row): leaves, counted in their tree
        shape = (min(self._at_once, len(routes.trees)), self._n_rows)
        self.leaf: NDArray[Any] = np.empty(shape, np.uint16 if few else np.uint32)

    def chunks(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """First tree and the one behind the last, of trees whose leaves are found together."""
        for tree in range(first, stop, self._at_once):
            yield tree, min(stop, tree + self._at_once)

    def find(self, trees: tuple[int, int], first: int, size: int) -> None:
        """Write to `leaf` where rows first .. first + size end in some trees."""
        self.find_into(self.leaf, 0, trees, first, size)

    def find_into(
        self, leaf: NDArray[Any], at: int, trees: tuple[int, int], first: int, size: int
    ) -> None:
        """Write the same to another array, from a column on."""
        narrow, wide, routes = self._codes.narrow, self._codes.wide, self._routes
        for find, begin, end in routes.runs:
            run = (max(begin, trees[0]), min(end, trees[1]))
            if run[0] >= run[1]:
                continue
            out = leaf[run[0] - trees[0] :]
            if find is None:
                out[: run[1] - run[0], at : at + size] = 0
            elif find is loops.blended_leaves and len(wide) == 0:
                ends = self._ends
                find(narrow, routes.trees, routes.nodes, *run, first, size, ends, out, at)
            else:  # nodes to blend hold narrow codes, and can be walked as well
                look_up = loops.walked_leaves if find is loops.blended_leaves else find
                look_up(narrow, wide, *routes[:4], *run, first, size, out, at)

    @cached_property
    def _ends(self) -> NDArray[np.uint8]:
        return np.empty((loops.MAX_BLENDED + 1, BLOCK), np.uint8)


def loops_for(trees: Int32s) -> list[tuple[Any, int, int]]:
    """Stretches of trees whose leaves one loop finds: the loop, the first tree, the one behind.

    Loops are apart, so that only those are compiled that a method's trees need. A tree of one leaf
    needs none.
    """
    found = list[tuple[Any, int, int]]()
    for k, (root, columns, blended, _, _) in enumerate(trees.tolist()):
        find: Any = loops.table_leaves if columns > 0 else loops.walked_leaves
        if blended > 0:
            find = loops.blended_leaves
        elif root < 0:
            find = None
        if found and found[-1][0] is find:
            found[-1] = (find, found[-1][1], k + 1)
        else:
            found.append((find, k, k + 1))
    return found


def _largest(routes: RouteArrays, n_leaves: int) -> int:
    """Return how many leaves the tree with the most has."""
    return int(np.diff(routes.trees[:, 3], append=np.int32(n_leaves)).max(initial=0))


def leaf_sums(
    codes: CodeArrays, gradients: Gradients, routes: RouteArrays, kept: NDArray[np.uint16],
    n_leaves: int, spare: int = 0,
) -> Ints:  # fmt: skip
    """Add every row's statistics in every leaf of every tree: (statistic, leaf).

    They lie in one row, with `spare` elements behind them. If there is room in `kept` (tree, row),
    every row's leaf, counted in its tree, is left there.
    """
    width, n_trees = gradients.width, len(routes.trees)

    def add(first: int, stop: int, total: Ints) -> None:
        finder = LeafFinder(codes, routes, stop - first, n_leaves)
        for begin, size, rows in _statistics(gradients, first, stop):
            for trees in finder.chunks(0, n_trees):
                at, leaf = (begin, kept[trees[0] :]) if len(kept) else (0, finder.leaf)
                finder.find_into(leaf, at, trees, begin, size)
                loops.add_to_leaves(leaf, at, routes.trees, *trees, rows, size, width, total)

    def work(rows: tuple[int, int]) -> Ints:
        part = np.zeros((n_leaves, width), np.int64)
        add(*rows, part)
        return part

    ranges = ranges_of(len(gradients.target), len(routes.trees))
    if len(ranges) == 1:
        total = _scratch.zeros(n_leaves, width)
        add(*ranges[0], total)
    else:
        total = _added(over_items(work, ranges))
    sums = np.empty(total.size + spare, np.int64)
    sums[: total.size].reshape(width, n_leaves)[...] = total.T
    return sums


def leaf_counts(codes: CodeArrays, routes: RouteArrays, n_leaves: int) -> Ints:
    """Count the rows in every leaf of one tree: (leaf,)."""
    n_rows = (codes.narrow if len(codes.narrow) else codes.wide).shape[1]

    def work(first: int, stop: int) -> Ints:
        finder = LeafFinder(codes, routes, stop - first, n_leaves)
        total = np.zeros(n_leaves, np.int64)
        for begin, size in stretches(first, stop):
            finder.find((0, 1), begin, size)
            total += np.bincount(finder.leaf[0, :size], minlength=n_leaves)
        return total

    return _added(over_rows(work, n_rows))


def leaves(codes: CodeArrays, routes: RouteArrays, n_rows: int, n_leaves: int) -> NDArray[Any]:
    """Find every row's leaf in every tree, counted in the tree: (tree, row)."""
    n_trees = len(routes.trees)
    finder = LeafFinder(codes, routes, n_rows, n_leaves)
    found: NDArray[Any] = np.empty((n_trees, n_rows), finder.leaf.dtype)
    for begin, size in stretches(0, n_rows):
        finder.find_into(found, begin, (0, n_trees), begin, size)
    return found


def node_histograms(
    codes: CodeArrays, gradients: Gradients, routes: RouteArrays, columns: ColumnBins, wanted: Ints
) -> Ints:
    """Add every row's statistics by leaf of a tree and bin of all columns: (statistic, leaf, bin).

    `wanted` (leaf,) is 1 or 0: rows in leaves that are not wanted are left out.
    """
    n_leaves, width, takes = len(wanted), gradients.width, wanted.astype(np.bool_)

    def work(first: int, stop: int) -> Ints:
        total = np.zeros((n_leaves * columns.n_bins, width), np.int64)
        finder = LeafFinder(codes, routes, stop - first, n_leaves)
        for begin, size, rows in _statistics(gradients, first, stop):
            finder.find((0, 1), begin, size)
            chosen = np.flatnonzero(takes[finder.leaf[0, :size]])
            leaf = finder.leaf[0, chosen].astype(np.int64)
            _add_to_bins(codes, columns, begin + chosen, leaf, rows[chosen], width, total)
        return total

    total = _summed(work, gradients)  # (leaf and bin, statistic)
    return np.ascontiguousarray(total.T).reshape(-1, n_leaves, columns.n_bins)


def _add_to_bins(
    codes: CodeArrays, columns: ColumnBins, chosen: Ints, leaf: Ints, rows: Ints, width: int,
    total: Ints,
) -> None:  # fmt: skip
    loops.add_to_bins(
        codes.narrow, codes.wide, *columns, chosen, leaf, rows, len(chosen), width, total
    )


def column_sums(codes: CodeArrays, gradients: Gradients, columns: ColumnBins) -> Ints:
    """Add every row's statistics by bin of every column: (statistic, bin of all columns)."""
    if gradients.is_one_hot:
        return _class_sums(codes, gradients, columns)
    if gradients.width == 1:
        return _single_sums(codes, gradients, columns, lambda rows: rows[:, 0])

    def work(first: int, stop: int) -> Ints:
        total = np.zeros((columns.n_bins, gradients.width), np.int64)
        no_leaf = np.zeros(min(STRETCH, stop - first), np.int64)
        for begin, size, rows in _statistics(gradients, first, stop):
            every = np.arange(begin, begin + size)
            _add_to_bins(codes, columns, every, no_leaf, rows, gradients.width, total)
        return total

    return np.ascontiguousarray(_summed(work, gradients, len(columns.place)).T)


def _class_sums(codes: CodeArrays, gradients: Gradients, columns: ColumnBins) -> Ints:
    """Count classes by bin. Two share a sum, one in each half of it: no table has 2**31 rows."""
    counts = np.empty((gradients.width, columns.n_bins), np.int64)
    for label in range(0, gradients.width, 2):
        value = np.zeros(gradients.width, np.int64)
        value[label : label + 2] = (1, 1 << 32)[: gradients.width - label]

        def work(first: int, stop: int, value: Ints = value) -> Ints:
            total = np.zeros((2, columns.n_bins), np.int64)
            for begin, size in stretches(first, stop):
                values = value[gradients.target[begin : begin + size].astype(np.int64)]
                loops.add_one_to_bins(codes.narrow, codes.wide, *columns[:2], begin, values, total)
            return np.asarray(total[0] + total[1])

        both = _summed(work, gradients, len(columns.place))
        counts[label] = both & 0xFFFFFFFF
        counts[label + 1 : label + 2] = both >> 32
    return np.asarray(counts << gradients.bits)


def _single_sums(
    codes: CodeArrays, gradients: Gradients, columns: ColumnBins, take: Callable[[Ints], Ints]
) -> Ints:
    """Add one number a row, taken from its statistics, by bin of every column: (1, bin)."""

    def work(first: int, stop: int) -> Ints:
        total = np.zeros((2, columns.n_bins), np.int64)
        for begin, size, rows in _statistics(gradients, first, stop):
            values = np.ascontiguousarray(take(rows[:size]))
            loops.add_one_to_bins(codes.narrow, codes.wide, *columns[:2], begin, values, total)
        return np.asarray(total[0] + total[1])

    return np.asarray(_summed(work, gradients, len(columns.place))[None])


def column_hessians(codes: CodeArrays, gradients: Gradients, columns: ColumnBins) -> Ints:
    """Add every row's Hessians, those of all outputs together, by bin of every column: (bin,)."""
    k = gradients.scores.shape[1]
    sums = _single_sums(codes, gradients, columns, lambda rows: rows[:, k : 2 * k].sum(axis=1))
    return np.asarray(sums[0])


def step_sums(gradients: Gradients, before: Floats, scale: float) -> Ints:
    """Say how good a step was: its slope and curvature, u the step in units of `scale`: (2,).

    They are the sums of g u and h u^2; of several outputs, those of `loops.softmax_step_sums`.
    """
    n_outputs, several = gradients.scores.shape[1], gradients.loss == SOFTMAX
    # All scores of a row move alike where its label is a time to an event: the first says it.
    alike = gradients.loss == HAZARDS
    weights, weight_bits = gradients.weights, gradients.weight_bits
    if several:  # probabilities, whatever else the sums are of; what follows from them is weighed
        gradients = gradients._replace(
            update=NEWTON, clip=NO_CLIP, width=2 * n_outputs, weights=UNWEIGHTED
        )
    now, target = gradients.scores, gradients.target

    def work(first: int, stop: int) -> Ints:
        total = np.zeros(2, np.int64)
        steps = np.empty(min(STRETCH, max(stop - first, 0)), np.int32)
        step = np.empty(n_outputs, np.int64)
        for begin, size, rows in _statistics(gradients, first, stop):
            some = slice(begin, begin + size)
            if several:
                loops.softmax_step_sums(
                    now[some], before[some], scale, target[some], gradients.bits, rows,
                    weights[some], weight_bits, step, total,
                )  # fmt: skip
            else:
                flat, earlier = now.reshape(-1)[some], before.reshape(-1)[some]
                if alike:
                    flat, earlier = (np.ascontiguousarray(s[some, 0]) for s in (now, before))
                loops.step_sums(flat, earlier, scale, rows, steps, total)
        return total

    scale = float(scale)
    return _summed(work, gradients)


def _summed(work: Callable[[int, int], Ints], gradients: Gradients, each: int = 1) -> Ints:
    """Add what `work` gives for the ranges of all rows."""
    return _added(over_rows(work, len(gradients.target), each))


def _added(parts: list[Ints]) -> Ints:
    return parts[0] if len(parts) == 1 else np.asarray(sum(parts[1:], parts[0]))
