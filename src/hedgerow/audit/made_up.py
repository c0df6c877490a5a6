"""Made-up rows that fit a schema: a table with one strong effect, and canaries that go against it.

Nothing here is read from anybody's rows. Bounds must hold for every row, so an audit may choose
those that come nearest to them: rows whose label is the one that the model expects least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import Codes, base_grid, gather_codes
from hedgerow.data.counts import number_ends
from hedgerow.data.rng import Generator
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.data.weights import UNWEIGHTED

EFFECT = 0.97  # of made-up rows, the part whose label follows the first column


@dataclass(frozen=True, eq=False)
class Canaries:
    """Units that each are in the table or not: the rows of all, and which unit a row is of."""

    rows: Rows
    unit: NDArray[np.int64]  # (row,), rising
    n_units: int

    def copies(self, coins: NDArray[np.bool_]) -> Rows:
        """The rows of the copies that are in: `coins` (unit, copy). Every copy is its own unit."""
        copy, row = np.nonzero(coins[self.unit].T)
        rows = self.rows.take(row)
        if rows.persons is None:
            return rows
        return replace(rows, persons=rows.persons + (copy.astype(np.uint64) << np.uint64(44)))


def made_up_rows(schema: Schema, n_rows: int, rng: Generator) -> Rows:
    """Codes drawn evenly; labels mostly decided by the first column."""
    codes = _codes(schema, n_rows, rng)
    expected = _expected(schema, codes[0])
    follows = rng.random(n_rows) < EFFECT
    target = np.where(follows, expected, _other(schema, expected, rng))
    return _rows(schema, codes, target, _persons(n_rows, 1, first=0), n_rows)


def made_up_canaries(schema: Schema, n_units: int, rng: Generator) -> Canaries:
    """Units of as many rows as the schema protects together, all alike, with unlikely labels.

    >>> from hedgerow.data.rng import stream
    >>> schema = Schema.from_bounds({"age": (0, 110), "dose": (0, 5)}, classes=["no", "yes"])
    >>> made_up_canaries(schema, 3, stream(0, "canaries")).rows.n_rows
    3
    """
    k = schema.unit.at_most
    codes = [np.repeat(column, k) for column in _codes(schema, n_units, rng)]
    target = _other(schema, _expected(schema, codes[0]), rng)
    target = target.reshape(-1, k)[:, :1].repeat(k, axis=1).ravel()
    rows = _rows(schema, codes, target, _persons(n_units, k, first=2**40), n_units * k)
    return Canaries(rows, np.repeat(np.arange(n_units), k), n_units)


def opposites(schema: Schema, canaries: Canaries, rng: Generator) -> Canaries:
    """For each canary another row, far from it: what replaces it where counts are visible."""
    grid = base_grid(schema)
    codes = []
    for j, column in enumerate(grid):
        step = rng.integers(1, max(column.n_cells, 2), canaries.rows.n_rows)
        codes.append((canaries.rows.codes.column(j) + step) % column.n_cells)
    target = _other(schema, canaries.rows.target, rng)
    rows = _rows(schema, codes, target, canaries.rows.persons, canaries.rows.n_rows)
    return replace(canaries, rows=rows)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of one schema, one below the other."""
    first = parts[0]
    codes = Codes.concat([rows.codes for rows in parts])
    persons = None
    if first.persons is not None:
        persons = np.concatenate([rows.persons for rows in parts if rows.persons is not None])
    weights = np.concatenate([rows.weights for rows in parts])
    target = np.concatenate([rows.target for rows in parts])
    return replace(first, codes=codes, target=target, persons=persons, weights=weights)


def _codes(schema: Schema, n_rows: int, rng: Generator) -> list[NDArray[np.int64]]:
    return [rng.integers(0, column.n_cells, n_rows) for column in base_grid(schema)]


def _expected(schema: Schema, first: NDArray[np.int64]) -> NDArray[np.float64]:
    """The label that the first column decides: (row,)."""
    n_cells, k = base_grid(schema)[0].n_cells, schema.label.n_outcomes
    place = (first * max(k, 2) // max(n_cells, 2)).astype(np.float64)
    low, high = number_ends(schema.label)
    return place if k else low + (high - low) * place


def _other(schema: Schema, target: NDArray[np.float64], rng: Generator) -> NDArray[np.float64]:
    """A label that is not this one; a number's other end."""
    k = schema.label.n_outcomes
    if not k:
        return sum(number_ends(schema.label)) - target
    return np.asarray((target + rng.integers(1, k, len(target))) % k)


def _persons(n_units: int, k: int, first: int) -> NDArray[np.uint64]:
    return np.repeat(np.arange(first, first + n_units, dtype=np.uint64), k)


def _rows(
    schema: Schema,
    codes: list[NDArray[np.int64]],
    target: NDArray[np.float64],
    persons: NDArray[np.uint64] | None,
    n_rows: int,
) -> Rows:
    gathered = gather_codes(codes, base_grid(schema), n_rows)
    kept = persons if schema.unit.kind == "person" else None
    weights = UNWEIGHTED
    if schema.weight is not None:  # as much as a row can count
        weights = np.full(n_rows, schema.weight_steps, np.uint16)
    return Rows(gathered, target, kept, schema.hash, weights=weights)
