"""Rules of the authors' program that hedgerow changes, put into hedgerow's loop one at a time.

They say which change a cell's distance comes from. Each draws trees from public facts or works on
releases, so none asks more or spends more; noise is only added to. Nothing outside of this
benchmark uses them. Read from the program that the paper points to, and written anew.

noise        gradients, Hessians and counts carry the noise of the paper's sensitivities
scalar       the same as two scalar queries, as its experiments about candidates have it
leaves       a leaf's share is its noisy ratio: 1/2 where the count is not above 0
gains        gains of averaging as released, without allowing for counts below their noise
subtraction  of two drawn sides one is asked, the other is the parent less that one
cuts         every candidate is drawn alike, also one that parts nothing that is left in a node
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import ColumnGrid, base_grid
from hedgerow.data.schema import Numeric, Schema
from hedgerow.methods.maddock import boosting
from hedgerow.methods.maddock.candidates import Cuts
from hedgerow.methods.maddock.growing_tree import Cut, GrowingTree
from hedgerow.methods.maddock.splits.growth import Growth
from hedgerow.methods.maddock.splits.totally_random import totally_random
from hedgerow.model.splitting import Histogram
from hedgerow.model.tree import Structure
from hedgerow.privacy.ledger.reservation import Release
from hedgerow.queries import LeafSums, NodeHistograms, SumQuery

# Variances of the paper's noise, of gradients and of what divides them, where one of sigma = 1
# has sensitivity 1: section 4.2 for Newton steps, 4.4 for the others; and asked one by one.
PAPER = {"newton": (17 / 16, 17 / 16), "gradient": (2.0, 2.0), "averaging": (2.0, 2.0)}
SCALAR = {"newton": (2.0, 2 / 16), "gradient": (2.0, 2.0), "averaging": (2.0, 2.0)}
NO_SET = np.zeros(0, np.uint64)


@contextmanager
def applied(names: Sequence[str]) -> Iterator[None]:
    """Hedgerow's loop with these rules of the authors'."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(VARIANTS[name]())
        yield


def _noise(variances: dict[str, tuple[float, float]]) -> Callable[[], Any]:
    asked = Gate.release

    def release(gate: Gate, query: SumQuery) -> Release:
        found = asked(gate, query)
        if not isinstance(query, LeafSums | NodeHistograms):
            return found
        extra = _missing(query, found, variances[query.update])
        total = found.total + np.rint(extra * 2.0**found.bits).astype(np.int64)
        return replace(found, total=total)

    return lambda: patch.object(Gate, "release", release)


def _missing(query: Any, found: Release, wanted: tuple[float, float]) -> np.ndarray:
    """Noise that the release lacks to carry what the paper adds."""
    bound, rng = query.bound, np.random.default_rng()
    sigma, size = found.unit / bound.l2, len(found.total) // bound.width
    if query.update == "averaging":  # class counts: their sum has variance 2 already
        share = sigma * rng.normal(size=size)
        return np.concatenate([-share, share])
    parts = []
    for variance, own in zip(wanted, (found.unit, found.unit / bound.second_scale), strict=True):
        lacks = math.sqrt(max(0.0, variance * sigma**2 - own**2))
        parts.append(lacks * rng.normal(size=size))
    return np.concatenate(parts)


def _leaves() -> Any:
    def averages(sums: np.ndarray, bound: Any, floor: Any) -> np.ndarray:
        ours, rows = sums[1], sums.sum(axis=0)  # rows of class 1, and of both
        share = np.divide(ours, rows, out=np.full_like(ours, 0.5), where=rows > 0)
        return np.asarray(np.clip(share, 0.0, 1.0)[:, None])

    return patch.object(boosting, "average_values", averages)


def _gains() -> Any:
    made = Growth.__init__

    def init(growth: Growth, *given: Any) -> None:
        made(growth, *given)
        growth.rule = replace(growth.rule, floor_deviations=0.0, clip=growth.settings.leaf_clip)

    return patch.object(Growth, "__init__", init)


def _subtraction() -> Any:
    def agreed(growth: Growth, node: int, released: Sequence[Histogram]) -> list[Histogram]:
        if growth.settings.split != "partially-random" or not released:
            return list(released)
        known = growth.grown.nodes[node].sums
        total = released[0].total if known is None else known
        return [
            replace(one, sums=np.stack([one.sums[:, 0], total - one.sums[:, 0]], axis=1))
            if one.sums.shape[1] == 2
            else one
            for one in released
        ]

    return patch.object(Growth, "agreed", agreed)


def _cuts() -> Any:
    def drawn(
        schema: Schema,
        cuts: Cuts,
        columns: Sequence[int],
        depth: int,
        category_split: str,
        rng: Any,
    ) -> Structure:
        grid = base_grid(schema)
        every = {j: _candidates(grid[j], cuts[j]) for j in columns if grid[j].ordered}
        if len(every) < len(columns):
            return totally_random(schema, cuts, columns, depth, category_split, rng)
        return _tree(every, depth, rng)

    return patch.object(boosting, "totally_random", drawn)


def _tree(every: dict[int, list[float]], depth: int, rng: Any) -> Structure:
    """A column, then one of the candidates that cuts above leave by their numbers."""
    tree = GrowingTree()
    level = [(0, {j: (0, len(edges)) for j, edges in every.items()})]
    for _ in range(depth):
        below = []
        for node, left in level:
            usable = [j for j, (first, stop) in left.items() if first < stop]
            if not usable:
                continue
            j = usable[int(rng.integers(len(usable)))]
            at = int(rng.integers(*left[j]))
            cut = Cut(j, every[j][at], NO_SET, bool(rng.integers(2)))
            sides = (left[j][0], at), (at + 1, left[j][1])
            for child, side in zip(tree.split(node, cut), sides, strict=True):
                below.append((child, {**left, j: side}))
        level = below
    return tree.structure()


def _candidates(grid: ColumnGrid, cuts: tuple[int, ...]) -> list[float]:
    """32 evenly spaced places as edges of the grid: several of them may be the same edge."""
    column, edges = grid.column, grid.edges
    if not isinstance(column, Numeric) or not len(edges):
        return [float(edges[k]) for k in cuts]
    lower, upper = float(column.lower), float(column.upper)
    places = lower + (upper - lower) * np.arange(32) / 32  # rows up to a place go left
    if column.integer:
        at = np.searchsorted(edges, places.astype(np.float32), side="right")
    else:
        at = np.abs(edges[None, :] - places[:, None]).argmin(axis=1)
    return [float(edges[k]) for k in np.minimum(at, len(edges) - 1)]


VARIANTS: dict[str, Callable[[], Any]] = {
    "noise": _noise(PAPER),
    "scalar": _noise(SCALAR),
    "leaves": _leaves,
    "gains": _gains,
    "subtraction": _subtraction,
    "cuts": _cuts,
}
