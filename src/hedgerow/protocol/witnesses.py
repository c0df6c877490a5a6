"""Heads of ledgers as parties leave them with each other and show them again: signed, for one run.

A head is signed by its own party, over the run that it was left in. A show is signed by whoever
keeps the head, for one party and the announcements of this very handshake: the party's own newest
announcement is among them, so that an earlier show cannot stand for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from hedgerow.data.documents import Document, Matching, Within, named
from hedgerow.packing import canonical_json
from hedgerow.privacy.ledger.witnesses import KeptHead, OwnHead
from hedgerow.protocol.identity import PARTY_NAME, Announcement, Identity, signed_by

SHOW, SHOWN = "show", "shown"  # all announcements, for what a party keeps of the others
LEAVE, LEFT = "leave", "left"  # the heads of all, to be kept
_HEAD, _SHOW = "hedgerow head of a ledger 1", "hedgerow show of a head 1"
_HEX = Matching(re.compile(r"[0-9a-f]{64}"), "64 of 0-9 and a-f")
_SIGNATURE = Matching(re.compile(r"[0-9a-f]{128}"), "128 of 0-9 and a-f")
_TIME = Matching(re.compile(r"[0-9T:.+-]{29}"), "a time in UTC to the millisecond")
_MAYBE_TIME = Matching(re.compile(r"([0-9T:.+-]{29})?"), _TIME.wanted)
_DOCUMENT = Document("head of a ledger")


@dataclass(frozen=True)
class _Carried:
    """A head as it travels."""

    party: Annotated[str, PARTY_NAME]
    key: Annotated[str, _HEX]
    commitment: Annotated[str, _HEX]
    count: Annotated[int, Within(1, 2**53)]
    time: Annotated[str, _TIME]
    joined: Annotated[str, _HEX]
    signature: Annotated[str, _SIGNATURE]


@dataclass(frozen=True)
class Show:
    """What one party keeps of another: its last head, and the newest start that it announced."""

    by: str
    head: KeptHead | None
    start: Announcement | None = None
    seen: str = ""  # when that start was seen first; UTC, by the clock of whoever shows it
    signature: str = ""

    def message(self, to: str, joined: str) -> bytes:
        return canonical_json([_SHOW, self.by, to, joined, *self._told()])

    def signed(self, identity: Identity, to: str, joined: str) -> Show:
        return replace(self, signature=identity.sign(self.message(to, joined)))

    def is_for(self, to: str, joined: str, public: str) -> bool:
        """Whether the party with this key signed it, for that one and this handshake."""
        return signed_by(public, self.message(to, joined), self.signature)

    def to_dict(self) -> dict[str, Any]:
        head, start, seen = self._told()
        told = {"head": head or {}, "start": start or {}, "seen": seen}
        return {"by": self.by, **told, "signature": self.signature}

    def _told(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None, str]:
        head = None if self.head is None else dict(vars(self.head))
        return head, None if self.start is None else self.start.to_dict(), self.seen

    @staticmethod
    def from_dict(values: Any) -> Show:
        with named("a show of a head is not readable"):
            told = _DOCUMENT.read(_ShowCarried, values)
        head = head_from(told.head) if told.head else None
        start = Announcement.from_dict(told.start) if told.start else None
        return Show(told.by, head, start, told.seen, told.signature)


@dataclass(frozen=True)
class _ShowCarried:
    by: Annotated[str, PARTY_NAME]
    head: dict[str, Any]
    start: dict[str, Any]
    seen: Annotated[str, _MAYBE_TIME]
    signature: Annotated[str, _SIGNATURE]


def head_from(values: Mapping[str, Any]) -> KeptHead:
    """A head that travelled."""
    with named("a head is not readable"):
        return KeptHead(**vars(_DOCUMENT.read(_Carried, values)))


def signed_head(own: OwnHead, party: str, joined: str, identity: Identity) -> KeptHead:
    """A party's own head for the others."""
    about = (party, identity.public, own.commitment, own.count, own.time, joined)
    return KeptHead(*about, signature=identity.sign(_message(*about)))


def is_signed(head: KeptHead) -> bool:
    """Whether the key that a head names has signed it."""
    about = (head.party, head.key, head.commitment, head.count, head.time, head.joined)
    return signed_by(head.key, _message(*about), head.signature)


def shows_in(shown: Mapping[str, Mapping[str, Any]], to: str) -> list[dict[str, Any]]:
    """What all others showed one party, as it is carried to that one."""
    return [
        {"by": by, **entry}
        for by, values in sorted(shown.items())
        if by != to and isinstance(entry := _entry(values, to), dict)
    ]


def read_shows(entries: Any) -> list[Show]:
    """The shows of a joining message."""
    return [Show.from_dict(entry) for entry in _list(entries)]


def read_heads(entries: Any) -> list[KeptHead]:
    """The heads that are to be kept."""
    return [head_from(entry) for entry in _list(entries)]


def shown_values(shows: Mapping[str, Show]) -> dict[str, Any]:
    """A reply that shows every other party its head."""
    entries = {to: show.to_dict() for to, show in shows.items()}
    return {"shows": {to: {k: v for k, v in e.items() if k != "by"} for to, e in entries.items()}}


def _entry(values: Mapping[str, Any], to: str) -> Any:
    shows = values.get("shows")
    return shows.get(to) if isinstance(shows, dict) else None


def _list(entries: Any) -> Iterable[Any]:
    return entries if isinstance(entries, list) else []


def _message(party: str, key: str, commitment: str, count: int, time: str, joined: str) -> bytes:
    return canonical_json([_HEAD, party, key, commitment, count, time, joined])
