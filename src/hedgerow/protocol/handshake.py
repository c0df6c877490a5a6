"""The handshake that opens a run or a session: who takes part, with which keys, and in what.

An opening carries what is to be done, the hash of the coordinator's roster and a nonce. A party
that accepts it announces its key: signed, for this plan or agreement, schema and roster, with
counters that only rise. A joining carries all announcements; a party takes them if each is signed
by its pinned key and none is older than one it knows. Nothing is reserved, put on record or shown
before the joining, and by then everybody has accepted.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hedgerow.errors import FormatError
from hedgerow.packing import pack
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.identity import Announcement, Identity, Roster, digest_of, signed_by
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Message, Refusal, plain
from hedgerow.protocol.replies import ReceivedReply

OPEN_RUN, JOIN_RUN = "open", "join"
OPEN_SESSION, JOIN_SESSION = "agree", "meet"
OPENED, JOINED = "opened", "joined"  # what a party replies


def opening_message(
    type_: str, subject: Mapping[str, Any], roster: Roster, written: Plan | None = None
) -> Message:
    """The first round: a plan or an agreement, put to every party."""
    values = {**subject, "roster": roster.hash, "nonce": secrets.token_hex(16)}
    return plain(type_, values, written)


def announced_in(replies: Mapping[str, ReceivedReply]) -> dict[str, Announcement]:
    """What parties announced of themselves; a key in another party's name is left out."""
    announced = {
        name: Announcement.from_dict(reply.values.get("announcement", {}))
        for name, reply in replies.items()
    }
    return {name: one for name, one in announced.items() if one.name == name}


def joining_message(type_: str, run: str, announced: Mapping[str, Announcement]) -> Message:
    """The second round: everybody's announcement, for everybody."""
    entries = [announced[name].to_dict() for name in sorted(announced)]
    body = pack({"run": run, "announcements": entries})
    return Message(type_, body, written=Announcements(entries))


class Announcements:
    """Those of a joining message.

    Parties of one process are handed the same object, and read each announcement once.
    """

    def __init__(self, entries: Sequence[Any]) -> None:
        self._entries = entries
        self._signed: dict[tuple[int, str], Announcement | None] = {}

    @staticmethod
    def of(message: Message) -> Announcements:
        """What a message carries, or what its writer in this process hands over."""
        if isinstance(message.written, Announcements):
            return message.written
        entries = message.values.get("announcements", [])
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise FormatError("announcements are not readable")
        return Announcements(entries)

    def signed(self, roster: Roster, only: str | None = None) -> Iterator[Announcement | None]:
        """Each of them, or one party's alone; None in place of one that its party did not sign."""
        for place, entry in enumerate(self._entries):
            if only is not None and entry.get("name") != only:
                continue
            key = (place, roster.hash)
            if key not in self._signed:
                self._signed[key] = _signed(Announcement.from_dict(entry), roster)
            yield self._signed[key]


def _signed(announced: Announcement, roster: Roster) -> Announcement | None:
    public = roster.keys.get(announced.name)
    if public is None or not signed_by(public, announced.message(), announced.signature):
        return None
    return announced


@dataclass(frozen=True)
class Opening:
    """How far a party is with a handshake, while its process lives."""

    number: int = 0  # openings so far; a joining must name the newest
    nonce: str = ""  # of the newest opening
    announcements: Mapping[str, Announcement] = field(default_factory=dict)  # once it has joined
    joined: str = ""  # hash of these announcements

    def again(self, nonce: str) -> Opening:
        """The same after another opening message; it keeps what it has joined until it rejoins."""
        return replace(self, number=self.number + 1, nonce=nonce)

    def is_of(self, nonce: str) -> bool:
        """Whether a message with this nonce has come before."""
        return self.number > 0 and self.nonce == nonce

    def with_announcements(self, fresh: Mapping[str, Announcement]) -> Opening:
        return replace(self, announcements=dict(fresh), joined=digest_of(fresh))


class PartyHandshake:
    """A party's side: its announcements, and which of the others' it may use.

    Every start of a party is on its ledger, and so is the newest key of every other party: an older
    one is never taken again. A party that does not `last` has a signing key of its own process, and
    so have all others of its roster: it remembers by itself. Parties of the same names that use
    its ledger at the same time, for other fits, are none of its business.
    """

    def __init__(
        self,
        name: str,
        schema: str,
        identity: Identity,
        keys: MaskKeys,
        ledger: Ledger,
        lasts: bool = True,
    ) -> None:
        self._name, self._schema, self._identity = name, schema, identity
        self._keys, self._ledger, self._lasts = keys, ledger, lasts
        self._known: dict[str, tuple[int, str]] = {}  # boots and keys, seen by this process
        with ledger.transaction():  # no other process may count the same
            self.boot = len(ledger.lines(name, "boot")) + 1
            ledger.append(name, "boot", values={"boot": self.boot})

    def check_roster(self, values: Mapping[str, Any], roster: Roster) -> None:
        """Refuse an opening of a coordinator that has pinned another roster."""
        if values.get("roster") != roster.hash:
            raise Refusal("other-roster")

    def announce(self, subject: str, opening: Opening, roster: Roster) -> Message:
        """The reply to an opening whose subject, a plan or an agreement, has this hash."""
        mine = self._announcement(subject, opening, roster).signed(self._identity)
        return plain(OPENED, {"announcement": mine.to_dict()})

    def read(
        self,
        message: Message,
        subject: str,
        opening: Opening,
        roster: Roster,
        alone: bool = False,
    ) -> dict[str, Announcement]:
        """Announcements by name, this party's own among them; refused if one may not be used.

        With `alone` those of the others are of no use, and passed over.
        """
        mine, fresh = self._announcement(subject, opening, roster), dict[str, Announcement]()
        for announced in Announcements.of(message).signed(roster, self._name if alone else None):
            if announced is None or _about(announced) != _about(mine) or self._is_old(announced):
                raise Refusal("bad-announcement")
            fresh[announced.name] = announced
        own = fresh.get(self._name)
        # The own one must be the newest: an old set of announcements cannot be brought back.
        if own is None or (own.key, own.number) != (mine.key, mine.number):
            raise Refusal("bad-announcement")
        return fresh

    def accept(self, fresh: Mapping[str, Announcement]) -> None:
        """Remember keys that were read; one that is no key is refused before any is remembered."""
        for name, announced in fresh.items():
            if name != self._name:
                self._keys.agree(announced.key)
        for announced in fresh.values():
            self._known[announced.name] = (announced.boot, announced.key)
            lines = self._ledger.lines(self._name, "peer", announced.name)
            if not lines or lines[-1].values["boot"] < announced.boot:
                values = {"boot": announced.boot, "key": announced.key}
                self._ledger.append(self._name, "peer", announced.name, values=values)

    def _announcement(self, subject: str, opening: Opening, roster: Roster) -> Announcement:
        hashes = (subject, self._schema, roster.hash)
        return Announcement(self._name, self.boot, opening.number, self._keys.public, *hashes)

    def _newest(self, name: str) -> tuple[int, str] | None:
        """The boot counter and key that a party was last seen with."""
        if not self._lasts:
            return self._known.get(name)
        for line in self._ledger.lines(self._name, "peer", name)[-1:]:
            return line.values["boot"], line.values["key"]
        return None

    def _is_old(self, announced: Announcement) -> bool:
        """A boot counter may not fall, and one counter belongs to one key."""
        boot, key = self._newest(announced.name) or (0, "")
        return announced.boot < boot or (announced.boot == boot and announced.key != key)


def _about(announced: Announcement) -> tuple[str, str, str]:
    return announced.plan, announced.schema, announced.roster
