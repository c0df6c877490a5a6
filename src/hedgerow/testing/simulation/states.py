"""What a long campaign must have met often: faults, lies, refusals, fail points, recoveries."""

from __future__ import annotations

from collections.abc import Mapping

from hedgerow.protocol.messages import REFUSALS
from hedgerow.testing.simulation.faults import COORDINATOR, KINDS
from hedgerow.testing.simulation.lies import LIES

OFTEN = 100  # times at which a state counts as tried
_PASSED_BY = {
    "reserve": (COORDINATOR, "party"), "charge": (COORDINATOR, "party"),
    "sync": (COORDINATOR, "party"), "ask": (COORDINATOR,), "answer": ("party",),
    "noise": (COORDINATOR,), "store": (COORDINATOR,), "write-model": (COORDINATOR,),
}  # fmt: skip
# What is counted, and what that is in words.
RECOVERIES = {
    "further attempt": "a further attempt at a slot, paid by a spare",
    "command run again": "the same command run again",
    "went on without a party": "a model made without one of its parties, which it names",
    "party did not start": "a party that did not come up and was started again",
    "disk freed": "a full disk with room again",
    "approved": "a plan approved by a person",
    "rejected": "a plan rejected by a person",
    "withdrawn": "an approval withdrawn",
    "pinned again": "a roster pinned again",
    "settled": "lost lines settled by a person",
    "joined again": "a run joined once more by a party, with its newest key",
    "answered again": "an answer given once more, from the ledger",
    "trees wanted": "trees asked for by a party that had lost them",
    "resumed": "a run finished with releases of an earlier process, from the ledger",
    "session begun again": "a session finished that had broken off before",
    "finished without a release": "a run finished although one of its releases was lost for good",
    "waited for parties": "a pause of a command until enough parties are back",
    "failed twice": "a release without a party that failed twice in the run",
    "answers again": "a party that answers again, since a line reached its disk",
    "undone": "a transaction that a crash left half done, and whoever reads next undoes",
    "waited for the lock": "a pause until another process lets go of the ledger",
    "took turns inside of the ledger": "turns of two processes inside of one ledger",
    "equal to an undisturbed run": "a model compared with that of an undisturbed run, and equal",
}
STATES: tuple[str, ...] = (
    *(f"fault {kind}" for kind in KINDS),
    *(f"lie: {name}" for name in LIES),
    *(f"refusal {word}" for word in REFUSALS),
    *(f"fail point {name} at {role}" for name, roles in _PASSED_BY.items() for role in roles),
    *RECOVERIES,
)


def rare(counts: Mapping[str, int], least: int = OFTEN) -> dict[str, int]:
    """States that were reached less often than that, those that never were among them."""
    return {name: counts.get(name, 0) for name in STATES if counts.get(name, 0) < least}
