"""What parties say to each other where a method is no program of sums: steps, letters, reports.

A program is one party's side. In every step it reads the letters that the others wrote in the step
before and writes its own; the coordinator carries them, sealed, and cannot read them. Nothing here
has an epsilon: what a program shows is a disclosure, which is agreed on before the first step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

from hedgerow.data.documents import Document, Key, Matching, Within, named
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.model.statement import Disclosure
from hedgerow.packing import canonical_json, digest
from hedgerow.protocol.identity import PARTY_NAME

_RUN = Matching(  # it stands in logs and file names
    re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}"), "a usable name of a run"
)
_AGREEMENT = Document("agreement")


@dataclass(frozen=True)
class Step:
    """What one party does in one step."""

    letters: Mapping[str, bytes] = field(default_factory=dict)  # by the party they are for
    report: bytes = b""  # for the coordinator: progress, or a model that all may have
    done: bool = False


class Program(Protocol):
    """One party's side of a method."""

    def step(self, letters: Mapping[str, bytes]) -> Step:
        """Read what the others wrote in the last step, by party; write the next letters."""
        ...


@dataclass(frozen=True)
class Agreement:
    """What all parties agree on before the first step."""

    run: Annotated[str, _RUN]
    program: str
    schema_hash: Annotated[str, Key("schema")]
    parties: tuple[Annotated[str, PARTY_NAME], ...]
    settings: Mapping[str, Any]
    disclosures: tuple[Disclosure, ...]
    # By party: the pure epsilon that its labels pay, where a program has one. All else has none.
    spends: Mapping[str, Annotated[float, Within(above=0)]] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        return digest("hedgerow agreement 1", canonical_json(self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "program": self.program,
            "schema": self.schema_hash,
            "parties": list(self.parties),
            "settings": dict(self.settings),
            "disclosures": [dict(one.__dict__) for one in self.disclosures],
            "spends": dict(self.spends),
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Agreement:
        with named("an agreement is not readable"):
            made = _AGREEMENT.read(Agreement, values)
            if list(made.parties) != sorted(set(made.parties)):
                raise _AGREEMENT.wrong("it names its parties once each, in order")
        return made


class Shelf(Protocol):
    """Where a party's programs keep what outlives them, such as its part of a model."""

    def put(self, name: str, data: bytes) -> None: ...

    def get(self, name: str) -> bytes | None: ...


class MemoryShelf:
    """A shelf that lasts as long as the process."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    def put(self, name: str, data: bytes) -> None:
        self._held[name] = data

    def get(self, name: str) -> bytes | None:
        return self._held.get(name)


ProgramFactory = Callable[[str, Rows, Schema, Agreement, Shelf], Program]
"""Makes a party's side of a program: from its name, rows, schema, agreement and shelf."""


def talk(programs: Mapping[str, Program], most_steps: int = 1_000_000) -> dict[str, list[bytes]]:
    """Run programs of one process until all are done; returns the reports of each party.

    The same steps are taken when an engine carries the letters (`federation/exchanging.py`).
    """
    letters: dict[str, dict[str, bytes]] = {name: {} for name in programs}
    reports: dict[str, list[bytes]] = {name: [] for name in programs}
    for _ in range(most_steps):
        steps = {name: programs[name].step(letters[name]) for name in programs}
        letters = delivered(steps)
        for name, step in steps.items():
            if step.report:
                reports[name].append(step.report)
        if all(step.done for step in steps.values()):
            return reports
    raise FormatError(f"the programs were not done after {most_steps} steps")


def delivered(steps: Mapping[str, Step]) -> dict[str, dict[str, bytes]]:
    """Letters by who gets them, then by who wrote them."""
    inboxes: dict[str, dict[str, bytes]] = {name: {} for name in steps}
    for writer, step in steps.items():
        check_letters(writer, step.letters, tuple(steps))
        for reader, letter in step.letters.items():
            inboxes[reader][writer] = letter
    return inboxes


def check_letters(writer: str, letters: Mapping[str, bytes], parties: Sequence[str]) -> None:
    for reader in letters:
        if reader == writer or reader not in parties:
            raise FormatError(f"{writer} wrote a letter to {reader!r}, who takes no part")
