"""What a plan is told by public facts alone, in `fit`, `plan` and `train`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hedgerow import Categorical, Label, Numeric, PrivateBoostingClassifier, Schema, plan_for
from hedgerow.errors import PlanWarning
from hedgerow.privacy.cautions import cautions
from hedgerow.privacy.settings import Privacy

LABEL = Label("sick", ("no", "yes"))
AGE = Numeric("age", 0, 100)


def told(schema: Schema, epsilon: float = 1.0, delta: float = 1e-6, **settings: Any) -> list[str]:
    plan = plan_for(schema, Privacy(epsilon, delta, "coordinator"), "auto", settings)
    return cautions(plan, schema)


def test_an_ordinary_plan_is_told_nothing() -> None:
    assert told(Schema((AGE,), LABEL), epsilon=10.0, rows_hint=100_000) == []


def test_a_large_epsilon() -> None:
    (text,) = told(Schema((AGE,), LABEL), epsilon=12.0)
    assert text.startswith("epsilon = 12 is above 10")


def test_a_delta_above_one_over_the_declared_rows() -> None:
    (text,) = told(Schema((AGE,), LABEL), delta=1e-3, rows_hint=20_000)
    assert text.startswith("delta = 0.001 is above 1 / rows = 5e-05 (rows_hint = 20000)")
    assert told(Schema((AGE,), LABEL), delta=1e-3) == []  # nobody declared how many rows there are


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (Categorical("ward", ("a",)), "column 'ward' lists one category"),
        (Numeric("ward", 0.2, 0.9, integer=True), "column 'ward' has no whole number to cut at"),
    ],
)
def test_a_column_that_cannot_be_cut(column: Any, text: str) -> None:
    assert told(Schema((AGE, column), LABEL))[0].startswith(text)
    two_cells = Categorical("ward", ("a",), other="category")
    assert told(Schema((AGE, two_cells), LABEL)) == []


def test_a_fit_warns_by_public_facts() -> None:
    schema = Schema((AGE, Categorical("ward", ("a",))), LABEL)
    model = PrivateBoostingClassifier(schema, method="random-trees", n_trees=2)
    table = {"age": np.arange(100), "ward": ["a"] * 100, "sick": ["no", "yes"] * 50}
    with pytest.warns(PlanWarning, match="lists one category") as caught:
        model.fit(table)
    assert caught[0].filename == __file__
