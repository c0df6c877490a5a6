"""Gradient and Hessian histograms of several columns in every open node of a growing tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import base_grid, code_places
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.model.losses import UPDATES, RowBound, loss_for, loss_named
from hedgerow.model.routing import shared_routes
from hedgerow.model.stacking import stack, unstack
from hedgerow.model.tree import Structure
from hedgerow.queries.base import (
    Block,
    EnsembleRef,
    QueryBase,
    RowWeights,
    Sensitivity,
    check_clip,
    clip_steps,
)
from hedgerow.queries.cuts import bin_of_codes, check_cuts, n_bins_of, pack_cuts, unpack_cuts


@dataclass(frozen=True, eq=False)
class _Known:
    """The last exact sums of a table, which never leave the party, and what they are sums of."""

    asked: tuple[Any, ...]
    scores: Callable[[], NDArray[np.float64] | None]
    structure: Structure
    sums: NDArray[np.int64]  # (number, leaf, bin)


_LAST: WeakKeyDictionary[Rows, _Known] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class NodeHistograms(QueryBase):
    """(number, leaf of the tree so far, bin of all columns), the last bin of a column missing.

    `cuts` are indices into the edges of an ordered column's base grid; categories have none, and
    `n_bins` says how many bins each column has, missing included.
    """

    structure: Structure
    columns: tuple[int, ...]
    cuts: tuple[tuple[int, ...], ...]
    n_bins: tuple[int, ...]
    loss: str
    ensemble: EnsembleRef
    update: str = "newton"
    clip: float = math.inf  # gradients are clamped to it
    kind: ClassVar[str] = "node-histograms"
    row_weights: ClassVar[RowWeights] = "scale"

    @cached_property
    def bound(self) -> RowBound:
        return loss_named(self.loss).bound(self.update, self.clip)

    @property
    def blocks(self) -> tuple[Block, ...]:
        size = self.structure.n_leaves * sum(self.n_bins)
        bound = self.bound
        second = (Block(size * bound.second, 1 / bound.second_scale),) if bound.second else ()
        return (Block(size * bound.first), *second)

    @property
    def sensitivity(self) -> Sensitivity:
        # A row lies in one leaf of the tree so far and in one bin of every column: it adds its
        # numbers, bounded by the loss, once for every column.
        m = len(self.columns)
        return Sensitivity(l1=m * self.bound.l1, l2=math.sqrt(m) * self.bound.l2)

    def check(self, schema: Schema) -> None:
        if self.loss != loss_for(schema.label).name:
            raise FormatError("node histograms ask for a loss that does not belong to the label")
        self.check_shape(schema)
        loss_named(self.loss).bound(self.update, self.clip)  # raises where it has no such update

    def check_shape(self, schema: Schema) -> None:
        """Everything but the loss: gradients, cuts and the tree."""
        grid = base_grid(schema)
        check_clip(self.clip)
        check_cuts(grid, self.columns, self.cuts, "node histograms")
        n_bins = tuple(n_bins_of(grid[j], c) for j, c in zip(self.columns, self.cuts, strict=True))
        if self.n_bins != n_bins:
            raise FormatError("node histograms do not have the lengths they state")
        self.structure.check(schema)
        shared_routes([self.structure], grid)

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        """Of two fresh leaves of one node only that with fewer rows is added up, where the sums of
        the node are still there: the other's are the rest, exactly, because sums are integers.
        """
        what = (self.loss, self.update, self.clip, self.ensemble)
        asked = (bits, what, self.columns, self.cuts)
        known, pairs, memory = _LAST.get(rows), None, _memory_of(scores)
        if known is not None and known.asked == asked and known.scores() is memory:
            pairs = _fresh_pairs(known.structure, self.structure)
        if known is None or pairs is None:
            total = self._sums(rows, scores, schema, bits, None)
        else:
            total = self._sums_of_halves(rows, scores, schema, bits, pairs, known)
        _LAST[rows] = _Known(asked, ref(memory), self.structure, total)
        return total.ravel()

    def _sums(
        self,
        rows: Rows,
        scores: NDArray[np.float64],
        schema: Schema,
        bits: int,
        wanted: NDArray[np.bool_] | None,
    ) -> NDArray[np.int64]:
        """(number, leaf, bin), leaves that are not wanted left at 0."""
        grid, loss = base_grid(schema), loss_named(self.loss)
        bins, ends = bin_of_codes(grid, self.columns, self.cuts)
        routes = shared_routes([self.structure], grid)
        chosen = np.ones(routes.n_leaves, np.int64) if wanted is None else wanted.astype(np.int64)
        gradients = kernels.Gradients(
            scores, rows.target, bits, loss.code, UPDATES[self.update],
            clip_steps(self.clip, bits), self.bound.width, rows.weights, schema.weight_bits,
            loss.parameter,
        )  # fmt: skip
        columns = kernels.ColumnBins(code_places(grid)[list(self.columns)], bins, int(ends[-1]))
        return kernels.node_histograms(rows.codes.arrays, gradients, routes.arrays, columns, chosen)

    def _sums_of_halves(
        self,
        rows: Rows,
        scores: NDArray[np.float64],
        schema: Schema,
        bits: int,
        pairs: NDArray[np.int64],
        known: _Known,
    ) -> NDArray[np.int64]:
        routes = shared_routes([self.structure], base_grid(schema))
        codes, before, sums = rows.codes, known.structure, known.sums
        counts = kernels.leaf_counts(codes.arrays, routes.arrays, routes.n_leaves)
        node, left, right = pairs.T
        left_is_larger = counts[left] > counts[right]
        more, fewer = np.where(left_is_larger, (left, right), (right, left))
        wanted = np.ones(routes.n_leaves, np.bool_)
        wanted[more] = False
        old = _same_leaves(before, self.structure)  # leaves that were not split stay as they were
        wanted[old[:, 1]] = False
        total = self._sums(rows, scores, schema, bits, wanted)
        total[:, more] = sums[:, node] - total[:, fewer]
        total[:, old[:, 1]] = sums[:, old[:, 0]]
        return total

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {
            **pack_cuts(self.columns, self.cuts),
            "n_bins": np.array(self.n_bins, np.int32),
            **stack([self.structure]),
        }
        ensemble = [self.ensemble.length, self.ensemble.hash]
        clip = None if math.isinf(self.clip) else self.clip
        values = {"loss": self.loss, "update": self.update, "clip": clip, "ensemble": ensemble}
        return values, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> NodeHistograms:
        columns, cuts = unpack_cuts(arrays, "node histograms")
        structures = unstack(arrays)
        length, hash_ = values["ensemble"]
        if len(structures) != 1 or values["update"] not in UPDATES:
            raise FormatError("node histograms are not readable")
        loss_named(values["loss"])
        return NodeHistograms(
            structures[0],
            columns,
            cuts,
            tuple(int(n) for n in arrays["n_bins"]),
            values["loss"],
            EnsembleRef(int(length), str(hash_)),
            values["update"],
            math.inf if values["clip"] is None else float(values["clip"]),
        )


def _fresh_pairs(before: Structure, now: Structure) -> NDArray[np.int64] | None:
    """(leaf before, its left leaf now, its right leaf now), if only leaves were split since."""
    n, was_leaf = before.n_nodes, before.feature < 0
    if now.n_nodes <= n or bool((now.feature[n:] >= 0).any()):
        return None
    for name in ("feature", "threshold", "missing_left", "left", "right"):
        if not np.array_equal(getattr(before, name)[~was_leaf], getattr(now, name)[:n][~was_leaf]):
            return None
    for node in np.flatnonzero(~was_leaf).tolist():
        if not np.array_equal(_members(before, node), _members(now, node)):
            return None
    split = np.flatnonzero(was_leaf & (now.feature[:n] >= 0))
    leaf = now.leaf
    pairs = [before.leaf[split], leaf[now.left[split]], leaf[now.right[split]]]
    return np.stack(pairs, axis=1).astype(np.int64)


def _same_leaves(before: Structure, now: Structure) -> NDArray[np.int64]:
    """(leaf before, leaf now) of the leaves that were not split."""
    n = before.n_nodes
    leaves = np.flatnonzero((before.feature < 0) & (now.feature[:n] < 0))
    return np.stack([before.leaf[leaves], now.leaf[leaves]], axis=1).astype(np.int64)


def _members(structure: Structure, node: int) -> NDArray[np.uint64]:
    return structure.members[structure.member_start[node] : structure.member_start[node + 1]]


def _memory_of(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The array whose memory the scores are; it is a new one for every other set of scores."""
    return scores if scores.base is None else scores.base
