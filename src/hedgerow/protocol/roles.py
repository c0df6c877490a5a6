"""Protocol roles: what each party does in a session, where a method is no program of sums.

A role is one party's side. In every step it reads the messages that its peers sent in the step
before and sends its own; the coordinator carries them, sealed, and cannot read them. What a role
shows is a disclosure, which has no epsilon and is agreed on before the first step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Protocol

from hedgerow.data.documents import Document, Key, Matching, Within, named
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.model.statement import Disclosure
from hedgerow.packing import canonical_json, digest
from hedgerow.protocol.identity import PARTY_NAME

_ROLE = "program"  # as sent and stored agreements call a role
_RUN = Matching(  # it stands in logs and file names
    re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}"), "a usable name of a run"
)
_AGREEMENT = Document("agreement")


@dataclass(frozen=True)
class Step:
    """What one party does in one step."""

    messages: Mapping[str, bytes] = field(default_factory=dict)  # by the party they are for
    report: bytes = b""  # for the coordinator: progress, or a model that all may have
    done: bool = False


class Role(Protocol):
    """One party's side of a method."""

    def step(self, messages: Mapping[str, bytes]) -> Step:
        """Read what its peers sent in the last step, by party, and send the next messages."""
        ...


@dataclass(frozen=True)
class Agreement:
    """What all parties agree on before the first step."""

    run: Annotated[str, _RUN]
    role: Annotated[str, Key(_ROLE)]
    schema_hash: Annotated[str, Key("schema")]
    parties: tuple[Annotated[str, PARTY_NAME], ...]
    settings: Mapping[str, Any]
    disclosures: tuple[Disclosure, ...]
    # By party: the pure epsilon that its labels pay, where a role has one. All else has none.
    spends: Mapping[str, Annotated[float, Within(above=0)]] = field(default_factory=dict)

    @cached_property
    def hash(self) -> str:
        return digest("hedgerow agreement 1", canonical_json(self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": self.run,
            _ROLE: self.role,
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


class Store(Protocol):
    """Where a party's roles keep what outlives them, such as its part of a model."""

    def put(self, name: str, data: bytes) -> None: ...

    def get(self, name: str) -> bytes | None: ...


class MemoryStore:
    """A store that lasts as long as the process."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    def put(self, name: str, data: bytes) -> None:
        self._held[name] = data

    def get(self, name: str) -> bytes | None:
        return self._held.get(name)


RoleFactory = Callable[[str, Rows, Schema, Agreement, Store], Role]
"""Makes a party's side of a session: from its name, rows, schema, agreement and store."""


def check_recipients(sender: str, messages: Mapping[str, bytes], parties: Sequence[str]) -> None:
    """Refuse messages to nobody who takes part, and to oneself."""
    for recipient in messages:
        if recipient == sender or recipient not in parties:
            raise FormatError(f"{sender} wrote a message to {recipient!r}, who takes no part")
