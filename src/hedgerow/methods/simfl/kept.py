"""What a party keeps of the similar rows of a run, so that a later run looks at added rows alone.

It holds the hashes of all parties and which of their rows are most similar: no rows, but all that
the other parties have shown in the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError, SettingsError
from hedgerow.methods.simfl.neighbours import Neighbours, Pair
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.packing import canonical_json, digest, pack, unpack
from hedgerow.protocol.roles import Agreement, Store

Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Kept:
    """Hash functions, hash tables of all parties, and the most similar rows of one of them."""

    name: str  # whose it is
    about: Mapping[str, Any]  # what hash functions follow from: the same at all parties
    tables: Mapping[str, Words]  # by party, its own too: (row, word)
    neighbours: Mapping[str, Neighbours]  # by other party

    @property
    def width(self) -> float:
        return float(self.about["width"])

    @property
    def hash(self) -> str:
        """Equal at all parties of the run."""
        parts = [digest(name, table.tobytes()) for name, table in sorted(self.tables.items())]
        return digest("hedgerow similar rows 1", canonical_json(dict(self.about)), *parts)

    def to_bytes(self) -> bytes:
        parties = sorted(self.tables)
        arrays = {f"table{i}": self.tables[name] for i, name in enumerate(parties)}
        for i, name in enumerate(parties):
            if name != self.name:
                arrays[f"found{i}"] = self.neighbours[name].found
        return pack({"name": self.name, "about": dict(self.about), "parties": parties}, arrays)

    @staticmethod
    def from_bytes(data: bytes) -> Kept:
        values, arrays = unpack(data)
        try:
            name, about, parties = values["name"], dict(values["about"]), values["parties"]
            tables = {other: arrays[f"table{i}"] for i, other in enumerate(parties)}
            found = {other: arrays[f"found{i}"] for i, other in enumerate(parties) if other != name}
            seed, n_hashes = int(about["seed"]), int(about["hashes"])
            float(about["width"])
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError("what was kept of similar rows is not readable") from error
        neighbours = {
            other: Neighbours(Pair(seed, name, other), n_hashes, len(tables[other]), rows)
            for other, rows in found.items()
        }
        return Kept(name, about, tables, neighbours)


def facts_of(
    agreement: Agreement, settings: SimilaritySettings, hashes: int, width: float
) -> dict[str, Any]:
    """What the hashes of a run follow from."""
    return {
        "schema": agreement.schema_hash,
        "parties": list(agreement.parties),
        "seed": settings.seed,
        "window": float(settings.window),
        "hashes": hashes,
        "width": width,
    }


def place_of(run: str) -> str:
    """Under which name a store has what was kept of a run."""
    return f"simfl-{digest(run)[:32]}"


def read_kept(
    name: str, agreement: Agreement, settings: SimilaritySettings, hashes: int, store: Store
) -> Kept:
    """What this party kept of the run that the agreement continues; refuses any other."""
    run = settings.continues
    data = store.get(place_of(run))
    if data is None:
        raise SettingsError(
            f"{name} has kept nothing of run {run!r}. Nothing was sent. Only runs with keep = true "
            "can be continued; leave `continues` out to begin again."
        )
    kept = Kept.from_bytes(data)
    now = facts_of(agreement, settings, hashes, kept.width)
    for fact, value in now.items():
        if kept.name != name or kept.about.get(fact) != value:
            raise SettingsError(
                f"{name} cannot continue run {run!r}: its {fact} was {kept.about.get(fact)!r} and "
                f"is now {value!r}. Nothing was sent. Agree on what that run had, or leave "
                "`continues` out to begin again."
            )
    return kept
