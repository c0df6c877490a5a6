"""The other parties' mask keys: each signed by its pinned key, and never an older one again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.identity import Announcement, Roster, signed_by


class Peers:
    """What a party's ledger remembers of the others' boot counters and keys."""

    def __init__(self, ledger: Ledger, owner: str) -> None:
        self._ledger, self._owner = ledger, owner

    def read(
        self, entries: Iterable[Mapping[str, Any]], mine: Announcement, roster: Roster
    ) -> dict[str, Announcement] | None:
        """Announcements by name, this party's own among them; None if one may not be used."""
        fresh: dict[str, Announcement] = {}
        for entry in entries:
            announced = Announcement.from_dict(entry)
            public = roster.keys.get(announced.name)
            if (
                public is None
                or _about(announced) != _about(mine)
                or not signed_by(public, announced.message(), announced.signature)
                or self._is_old(announced)
            ):
                return None
            fresh[announced.name] = announced
        own = fresh.get(self._owner)
        # The own one must be the newest: an old set of announcements cannot be brought back.
        latest = own is not None and (own.key, own.number) == (mine.key, mine.number)
        return fresh if latest else None

    def remember(self, announced: Announcement) -> None:
        lines = self._ledger.lines(self._owner, "peer", announced.name)
        if not lines or lines[-1].values["boot"] < announced.boot:
            values = {"boot": announced.boot, "key": announced.key}
            self._ledger.append(self._owner, "peer", announced.name, values=values)

    def _is_old(self, announced: Announcement) -> bool:
        """A boot counter may not fall, and one counter belongs to one key."""
        for line in self._ledger.lines(self._owner, "peer", announced.name)[-1:]:
            boot, key = line.values["boot"], line.values["key"]
            if announced.boot < boot or (announced.boot == boot and announced.key != key):
                return True
        return False


def _about(announced: Announcement) -> tuple[str, str, str]:
    return announced.plan, announced.schema, announced.roster
