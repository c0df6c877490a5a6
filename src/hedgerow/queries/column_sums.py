"""Sums by bin of every column at once: class counts, or clamped gradients at some trees."""

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
from hedgerow.queries.base import (
    Block,
    EnsembleRef,
    Sensitivity,
    check_clip,
    clip_steps,
)
from hedgerow.schema import Schema
from hedgerow.tables import Rows

MAX_WEIGHT = 1e3  # weights lie between 1/1000 and 1000; beyond, a column would be no question


@dataclass(frozen=True)
class ColumnSums:
    """For each column a block (number, bin), the last bin that of missing values.

    `cuts` are indices into the edges of an ordered column's base grid; every category is a bin of
    its own, so categorical columns have none. A column of weight w gets noise of 1/w.
    """

    columns: tuple[int, ...]
    cuts: tuple[tuple[int, ...], ...]
    n_bins: tuple[int, ...]
    weights: tuple[float, ...]
    loss: str
    ensemble: EnsembleRef
    update: str = "slope"
    clip: float = math.inf
    kind: ClassVar[str] = "column-sums"

    @cached_property
    def bound(self) -> RowBound:
        return loss_named(self.loss).bound(self.update, self.clip)

    @property
    def blocks(self) -> tuple[Block, ...]:
        bound, blocks = self.bound, []
        for n, w in zip(self.n_bins, self.weights, strict=True):
            blocks.append(Block(n * bound.first, 1 / w))
            if bound.second:
                blocks.append(Block(n * bound.second, 1 / (w * bound.second_scale)))
        return tuple(blocks)

    @property
    def sensitivity(self) -> Sensitivity:
        # A row lies in exactly one bin of every column and adds its numbers there, bounded by the
        # loss; in units of the column's noise they count w-fold.
        weights = self.weights
        l2 = math.sqrt(math.fsum(w * w for w in weights)) * self.bound.l2
        return Sensitivity(l1=math.fsum(weights) * self.bound.l1, l2=l2)

    def check(self, schema: Schema) -> None:
        grid = base_grid(schema)
        if self.loss != loss_for(schema.label).name:
            raise FormatError("column sums ask for a loss that does not belong to the label")
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise FormatError("column sums name a column twice, or none")
        lengths = {len(self.columns), len(self.cuts), len(self.n_bins), len(self.weights)}
        if len(lengths) != 1:
            raise FormatError("column sums do not have the lengths they state")
        check_clip(self.clip)
        # One by one: neither max nor min sees a weight that is no number.
        if not all(1 / MAX_WEIGHT <= weight <= MAX_WEIGHT for weight in self.weights):
            raise FormatError("column sums weigh a column by nothing, or by too much")
        for j, cuts, n_bins in zip(self.columns, self.cuts, self.n_bins, strict=True):
            if not 0 <= j < len(grid) or list(cuts) != sorted(set(cuts)):
                raise FormatError("column sums do not match the schema's base grid")
            inside = not cuts or (cuts[0] >= 0 and cuts[-1] < len(grid[j].edges))
            bins = (len(cuts) + 1 if grid[j].ordered else grid[j].n_cells) + 1
            if not inside or (cuts and not grid[j].ordered) or n_bins != bins:
                raise FormatError("column sums do not match the schema's base grid")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        grid, loss = base_grid(schema), loss_named(self.loss)
        offsets = np.concatenate([[0], np.cumsum(self.n_bins)])
        widest = max(grid[j].n_codes for j in self.columns)
        bins = np.zeros((len(self.columns), widest), np.int32)  # (column, code) -> bin of all
        for i, (j, cuts) in enumerate(zip(self.columns, self.cuts, strict=True)):
            codes = np.arange(grid[j].n_codes)
            inner = np.searchsorted(np.array(cuts, np.int64), codes) if grid[j].ordered else codes
            inner[grid[j].missing_code] = self.n_bins[i] - 1
            bins[i, : len(codes)] = inner + offsets[i]
        kernels.use_threads_for(rows.n_rows)
        total: NDArray[np.int64] = kernels.column_sums(
            rows.codes.narrow, rows.codes.wide, scores, rows.target, bits, loss.code,
            UPDATES[self.update], clip_steps(self.clip, bits), self.bound.width,
            code_places(grid)[list(self.columns)], bins, int(offsets[-1]),
        )  # fmt: skip
        return np.concatenate([part.ravel() for part in np.split(total, offsets[1:-1], axis=1)])

    def split(self, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Released values as one array (number, bin) a column."""
        width = self.bound.width
        ends = np.cumsum([width * n for n in self.n_bins])
        return [part.reshape(width, -1) for part in np.split(values, ends[:-1])]

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays: dict[str, NDArray[Any]] = {
            "columns": np.array(self.columns, np.int32),
            "n_cuts": np.array([len(cuts) for cuts in self.cuts], np.int32),
            "cuts": np.array([c for cuts in self.cuts for c in cuts], np.int32),
            "n_bins": np.array(self.n_bins, np.int32),
            "weights": np.array(self.weights, np.float64),
        }
        values: dict[str, Any] = {
            "loss": self.loss,
            "update": self.update,
            "clip": None if math.isinf(self.clip) else self.clip,
            "ensemble": [self.ensemble.length, self.ensemble.hash],
        }
        return values, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ColumnSums:
        ends = np.cumsum(arrays["n_cuts"])
        if bool((arrays["n_cuts"] < 0).any()) or (len(ends) and ends[-1] != len(arrays["cuts"])):
            raise FormatError("column sums do not have the lengths they state")
        parts = np.split(arrays["cuts"], ends[:-1]) if len(ends) else []
        length, hash_ = values["ensemble"]
        if values["update"] not in UPDATES:
            raise FormatError(f"unknown update {values['update']!r}")
        loss_named(values["loss"])
        return ColumnSums(
            tuple(int(j) for j in arrays["columns"]),
            tuple(tuple(int(c) for c in part) for part in parts),
            tuple(int(n) for n in arrays["n_bins"]),
            tuple(float(w) for w in arrays["weights"]),
            values["loss"],
            EnsembleRef(int(length), str(hash_)),
            values["update"],
            math.inf if values["clip"] is None else float(values["clip"]),
        )
