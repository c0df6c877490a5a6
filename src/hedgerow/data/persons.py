"""Unit person: a party keeps at most k rows of each person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import TableError


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
    number = number_in_group(persons[order])
    key = _rank_keys(persons[order], number, schema)
    ranked = np.lexsort((key, persons[order]))
    counted = order[ranked[number_in_group(persons[order][ranked]) < k]]
    return rows.take(np.sort(counted))


@dataclass(frozen=True, eq=False)
class PersonCounts:
    """The persons of one part of a party's rows, and how many of its rows each has."""

    ids: NDArray[np.uint64]  # (person,), rising
    counts: NDArray[np.int64]  # (person,)

    @classmethod
    def of(cls, persons: NDArray[np.uint64]) -> PersonCounts:
        ids, counts = np.unique(persons, return_counts=True)
        return cls(ids, counts.astype(np.int64))

    def share(self, index: int, n_shares: int) -> PersonCounts:
        """Those of one share: every person is in one share, in whatever part of the rows."""
        inside = self.ids % np.uint64(n_shares) == index
        return PersonCounts(self.ids[inside], self.counts[inside])


@dataclass(frozen=True, eq=False)
class Places:
    """What one part of the rows must know of its persons to see which of its rows count."""

    ids: NDArray[np.uint64]  # (person,), rising
    earlier: NDArray[np.int64]  # (person,): rows of the person in earlier parts
    last: NDArray[np.uint64]  # (person,): rows with a key above it do not count

    @staticmethod
    def join(parts: Sequence[Places]) -> Places:
        ids = np.concatenate([part.ids for part in parts])
        order = np.argsort(ids)
        earlier = np.concatenate([part.earlier for part in parts])
        last = np.concatenate([part.last for part in parts])
        return Places(ids[order], earlier[order], last[order])


def places_of(parts: Sequence[PersonCounts], schema: Schema) -> list[Places]:
    """Which rows count where a party's rows lie in several parts: as if they were in one.

    `rows_per_person` keeps the k rows of a person with the lowest keys. Keys of one person are all
    different, because `scrambled` is a bijection, so the k-th of them divides the rows that count
    from the rest.
    """
    ids = np.concatenate([part.ids for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    order = np.argsort(ids, kind="stable")  # by person, parts in their order
    person, count = ids[order], counts[order]
    before = np.cumsum(count) - count
    first = np.flatnonzero(number_in_group(person) == 0)
    lengths = np.diff(np.append(first, len(person)))  # parts that a person is in
    before -= np.repeat(before[first], lengths)
    total = np.add.reduceat(count, first) if len(first) else count  # (person,)
    last = np.repeat(_last_keys(person[first], total, schema), lengths)
    earlier_of, last_of = np.empty_like(before), np.empty_like(last)
    earlier_of[order], last_of[order] = before, last
    ends = np.cumsum([len(part.ids) for part in parts])[:-1]
    return [
        Places(part.ids, earlier, limit)
        for part, earlier, limit in zip(
            parts, np.split(earlier_of, ends), np.split(last_of, ends), strict=True
        )
    ]


def rows_that_count(
    persons: NDArray[np.uint64], places: Places, schema: Schema
) -> NDArray[np.bool_]:
    """Of one part of a party's rows: (row,)."""
    order = np.argsort(persons, kind="stable")
    number = np.empty(len(persons), np.int64)
    number[order] = number_in_group(persons[order])
    place = np.searchsorted(places.ids, persons)
    number += places.earlier[place]
    return np.asarray(_rank_keys(persons, number, schema) <= places.last[place])


def _last_keys(
    ids: NDArray[np.uint64], totals: NDArray[np.int64], schema: Schema
) -> NDArray[np.uint64]:
    """The key of each person's last row that counts; the highest there is where all count."""
    last, k = np.full(len(ids), np.iinfo(np.uint64).max), schema.unit.at_most
    many = totals > k
    persons = np.repeat(ids[many], totals[many])
    keys = _rank_keys(persons, number_in_group(persons), schema)
    keys = keys[np.lexsort((keys, persons))]
    first = np.cumsum(totals[many]) - totals[many]
    last[many] = keys[first + k - 1]
    return last


def _rank_keys(
    persons: NDArray[np.uint64], number: NDArray[np.int64], schema: Schema
) -> NDArray[np.uint64]:
    """What ranks a person's rows, from the person and the number of the row: (row,)."""
    salt = np.uint64(int(schema.hash[:16], 16))
    return scrambled(persons ^ scrambled(number.astype(np.uint64) + salt))


def number_in_group(sorted_ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """0, 1, 2 ... within each run of equal ids."""
    n = len(sorted_ids)
    first = np.concatenate([[True], sorted_ids[1:] != sorted_ids[:-1]]) if n else np.zeros(0, bool)
    starts = np.maximum.accumulate(np.where(first, np.arange(n), 0))
    return np.asarray(np.arange(n) - starts)


def scrambled(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A fixed bijection of 64 bits that makes values look random (SplitMix64's finaliser)."""
    bits = values + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
