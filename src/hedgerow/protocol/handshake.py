"""The handshake that opens a run or a session: who takes part, with which keys, and in what.

An opening carries what is to be done, the hash of the coordinator's roster and a nonce. A party
that accepts it announces its key: signed, for this plan or agreement, schema and roster, with
counters that only rise. A joining carries all announcements; a party takes them if each is signed
by its pinned key and none is older than one it knows. Nothing is reserved, put on record or shown
before the joining, and by then everybody has accepted.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

from hedgerow.errors import FormatError
from hedgerow.packing import pack
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.identity import Announcement, Identity, Roster, signed_by
from hedgerow.protocol.joined import NOTHING_KNOWN, Joined, KnownKeys
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


def joining_message(
    type_: str,
    run: str,
    announced: Mapping[str, Announcement],
    shows: Sequence[Mapping[str, Any]] = (),
) -> Message:
    """The second round: everybody's announcement, for everybody.

    Between sites also what the others show one party of its own ledger's heads.
    """
    entries = [announced[name].to_dict() for name in sorted(announced)]
    shown = {"shows": [dict(one) for one in shows]} if shows else {}
    body = pack({"run": run, "announcements": entries, **shown})
    return Message(type_, body, written=Announcements(entries))


class Announcements:
    """Those of a joining message.

    Parties of one process are handed the same object, and read each announcement once.
    """

    def __init__(self, entries: Sequence[Any]) -> None:
        self._entries = entries
        self._joined: dict[str, Joined | None] = {}  # by the roster's hash

    @staticmethod
    def of(message: Message) -> Announcements:
        """What a message carries, or what its writer in this process hands over."""
        if isinstance(message.written, Announcements):
            return message.written
        entries = message.values.get("announcements", [])
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise FormatError("announcements are not readable")
        return Announcements(entries)

    def joined(self, roster: Roster) -> Joined | None:
        """All of them; None unless each is signed by its own party, and no party has two."""
        if roster.hash not in self._joined:
            signed = [_signed(entry, roster) for entry in self._entries]
            by_name = {one.name: one for one in signed if one is not None}
            complete = len(by_name) == len(self._entries)
            self._joined[roster.hash] = Joined(by_name) if complete else None
        return self._joined[roster.hash]

    def alone(self, name: str, roster: Roster) -> Joined | None:
        """One party's alone; None unless it is there and signed."""
        one = _signed(self._by_name[name], roster) if name in self._by_name else None
        return None if one is None else Joined({name: one})

    @cached_property
    def _by_name(self) -> dict[Any, Any]:
        named = [entry for entry in self._entries if isinstance(entry.get("name"), str)]
        return {entry["name"]: entry for entry in named}


def _signed(entry: Mapping[str, Any], roster: Roster) -> Announcement | None:
    """An announcement, if the party that it names has signed it."""
    announced = Announcement.from_dict(entry)
    public = roster.keys.get(announced.name)
    if public is None or not signed_by(public, announced.message(), announced.signature):
        return None
    return announced


@dataclass(frozen=True)
class Opening:
    """How far a party is with a handshake, while its process lives."""

    number: int = 0  # of the newest opening; 0 = none. No two of a process have the same
    nonce: str = ""  # of the newest opening
    joined: Joined | None = None  # what it has joined with

    def again(self, number: int, nonce: str) -> Opening:
        """The same after another opening message; it keeps what it has joined until it rejoins."""
        return replace(self, number=number, nonce=nonce)

    def is_of(self, nonce: str) -> bool:
        """Whether a message with this nonce has come before."""
        return self.number > 0 and self.nonce == nonce


class PartyHandshake:
    """A party's side: its announcements, and which of the others' it may use.

    Every start of a party is on its ledger, and so is the newest key of every other party: an older
    one is never taken again. A party that does not `last` has a signing key of its own process, and
    so have all others of its roster: it remembers by itself, and its ledger has no line of them.
    Parties of the same names that use its ledger at the same time, for other fits, are none of its
    business.
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
        self._known = NOTHING_KNOWN  # seen by this process
        self._openings = count(1)  # a joining must name the newest of its run
        with ledger.transaction():  # no other process may count the same
            self.boot = len(ledger.lines(name, "boot")) + 1
            ledger.append(name, "boot", values={"boot": self.boot})

    def opened_again(self, opening: Opening, nonce: str) -> Opening:
        """An opening after another message, under a number that this process never used."""
        return opening.again(next(self._openings), nonce)

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
        older: bool = False,
    ) -> Joined:
        """The announcements of all, this party's own among them; refused if one may not be used.

        With `alone` those of the others are of no use, and passed over. With `older` no key of
        theirs is used, and one that is older than known is read too.
        """
        mine, carried = self._announcement(subject, opening, roster), Announcements.of(message)
        joined = carried.alone(self._name, roster) if alone else carried.joined(roster)
        if joined is None or joined.about != mine.about:
            raise Refusal("bad-announcement")
        if not older and joined.after(self._newest()) is None:
            raise Refusal("bad-announcement")
        own = joined.announcements.get(self._name)
        # The own one must be the newest: an old set of announcements cannot be brought back.
        if own is None or (own.key, own.number) != (mine.key, mine.number):
            raise Refusal("bad-announcement")
        return joined

    def accept(self, joined: Joined, peers: Iterable[str] = (), signed: bool = False) -> None:
        """Remember keys that were read, those of `peers` first made sure to be keys.

        One that is none is refused before any is remembered. A party agrees with those that it
        shares masks or messages with, and with nobody else: that takes the longest of a joining.
        What is `signed` is kept whole, to be shown to its own party.
        """
        for name in peers:
            if name != self._name:
                self._keys.agree(joined.announcements[name].key)
        if not self._lasts:
            self._known = self._after(joined)
            return
        with self._ledger.transaction():  # the last line of a party is that of its highest boot
            known = self._newest()
            for name, (boot, key) in self._after(joined).newest.items():
                if boot > known.newest.get(name, (0, ""))[0]:
                    values: dict[str, Any] = {"boot": boot, "key": key}
                    if signed:
                        values["announcement"] = joined.announcements[name].to_dict()
                    self._ledger.append(self._name, "peer", name, values=values)

    def _after(self, joined: Joined) -> KnownKeys:
        """What is known once these are; refused if one of them is older than one that is."""
        after = joined.after(self._newest())
        if after is None:
            raise Refusal("bad-announcement")
        return after

    def _announcement(self, subject: str, opening: Opening, roster: Roster) -> Announcement:
        hashes = (subject, self._schema, roster.hash)
        return Announcement(self._name, self.boot, opening.number, self._keys.public, *hashes)

    def _newest(self) -> KnownKeys:
        """The boot counter and key that each party was last seen with."""
        if not self._lasts:
            return self._known
        lines = self._ledger.lines(self._name, "peer")  # in order: the newest of a party wins
        values = {line.run: line.values for line in lines}
        return KnownKeys({name: (told["boot"], told["key"]) for name, told in values.items()})
