"""The hot path: compiled loops over ranges of rows, on all cores.

Arrays that travel together are NamedTuples; the comment of a field has its shape.

arrays.py      groups of arrays that loops of several files take
compiling.py   the decorator of compiled loops
pipeline.py    the passes of Numba that plain loops need
statistics.py  what every row adds to a sum, on an integer grid
hazards.py     the same about times to an event
loops.py       leaves of rows, integer sums, scores
sweeps.py      sums over all rows of a table, stretch by stretch
scoring.py     running scores of all rows
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

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import coding, statistics
from hedgerow.kernels.arrays import CodeArrays, Floats, Ints, TreeArrays
from hedgerow.kernels.hashes import (
    PER_WORD,
    Draws,
    OtherRows,
    Projection,
    band_keys,
    hash_rows,
    in_order,
    search_all,
    search_window,
    sums_by_place,
)
from hedgerow.kernels.hazards import log_risks
from hedgerow.kernels.levels import go_right, level_histograms
from hedgerow.kernels.loops import MAX_BLENDED
from hedgerow.kernels.scoring import LeafValues, add_kept, add_scores
from hedgerow.kernels.shapes import as_table, as_walk
from hedgerow.kernels.statistics import (
    AVERAGING,
    COUNT,
    EXPOSURE_STEPS,
    GRADIENT,
    HAZARDS,
    HUBER,
    LOGISTIC,
    NEWTON,
    NO_CLIP,
    POISSON,
    QUANTILE,
    SLOPE,
    SOFTMAX,
    SQUARED,
    Gradients,
    count_and_exposure,
)
from hedgerow.kernels.structures import objection, table_tree, table_trees
from hedgerow.kernels.sweeps import (
    ColumnBins,
    RouteArrays,
    column_hessians,
    column_sums,
    leaf_counts,
    leaf_sums,
    leaves,
    loops_for,
    node_histograms,
    step_sums,
)
from hedgerow.kernels.threads import BLOCK, over_items, over_rows, use_threads
from hedgerow.kernels.trees import BinLayout, GrownTree, SplitRule, best_splits, grow

__all__ = [
    "AVERAGING",
    "BLOCK",
    "COUNT",
    "EXPOSURE_STEPS",
    "GRADIENT",
    "HAZARDS",
    "HUBER",
    "LOGISTIC",
    "MAX_BLENDED",
    "NEWTON",
    "NO_CLIP",
    "PER_WORD",
    "POISSON",
    "QUANTILE",
    "SLOPE",
    "SOFTMAX",
    "SQUARED",
    "BinLayout",
    "CodeArrays",
    "ColumnBins",
    "Draws",
    "Gradients",
    "GrownTree",
    "LeafValues",
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
    "count_and_exposure",
    "encode",
    "go_right",
    "grow",
    "hash_rows",
    "in_order",
    "leaf_counts",
    "leaf_sums",
    "leaves",
    "level_histograms",
    "log_risks",
    "loops_for",
    "node_histograms",
    "objection",
    "row_statistics",
    "search_all",
    "search_window",
    "spread",
    "step_sums",
    "sums_by_place",
    "table_tree",
    "table_trees",
    "take_above",
    "use_threads",
]  # fmt: skip

_STRETCHES = 1024  # of a column's range, for the guess where a value lies
_FEW = 256
_CHUNK = 1 << 15  # values that are made float32 at once


def row_statistics(loss: int, scores: Floats, target: Floats, bits: int) -> Ints:
    """Return gradients, then Hessians, of every row and output: (row, statistic)."""
    width = 2 * scores.shape[1]
    out = np.empty((len(target), width), np.int64)
    gradients = Gradients(scores, target, bits, loss, NEWTON, NO_CLIP, width)

    def work(first: int, stop: int) -> None:
        for begin in range(first, stop, BLOCK):
            statistics.row_statistics(gradients, begin, min(BLOCK, stop - begin), out[begin:])

    over_rows(work, len(target))
    return out


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
