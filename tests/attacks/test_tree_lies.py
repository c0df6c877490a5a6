"""A coordinator that lies about the tree, its nodes or their prices gains nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow.methods.maddock.growing_tree import Cut, GrowingTree
from hedgerow.methods.private_tree.rule import tree_cuts
from hedgerow.methods.registry import plan_for
from hedgerow.party.limits import Limits
from hedgerow.party.party import Party
from hedgerow.privacy.accounting.paths import path_costs
from hedgerow.privacy.ledger.spending import Budget
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.messages import Message
from hedgerow.queries import ClassHistograms, ImpurityBounds, LabelSums, SumQuery
from hedgerow.queries.calibration import Noise, noise_for
from hedgerow.queries.tree_nodes import NO_COLUMN, Asked
from tests.attacks.rig import SCHEMA, Rig, some_rows, word

CUTS = tree_cuts(SCHEMA, 16)
COUNT, BOUNDS, HISTOGRAMS, NEXT, LEAVES = 0, 1, 2, 5, 10  # slots of a plan of depth 3
PER_PATH = 1 / 1.1  # epsilon 1 with one spare of a tenth


def rig_of(trust: str = "parties", limits: Limits | None = None, opened: bool = True) -> Rig:
    rig = Rig(trust=trust, limits=limits, opened=False)
    privacy = Privacy(1.0, 0.0, trust, accounting="pure", spare=1)  # type: ignore[arg-type]
    rig.plan = plan_for(SCHEMA, privacy, "private-tree", {"max_depth": 3}, seed=1)
    if opened:
        rig.open(rig.plan)
    return rig


def tree_of(age: float = 50.0, deeper: bool = False, dose: float = 0.5) -> GrowingTree:
    none, tree = np.zeros(0, np.uint64), GrowingTree()
    left, _ = tree.split(0, Cut(0, age, none, True))
    if deeper:
        tree.split(left, Cut(1, dose, none, True))
    return tree


ROOT, ONE, DEEP = GrowingTree(), tree_of(), tree_of(deeper=True)


def counts(tree: GrowingTree, prices: dict[int, float], column: int = NO_COLUMN) -> SumQuery:
    """Class counts of leaves, by number."""
    asked = [Asked(leaf, (column,), price) for leaf, price in prices.items()]
    return ClassHistograms.of(SCHEMA, tree.structure(), asked, CUTS)


def ask(rig: Rig, slot: int, query: SumQuery, name: str = "a", **changes: Any) -> str:
    return word(rig.ask(name, slot=slot, query=query, **changes))


@pytest.mark.parametrize("trust", ["parties", "coordinator"])
def test_an_honest_tree_is_answered_and_every_branch_charged(trust: str) -> None:
    rig = rig_of(trust)
    bounds = ImpurityBounds(
        ROOT.structure(), (Asked(0, (0, 1), 0.05),), (0, 1), tuple(CUTS), 2, subsets=True
    )
    for slot, query in (
        (COUNT, counts(ROOT, {0: 0.02})),
        (BOUNDS, bounds),
        (HISTOGRAMS, counts(ROOT, {0: 0.2}, column=0)),
        (NEXT, counts(ONE, {0: 0.1, 1: 0.3}, column=1)),
        (LEAVES, counts(DEEP, {0: 0.25, 1: 0.4, 2: 0.4})),
    ):
        assert {ask(rig, slot, query, name) for name in rig.parties} == {"answer"}
    for name, ledger in rig.ledgers.items():
        costs = path_costs(ledger.lines(name, "charge"))
        # Leaves are numbered in node order: the right child of the root is leaf 0.
        assert costs == pytest.approx({3: 0.32 + 0.3 + 0.25, 4: 0.82, 5: 0.82})
    rig.check_books()


def asked_before(rig: Rig) -> None:
    assert ask(rig, COUNT, counts(ROOT, {0: 0.1})) == "answer"
    assert ask(rig, NEXT, counts(ONE, {0: 0.5, 1: 0.3}, column=1)) == "answer"


LIES = {
    "another tree": counts(tree_of(age=25.0), {0: 0.01}),
    "another split below": counts(tree_of(age=25.0, deeper=True), {0: 0.01}),
    "sides exchanged": counts(tree_of(age=75.0, deeper=True), {1: 0.01}),
    "the root again, as if nothing had been paid": counts(ROOT, {0: 0.6}),
    "a leaf beyond what its path has left": counts(ONE, {0: 0.4}),
    "a leaf below it": counts(DEEP, {1: 0.4}),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_tree_that_does_not_extend_the_one_before_is_refused(lie: str, restarted: bool) -> None:
    """After a restart the party knows the tree and its prices from its own ledger."""
    rig = rig_of()
    asked_before(rig)
    if restarted:
        identity = rig.parties["a"].identity
        rig.parties["a"] = Party("a", some_rows(50, 0), SCHEMA, rig.ledgers["a"], identity)
        rig.parties["a"].pin(rig.roster)
        rig.open(rig.plan)
    before = len(rig.ledgers["a"].lines("a", "charge"))
    assert ask(rig, LEAVES, LIES[lie]) == "not-in-plan"
    assert len(rig.ledgers["a"].lines("a", "charge")) == before
    assert ask(rig, LEAVES, counts(DEEP, {0: 0.3, 1: 0.3})) == "answer"
    rig.check_books()


@pytest.mark.parametrize("factor", [0.5, 0.999999, 2.0])
def test_noise_that_is_not_what_the_nodes_pay_for_is_refused(factor: float) -> None:
    rig = rig_of()
    query = counts(ONE, {0: 0.1, 1: 0.3})
    right = rig.question(slot=NEXT, query=query).noise
    weaker = replace(right, sigmas=(right.sigmas[0], factor * right.sigmas[1]))
    assert ask(rig, NEXT, query, noise=weaker) == "too-little-noise"
    gaussian = replace(right, mechanism="gaussian")
    assert ask(rig, NEXT, query, noise=gaussian) == "too-little-noise"
    coarse = Noise(0.0, 3, right.sigmas, "laplace")  # the same scale on a finer grid is less
    assert ask(rig, NEXT, query, noise=coarse) == "too-little-noise"
    assert rig.ledgers["a"].lines("a", "charge") == []


@pytest.mark.parametrize("part", [0.0, -1.0, 1.5])
def test_a_part_of_a_price_that_makes_no_sense_is_refused(part: float) -> None:
    rig = rig_of()
    query = counts(ROOT, {0: 0.1})
    noise = replace(rig.question(slot=COUNT, query=query).noise, part=part)
    assert ask(rig, COUNT, query, noise=noise) in ("bad-message", "too-little-noise")
    assert rig.ledgers["a"].lines("a", "charge") == []


def test_paying_a_part_gives_more_noise_and_the_charge_says_so() -> None:
    rig = rig_of()
    query = counts(ROOT, {0: 0.2})
    noise = noise_for(query, 0.0, rig.plan, SCHEMA, 0.5)
    assert noise.sigmas == (10.0,)
    assert ask(rig, COUNT, query, noise=noise) == "answer"
    (line,) = rig.ledgers["a"].lines("a", "charge")
    assert line.values["epsilon"] == pytest.approx(0.1)


def test_a_further_attempt_pays_no_more_than_a_spare() -> None:
    rig = rig_of()
    query = counts(ROOT, {0: 0.5})
    assert ask(rig, COUNT, query) == "answer"
    few = ("a", "b", "c")
    assert ask(rig, COUNT, query, attempt=2, parties=few) == "not-in-plan"
    _, part = rig.plan.budget.retry(COUNT, 0.0, query)
    assert part == pytest.approx(0.1 * PER_PATH / 0.5)
    noise = noise_for(query, 0.0, rig.plan, SCHEMA, part)
    assert ask(rig, COUNT, query, attempt=2, parties=few, noise=noise) == "answer"
    assert ask(rig, COUNT, query, attempt=3, parties=few, noise=noise) == "no-attempts-left"
    rig.check_books()


@pytest.mark.parametrize(
    "query",
    [
        counts(ONE, {0: 1e-9}),
        counts(ONE, {0: -0.1}),
        counts(ONE, {0: float("nan")}),
        counts(ONE, {2: 0.1}),
        counts(ONE, {-1: 0.1}),
        replace(counts(ONE, {0: 0.1}), asked=(Asked(0, (0, 0), 0.1),)),  # type: ignore[type-var]
        replace(counts(ONE, {0: 0.1}), asked=(Asked(0, (), 0.1),)),  # type: ignore[type-var]
        replace(counts(ONE, {0: 0.1}), n_classes=3),  # type: ignore[type-var]
        replace(counts(ONE, {0: 0.1}, column=0), cuts=((10**6,),)),  # type: ignore[type-var]
    ],
)
def test_questions_that_make_no_sense_are_refused(query: SumQuery) -> None:
    rig = rig_of()
    honest = rig.question(slot=NEXT, query=counts(ONE, {0: 0.1}))
    reply = rig.send("a", Message("ask", replace(honest, query=query).body()))
    assert word(reply) in ("bad-message", "not-in-plan")
    assert rig.ledgers["a"].lines("a", "charge") == []


def test_a_pure_plan_has_no_question_of_another_kind() -> None:
    rig = rig_of()
    honest = rig.question(slot=COUNT, query=counts(ROOT, {0: 0.1}))
    lie = replace(honest, query=LabelSums(2), noise=Noise(0.0, 0, (1.0,), "laplace"))
    assert word(rig.send("a", Message("ask", lie.body()))) == "not-in-plan"


@pytest.mark.parametrize(
    "limits",
    [
        Limits(per_run=Budget(0.9, 1e-6)),
        Limits(per_run=Budget(0.9, 0.0)),
        Limits(budget=Budget(0.9, 1e-6)),
        Limits(per_month=Budget(0.9, 1e-6)),
        Limits(kinds=frozenset({"class-histograms"})),
        Limits(methods=frozenset({"auto"})),
    ],
)
def test_a_partys_own_limits_hold_for_pure_plans(limits: Limits) -> None:
    from hedgerow.protocol import messages

    rig = rig_of(limits=limits, opened=False)
    opening = messages.plain("open", {"plan": rig.plan.to_dict(), "roster": rig.roster.hash})
    assert word(rig.send("a", opening)) == "over-limits"
    assert rig.ledgers["a"].lines("a", "reserve") == []
