"""The readable tree when parties vanish: a spare pays, at its own price, and no path goes over."""

from __future__ import annotations

import pytest

from hedgerow import Ledger
from hedgerow.coordinator.gate import Gate
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.privacy.accounting.path_budget import PathBudget
from hedgerow.privacy.accounting.paths import path_costs, priced_of
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy
from tests.attacks.rig import SCHEMA
from tests.attacks.test_drop_outs import make


@pytest.mark.parametrize("asked", [1, 2, 3])
@pytest.mark.parametrize("after_answering", [False, True])
def test_a_tree_loses_a_party_and_goes_on(asked: int, after_answering: bool) -> None:
    own = Ledger.in_memory()
    federation, engine, _ = make(4, ledger=own)
    engine.lose = {asked: {"party-1"}}
    engine.after_answering = after_answering
    privacy = Privacy(8.0, 0.0, "parties", accounting="pure", spare=1)
    plan = plan_for(SCHEMA, privacy, "private-tree", {"max_depth": 2}, seed=3)
    ledger = Ledger.in_memory()
    model = method_named(plan.method).grow(Gate(federation, plan, ledger))
    charges = ledger.lines(COORDINATOR, "charge")
    first: dict[int, float] = {}
    again = []
    for line in charges:
        price = priced_of(line).most
        again += [price] if line.slot in first else []
        first.setdefault(line.slot, price)
    branches = PathBudget.of(plan.budget).branches
    assert len(again) == 1
    assert again[0] <= branches.retry
    dearest = max(path_costs(charges).values())
    assert dearest - again[0] <= branches.rounds[0].epsilon * (1 + 1e-12)
    assert dearest <= plan.epsilon * (1 + 1e-12)
    assert plan.budget.accountant(charges).epsilon() <= plan.epsilon <= 8.0
    assert len(ledger.lines(COORDINATOR, "release")) == len(first)
    assert model.statement.guarantee == "pure"
    verify(ledger)
    verify(own)
