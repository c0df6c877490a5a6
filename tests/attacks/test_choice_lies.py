"""A coordinator that lies about the price, noise or place of a choice gains nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow.methods.maddock.growing_tree import GrowingTree
from hedgerow.methods.registry import plan_for
from hedgerow.packing import unpack
from hedgerow.party.party import Party
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol import messages
from hedgerow.protocol.messages import Message
from hedgerow.queries import NO_TREES, ColumnCounts, LeafAverages, SplitChoices, SumQuery
from hedgerow.queries.calibration import noise_for
from hedgerow.queries.gradients import Gradients
from tests.attacks.rig import SCHEMA, Rig, some_rows, word
from tests.attacks.test_tree_lies import tree_of
from tests.contracts.attacks import choices_of

CUTS, FIRST, SECOND, LEAVES, NEXT_FIRST, NEXT_SECOND = 0, 1, 2, 3, 5, 6  # slots of two trees
GRADIENTS = Gradients("squared", NO_TREES, 0.5)
A_TREE = 1 / (2 * 1.1)  # epsilon 1 with one spare of a tenth, over two trees


def plan_of(rate: float = 1.0, trust: str = "coordinator") -> Plan:
    privacy = Privacy(1.0, 0.0, accounting="pure", spare=1)
    settings = {"n_trees": 2, "max_depth": 2, "n_bins": 6, "sample_rate": rate}
    plan = plan_for(SCHEMA, privacy, "dp-xgboost", settings, seed=1, run="r")
    changed = replace(plan.budget, privacy=replace(privacy, trust=trust))
    return replace(plan, budget=changed)


def rig_of(rate: float = 1.0, trust: str = "coordinator") -> Rig:
    rig = Rig(trust=trust, opened=False)
    rig.plan = plan_of(rate, trust)
    rig.open(rig.plan)
    return rig


def choices(price: float, tree: GrowingTree | None = None) -> SplitChoices:
    return choices_of(SCHEMA, tree or GrowingTree(), (0, 1), GRADIENTS, price=price)


def leaves(price: float, rule: str = "plain", tree: GrowingTree | None = None) -> LeafAverages:
    return LeafAverages((tree or GrowingTree()).structure(), GRADIENTS, price, rule)


def ask(rig: Rig, slot: int, query: SumQuery, **changes: Any) -> str:
    return word(rig.ask("a", slot=slot, query=query, **changes))


def charges(rig: Rig) -> int:
    return len(rig.ledgers["a"].lines("a", "charge"))


def test_honest_questions_are_answered_and_charged() -> None:
    rig = rig_of()
    counted = ColumnCounts.for_cuts(SCHEMA, 6, 0.01)
    tree = tree_of()
    for slot, query in ((CUTS, counted), (FIRST, choices(0.1)), (SECOND, choices(0.1, tree)),
                        (LEAVES, leaves(0.2, tree=tree)), (NEXT_FIRST, choices(0.1)),
                        (NEXT_SECOND, choices(0.3, tree_of(age=25.0)))):  # fmt: skip
        assert ask(rig, slot, query) == "answer"
    prices = [line.values["epsilon"] for line in rig.ledgers["a"].lines("a", "charge")]
    assert prices == pytest.approx([0.02, 0.1, 0.1, 0.2, 0.1, 0.3])
    rig.check_books()


@pytest.mark.parametrize(
    "query", [choices(0.1), leaves(0.1), leaves(0.1, "sum-and-count")], ids=lambda q: q.kind
)
def test_noise_that_is_not_what_is_paid_for_is_refused(query: Any) -> None:
    rig, slot = rig_of(), FIRST if isinstance(query, SplitChoices) else LEAVES
    right = rig.question(slot=slot, query=query).noise
    dearer = noise_for(replace(query, price=0.2), 0.0, rig.plan, SCHEMA)
    for lie in (
        dearer,  # paid 0.1, noise of 0.2
        replace(right, sigmas=(right.sigmas[0] - 1, *right.sigmas[1:])),
        replace(right, mechanism="gaussian"),
        replace(right, bits=right.bits + 1),
        replace(right, part=0.5),
    ):
        assert ask(rig, slot, query, noise=lie) == "too-little-noise"
    assert charges(rig) == 0
    assert ask(rig, slot, query) == "answer"


def test_a_selector_that_is_not_the_questions_is_refused() -> None:
    rig, query = rig_of(), choices(0.1)
    right = rig.question(slot=FIRST, query=query).noise
    other = replace(right, mechanism="exponential")
    assert ask(rig, FIRST, query, noise=other) == "too-little-noise"
    assert charges(rig) == 0


@pytest.mark.parametrize(
    ("slot", "query"),
    [
        (FIRST, choices(A_TREE * 1.001)),  # more than a tree may cost
        (CUTS, ColumnCounts.for_cuts(SCHEMA, 6)),  # nothing at all
        (CUTS, ColumnCounts.for_cuts(SCHEMA, 6, A_TREE * 0.51)),  # two columns of it
        (CUTS, choices(0.1)),  # a slot for another kind
        (FIRST, leaves(0.1)),
        (40, choices(0.1)),
    ],
)
def test_questions_that_the_plan_does_not_pay_are_refused(slot: int, query: SumQuery) -> None:
    rig = rig_of()
    honest = rig.question(slot=FIRST, query=choices(0.1))
    noise = noise_for(query, 0.0, rig.plan, SCHEMA)
    lie = replace(honest, slot=slot, query=query, noise=noise)
    assert word(rig.send("a", Message("ask", lie.body()))) == "not-in-plan"
    assert charges(rig) == 0


def test_a_tree_cannot_be_asked_about_in_the_slots_of_another() -> None:
    """Each round has a tree and a ceiling of its own, and knows them from the ledger."""
    rig = rig_of()
    assert ask(rig, FIRST, choices(0.2)) == "answer"
    assert ask(rig, SECOND, choices(0.2, tree_of())) == "answer"
    before = charges(rig)
    assert ask(rig, LEAVES, leaves(0.01, tree=tree_of(age=25.0))) == "not-in-plan"
    assert ask(rig, LEAVES, leaves(0.1, tree=tree_of())) == "not-in-plan"  # its path has 0.05 left
    assert charges(rig) == before
    assert ask(rig, NEXT_SECOND, choices(0.3, tree_of(age=25.0))) == "answer"
    rig.check_books()


def test_a_further_attempt_pays_no_more_than_a_spare() -> None:
    rig, query = rig_of(), choices(0.3)
    assert ask(rig, FIRST, query) == "answer"
    few = ("a", "b", "c")
    assert ask(rig, FIRST, query, attempt=2, parties=few) == "not-in-plan"
    _, part = rig.plan.budget.retry(FIRST, 0.0, query)
    noise = noise_for(query, 0.0, rig.plan, SCHEMA, part)
    assert noise.sigmas[0] > 3 * noise_for(query, 0.0, rig.plan, SCHEMA).sigmas[0]
    assert ask(rig, FIRST, query, attempt=2, parties=few, noise=noise) == "answer"
    assert ask(rig, FIRST, query, attempt=3, parties=few, noise=noise) == "no-attempts-left"
    rig.check_books()


@pytest.mark.parametrize("query", [choices(0.1), leaves(0.1)], ids=lambda q: q.kind)
def test_exact_sums_are_refused_where_the_coordinator_is_not_trusted(query: Any) -> None:
    rig, slot = rig_of(trust="parties"), FIRST if isinstance(query, SplitChoices) else LEAVES
    noise = noise_for(query, 0.0, plan_of(), SCHEMA)
    honest = rig.question(slot=CUTS, query=ColumnCounts.for_cuts(SCHEMA, 6, 0.01))
    lie = replace(honest, slot=slot, query=query, noise=noise)
    assert word(rig.send("a", Message("ask", lie.body()))) == "bad-message"
    assert charges(rig) == 0


def count_of(rig: Rig, **changes: Any) -> int:
    """How many rows a party answered about, as the coordinator reads it."""
    body = rig.unsealed("a", slot=FIRST, query=choices(0.1), **changes)
    total = unpack(body)[1]["total"].view(np.int64)[:-1].reshape(2, -1)
    return int(total[1][:6].sum()) >> 20  # the bins of one column


def test_the_rate_is_that_of_the_plan_that_was_reserved() -> None:
    sampled = rig_of(rate=0.3)
    n = count_of(sampled)
    assert n < 40  # of 50; beyond it with a chance below 1e-12
    assert count_of(rig_of()) == 50
    lie = messages.plain(
        "open", {"plan": plan_of(0.30001).to_dict(), "roster": sampled.roster.hash}
    )
    assert word(sampled.send("a", lie)) == "other-plan"


def test_a_restarted_party_answers_about_the_same_rows() -> None:
    rig = rig_of(rate=0.5)
    first = rig.unsealed("a", slot=FIRST, query=choices(0.1))
    party = rig.parties["a"]
    identity, secret = party.identity, party._sampling_secret
    rig.parties["a"] = Party(
        "a", some_rows(50, 0), SCHEMA, rig.ledgers["a"], identity, sampling_secret=secret
    )
    rig.parties["a"].pin(rig.roster)
    rig.open(rig.plan)
    tree = tree_of()
    body = rig.unsealed("a", slot=SECOND, query=choices(0.1, tree))
    before = unpack(first)[1]["total"].view(np.int64)[:-1].reshape(2, 1, -1)
    after = unpack(body)[1]["total"].view(np.int64)[:-1].reshape(2, 2, -1)
    assert np.array_equal(before[:, 0], after.sum(axis=1))
