"""Exact quantiles of pooled rows: NOT PRIVATE, for comparison only.

They are read from the rows of one process before a plan is made and travel in its settings, so
that the plan, the model and its statement show them. No party of a federation is ever asked.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import SettingsError
from hedgerow.methods.maddock.candidates.base import Cuts
from hedgerow.methods.maddock.candidates.quantiles import equal_mass
from hedgerow.methods.maddock.candidates.uniform import uniform
from hedgerow.privacy.settings import BoostingSettings
from hedgerow.queries import ColumnCounts

NAME = "quantiles-not-private"


def exact_cuts(tables: Iterable[Rows], schema: Schema, n_bins: int) -> tuple[tuple[int, ...], ...]:
    """Cuts at equal mass of the exact counts of all rows together, by column."""
    cuts, grid, pooled = uniform(schema, n_bins), base_grid(schema), list(tables)
    for j in ColumnCounts.for_cuts(schema, n_bins).columns:
        n = grid[j].n_codes
        counts = sum(np.bincount(rows.codes.column(j), minlength=n) for rows in pooled)
        cuts[j] = equal_mass(np.asarray(counts, np.float64)[:-1], 0.0, n_bins) or cuts[j]
    return tuple(cuts)


def planned_cuts(schema: Schema, settings: BoostingSettings) -> Cuts:
    """The cuts that a plan carries, if they fit the schema.

    Raises SettingsError where a plan has none: it was made without rows.
    """
    if not settings.cuts:
        raise SettingsError(
            f'candidates = "{NAME}" reads its cuts from the pooled rows of one process, and a '
            "plan from public facts has none. Nothing was asked. Train with `hedgerow train` or "
            '`fit`, which make the plan after reading them, or set candidates = "quantiles"'
        )
    grid = base_grid(schema)
    fits = len(settings.cuts) == len(grid) and all(
        list(cuts) == sorted(set(cuts)) and (not cuts or cuts[-1] < len(g.edges))
        for cuts, g in zip(settings.cuts, grid, strict=False)
    )
    if not fits or any(len(cuts) >= settings.n_bins for cuts in settings.cuts):
        raise SettingsError(
            f"the cuts of the plan do not fit the {len(grid)} columns of the schema, or are more "
            f"than n_bins = {settings.n_bins} allows. Nothing was asked. Make the plan again."
        )
    return list(settings.cuts)
