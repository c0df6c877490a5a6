"""Limits: what a party allows, whatever a plan, a roster or a question says.

Beside them what the person behind a party is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hedgerow.privacy.accounting.accountant import FIXED, Price
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.spending import Budget
from hedgerow.protocol.identity import Roster, fingerprint
from hedgerow.protocol.messages import Ask, Refusal

Kinds = tuple[frozenset[str], frozenset[str]]  # of queries: declared in a plan, and adaptive ones


@dataclass(frozen=True)
class Limits:
    """What a party allows. None and an empty text mean: no limit of this kind."""

    budget: Budget | None = None  # ceiling over all runs on this party's ledger
    per_run: Budget | None = None  # ceiling of each run, counted at the party's own delta
    least_parties: int = 1
    kinds: frozenset[str] | None = None  # of queries
    per_month: Budget | None = None  # ceiling over the runs reserved in the last 31 days
    methods: frozenset[str] | None = None
    roles: frozenset[str] | None = None  # what it may do with others without an epsilon
    coordinator: str = ""  # fingerprint of its key
    parties: tuple[tuple[str, str], ...] | None = None  # name, and fingerprint or ""
    approve: bool = False  # whether a person must approve each plan
    # The fewest others that must show what they keep of this party's ledger; None: all but c.
    least_witnesses: int | None = None
    delta: float | None = None  # at which this party counts, also where no epsilon is limited
    # What each method can ask; without an entry a method is what a plan calls itself.
    method_kinds: Mapping[str, Kinds] = field(default_factory=dict, compare=False, repr=False)

    def check_plan(self, plan: Plan, roster: Roster) -> None:
        """Refuse a plan that does not fit; what the ledger has to say (total, month) aside."""
        if self.objection(roster):
            raise Refusal("not-allowed")
        if self.methods is not None and not self._is_allowed_method(plan):
            raise Refusal("over-limits")
        if self.kinds is not None and not plan.budget.kinds() <= self.kinds:
            raise Refusal("over-limits")
        run = self.per_run
        if run is not None and plan.budget.epsilon_at(run.delta) > run.epsilon * (1 + 1e-9):
            raise Refusal("over-limits")
        if self.wants_more_than(roster):
            raise Refusal("over-limits")

    def _is_allowed_method(self, plan: Plan) -> bool:
        """By its name, and because a method of that name can ask what the plan asks."""
        assert self.methods is not None
        if plan.method not in self.methods:
            return False
        if plan.method not in self.method_kinds:
            return True
        listed, adaptive = self.method_kinds[plan.method]
        asked = set(plan.budget.adaptive.kinds)
        return {slot.kind for slot in plan.slots} <= listed and asked <= adaptive

    def check_role(self, role: str, roster: Roster) -> None:
        """Refuse to take part in something without an epsilon that the operator did not name."""
        if self.roles is not None and role not in self.roles:
            raise Refusal("not-allowed")
        if self.approve:  # a person approves plans, and this is none: nobody has looked at it
            raise Refusal("not-approved")
        if self.objection(roster):
            raise Refusal("not-allowed")

    def check_labels(self, epsilon: float, in_month: float, in_all: float) -> None:
        """Refuse a pure epsilon of labels beyond a ceiling; before it they have paid so much."""
        ceilings = ((self.per_run, 0.0), (self.per_month, in_month), (self.budget, in_all))
        for ceiling, before in ceilings:
            if ceiling is not None and before + epsilon > ceiling.epsilon * (1 + 1e-9):
                raise Refusal("over-limits")

    def check_set(self, ask: Ask, roster: Roster) -> None:
        """Refuse a set of parties that is too small or holds one that is not allowed."""
        if self._unlisted(roster) - ask.left_out:
            raise Refusal("not-allowed")
        if roster.trusted.masked and ask.n_parties(roster) < self.least_parties:
            raise Refusal("too-few-parties")

    def wants_more_than(self, roster: Roster) -> bool:
        """Whether the roster allows sums of fewer parties; only masked sums hide a party."""
        return roster.trusted.masked and roster.least_set < self.least_parties

    def objection(self, roster: Roster) -> str:
        """Who in a roster is not allowed, in words; "" if all are."""
        if self.coordinator and fingerprint(roster.coordinator) != self.coordinator:
            return (
                f"the roster's coordinator has the fingerprint {fingerprint(roster.coordinator)}, "
                f"and the limits allow only {self.coordinator}"
            )
        for name in sorted(self._unlisted(roster)):
            return (
                f"the roster has the party {name} with the fingerprint "
                f"{fingerprint(roster.keys[name])}, and the limits do not list it so"
            )
        return ""

    def _unlisted(self, roster: Roster) -> frozenset[str]:
        """Parties of a roster that are not allowed; looked for once, not for every question."""
        if self.parties is None:
            return frozenset()
        if roster.hash not in self._looked_up:
            listed = dict(self.parties)
            self._looked_up[roster.hash] = frozenset(
                name
                for name, key in roster.parties
                if name not in listed or listed[name] not in ("", fingerprint(key))
            )
        return self._looked_up[roster.hash]

    @cached_property
    def _looked_up(self) -> dict[str, frozenset[str]]:
        return {}  # by the roster's hash; whoever runs the party pins few


@dataclass(frozen=True)
class Event:
    """Something that a party did, for whoever watches it; never anything about rows."""

    # "reserved", "answered", "agreed", "refused", "unwritten" (its ledger could not be written)
    what: str
    run: str
    slot: int = -1
    kind: str = ""  # of the query, or name of the role that was agreed to
    price: Price = FIXED  # of what was answered
    word: str = ""  # of a refusal
    plan: Plan | None = None
