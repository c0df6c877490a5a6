"""For tests, here and in projects that add a query or an engine. Outside of the layers.

clock.py      a clock that a test moves
noise.py      noise switched off or seeded; models made with either say "not private"
contracts.py  `check_query` attacks a query's bound, `check_federation` compares an engine's sums
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
from hedgerow.testing.noise import noise_off, seeded
from hedgerow.testing.sessions import check_sessions

__all__ = [
    "ManualClock",
    "check_federation",
    "check_neighbours",
    "check_query",
    "check_sessions",
    "manual_clock",
    "noise_off",
    "seeded",
    "worst_steps",
]
