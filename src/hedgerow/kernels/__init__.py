"""The hot path: compiled loops over ranges of rows, on all cores.

Loops take NamedTuples of arrays that travel together; the comment of a field has its shape.

arrays.py      groups of arrays that loops of several files take
compiling.py   the decorator of compiled loops
loops.py       route rows, add integer gradients, update scores
coding.py      values to codes; codes to the rows of several sets
trees.py       the exact grower
levels.py      histograms of many nodes at once
structures.py  check trees; build those of the default method
shapes.py      nodes of trees in code space
cells.py       bins and cells of interaction tables
posterior.py   what noisy sums say of a column, under several priors
strategy.py    sums by bin times a strategy matrix
hashes.py      hashes of rows, and the row with most equal hashes
threads.py     ranges of rows on all cores
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import coding, hashes, levels, loops, shapes, structures, trees
from hedgerow.kernels.arrays import Bools, CodeArrays, Floats, Int32s, Ints, TreeArrays, Words
from hedgerow.kernels.hashes import PER_WORD, Draws, OtherRows, Projection, band_keys, search_window
from hedgerow.kernels.loops import (
    AVERAGING,
    COUNT,
    GRADIENT,
    LOGISTIC,
    MAX_BLENDED,
    NEWTON,
    NO_CLIP,
    SLOPE,
    SOFTMAX,
    SQUARED,
    ColumnBins,
    Gradients,
    RouteArrays,
)
from hedgerow.kernels.threads import BLOCK, over_items, over_rows, ranges_of, use_threads
from hedgerow.kernels.trees import BinLayout, GrownTree, SplitRule, grow

__all__ = [
    "AVERAGING",
    "BLOCK",
    "COUNT",
    "GRADIENT",
    "LOGISTIC",
    "MAX_BLENDED",
    "NEWTON",
    "NO_CLIP",
    "PER_WORD",
    "SLOPE",
    "SOFTMAX",
    "SQUARED",
    "BinLayout",
    "CodeArrays",
    "ColumnBins",
    "Draws",
    "Gradients",
    "GrownTree",
    "OtherRows",
    "Projection",
    "RouteArrays",
    "SplitRule",
    "TreeArrays",
    "add_kept",
    "add_scores",
    "as_table",
    "as_walk",
    "band_keys",
    "best_splits",
    "column_hessians",
    "column_sums",
    "encode",
    "go_right",
    "grow",
    "hash_rows",
    "leaf_counts",
    "leaf_sums",
    "level_histograms",
    "node_histograms",
    "objection",
    "row_statistics",
    "search_all",
    "search_window",
    "spread",
    "step_sums",
    "sums_by_place",
    "table_tree",
    "take_above",
    "use_threads",
]  # fmt: skip

_STRETCHES = 1024  # of a column's range, for the guess where a value lies
_FEW = 256
_CHUNK = 1 << 15  # values that are made float32 at once


def leaf_sums(
    codes: CodeArrays, gradients: Gradients, routes: RouteArrays, kept: NDArray[np.uint16],
    n_leaves: int, spare: int = 0,
) -> Ints:  # fmt: skip
    """Add every row's statistics in every leaf of every tree: (statistic, leaf).

    They lie in one row, with `spare` elements behind them. See `loops.leaf_sums` on `kept`.
    """
    n_rows, width = len(gradients.target), gradients.width
    ranges = ranges_of(n_rows, len(routes.trees))
    if len(ranges) == 1:
        total = _scratch.zeros(n_leaves, width)
        loops.leaf_sums(codes, gradients, routes, kept, 0, n_rows, total)
    else:

        def work(rows: tuple[int, int]) -> Ints:
            part = np.zeros((n_leaves, width), np.int64)
            loops.leaf_sums(codes, gradients, routes, kept, *rows, part)
            return part

        total = _added(over_items(work, ranges))
    sums = np.empty(total.size + spare, np.int64)
    sums[: total.size].reshape(width, n_leaves)[...] = total.T
    return sums


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


def node_histograms(
    codes: CodeArrays, gradients: Gradients, routes: RouteArrays, columns: ColumnBins, wanted: Ints
) -> Ints:
    """Add every row's statistics by leaf of a tree and bin of all columns: (statistic, leaf, bin).

    `wanted` (leaf,) is 1 or 0: rows in leaves that are not wanted are left out.
    """
    loop, arguments = loops.node_histograms, (codes, gradients, routes, columns, wanted)
    total = _summed(lambda *rows: loop(*arguments, *rows), gradients)  # (leaf and bin, statistic)
    return np.ascontiguousarray(total.T).reshape(-1, len(wanted), columns.n_bins)


def leaf_counts(codes: CodeArrays, routes: RouteArrays, n_leaves: int) -> Ints:
    """Count the rows in every leaf of one tree: (leaf,)."""
    n_rows = (codes.narrow if len(codes.narrow) else codes.wide).shape[1]
    return _added(
        over_rows(lambda *rows: loops.leaf_counts(codes, routes, n_leaves, *rows), n_rows)
    )


def column_sums(codes: CodeArrays, gradients: Gradients, columns: ColumnBins) -> Ints:
    """Add every row's statistics by bin of every column: (statistic, bin of all columns)."""
    loop, each = loops.column_sums, len(columns.place)
    total = _summed(lambda *rows: loop(codes, gradients, columns, *rows), gradients, each)
    return np.ascontiguousarray(total.T)


def column_hessians(codes: CodeArrays, gradients: Gradients, columns: ColumnBins) -> Ints:
    """Add every row's Hessians, those of all outputs together, by bin of every column: (bin,)."""
    loop = loops.column_hessians
    total = _summed(lambda *rows: loop(codes, gradients, columns, *rows), gradients)
    return np.ascontiguousarray(total[:, 0])


def step_sums(gradients: Gradients, before: Floats, scale: float) -> Ints:
    """Say how good a step was: its slope and curvature, u the step in units of `scale`: (2,).

    They are the sums of g u and h u^2; of several outputs, those of `loops.softmax_step_sums`.
    """
    loop = loops.step_sums
    if gradients.loss == SOFTMAX:  # probabilities, whatever else the sums are of
        width = 2 * gradients.scores.shape[1]
        gradients = gradients._replace(update=NEWTON, clip=NO_CLIP, width=width)
        loop = loops.softmax_step_sums
    return _summed(lambda *rows: loop(gradients, before, float(scale), *rows), gradients)


def row_statistics(loss: int, scores: Floats, target: Floats, bits: int) -> Ints:
    """Return gradients, then Hessians, of every row and output: (row, statistic)."""
    width = 2 * scores.shape[1]
    out = np.empty((len(target), width), np.int64)
    gradients = Gradients(scores, target, bits, loss, NEWTON, NO_CLIP, width)

    def work(first: int, stop: int) -> None:
        for begin in range(first, stop, BLOCK):
            loops.row_statistics(gradients, begin, min(BLOCK, stop - begin), out[begin:])

    over_rows(work, len(target))
    return out


def _summed(loop: Callable[[int, int], Ints], gradients: Gradients, each: int = 1) -> Ints:
    """Add what a loop gives for the ranges of all rows."""
    return _added(over_rows(loop, len(gradients.target), each))


def _added(parts: list[Ints]) -> Ints:
    return parts[0] if len(parts) == 1 else np.asarray(sum(parts[1:], parts[0]))


def best_splits(
    histograms: Ints, layout: BinLayout, totals: Ints, rule: SplitRule
) -> tuple[Floats, Ints, Bools]:
    """Find the best split of every node: scores, columns, and codes that go right (node, code)."""
    n, most = len(totals), int(np.diff(layout.starts).max(initial=1))
    scores, columns = np.empty(n), np.full(n, -1, np.int64)
    rights = np.zeros((n, most), np.bool_)
    trees.best_splits(histograms, layout, totals, rule, scores, columns, rights)
    return scores, columns, rights


def level_histograms(
    codes: CodeArrays, starts: Ints, node: NDArray[np.uint16], slot: Ints, gradients: Ints,
    n_slots: int,
) -> Ints:  # fmt: skip
    """Add rows' statistics by slot of their node and bin: (slot, bin, statistic)."""
    arguments = (codes, starts, node, slot, gradients, n_slots)
    total = _added(over_rows(lambda *rows: levels.level_sums(*arguments, *rows), len(node)))
    return total.reshape(n_slots, int(starts[-1]), gradients.shape[1])


def go_right(
    codes: CodeArrays, node: NDArray[np.uint16], columns: Ints, rights: Bools,
    out: NDArray[np.uint8],
) -> None:  # fmt: skip
    """Write whether each row goes right at its node, where the node is split by these columns."""

    def work(first: int, stop: int) -> None:
        levels.go_right(codes, node, columns, rights, first, stop, out)

    over_rows(work, len(node))


def hash_rows(codes: CodeArrays, projection: Projection, words: Words) -> None:
    """Write hashes of every row, sixteen a word; see `hashes.hash_rows`."""

    def work(first: int, stop: int) -> None:
        hashes.hash_rows(codes, projection, first, stop, words)

    over_rows(work, len(words))


def search_all(own: Words, others: OtherRows, draws: Draws, best: Words) -> None:
    """Compare every row with every row of another party; see `hashes.search_all`."""

    def work(first: int, stop: int) -> None:
        hashes.search_all(own, others, draws, first, stop, best)

    over_rows(work, len(own))


def in_order(words: Words, keys: Words, shift: int) -> Words:
    """Return the rows in the order of their sorted keys: (word, row)."""
    columns = np.empty((words.shape[1], len(keys)), np.uint64)
    hashes.in_order(words, keys, shift, columns)
    return columns


def sums_by_place(place: Ints | Int32s, statistics: Ints, n_places: int) -> Ints:
    """Add the statistics of all rows up by place: (place, statistic)."""
    total = np.zeros((n_places, statistics.shape[1]), np.int64)
    hashes.sums_by_place(place, statistics, total)
    return total


def add_scores(
    codes: CodeArrays, scores: Floats, routes: RouteArrays, values: NDArray[np.float32]
) -> None:
    """Add each tree's leaf value to the running scores, in tree order, in float64."""

    def work(first: int, stop: int) -> None:
        loops.add_scores(codes, scores, routes, values, first, stop)

    over_rows(work, scores.shape[0], len(routes.trees))


def add_kept(
    scores: Floats, kept: NDArray[np.uint16], values: NDArray[np.float32],
    first_leaf: NDArray[np.int32],
) -> None:  # fmt: skip
    """Add trees' leaf values where every row's leaf in each of them is known: (tree, row)."""

    def work(first: int, stop: int) -> None:
        loops.add_kept(scores, kept, values, first_leaf, first, stop)

    over_rows(work, scores.shape[0])


def spread(codes: NDArray[Any], of: NDArray[Any], sizes: Ints) -> list[NDArray[Any]]:
    """Return the codes (column, row) of several sets of rows; `of` names the set of every row."""
    loop: Any = coding.spread
    n_columns, first = len(codes), np.cumsum(sizes) - sizes
    flat = np.empty(codes.size, codes.dtype)  # set after set, and in each column after column

    def work(j: int) -> None:
        loop(codes[j], of, n_columns * first + j * sizes, flat)

    over_items(work, range(n_columns))
    parts = np.split(flat, n_columns * np.cumsum(sizes)[:-1])
    return [part.reshape(n_columns, int(n)) for part, n in zip(parts, sizes, strict=True)]


def take_above(values: NDArray[Any], lowest: int, table: NDArray[Any], out: NDArray[Any]) -> None:
    """Write what the table has at each integer less the lowest; see `coding.take_above`."""
    loop: Any = coding.take_above
    over_rows(lambda first, stop: loop(values, lowest, table, first, stop, out), len(values))


def encode(
    values: NDArray[Any], edges: NDArray[np.float32], missing: int, out: NDArray[Any]
) -> None:
    """Count the edges <= x for every value, both in float32; NaN becomes `missing`.

    Values are cast by way of float64, so that one rounds alike whether it came as text or integer.
    """
    edges = np.ascontiguousarray(edges, np.float32)
    lead, scale = np.zeros(2, np.int32), 0.0
    if len(values) < _FEW:  # not worth a guess: search between all edges
        lead = np.array([0, edges.size], np.int32)
    elif edges.size > 1 and edges[-1] > edges[0]:
        span = float(edges[-1]) - float(edges[0])
        scale = _STRETCHES / span
        begins = float(edges[0]) + span * (np.arange(_STRETCHES + 1) / _STRETCHES)
        lead = np.searchsorted(edges, begins, side="right").astype(np.int32)

    def work(first: int, stop: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            for begin in range(first, stop, _CHUNK):
                end = min(stop, begin + _CHUNK)
                block = values[begin:end]
                if block.dtype != np.float32:
                    block = block.astype(np.float64, copy=False).astype(np.float32)
                block = np.ascontiguousarray(block)
                coding.encode(block, edges, lead, scale, missing, out[begin:end])

    over_rows(work, len(values))


def objection(*tree: Any) -> tuple[int, int]:
    """Return what is wrong with a tree, and the node; see `structures.objection`."""
    loop: Any = structures.objection
    what, node = loop(*tree)
    return int(what), int(node)


def table_tree(*columns: Any) -> tuple[NDArray[Any], ...]:
    """Return a tree of the cells of several columns' parts; see `structures.table_tree`."""
    loop: Any = structures.table_tree
    tree: tuple[NDArray[Any], ...] = loop(*columns)
    return tree


def as_table(*tree: Any) -> tuple[int, NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return a tree of few columns as a table; see `shapes.as_table`."""
    loop: Any = shapes.as_table
    n_columns, columns, sizes, after = loop(*tree)
    return int(n_columns), columns, sizes, after


def as_walk(*tree: Any) -> tuple[int, NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return a tree to be walked or blended; see `shapes.as_walk`."""
    loop: Any = shapes.as_walk
    depth, sizes, after, nodes = loop(*tree)
    return int(depth), sizes, after, nodes
