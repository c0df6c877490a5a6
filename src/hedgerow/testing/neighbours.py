"""Tables and their neighbours: one unit added, removed or replaced, at random and at its worst."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.audit.made_up import joined
from hedgerow.data.binning import base_grid, fine_grid, gather_codes
from hedgerow.data.counts import number_ends
from hedgerow.data.rng import Generator
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.data.weights import UNWEIGHTED

Change = Literal["added", "removed", "replaced"]
CHANGES: tuple[Change, ...] = ("added", "removed", "replaced")


NEW_PERSON = 2**40  # behind all others, so that samples of them stay the same


@dataclass(frozen=True, eq=False)
class Neighbour:
    """A table that differs from another by one unit; a new one stands last."""

    change: Change
    rows: Rows


def random_rows(schema: Schema, n_units: int, rng: Generator) -> Rows:
    """Units drawn at random: any code, missing ones too, any label, weights up to the cap.

    A person has up to two rows more than count, so that those beyond have to be left out.
    """
    return joined([random_unit(schema, rng, number) for number in range(max(n_units, 1))])


def random_unit(schema: Schema, rng: Generator, person: int) -> Rows:
    """One unit at random."""
    n = _rows_of_a_unit(schema, rng)
    codes = [rng.integers(0, column.n_codes, n) for column in fine_grid(schema)]
    return _unit(schema, codes, _labels(schema, n, rng), rng.random(n), person)


def worst_unit(schema: Schema, rng: Generator, person: int) -> Rows:
    """One unit at the ends: first, last and missing cells, a label at an end, the largest weight.

    Its rows are alike, so that they add up in the same cells.
    """
    n = _rows_of_a_unit(schema, rng, full=True)
    codes = []
    for column in fine_grid(schema):
        ends = (0, column.n_cells - 1, column.missing_code, int(rng.integers(column.n_cells)))
        codes.append(np.full(n, ends[int(rng.integers(len(ends)))]))
    labels = np.full(n, _labels(schema, 1, rng, ends=True)[0])
    return _unit(schema, codes, labels, np.ones(n), person)


def neighbours_of(
    schema: Schema, rows: Rows, n: int, rng: Generator, *, last: bool = False
) -> Iterator[Neighbour]:
    """So many neighbours of a table, all different, changes in turn, every other unit a worst one.

    Any unit is removed or replaced, each removed once at most; or the `last` alone, where rows are
    sampled by their place.
    """
    units = _units(rows)
    order = units[-1:] if last else rng.permutation(units)
    removed = iter(order)
    for number in range(n):
        change = CHANGES[number % len(CHANGES)]
        gone = next(removed, None) if change == "removed" else rng.choice(order)
        if gone is None:
            change = "added"
        rest = rows if change == "added" else _without(rows, gone)
        if change == "removed":
            yield Neighbour(change, rest)
            continue
        unit = (worst_unit if number % 2 else random_unit)(schema, rng, NEW_PERSON)
        yield Neighbour(change, joined([rest, unit]))


def _units(rows: Rows) -> NDArray[np.uint64]:
    """Units of a table in the order of their first rows: persons, or places of rows."""
    if rows.persons is None:
        return np.arange(rows.n_rows, dtype=np.uint64)
    _, first = np.unique(rows.persons, return_index=True)
    return rows.persons[np.sort(first)]


def _without(rows: Rows, unit: np.uint64 | None) -> Rows:
    units = np.arange(rows.n_rows, dtype=np.uint64) if rows.persons is None else rows.persons
    return rows.take(np.flatnonzero(units != unit))


def _rows_of_a_unit(schema: Schema, rng: Generator, full: bool = False) -> int:
    if schema.unit.kind != "person":
        return 1
    most = schema.unit.at_most + 2
    return most if full else int(rng.integers(1, most + 1))


def _labels(schema: Schema, n: int, rng: Generator, ends: bool = False) -> NDArray[np.float64]:
    k = schema.label.n_outcomes
    if k:
        return rng.integers(0, k, n).astype(np.float64)
    low, high = number_ends(schema.label)
    if schema.label.task == "counts" and not ends:
        return rng.integers(0, int(high) + 1, n).astype(np.float64)  # any count, any exposure
    places = rng.random(n)
    return low + (high - low) * np.rint(places) if ends else places


def _unit(
    schema: Schema,
    codes: list[NDArray[np.int64]],
    target: NDArray[np.float64],
    weights: NDArray[np.float64],
    person: int,
) -> Rows:
    n = len(target)
    persons = np.full(n, person, np.uint64) if schema.unit.kind == "person" else None
    steps = UNWEIGHTED
    if schema.weight is not None:
        steps = np.floor(weights * schema.weight_steps).astype(np.uint16)
    rows = Rows(
        gather_codes(codes, base_grid(schema), n, finest=True), target, persons, schema.hash
    )
    return replace(rows, weights=steps)
