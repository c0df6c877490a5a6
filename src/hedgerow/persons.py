"""Unit person: a party keeps at most k rows of each person."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError
from hedgerow.schema import Schema
from hedgerow.tables import Rows


def rows_per_person(rows: Rows, schema: Schema) -> Rows:
    """The rows that count. Which of a person's rows are kept depends on that person alone.

    Rows are ranked by a hash of (schema, person, number among the person's own rows), so adding
    or removing a person changes nobody else's rows, and a restarted party keeps the same ones.
    """
    if schema.unit.kind != "person":
        return rows
    if rows.persons is None:
        raise TableError(
            f"the unit of privacy is a person, and these rows lack {schema.unit.column!r}; make "
            "them with rows_of from a table that has it. Nothing was asked."
        )
    persons, k = rows.persons, schema.unit.at_most
    order = np.argsort(persons, kind="stable")
    number = _number_in_group(persons[order])
    salt = np.uint64(int(schema.hash[:16], 16))
    key = _scramble(persons[order] ^ _scramble(number.astype(np.uint64) + salt))
    ranked = np.lexsort((key, persons[order]))
    kept = order[ranked[_number_in_group(persons[order][ranked]) < k]]
    return rows.take(np.sort(kept))


def _number_in_group(sorted_ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """0, 1, 2 ... within each run of equal ids."""
    n = len(sorted_ids)
    first = np.concatenate([[True], sorted_ids[1:] != sorted_ids[:-1]]) if n else np.zeros(0, bool)
    starts = np.maximum.accumulate(np.where(first, np.arange(n), 0))
    return np.asarray(np.arange(n) - starts)


def _scramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A fixed mixing of 64 bits (splitmix64's finaliser)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
