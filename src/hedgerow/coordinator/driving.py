"""What a federation offers whoever drives runs over it; parties at sites have more to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger


class Driven:
    """As it is within one process: nothing outlives a run but its ledger."""

    ledger: Ledger | None = None  # of the coordinator's site, where there is one
    step_seconds = 600.0  # that a party may take for one step of a session

    @contextmanager
    def drive(self, plan: Plan, ledger: Ledger, any_seed: bool = False) -> Iterator[Plan]:
        """The block in which a plan is run and `ledger` pays; it gives the plan to run.

        Between sites that may be a plan of the same ledger which was interrupted; `any_seed` says
        that nobody asked for the seed of this one.
        """
        yield plan
