"""The announcements that a run or a session was joined with, and the sets that are summed of them.

Parties of one process are handed the same objects, so that what follows from all announcements is
made once, and not once for every party.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from hedgerow.packing import canonical_json, digest
from hedgerow.protocol.identity import Announcement, Roster, digest_of
from hedgerow.protocol.mask_graph import degree, neighbours

_SET = "hedgerow mask set 1"
MOST_SETS = 4  # of one joining that are kept: the newest


class Neighbour(NamedTuple):
    """Another party of a sum that one shares a stream with."""

    name: str
    key: str
    pair: bytes  # both names in order


class SumSet:
    """The ordered set of one sum with the keys that its masks are made of, and its graph."""

    def __init__(self, joined: Joined, names: tuple[str, ...], colluding: int) -> None:
        self.joined, self.names = joined, names
        self.degree = degree(len(names), colluding)
        self._around: dict[str, Sequence[Neighbour]] = {}

    @cached_property
    def hash(self) -> str:
        """One hash of names and keys in their order."""
        announced = self.joined.announcements
        return digest(_SET, canonical_json([[name, announced[name].key] for name in self.names]))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def neighbours(self, party: str) -> Sequence[Neighbour]:
        """Those that a party shares a stream with."""
        if party not in self._around:
            places = neighbours(self._places[party], len(self.names), self.degree)
            announced = self.joined.announcements
            others = [self.names[place] for place in places]
            self._around[party] = [
                Neighbour(other, announced[other].key, canonical_json(sorted((party, other))))
                for other in others
            ]
        return self._around[party]


class Joined:
    """Signed announcements by name, as one value that is not written to."""

    def __init__(self, announcements: Mapping[str, Announcement]) -> None:
        self.announcements = dict(announcements)
        self._sets: OrderedDict[tuple[str, tuple[str, ...]], SumSet | None] = OrderedDict()
        self._absent: dict[str, tuple[str, ...]] = {}  # by the roster's hash
        self._followed: tuple[KnownKeys, KnownKeys | None] | None = None

    @cached_property
    def hash(self) -> str:
        return digest_of(self.announcements)

    @cached_property
    def about(self) -> tuple[str, str, str] | None:
        """The subject, schema and roster that all of them are for; None if they differ."""
        found = {one.about for one in self.announcements.values()}
        return found.pop() if len(found) == 1 else None

    def without(self, absent: tuple[str, ...], roster: Roster) -> SumSet | None:
        """The parties of a roster but for those absent; None if one of them did not announce."""
        key = (roster.hash, absent)
        if key not in self._sets:
            names = roster.without(absent)
            complete = self.announcements.keys() >= set(names)
            made = SumSet(self, names, roster.colluding) if complete else None
            while len(self._sets) >= MOST_SETS:
                self._sets.popitem(last=False)
            self._sets[key] = made
        return self._sets[key]

    def everyone(self, roster: Roster) -> SumSet | None:
        """All that announced: who is summed as long as nobody is lost."""
        if roster.hash not in self._absent:
            missing = [name for name in roster.names if name not in self.announcements]
            self._absent = {roster.hash: tuple(missing)}
        return self.without(self._absent[roster.hash], roster)

    def after(self, known: KnownKeys) -> KnownKeys | None:
        """What is known once these are used too; None if one of them is older than known.

        Parties of one process have seen the same before, and the same object says so.
        """
        followed = self._followed
        if followed is None or followed[0] is not known:
            old = any(known.is_newer_than(one) for one in self.announcements.values())
            fresh = {name: (one.boot, one.key) for name, one in self.announcements.items()}
            followed = (known, None if old else KnownKeys({**known.newest, **fresh}))
            self._followed = followed
        return followed[1]


class KnownKeys:
    """The boot counter and key that each party was last seen with; not written to."""

    def __init__(self, newest: Mapping[str, tuple[int, str]]) -> None:
        self.newest = newest

    def is_newer_than(self, announced: Announcement) -> bool:
        """A boot counter may not fall, and one counter belongs to one key."""
        boot, key = self.newest.get(announced.name, (0, ""))
        return announced.boot < boot or (announced.boot == boot and announced.key != key)


NOTHING_KNOWN = KnownKeys({})
