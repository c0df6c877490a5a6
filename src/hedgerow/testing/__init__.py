"""For tests, here and in projects that add a query or an engine. Outside of the layers.

clock.py      a clock that a test moves
noise.py      noise switched off or seeded; models made with either say "not private"
contracts.py  `check_query` attacks a query's bound, `check_federation` compares an engine's sums
neighbours.py  tables that differ by one unit, at random and at its worst
replay.py     `check_replay` plays a run again on neighbours with its releases frozen
simulation/   a whole federation from one seed, under a simulated network, disk and clock
sessions.py   `check_sessions` compares models of the sessions that an engine carries
"""

from hedgerow.testing.clock import ManualClock, manual_clock
from hedgerow.testing.contracts import (
    check_federation,
    check_neighbours,
    check_query,
    worst_steps,
)
from hedgerow.testing.neighbours import Neighbour, neighbours_of, random_rows
from hedgerow.testing.noise import noise_off, seeded
from hedgerow.testing.replay import Replay, Replayed, check_replay
from hedgerow.testing.sessions import check_sessions

__all__ = [
    "ManualClock",
    "Neighbour",
    "Replay",
    "Replayed",
    "check_federation",
    "check_neighbours",
    "check_query",
    "check_replay",
    "check_sessions",
    "manual_clock",
    "neighbours_of",
    "noise_off",
    "random_rows",
    "seeded",
    "worst_steps",
]
