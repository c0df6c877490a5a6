"""Sums by bin of every column at once: class counts, or clamped gradients at some trees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import ColumnGrid, base_grid, code_places
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.kernels import strategy
from hedgerow.model.losses import UPDATES, RowBound, loss_for, loss_named
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
from hedgerow.queries.strategy import (
    PLAIN,
    StrategyMatrix,
    check_matrices,
    largest_norms,
    pack_matrices,
    unpack_matrices,
)

MAX_WEIGHT = 1e3  # weights lie between 1/1000 and 1000; beyond, a column would be no question


@dataclass(frozen=True, eq=False)
class ColumnSums(QueryBase):
    """One block (output, bin) for each column; its last bin is that of missing values.

    `cuts` are indices into the edges of an ordered column's base grid; every category is a bin of
    its own, so categorical columns have none. A column of weight w gets noise of 1/w.

    A column may have one of the strategy `matrices`: its block is then (output, coordinate), the
    product of the matrix and its sums by bin, with as many coordinates as bins.
    """

    columns: tuple[int, ...]
    cuts: tuple[tuple[int, ...], ...]
    n_bins: tuple[int, ...]
    weights: tuple[float, ...]
    loss: str
    ensemble: EnsembleRef
    update: str = "slope"
    clip: float = math.inf
    matrices: tuple[StrategyMatrix, ...] = ()
    matrix_of: tuple[int, ...] = ()  # the matrix of each column, or PLAIN; empty: all are plain
    kind: ClassVar[str] = "column-sums"
    row_weights: ClassVar[RowWeights] = "scale"
    most_asked: ClassVar[int] = 1  # how often a column may be asked about in one query

    @staticmethod
    def grid_of(schema: Schema) -> tuple[ColumnGrid, ...]:
        """The grid whose edges cuts are indices of."""
        return base_grid(schema)

    @cached_property
    def bound(self) -> RowBound:
        return loss_named(self.loss).bound(self.update, self.clip)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        bound, blocks = self.bound, []
        for n, weight, (_, norm) in zip(self.n_bins, self.weights, self._norms, strict=True):
            w = weight / norm
            blocks.append(Block(n * bound.first, 1 / w))
            if bound.second:
                blocks.append(Block(n * bound.second, 1 / (w * bound.second_scale)))
        return tuple(blocks)

    @cached_property
    def _matrix_of(self) -> tuple[int, ...]:
        return self.matrix_of or (PLAIN,) * len(self.columns)

    @cached_property
    def _products(self) -> list[strategy.Column]:
        """Where each column's bins begin and end, and what its sums are multiplied by.

        Parties of one process are asked by one object, so matrices are made ready once.
        """
        wide = [matrix.astype(np.int64).T for matrix in self.matrices]
        of_column = [None if m == PLAIN else wide[m] for m in self._matrix_of]
        ends = np.cumsum(self.n_bins).tolist()
        return list(zip([0, *ends], ends, of_column, strict=False))

    @cached_property
    def _norms(self) -> list[tuple[float, float]]:
        """The largest (l1, l2) norm to which each column's matrix takes one unit in a bin."""
        of_matrix = [largest_norms(matrix) for matrix in self.matrices]
        return [(1.0, 1.0) if m == PLAIN else of_matrix[m] for m in self._matrix_of]

    @property
    def sensitivity(self) -> Sensitivity:
        # A row lies in exactly one bin of every column and adds its values there, bounded by the
        # loss. If the column has the strategy matrix A, the row adds g A_b, with g its value and
        # A_b the column of A that belongs to its bin b: at most |g| times the largest l2 norm of
        # a column of A, and in l1 at most |g| times the largest l1 norm. Blocks are counted in
        # units of that l2 norm over w, so a column counts w-fold, and in l1 by the ratio of the
        # two norms more. With several outputs (gradients, Hessians) each is multiplied by the
        # same A: their squares, and their absolute values, add up before A_b multiplies them.
        weights = self.weights
        l2 = math.sqrt(math.fsum(w * w for w in weights)) * self.bound.l2
        l1 = [w * norm_1 / norm_2 for w, (norm_1, norm_2) in zip(weights, self._norms, strict=True)]
        return Sensitivity(l1=math.fsum(l1) * self.bound.l1, l2=l2)

    def check(self, schema: Schema) -> None:
        grid = self.grid_of(schema)
        if self.loss != loss_for(schema.label).name:
            raise FormatError("column sums ask for a loss that does not belong to the label")
        check_cuts(grid, self.columns, self.cuts, "column sums", self.most_asked)
        n_bins = tuple(n_bins_of(grid[j], c) for j, c in zip(self.columns, self.cuts, strict=True))
        if self.n_bins != n_bins or len(self.weights) != len(n_bins):
            raise FormatError("column sums do not have the lengths they state")
        if self.matrices or self.matrix_of:
            check_matrices(self.matrices, self.matrix_of, n_bins)
        check_clip(self.clip)
        loss_named(self.loss).bound(self.update, self.clip)  # raises where it has no such update
        # One by one: neither max nor min sees a weight that is no number.
        if not all(1 / MAX_WEIGHT <= weight <= MAX_WEIGHT for weight in self.weights):
            raise FormatError("column sums weigh a column by nothing, or by too much")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        places, bins, starts = self._bins(schema)
        loss = loss_named(self.loss)
        gradients = kernels.Gradients(
            scores, rows.target, bits, loss.code, UPDATES[self.update],
            clip_steps(self.clip, bits), self.bound.width, rows.weights, schema.weight_bits,
            loss.parameter,
        )  # fmt: skip
        columns = kernels.ColumnBins(places, bins, int(starts[-1]))
        total = kernels.column_sums(rows.codes.arrays, gradients, columns)
        if len(total) == 1 and not self.matrices:  # one output is in the blocks' order already
            return total.ravel()
        out = np.empty(total.size, np.int64)
        strategy.apply_matrices(total, self._products, out)
        return out

    def _bins(
        self, schema: Schema
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Where the columns' codes lie, the bin of every code, and where columns' bins begin."""
        if schema.hash not in self._known:  # parties of one process are asked the same
            grid = self.grid_of(schema)
            bins, ends = bin_of_codes(grid, self.columns, self.cuts)
            places = code_places(grid)[list(self.columns)]
            self._known[schema.hash] = (places, bins, np.append(0, ends))
        return self._known[schema.hash]

    @cached_property
    def _known(
        self,
    ) -> dict[str, tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]]:
        return {}

    def split(self, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Released values as one array (output, bin) a column.

        Those of a column with a strategy matrix are (output, coordinate): products with the matrix,
        divided by the largest l2 norm of its columns.
        """
        width = self.bound.width
        ends = np.cumsum([width * n for n in self.n_bins])
        parts = [part.reshape(width, -1) for part in np.split(values, ends[:-1])]
        return [p / norm for p, (_, norm) in zip(parts, self._norms, strict=True)]

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays: dict[str, NDArray[Any]] = {
            **pack_cuts(self.columns, self.cuts),
            "n_bins": np.array(self.n_bins, np.int32),
            "weights": np.array(self.weights, np.float64),
            **pack_matrices(self.matrices, self._matrix_of),
        }
        values: dict[str, Any] = {
            "loss": self.loss,
            "update": self.update,
            "clip": None if math.isinf(self.clip) else self.clip,
            "ensemble": [self.ensemble.length, self.ensemble.hash],
        }
        return values, arrays

    @classmethod
    def from_parts(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        columns, cuts = unpack_cuts(arrays, "column sums")
        n_bins = tuple(int(n) for n in arrays["n_bins"])
        length, hash_ = values["ensemble"]
        if values["update"] not in UPDATES:
            raise FormatError(f"unknown update {values['update']!r}")
        loss_named(values["loss"])
        return cls(
            columns,
            cuts,
            n_bins,
            tuple(float(w) for w in arrays["weights"]),
            values["loss"],
            EnsembleRef(int(length), str(hash_)),
            values["update"],
            math.inf if values["clip"] is None else float(values["clip"]),
            *unpack_matrices(arrays, n_bins),
        )
