"""What goes wrong in a history: a list of faults drawn from its seed, each at a place and a count.

A fault happens when its place is passed for the n-th time, so a history is replayed by its seed
alone, and a failing one is shrunk by leaving faults out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.testing.simulation.randomness import Dice

COORDINATOR = "coordinator"
TO, FROM, WRITE, SYNC = "message to", "message from", "write", "sync"
# By kind: the places where it may happen, and how often it is drawn.
_MESSAGES = (TO, FROM)
KINDS: dict[str, tuple[tuple[str, ...], float]] = {
    "lose": (_MESSAGES, 3.0),
    "duplicate": (_MESSAGES, 2.0),
    "delay": (_MESSAGES, 2.5),
    "corrupt": (_MESSAGES, 2.0),
    "stale reply": ((FROM,), 1.5),
    "partition": (_MESSAGES, 1.5),
    "partition one way": (_MESSAGES, 1.5),
    "slow": ((TO,), 1.0),
    "kill party": ((TO, FROM, WRITE, SYNC, "charge", "sync point", "answer", "reserve"), 5.0),
    "power failure at party": ((TO, FROM, WRITE, SYNC, "charge", "sync point", "answer"), 3.0),
    "kill coordinator": (
        (WRITE, SYNC, "charge", "sync point", "reserve", "ask", "noise", "store", "write-model"),
        4.0,
    ),
    "power failure at coordinator": (
        (WRITE, SYNC, "charge", "sync point", "reserve", "ask", "noise", "store"), 2.0,
    ),
    "full disk at party": ((WRITE,), 2.5),
    "full disk at coordinator": ((WRITE,), 1.5),
    "restart party": (_MESSAGES, 1.5),
    "clock set": (_MESSAGES, 1.6),
    "new key": (_MESSAGES, 0.7),
    "other roster": (_MESSAGES, 0.7),
    "lie": (_MESSAGES, 6.0),
    "lose answers": ((FROM,), 0.0),
    "old backup at party": (_MESSAGES, 0.0),
    "old backup at coordinator": (_MESSAGES, 0.0),
}  # fmt: skip
# How often answers of a party are lost for minutes, while all else that it says comes through, as
# where something between drops what is long: it fails twice in one run, which is else too rare.
LOSING = 0.06
BACKUPS = ("old backup at party", "old backup at coordinator")
_WEIGHTS = (0.03, 0.05, 0.09, 0.15, 0.20, 0.18, 0.14, 0.09, 0.07)  # of 0, 1, 2, ... faults


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    kind: str
    machine: str
    place: str
    number: int  # it happens the n-th time that the machine passes the place
    seconds: float  # how long it lasts, or until somebody looks after it
    drawn: float  # between 0 and 1: whatever else is to be chosen

    def __str__(self) -> str:
        return (
            f"{self.kind} ({self.machine}, {self.place} {self.number}, "
            f"{self.seconds:.1f} s, {self.drawn:.3f})"
        )


def draw_faults(dice: Dice, parties: Sequence[str], backups: bool = False) -> list[Fault]:
    """The faults of one history; most of them come to pass."""
    point, count = dice.unit(), 0
    for weight in _WEIGHTS[:-1]:
        point -= weight
        if point < 0:
            break
        count += 1
    kinds = {kind: weight for kind, (_, weight) in KINDS.items() if weight}
    if backups:
        kinds |= dict.fromkeys(BACKUPS, 4.0)
    drawn = [_drawn(dice, dice.weighted(kinds), parties) for _ in range(count)]
    if dice.chance(LOSING):  # drawn last, so that all other histories stay as they were
        about = (dice.choice(parties), FROM, dice.integer(1, 6), dice.between(60.0, 400.0))
        drawn.append(Fault("lose answers", *about, dice.unit()))
    return drawn


def _drawn(dice: Dice, kind: str, parties: Sequence[str]) -> Fault:
    place = dice.choice(KINDS[kind][0])
    at_coordinator = kind.endswith("coordinator") and place not in _MESSAGES
    machine = COORDINATOR if at_coordinator else dice.choice(parties)
    most = {TO: 14, FROM: 14, WRITE: 260, SYNC: 40}.get(place, 5)
    number = int(math.exp(dice.unit() * math.log(most + 1)))  # early ones more often
    if kind == "lie":  # about a question, once there was one
        number = dice.integer(4, most)
    seconds = math.exp(dice.between(math.log(0.05), math.log(120.0)))
    return Fault(kind, machine, place, max(1, number), seconds, dice.unit())
