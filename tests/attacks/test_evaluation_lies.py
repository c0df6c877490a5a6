"""A coordinator that has one model's evaluation approved and asks about another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow.coordinator.gate import Gate
from hedgerow.coordinator.refused import RefusedBy
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.engines.local import local_federation
from hedgerow.evaluation import evaluate, evaluation_plan
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Statement
from hedgerow.model.tree import single_leaf
from hedgerow.party.approvals import decide
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy

LABELS: dict[str, dict[str, Any]] = {
    "two": {"classes": [0, 1]}, "three": {"classes": [0, 1, 2]}, "number": {"label_bounds": (0, 2)},
}  # fmt: skip


def _model(task: str, *leaves: float, averaged: bool = False) -> Ensemble:
    schema = Schema.from_bounds({"x": (0, 1)}, **LABELS[task])
    width = 3 if task == "three" else 1
    trees = tuple(single_leaf(np.full(width, leaf)) for leaf in leaves)
    return Ensemble(trees, schema, Statement("none", 0.0, 0.0, "nobody"), averaged)


class _Asked:
    """A party that approved the evaluation of a model, and a coordinator with another in hand."""

    def __init__(self, told: Ensemble, asked: Ensemble) -> None:
        rows = rows_of({"x": [0.1, 0.5, 0.9]}, told.schema, [0, 1, 1])
        self.ledger, self.plan = Ledger.in_memory(), evaluation_plan(told, Privacy(1.0, 1e-6))
        self.federation = local_federation(
            {"all": rows}, told.schema, self.ledger, trust="coordinator",
            limits=Limits(approve=True),
        )  # fmt: skip
        decide(self.ledger, "all", self.plan, "approve", "Ada Koch", "measured once")
        self.gate = Gate(self.federation, self.plan, self.ledger, start=told)
        self.federation.forget_trees()
        for tree in asked.trees:
            self.federation.publish(tree)
        self.asked = asked

    def run(self) -> None:
        self.gate._turn = self.federation.turn
        evaluate(self.gate, self.asked)


@pytest.mark.parametrize("task", LABELS)
def test_the_approved_model_is_measured(task: str) -> None:
    model = _model(task, 0.25, 0.5)
    asked = _Asked(model, model)
    asked.run()
    assert len(asked.ledger.lines("all", "charge")) == len(asked.plan.slots)


@pytest.mark.parametrize("task", LABELS)
@pytest.mark.parametrize("other", [(0.25,), (0.25, 0.5, 0.0), (0.5, 0.25), ()])
def test_no_other_model_is_measured(task: str, other: tuple[float, ...]) -> None:
    asked = _Asked(_model(task, 0.25, 0.5), _model(task, *other))
    with pytest.raises(RefusedBy, match="not-in-plan"):
        asked.run()
    assert asked.ledger.lines("all", "charge") == []


def test_what_becomes_of_the_sums_is_part_of_the_model() -> None:
    model = _model("three", 0.25)
    asked = _Asked(model, replace(model, averaged=True))
    with pytest.raises(RefusedBy, match="not-in-plan"):
        asked.run()
