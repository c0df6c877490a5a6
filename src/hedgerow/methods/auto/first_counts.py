"""The first question about columns: rows by cell, and by fine cell of wide integer columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import fine_columns, fine_grid
from hedgerow.methods.auto.bins import Bins, bins_of, cell_cuts
from hedgerow.methods.auto.fine_cells import (
    Cells,
    LabelLaw,
    Seen,
    at_fine_level,
    cell_of_fine,
    differing,
    fine_bins,
    heavy_cells,
    with_heavy_cells,
)
from hedgerow.methods.auto.start import even_counts
from hedgerow.methods.auto.state import Run
from hedgerow.queries import ColumnSums, FineColumnSums, n_bins_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FirstCounts:
    """What was released: by class and cell of every column, for regression gradients and rows."""

    cuts: list[tuple[int, ...]]  # of the base grid
    cells: list[Floats]  # (class or g | n, cell)
    fine: dict[int, Floats]  # the same by fine cell, of the columns that were asked about these
    noise: float  # deviation of a cell
    of_count: float  # that of a cell's rows
    ratio: float = 1.0  # noise of a fine cell to that of a cell
    said: bool = True  # False if the release was lost


def first_counts(run: Run) -> FirstCounts:
    """Ask it. Cells of the base grid and fine ones are released together: no further round."""
    rule, classes = run.rule, len(run.schema.label.classes)
    cuts = [cell_cuts(grid, rule.n_cells) for grid in run.grid]
    if classes:
        query = run.question(cuts, "averaging")
    else:
        query = run.question(cuts, "gradient", clip=run.clip)
    fine, ratio = fine_columns(run.grid) if rule.fine_share else (), 1.0
    if fine:
        query, ratio = _with_fine_cells(query, run, fine)
    release = run.release(query, rule.start_share, "counts")
    if release is None:  # lost: the row count, spread evenly, makes bins; no label is known
        widths = [n_bins_of(grid, c) for grid, c in zip(run.grid, cuts, strict=True)]
        even = even_counts(widths, run.n_rows, run.rates, classes)
        return FirstCounts(cuts, even, {}, 0.0, 0.0, said=False)
    parts, m = query.split(release.values), len(cuts)
    noise = release.unit
    of_count = noise * math.sqrt(classes) if classes else noise / query.bound.second_scale
    by_fine_cell = dict(zip(fine, parts[m:], strict=True))
    return FirstCounts(cuts, parts[:m], by_fine_cell, noise, of_count, ratio)


def _with_fine_cells(
    query: ColumnSums, run: Run, fine: Sequence[int]
) -> tuple[FineColumnSums, float]:
    """The question with every fine cell of some columns added, and how much more noise these have.

    Squared weights are shares of the price: those of fine cells add up to `fine_share` of it.
    """
    grid, share = fine_grid(run.schema), run.rule.fine_share
    weight = math.sqrt(share / (1 - share) * len(query.columns) / len(fine))
    cuts = [at_fine_level(g, f, c) for g, f, c in zip(run.grid, grid, query.cuts, strict=True)]
    whole = tuple(tuple(range(len(grid[j].edges))) for j in fine)
    asked = FineColumnSums(
        (*query.columns, *fine),
        (*cuts, *whole),
        (*query.n_bins, *(n_bins_of(grid[j], c) for j, c in zip(fine, whole, strict=True))),
        (*query.weights, *(weight for _ in fine)),
        query.loss, query.ensemble, query.update, query.clip,
    )  # fmt: skip
    return asked, 1 / weight


def binned(run: Run, first: FirstCounts) -> tuple[list[Bins], list[Floats]]:
    """Bins of every column, and the counts of the cells that add up to them.

    Where a fine cell is heavy, the run goes on at the fine level.
    """
    refined = {j: _refined(run, first, j, fine) for j, fine in first.fine.items()}
    if any(bool(cells.heavy.any()) for cells in refined.values()):
        return _at_fine_level(run, first, refined)
    rule = run.rule
    bins = [
        bins_of(grid, c, _rows(run, of), first.of_count, rule.n_bins, rule.heavy)
        for grid, c, of in zip(run.grid, first.cuts, first.cells, strict=True)
    ]
    return bins, first.cells


def _refined(run: Run, first: FirstCounts, j: int, fine: Floats) -> Cells:
    """A column's cells with heavy fine cells apart, judged by rows, and by each class alone."""
    grid, cells = run.grid[j], first.cells[j]
    cuts = at_fine_level(grid, fine_grid(run.schema)[j], first.cuts[j])
    seen = [Seen(_rows(run, cells)[:-1], _rows(run, fine)[:-1], first.of_count)]
    if run.schema.label.classes:
        seen += [
            Seen(whole[:-1], part[:-1], first.noise)
            for whole, part in zip(cells, fine, strict=True)
        ]
        whole = np.maximum(cells.sum(axis=1), 1.0)
        law = LabelLaw(whole / whole.sum(), first.noise)
    else:
        law = LabelLaw(np.zeros(1), first.noise, run.gradient_unit)
    of = cell_of_fine(cuts, fine.shape[1] - 1)
    heavy = heavy_cells(seen, of, first.ratio)
    heavy = differing(heavy, of, cells[:, :-1], fine[:, :-1], law, first.ratio)
    return with_heavy_cells(cuts, cells, fine, heavy, first.ratio)


def _at_fine_level(
    run: Run, first: FirstCounts, refined: dict[int, Cells]
) -> tuple[list[Bins], list[Floats]]:
    """Bins and cells of every column, cut at edges of its finest level from now on."""
    rule, base, bins, cells = run.rule, run.grid, [], []
    run.to_fine_level()
    for j, (grid, cuts, of) in enumerate(zip(base, first.cuts, first.cells, strict=True)):
        of_column = refined.get(j)
        if of_column is not None and of_column.heavy.any():
            rows = _rows(run, of_column.counts)
            bins.append(fine_bins(of_column, rows, first.of_count, rule.n_bins, rule.heavy))
            cells.append(of_column.counts)
            continue
        at_base = bins_of(grid, cuts, _rows(run, of), first.of_count, rule.n_bins, rule.heavy)
        bins.append(replace(at_base, cuts=at_fine_level(grid, run.grid[j], at_base.cuts)))
        cells.append(of)
    return bins, cells


def _rows(run: Run, counts: Floats) -> Floats:
    """Rows of each cell: of all classes together, or the second of gradients and rows."""
    return np.asarray(counts.sum(axis=0) if run.schema.label.classes else counts[1])
