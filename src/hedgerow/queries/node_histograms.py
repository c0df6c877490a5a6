"""Gradient and Hessian histograms of several columns in every open node of a growing tree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.binning import base_grid, code_places
from hedgerow.errors import FormatError
from hedgerow.losses import UPDATES, RowBound, loss_for, loss_named
from hedgerow.model.routing import routes_of
from hedgerow.model.tree import Structure, stack, unstack
from hedgerow.queries.base import Block, EnsembleRef, Sensitivity
from hedgerow.queries.cuts import bin_of_codes, check_cuts, n_bins_of, pack_cuts, unpack_cuts
from hedgerow.schema import Schema
from hedgerow.tables import Rows


@dataclass(frozen=True, eq=False)
class NodeHistograms:
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
    kind: ClassVar[str] = "node-histograms"

    @cached_property
    def bound(self) -> RowBound:
        return loss_named(self.loss).bound(self.update)

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
        grid = base_grid(schema)
        if self.loss != loss_for(schema.label).name:
            raise FormatError("node histograms ask for a loss that does not belong to the label")
        check_cuts(grid, self.columns, self.cuts, "node histograms")
        n_bins = tuple(n_bins_of(grid[j], c) for j, c in zip(self.columns, self.cuts, strict=True))
        if self.n_bins != n_bins:
            raise FormatError("node histograms do not have the lengths they state")
        self.structure.check(schema)
        routes_of([self.structure], grid)

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        grid, loss = base_grid(schema), loss_named(self.loss)
        bins, ends = bin_of_codes(grid, self.columns, self.cuts)
        routes = routes_of([self.structure], grid)
        total = kernels.node_histograms(
            rows.codes.narrow, rows.codes.wide, scores, rows.target, bits, loss.code,
            UPDATES[self.update], kernels.NO_CLIP, self.bound.width, *routes.arrays,
            routes.n_leaves, code_places(grid)[list(self.columns)], bins, int(ends[-1]),
        )  # fmt: skip
        return total.ravel()

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {
            **pack_cuts(self.columns, self.cuts),
            "n_bins": np.array(self.n_bins, np.int32),
            **stack([self.structure]),
        }
        ensemble = [self.ensemble.length, self.ensemble.hash]
        return {"loss": self.loss, "update": self.update, "ensemble": ensemble}, arrays

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
        )
