"""One dictionary of interaction tables for many rounds: drawn once, and what is known of it.

Everything here follows from released marginals, as if columns were independent. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import Codes, ColumnGrid, empty_codes
from hedgerow.data.rng import Generator
from hedgerow.methods.auto.bins import Bins
from hedgerow.model.routing import routes_of
from hedgerow.model.tree import Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MADE_UP, KEPT = 1 << 13, 1 << 12  # rows drawn from released marginals; of them, kept


@dataclass(frozen=True, eq=False)
class TableBlock:
    """Tables that are asked together, with the share of the rows that each cell should have."""

    structures: tuple[Structure, ...]
    share: Floats  # (cell of all tables,): by released marginals
    cells: Ints  # (table, kept row): the cell of a made-up row, counted over all tables

    @property
    def starts(self) -> Ints:
        """Where the cells of each table begin, and the end: (table + 1,)."""
        return np.cumsum([0, *(structure.n_leaves for structure in self.structures)])

    def split(self, values: Floats) -> list[Floats]:
        """Values of cells, (cell, ...), by table."""
        return [values[begin:end] for begin, end in pairwise(self.starts.tolist())]


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Blocks of tables, and the mean over tables of how likely two rows are in one cell."""

    blocks: tuple[TableBlock, ...]
    closeness: float

    @staticmethod
    def of(
        drawn: Sequence[Sequence[Structure]], grid: Sequence[ColumnGrid], codes: Codes
    ) -> Dictionary:
        """Tables by block, measured on made-up rows."""
        blocks = tuple(_block(tuple(structures), grid, codes) for structures in drawn)
        squares = sum(float(block.share @ block.share) for block in blocks)
        return Dictionary(blocks, squares / sum(len(block.structures) for block in blocks))


def _block(
    structures: tuple[Structure, ...], grid: Sequence[ColumnGrid], codes: Codes
) -> TableBlock:
    leaves = routes_of(structures, grid).leaves(codes).astype(np.int64)  # (table, row)
    ends = np.cumsum([structure.n_leaves for structure in structures])
    leaves[1:] += ends[:-1, None]
    rows = np.bincount(leaves.ravel(), minlength=int(ends[-1]))
    return TableBlock(structures, rows / codes.n_rows, leaves[:, :KEPT].copy())


def made_up_bins(rng: Generator, counts: Sequence[Floats]) -> Ints:
    """Bins (column, row) of rows whose columns are independent, by released counts of bins."""
    drawn = np.empty((len(counts), MADE_UP), np.int64)
    for j, mass in enumerate(counts):
        ends = np.cumsum(np.maximum(mass, 0.0))
        place = np.searchsorted(ends / ends[-1], rng.random(MADE_UP), side="right")
        drawn[j] = np.minimum(place, len(mass) - 1)
    return drawn


def codes_of(drawn: Ints, grid: Sequence[ColumnGrid], bins: Sequence[Bins]) -> Codes:
    """Rows with a value of each of these bins (column, row)."""
    codes = empty_codes(grid, drawn.shape[1])
    for j, (column, of) in enumerate(zip(grid, bins, strict=True)):
        ordered = np.append(0, np.array(of.cuts, np.int64) + 1)  # the first code of every bin
        first = ordered if column.ordered else np.arange(column.n_cells)
        codes.column(j)[:] = np.append(first, column.missing_code)[drawn[j]]
    return codes


@dataclass(frozen=True)
class Step:
    """One round: a block's sums times `scale` were added, with noise of a deviation in each."""

    block: int
    scale: float
    noise: float


@dataclass(frozen=True, eq=False)
class Response:
    """What made-up rows do to the sums over all rows, each for as many rows as it stands for."""

    slope: Floats  # (kept row,): by how much its gradient grows with its score
    variance: Floats  # (kept row,): of its gradient, were its label drawn anew


def class_response(chance: Floats, clip: float, n_rows: float) -> Response:
    """That of rows with these chances of a class (row, output), gradients clamped to the clip.

    A row without the class has the gradient p, one with it p - 1; a clamped one does not respond.
    """
    p, q = chance[:KEPT], 1 - chance[:KEPT]
    slope = p * q * (q * (p < clip) + p * (q < clip))
    apart = np.minimum(p, clip) + np.minimum(q, clip)
    each = n_rows / KEPT
    return Response(each * slope.mean(axis=1), each * (p * q * apart**2).mean(axis=1))


def noise_left(
    dictionary: Dictionary, steps: Sequence[Step], response: Response, rng: Generator
) -> float:
    """The variance of scores that the same rounds make of noise alone, on made-up rows.

    Noise is that of each round, and that of the rows, which are a sample: every round sees the same
    ones. Later rounds see what noise has done to the scores and take a part of it back: to first
    order a row's gradient grows by its slope times its score. So the rounds are gone through once
    more, with noise drawn here and no effect of any column.
    """
    scores = np.zeros(KEPT)
    by_chance = rng.standard_normal(KEPT) * np.sqrt(response.variance)
    for step in steps:
        block = dictionary.blocks[step.block]
        n_tables, n_cells = len(block.structures), len(block.share)
        row = by_chance - response.slope * scores
        sums = step.noise * rng.standard_normal(n_cells)
        sums += np.bincount(block.cells.ravel(), np.tile(row, n_tables), n_cells)
        sums -= block.share * (sums.sum() / n_tables)
        scores += (step.scale * sums)[block.cells].sum(axis=0)
    return float(np.var(scores))


def variance_of(dictionary: Dictionary, weights: Sequence[Floats]) -> float:
    """The variance of scores over made-up rows, from the weights (cell,) of every block."""
    scores = np.zeros(KEPT)
    for block, of in zip(dictionary.blocks, weights, strict=True):
        scores += of[block.cells].sum(axis=0)
    return float(np.var(scores))
