"""Who is there: parties that joined a run, and how often each of them failed in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hedgerow.protocol.identity import Announcement
from hedgerow.protocol.joined import Joined

MOST_FAILURES = 2  # in one run, of one process of a party
FIRST_REST_SECONDS = 10.0  # before a party that is connected and gave no answer is probed again
LONGEST_REST_SECONDS = 300.0


class Presence:
    """Attempts are dear: a party that answers probes and fails when it is asked must not cost the
    others one attempt after another."""

    def __init__(self) -> None:
        self.active: tuple[str, ...] = ()  # parties that have joined the run
        self.there: tuple[str, ...] = ()  # those that answered last, where too few joined
        self.announced = Joined({})  # by those that joined
        self._failures = Counter[str]()
        self._rests: dict[str, int] = {}  # the slot in which a party failed last
        self._silences: dict[str, tuple[float, float]] = {}  # not probed until when; the next rest

    def joined(self, names: Iterable[str], announcements: Mapping[str, Announcement]) -> None:
        self.active = self.there = tuple(sorted(names))
        self.announced = Joined(announcements)

    def too_few(self, names: Iterable[str]) -> None:
        self.active, self.there = (), tuple(sorted(names))

    def failed(self, names: Iterable[str], slot: int) -> None:
        """These did not answer a question of this slot."""
        for name in names:
            self._failures[name] += 1
            self._rests[name] = slot
        resting = self._rests_in(slot)
        self.active = self.there = tuple(n for n in self.active if n not in resting)

    def seen(self, boots: Mapping[str, int]) -> None:
        """Who is connected, by an engine that knows: whoever joined with that process is there."""
        known = self.announced.announcements
        self.active = tuple(n for n in self.active if boots.get(n) == known[n].boot)

    def to_probe(self, boots: Mapping[str, int], now: float) -> tuple[str, ...]:
        """Parties that are connected and have not joined; not who was silent a moment ago."""
        known, banned = self.announced.announcements, set(self.banned())
        again = {n for n, boot in boots.items() if n in known and boot > known[n].boot}
        waiting = (n for n in sorted(boots) if n not in self.active and n not in banned - again)
        return tuple(n for n in waiting if self._silences.get(n, (0.0, 0.0))[0] <= now)

    def silent(self, names: Iterable[str], now: float) -> None:
        """These were probed and gave no answer: they rest, longer each time."""
        for name in names:
            rest = self._silences.get(name, (0.0, FIRST_REST_SECONDS))[1]
            self._silences[name] = (now + rest, min(2 * rest, LONGEST_REST_SECONDS))

    def probed(self, ready: Mapping[str, Mapping[str, Any]], everyone: bool) -> None:
        """What parties said of themselves; those asked and silent have left."""
        for name, values in ready.items():
            boot, known = values.get("boot"), self.announced.announcements.get(name)
            if known is not None and isinstance(boot, int) and boot > known.boot:
                del self._failures[name]  # a new process starts without a record
                self._rests.pop(name, None)
        if everyone:
            joined = {name for name, values in ready.items() if values.get("joined") is True}
            self.active = tuple(name for name in self.active if name in joined)

    def returning(self, ready: Iterable[str], slot: int, least: int) -> list[str]:
        """Those to take back: not who failed twice, nor who failed in this slot if others do."""
        active, resting = frozenset(self.active), self._rests_in(slot)
        back = [n for n in ready if n not in active and self._failures[n] < MOST_FAILURES]
        fresh = [name for name in back if name not in resting]
        return fresh if len(self.active) + len(fresh) >= least else back

    def banned(self) -> list[str]:
        """Parties that failed too often to be asked again in this run."""
        return sorted(n for n, count in self._failures.items() if count >= MOST_FAILURES)

    def _rests_in(self, slot: int) -> set[str]:
        return {name for name, failed in self._rests.items() if failed == slot}
