"""A party's side of witnessed ledgers: what it shows others, demands of them, leaves and keeps.

It goes on only if its chain has every head that others show it. All parties of the run must show,
and in a run of sums all but c of the others in its roster, unless its limits say another number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.witnesses import (
    Gap,
    KeptHead,
    has_head,
    keep_head,
    kept_head,
    leave_head,
    note_gap,
    now_text,
    open_gaps,
    own_heads,
    settlements,
)
from hedgerow.protocol.identity import Announcement, Identity, Roster, signed_by
from hedgerow.protocol.joined import Joined
from hedgerow.protocol.messages import Message, Refusal, plain
from hedgerow.protocol.witnesses import (
    LEFT,
    SHOWN,
    Show,
    is_signed,
    read_heads,
    read_shows,
    shown_values,
    signed_head,
)


class PartyWitnesses:
    """What a party and the others know of each other's ledgers.

    One that does not `take_part` shows that it keeps nothing, and leaves nothing: within one
    process a ledger has no other witnesses than its own.
    """

    def __init__(
        self, name: str, identity: Identity, ledger: Ledger, limits: Limits, take_part: bool
    ) -> None:
        self._name, self._identity, self._ledger = name, identity, ledger
        self._limits, self.take_part = limits, take_part

    def check_whole(self) -> None:
        """Refuse everything while lines are missing and nobody has settled it."""
        if self.take_part and open_gaps(self._ledger, self._name):
            raise Refusal("rolled-back")

    def check_enough(self, joined: Joined, roster: Roster) -> None:
        """Refuse a run that too few others take part in to witness this ledger.

        Said before anybody shows anything, and so before the coordinator or a party reserves it.
        """
        if self.take_part and len(joined.announcements) - 1 < self._needed(roster):
            raise Refusal("unwitnessed")

    def show(self, joined: Joined) -> Message:
        """What this party keeps of everybody else in a handshake, each signed for that one."""
        shows = {}
        for name in joined.announcements:
            if name != self._name:
                show = self._kept_of(name) if self.take_part else Show(self._name, None)
                shows[name] = show.signed(self._identity, name, joined.hash)
        return plain(SHOWN, shown_values(shows))

    def _kept_of(self, name: str) -> Show:
        head = kept_head(self._ledger, self._name, name)
        for line in self._ledger.lines(self._name, "peer", name)[-1:]:
            if told := line.values.get("announcement"):  # not on lines of earlier versions
                return Show(self._name, head, Announcement.from_dict(told), line.time)
        return Show(self._name, head)

    def check(
        self, entries: Any, joined: Joined, roster: Roster, agreed: bool = False
    ) -> tuple[str, ...]:
        """Who showed their last head of this party; refused if the chain lacks one of them.

        In a session the agreement names who takes part, and those are enough if all of them show.
        """
        if not self.take_part:
            return ()
        shows = {show.by: show for show in read_shows(entries)}
        for by, show in shows.items():
            public = roster.keys.get(by)
            if by == self._name or public is None:
                raise Refusal("bad-witness")
            if not show.is_for(self._name, joined.hash, public):
                raise Refusal("bad-witness")
        others = {name for name in joined.announcements if name != self._name}
        needed = len(others) if agreed else self._needed(roster)
        if not shows.keys() >= others or len(shows) < needed:
            raise Refusal("unwitnessed")
        lost = [gap for show in shows.values() for gap in self._lost(show, joined)]
        for gap in lost:
            note_gap(self._ledger, self._name, gap)
        self.check_whole()
        return tuple(sorted(shows))

    def leave(self, run: str, joined: Joined, shown_by: tuple[str, ...]) -> dict[str, Any]:
        """A head for the others, as a part of the reply to a joining; on disk first."""
        if not self.take_part:
            return {}
        own = leave_head(self._ledger, self._name, run, shown_by, self._identity.public)
        return {"head": dict(vars(signed_head(own, self._name, joined.hash, self._identity)))}

    def keep(self, values: Mapping[str, Any], joined: Joined, roster: Roster) -> Message:
        """Keep the heads of the others in this handshake, those that are signed and for it."""
        heads = read_heads(values.get("heads")) if self.take_part else []
        others = [head for head in heads if head.party != self._name]
        with self._ledger.together():
            for head in others:
                if self._is_of(head, joined, roster):
                    keep_head(self._ledger, self._name, head)
        if not all(self._is_of(head, joined, roster) for head in others):
            raise Refusal("bad-witness")
        return plain(LEFT, {})

    def _is_of(self, head: KeptHead, joined: Joined, roster: Roster) -> bool:
        announced = head.party in joined.announcements and head.joined == joined.hash
        return announced and head.key == roster.keys.get(head.party) and is_signed(head)

    def _needed(self, roster: Roster) -> int:
        if self._limits.least_witnesses is not None:
            return self._limits.least_witnesses
        return max(0, len(roster.parties) - 1 - roster.colluding)

    def _lost(self, show: Show, joined: Joined) -> list[Gap]:
        """What a show proves to be missing here; a lie about it is refused.

        A head under a key that this ledger has never signed with is none of its own: the name was
        another site's before.
        """
        found, now = [], now_text()
        head, start = show.head, show.start
        if head is not None:
            if head.party != self._name or not is_signed(head):
                raise Refusal("bad-witness")
            own = head.key in self._own_keys()
            if own and not has_head(self._ledger, self._name, head.commitment):
                found.append(Gap(head.commitment, head.count, head.time, show.by, now))
        if start is not None and self._is_own(start):
            mine = joined.announcements[self._name]
            # Others joined with a later start than this one, or with another of the same number.
            if start.boot > mine.boot or (start.boot == mine.boot and start.key != mine.key):
                found.append(Gap("", 0, min(show.seen, now), show.by, now, boot=start.boot))
        settled = settlements(self._ledger, self._name)
        return [
            gap
            for gap in found
            if not any(one.covers(gap.time, gap.count, gap.boot) for one in settled)
        ]

    def _is_own(self, start: Announcement) -> bool:
        """Whether this party announced a start, under its key of now; another one's is a lie."""
        if start.name != self._name:
            raise Refusal("bad-witness")
        return signed_by(self._identity.public, start.message(), start.signature)

    def _own_keys(self) -> set[str]:
        return {self._identity.public, *(one.key for one in own_heads(self._ledger, self._name))}
