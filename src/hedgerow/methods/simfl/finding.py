"""One party's search for similar rows: facts, hashes, and the most similar row of each other party.

A run that continues an earlier one keeps its hash functions. Then only hashes of rows that were
added travel, and only pairs with an added row are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.methods.simfl import messages as post
from hedgerow.methods.simfl.hashing import hash_family, spread, typical_width
from hedgerow.methods.simfl.kept import Kept, facts_of, place_of, read_kept
from hedgerow.methods.simfl.neighbours import Neighbours, Pair, Sorted, most_similar
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.protocol.roles import Agreement, Store

Words = NDArray[np.uint64]


class Finding:
    """What one party knows of similar rows, message by message."""

    def __init__(
        self,
        name: str,
        rows: Rows,
        schema: Schema,
        agreement: Agreement,
        settings: SimilaritySettings,
        store: Store,
    ) -> None:
        self._name, self._rows, self._schema = name, rows, schema
        self._agreement, self._settings, self._store = agreement, settings, store
        self._others = tuple(other for other in agreement.parties if other != name)
        self._n_hashes = settings.hashes_for(schema)
        self._kept: Kept | None = None
        if settings.continues:
            self._kept = read_kept(name, agreement, settings, self._n_hashes, store)
        self._memory = self._kept.hash if self._kept else ""
        self.n_rows = {name: rows.n_rows}  # by party
        self.neighbours: dict[str, Neighbours] = {}
        self.width = 0.0  # r
        self.places: dict[str, NDArray[np.int64]] = {}  # of own rows among those that were named
        self.n_places: dict[str, int] = {}

    def facts(self) -> bytes:
        """How many rows there are and how far apart they lie: r follows from it."""
        self._spread = 0.0 if self._kept else spread(self._rows, self._schema)
        return post.facts_message(self._rows.n_rows, self._spread, self._memory)

    def hashes(self, messages: Mapping[str, bytes]) -> bytes:
        """The hashes of own rows that the others do not know yet."""
        spreads = {self._name: self._spread}
        for other in self._others:
            facts = post.read_facts(other, messages[other])
            self.n_rows[other], spreads[other] = facts.n_rows, facts.spread
            self._check_memory(other, facts)
        inside = [spreads[name] for name in self._agreement.parties]
        counts = [self.n_rows[name] for name in self._agreement.parties]
        self.width = typical_width(inside, counts, float(self._settings.window))
        if self._kept:
            self.width = self._kept.width
        family = hash_family(self._schema, self._settings.seed, self._n_hashes, self.width)
        self._words = family.hashes(self._rows)
        self._check_rows()
        return post.table_message(self._words[self._known(self._name) :])

    def search(self, messages: Mapping[str, bytes]) -> dict[str, bytes]:
        """Find the most similar rows, and tell each party which of its rows these are."""
        tables, written = {self._name: self._words}, {}
        self._sorted: Sorted | None = Sorted(self._words)
        for other in self._others:
            n_added = self.n_rows[other] - self._known(other)
            added = post.read_table(other, messages[other], n_added, self._words.shape[1])
            tables[other] = added
            if self._kept:
                tables[other] = np.concatenate([self._kept.tables[other], added])
            self.neighbours[other] = self._found(other, tables[other], added)
            named, self.places[other] = np.unique(self.neighbours[other].row, return_inverse=True)
            self.n_places[other] = len(named)
            written[other] = post.places_message(named.astype(np.uint32))
        self._sorted = None  # as large as four of the tables
        if self._settings.keep:
            self._keep(tables)
        return written

    def _found(self, other: str, table: Words, added: Words) -> Neighbours:
        if not self._kept:
            pair = Pair(self._settings.seed, self._name, other)
            return most_similar(pair, self._n_hashes, self._words, table, self._sorted)
        n, found = self._known(self._name), self._kept.neighbours[other]
        if len(added):
            found = found.with_others(self._words[:n], added)
        return found.with_own(self._words[n:], table) if len(self._words) > n else found

    def _keep(self, tables: Mapping[str, Words]) -> None:
        about = facts_of(self._agreement, self._settings, self._n_hashes, self.width)
        kept = Kept(self._name, about, tables, self.neighbours)
        self._store.put(place_of(self._agreement.run), kept.to_bytes())

    def _known(self, name: str) -> int:
        """Rows of a party whose hashes all have since the run that is continued."""
        return len(self._kept.tables[name]) if self._kept else 0

    def _check_memory(self, other: str, facts: post.Facts) -> None:
        """All must remember the same run, and have lost no row since."""
        if facts.kept != self._memory:
            raise FormatError(
                f"{other} remembers run {self._settings.continues!r} otherwise than {self._name} "
                "does. No hash was sent. Leave `continues` out to begin again."
            )
        if facts.n_rows < self._known(other):
            raise FormatError(
                f"{other} has {facts.n_rows} rows, and had {self._known(other)} in run "
                f"{self._settings.continues!r}; rows can be added, not taken away. No hash was "
                "sent. Leave `continues` out to begin again."
            )

    def _check_rows(self) -> None:
        """The first rows must be those of the run that is continued: hashes show it."""
        if not self._kept:
            return
        before = self._kept.tables[self._name]
        same = len(before) <= len(self._words)
        if not same or not np.array_equal(self._words[: len(before)], before):
            raise FormatError(
                f"the first {len(before)} of {len(self._words)} rows of {self._name} are not those "
                f"of run {self._settings.continues!r}; rows can be added at the end of a table, "
                "not changed or taken away. No hash was sent. Leave `continues` out to begin again."
            )
