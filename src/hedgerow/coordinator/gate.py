"""The gate: everything that leaves the parties passes here, and the charge comes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.federation import Federation, Total
from hedgerow.coordinator.refused import PartiesLost, RefusedBy
from hedgerow.data.schema import Schema
from hedgerow.errors import PlanError, SlotSpent
from hedgerow.failpoints import fail_point
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Disclosure, Statement, of_schema
from hedgerow.model.tree import Tree
from hedgerow.packing import digest
from hedgerow.privacy.accounting.budget import Slot
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import USUAL_DELTA, Ledger
from hedgerow.privacy.ledger.reservation import Release, Reservation
from hedgerow.privacy.ledger.spending import (
    Budget,
    budget_of,
    counts_as_gaussians,
    spending_until,
)
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.noise import mechanisms
from hedgerow.queries import EnsembleRef, LabelSums, SplitChoices, SumQuery, query_bytes, size_of
from hedgerow.queries.calibration import Noise, noise_for, price_of


@dataclass(frozen=True)
class Progress:
    """Told to an observer after every slot: how far the run is, without any row's value."""

    slot: int
    n_slots: int
    name: str
    replayed: bool


class Gate:
    """Hands a grower noisy sums, one plan slot at a time.

    Parameters
    ----------
    federation : the parties
    plan : what may be asked and what it may cost
    ledger : the coordinator's; the plan is checked against it at once and reserved there when
        every party has accepted it, before any party is asked about rows
    observe : called with a `Progress` after every slot
    start : the model that the plan names, if it does: one to build on, or to measure
    """

    def __init__(
        self,
        federation: Federation,
        plan: Plan,
        ledger: Ledger,
        budget: Budget | None = None,
        observe: Callable[[Progress], None] | None = None,
        start: Ensemble | None = None,
    ) -> None:
        self._federation, self._plan, self._ledger = federation, plan, ledger
        about = {"parties": list(federation.names), "simulated": federation.simulated}
        self._reservation = Reservation(
            ledger, plan, COORDINATOR, budget, at_once=False, federation=about
        )
        self._observe = observe
        federation.forget_trees()
        self._turn = federation.turn
        self._cursor = 0
        self._opened = False
        self._sources: set[str] = set()
        self._releases = self.lost = 0
        self._asked: list[dict[str, Any]] = []
        self._took_part: list[tuple[str, ...]] = []
        self.label_sums: Release | None = None  # the last that were released, for what follows
        self._expected = plan.n_slots
        self.start = start_trees(start, plan, federation.schema)
        # What the model that we build on has shown stays shown.
        before = None if plan.measures else start
        self._shown_before = before.statement.disclosures if before is not None else ()
        for tree in self.start:
            federation.publish(tree)

    @property
    def schema(self) -> Schema:
        return self._federation.schema

    @property
    def plan(self) -> Plan:
        return self._plan

    @property
    def ensemble(self) -> EnsembleRef:
        return self._federation.ensemble

    @property
    def slot(self) -> int:
        """Number of the next slot."""
        return self._cursor

    def expect(self, n_slots: int) -> None:
        """Tell whoever watches how many slots a run will use."""
        self._expected = n_slots

    def pass_over(self) -> None:
        """Leave the next slot unused: nothing is asked and nothing is charged for it."""
        self._cursor += 1

    def publish(self, tree: Tree) -> None:
        """Add a tree made of released values; later questions may refer to it."""
        self._check_turn()
        self._federation.publish(tree)

    def release(self, query: SumQuery, mu: float = 0.0, name: str = "") -> Release:
        """A noisy sum, charged to the next slot of the plan.

        A slot that is priced during the run takes `mu` (and a name for whoever watches); a listed
        one has its own. Raises SlotSpent if an earlier process charged the slot and died before
        storing its release, and no spare attempt is left: the value is lost, the charge is not.
        """
        index, slot = self._draw(query, mu, name)
        request = digest(query_bytes(query))
        stored = self._reservation.released(index, request)
        if stored is not None:
            release = stored
        else:
            noise = self._checked(query, slot)
            self._handshake()
            release = self._ask(query, request, index, slot, noise)
        self._sources.add(release.source)
        self._releases += 1
        self._note(query, slot)
        if isinstance(query, LabelSums):
            self.label_sums = release
        if self._observe:
            name = slot.name
            self._observe(Progress(index, self._expected, name, stored is not None))
        return release

    def _note(self, query: SumQuery, slot: Slot) -> None:
        price = price_of(query, self._plan, slot.mu)
        one = {
            "name": slot.name, "kind": query.kind, "numbers": price.numbers, "mu": slot.mu,
            "epsilon": price.epsilon,
        }  # fmt: skip
        if self._asked and {**self._asked[-1], "repeat": 1} == {**one, "repeat": 1}:
            self._asked[-1]["repeat"] += 1
        else:
            self._asked.append({**one, "repeat": 1})

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What was released and at what price, in order, equal neighbours as one: public facts."""
        return [dict(one) for one in self._asked]

    @property
    def attendance(self) -> dict[str, Any]:
        """Between sites: how many releases were over which parties, who fell out when and why, and
        who was absent at the end.

        Of this process: releases that a resumed run took from the ledger are not among them.
        """
        if self._federation.engine.simulated:
            return {}
        counts = Counter(self._took_part)
        releases = [{"parties": list(names), "releases": n} for names, n in counts.items()]
        federation = self._federation
        lost = [asdict(loss) for loss in federation.losses]
        return {"over": releases, "lost": lost, "absent": dict(federation.absent)}

    def select(self, query: SplitChoices, name: str = "") -> tuple[int, ...]:
        """A noisy choice for every leaf that is asked about, charged like a release.

        Only where the coordinator is trusted with exact sums: nothing of them is kept but the ways
        that were drawn, numbered as `SplitChoices.utilities` numbers them.
        """
        return tuple(int(way) for way in self.release(query, name=name).total)

    def statement(self) -> Statement:
        """The guarantee of everything released through this gate."""
        plan, privacy = self._plan, self._plan.privacy
        tested = sorted(self._sources - {"secure"})
        by_parties = privacy.trusted.masked
        unit = self.schema.unit
        neighbours = f"{privacy.trusted.change} one {unit.kind}"
        if unit.kind == "person":
            neighbours += f" with at most {unit.at_most} rows in each party"
        if self.schema.weight is not None and not plan.measures:  # measuring counts rows once
            each = "each " if unit.kind == "person" else ""
            neighbours += f", {each}of a weight of at most {self.schema.max_weight:g}"
        disclosures: tuple[Disclosure, ...] = ()
        if plan.settings.public_rows:
            what = f"the number of rows, {plan.settings.public_rows}, declared public"
            disclosures = (Disclosure("everyone", "all rows", what),)
        disclosures = tuple(
            dict.fromkeys((*self._shown_before, *disclosures, *of_schema(self.schema)))
        )
        reasons = [f"Noise was {' and '.join(tested)} for a test."] if tested else []
        if plan.settings.reads_rows:
            reasons.append(
                "Where columns may be cut was read from the rows without noise "
                '(candidates = "quantiles-not-private"), for comparison only.'
            )
        if plan.settings.model_says == "not private" and not plan.measures:
            reasons.append("It builds on a model that is not private.")
        total = spending_until(self._ledger, plan.run)
        alone = total.runs < 2
        at = privacy.delta or (USUAL_DELTA if total.gaussian else 0.0)
        by_mu = counts_as_gaussians(budget_of(self._ledger))  # as the ledger refuses
        return Statement(
            guarantee="not private" if reasons else plan.guarantee,
            epsilon=privacy.epsilon,
            delta=privacy.delta,
            trust=privacy.trust,
            accounting=privacy.accounting,
            mu=plan.mu,
            unit=unit.kind,
            neighbours=neighbours,
            parties=self._federation.names,
            colluding=privacy.colluding if by_parties else 0,
            minimum_parties=privacy.minimum_parties if by_parties else 1,
            releases=self._releases,
            scope="this fit alone" if alone and self._ledger.path is None else f"run {plan.run}",
            simulated=self._federation.simulated,
            builds_on=plan.settings.model,
            builds_on_promise=plan.settings.model_says,
            sampled=plan.budget.sampled,
            disclosures=disclosures,
            reason=" ".join(reasons),
            ledger_runs=0 if alone else total.runs,
            ledger_epsilon=0.0 if alone else total.epsilon(at, as_gaussians=by_mu),
            ledger_delta=0.0 if alone else at,
            ledger_mu=0.0 if alone else total.mu,
        )

    def _draw(self, query: SumQuery, mu: float, name: str) -> tuple[int, Slot]:
        index, plan = self._cursor, self._plan
        if index >= plan.n_slots:
            raise PlanError("the plan has no slot left; nothing was asked")
        slot = plan.budget.slot(index, query.kind, mu)
        if slot is None or size_of(query) > slot.coordinates:
            found = plan.slots[index] if index < len(plan.slots) else plan.budget.adaptive
            raise PlanError(
                f"slot {index} of the plan is {found}, and does not cover {query.kind} of "
                f"{size_of(query)} values. Nothing was asked."
            )
        self._cursor += 1
        return index, replace(slot, name=name or slot.name)

    def _checked(self, query: SumQuery, slot: Slot) -> Noise:
        """Refuse what cannot be asked, before anything is charged; else the noise of the slot."""
        self._check_turn()
        query.check(self.schema)
        return noise_for(query, slot.mu, self._plan, self.schema)

    def _handshake(self) -> None:
        """Open the run with every party, once and only if anything has to be asked.

        It asks nothing about rows: a plan that a party refuses costs no reservation here.
        """
        if self._opened:
            return
        with self._recording_refusals():
            self._federation.open(self._plan, self._reservation.reserve)
        self._opened = True

    @contextmanager
    def _recording_refusals(self) -> Iterator[None]:
        """A party's refusal is a line here too; it says nothing about rows and costs nothing."""
        try:
            yield
        except RefusedBy as refused:
            values = {"party": refused.party, "word": refused.word}
            self._ledger.append(COORDINATOR, "refuse", self._plan.run, values=values)
            raise

    def _check_turn(self) -> None:
        """Trees of two runs, mixed, would be a model of neither."""
        if self._federation.turn != self._turn:
            raise PlanError(
                "another run was begun over this federation before this one ended. Nothing more "
                "was asked; what was charged stays so. Run one after the other, or make a "
                "federation for each."
            )

    def _ask(self, query: SumQuery, request: str, index: int, slot: Slot, noise: Noise) -> Release:
        mu, part = slot.mu, 1.0
        while True:
            with self._recording_refusals():
                self._federation.gather(index)
            if self._reservation.last_attempt(index):  # a further attempt is paid by a spare
                mu, part = self._plan.budget.retry(index, slot.mu, query)
                noise = noise_for(query, mu, self._plan, self.schema, part)
            price = price_of(query, self._plan, mu, part)
            try:
                attempt = self._reservation.charge(index, request, price=price)
            except SlotSpent:
                self.lost += 1
                raise
            self._ledger.check_written()
            try:
                with self._recording_refusals():
                    total = self._federation.sum(query, noise, index, attempt)
            except PartiesLost:
                continue  # the attempt is abandoned and charged; the rest are asked again
            self._took_part.append(total.parties)
            release = self._noisy(query, total, noise)
            # A receipt signs what the party sent. Where that is an exact sum, keeping it would
            # let a reader of the ledger confirm guesses of the sum.
            exact = self._plan.privacy.trusted.exact_sums
            absent = [name for name in self._federation.names if name not in total.parties]
            return self._reservation.store(
                index, attempt, release, {} if exact else total.receipts, absent
            )

    def _chosen(self, query: SumQuery, total: NDArray[np.int64], noise: Noise) -> Release:
        found = query.utilities(total, self.schema, noise.bits)
        scale, how = int(noise.sigmas[0]), noise.mechanism
        places = mechanisms.choose([utilities for utilities, _ in found], scale, how)
        ways = [ways[place] for (_, ways), place in zip(found, places, strict=True)]
        return Release(np.array(ways, np.int64), 0, (), 0.0, mechanisms.source_name())

    def _noisy(self, query: SumQuery, total: Total, noise: Noise) -> Release:
        """Add the noise where the coordinator is trusted to; state its size in either case."""
        values, source = total.values, total.source
        privacy = self._plan.privacy
        trust = privacy.trusted
        fail_point("noise")
        pure = noise.mechanism == "laplace"
        if noise.mechanism in mechanisms.SELECTORS:
            return self._chosen(query, values.view(np.int64), noise)
        if trust.exact_sums:
            if query.finishes:
                values = query.finish(values.view(np.int64), noise.bits).view(np.uint64)
            blocks = [block.size for block in query.released_blocks]
            add = mechanisms.add_laplace if pure else mechanisms.add_gaussian
            values = add(values, blocks, noise.sigmas)
            source = mechanisms.source_name()
        grow = trust.growth(len(total.parties), privacy.colluding, total.n_rows)
        if pure:
            sigmas = _laplace_deviations(noise, grow, source)
            return Release(values.view(np.int64), noise.bits, sigmas, sigmas[0], source)
        sigmas = tuple(sigma * grow / 2.0**noise.bits for sigma in noise.sigmas)
        unit = noise.sigmas[0] / query.blocks[0].weight / 2.0**noise.bits
        if trust.local or source != "switched off":  # without noise there are no shares
            unit *= grow
        return Release(values.view(np.int64), noise.bits, sigmas, unit, source)


def _laplace_deviations(noise: Noise, grow: float, source: str) -> tuple[float, ...]:
    """The deviation of each block; none where a test switched the noise off."""
    if source == "switched off":
        return (0.0,) * len(noise.sigmas)
    step = grow / 2.0**noise.bits
    return tuple(mechanisms.laplace_deviation(scale) * step for scale in noise.sigmas)


def start_trees(start: Ensemble | None, plan: Plan, schema: Schema) -> tuple[Tree, ...]:
    """The trees of the model that a run builds on: the one the plan names, and no other."""
    wanted = plan.settings.model
    if start is None and not wanted:
        return ()
    if start is None or start.hash != wanted:
        raise PlanError(
            f"the plan builds on the model {wanted[:12] or '(none)'} and was given "
            f"{start.hash[:12] if start else 'none'}. Nothing was asked. Give the same model, or "
            "make a new plan."
        )
    if plan.settings.model_says not in ("public", start.statement.promise()):
        raise PlanError(
            "the plan says of the model it builds on that it promises "
            f"{plan.settings.model_says!r}, and the model says {start.statement.promise()!r}. "
            "Nothing was asked. Make a new plan."
        )
    if start.schema.hash != schema.hash or (start.averaged and not plan.measures):
        raise PlanError(
            "a run can build on a boosted model of the same schema only, and this one has another "
            "schema, or is a forest. Nothing was asked. Leave out warm_start_from."
        )
    return start.trees
