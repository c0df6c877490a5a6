"""What looks like a mistake by public facts alone: schema, promise and declared number of rows.

No row is looked at, so whoever plans or fits may be told, and so may a log.
"""

from __future__ import annotations

import warnings

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Numeric, Schema
from hedgerow.errors import PlanWarning
from hedgerow.privacy.accounting.plan import Plan

LARGE_EPSILON = 10.0


def cautions(plan: Plan, schema: Schema) -> list[str]:
    """Sentences on what is allowed and hardly meant: what, the numbers, what to do."""
    told = [*_of_columns(schema)]
    if schema.drafted and not schema.confirmed_by:
        told.append(
            f"{schema.origin}. Replace bounds and lists by public facts, then record it: `hedgerow "
            "schema confirm SCHEMA --by NAME`, or schema.confirm(by=...)."
        )
    epsilon, delta = plan.privacy.epsilon, plan.privacy.delta
    n_rows = plan.settings.public_rows
    if epsilon > LARGE_EPSILON:
        told.append(
            f"epsilon = {epsilon:g} is above {LARGE_EPSILON:g}: whoever guesses whether a row was "
            "there may be right nearly always. Choose 1 or so, or say why so little is promised."
        )
    if n_rows and delta > 1 / n_rows:
        told.append(
            f"delta = {delta:g} is above 1 / rows = {1 / n_rows:.2g} (rows_hint = {n_rows}): it "
            "would allow to publish one of the rows as it is. Choose a delta well below."
        )
    return told


def warn_of(plan: Plan, schema: Schema) -> None:
    """The same as Python warnings, for whoever called `fit`."""
    for text in cautions(plan, schema):
        warnings.warn(text, PlanWarning, stacklevel=4)


def _of_columns(schema: Schema) -> list[str]:
    """Columns that no tree can cut, whatever their rows hold."""
    told = []
    for grid in base_grid(schema):
        column = grid.column
        if grid.n_cells > 1:
            continue
        if isinstance(column, Numeric):
            what = f"has no whole number to cut at between {column.lower:g} and {column.upper:g}"
        else:
            what = "lists one category"
        told.append(
            f"column {column.name!r} {what}, so it can tell nothing but missing values; widen it, "
            "or leave it out, because every column costs accuracy."
        )
    return told
