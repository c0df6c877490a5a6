"""Growing over parties: the same trees as on pooled columns, whatever the protection."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from hedgerow.data.binning import base_grid
from hedgerow.data.tables import rows_of
from hedgerow.methods.fedxgboost.asking import Asking
from hedgerow.methods.fedxgboost.bins import binned
from hedgerow.methods.fedxgboost.boost import Booster
from hedgerow.methods.fedxgboost.model import Part, merged
from hedgerow.methods.fedxgboost.protections.plain import PlainActive
from hedgerow.model.exact import BITS, gradients
from hedgerow.model.losses import loss_for
from hedgerow.model.statement import Statement
from tests.methods.fedxgboost.tables import (
    predict_jointly,
    schema_of,
    settings,
    shares,
    train,
    whole,
)

TASKS = ("binary", "multiclass", "regression")


def pooled(table: dict[str, Any], task: str, **further: Any) -> Any:
    """The same grower where one party holds all columns: no message is ever sent."""
    schema, chosen = schema_of(task), settings(**further)
    rows, grid = rows_of(table, schema), base_grid(schema)
    bins = binned(rows.codes, grid, range(len(grid)), chosen.max_bins)
    loss, alone = loss_for(schema.label), Asking(())
    side = PlainActive(alone, chosen, loss, rows.target)
    booster = Booster(bins, chosen, loss, side, alone)
    booster._parties = ("bank",)
    steps = booster.grow()
    next(steps)
    with suppress(StopIteration):
        while True:
            steps.send({})  # nobody is there to answer
    statement = Statement("none", 0.0, 0.0, "coordinator")
    part = Part("r", "bank", ("bank",), schema, tuple(booster.splits), statement,
                tuple(booster.trees))  # fmt: skip
    return merged([part])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("protection", ["none", "paillier", "smm-1", "smm-2"])
def test_every_exact_protection_grows_the_trees_of_pooled_columns(
    task: str, protection: str
) -> None:
    table = whole(400, task)
    small = {"n_trees": 2, "block_rows": 64, "max_bins": 12}
    parts, _ = train(shares(table, task), schema_of(task), settings(protection=protection, **small))
    model = merged(list(parts.values()))
    assert model == pooled(table, task, **small)
    assert sum(len(part.splits) > 0 for part in parts.values()) >= 2


def _naive(table: dict[str, Any], depth: int, lam: float) -> float:
    """The gain of the best tree of one split, by trying every cut and set of every column."""
    schema = schema_of()
    rows, grid = rows_of(table, schema), base_grid(schema)
    numbers = gradients(loss_for(schema.label), np.zeros((rows.n_rows, 1)), rows.target)
    g, h = numbers[:, 0] * 2.0**-BITS, numbers[:, 1] * 2.0**-BITS

    def score(mask: Any) -> float:
        return float(g[mask].sum() ** 2 / (h[mask].sum() + lam))

    best = 0.0
    for j, one in enumerate(grid):
        codes = rows.codes.column(j).astype(int)
        missing = codes == one.missing_code
        if one.ordered:
            options = [codes < cut for cut in range(1, one.n_cells)]
            options += [option | missing for option in options]
            options = [o & (codes != one.missing_code) | (o & missing) for o in options]
        else:
            cells = np.unique(codes)
            options = [
                np.isin(codes, chosen)
                for k in range(1, len(cells))
                for chosen in itertools.combinations(cells, k)
            ]
        for mask in options:
            if h[mask].sum() >= 1 and h[~mask].sum() >= 1:
                best = max(best, score(mask) + score(~mask))
    return best


def test_the_first_split_is_the_best_of_all_that_could_be() -> None:
    table = whole(150, seed=3)
    further = {"n_trees": 1, "max_depth": 1, "max_bins": 254, "learning_rate": 1.0}
    parts, _ = train(shares(table), schema_of(), settings(**further))
    model = merged(list(parts.values()))
    values = model.trees[0].values[:, 0].astype(float)
    rows = rows_of(table, schema_of())
    numbers = gradients(loss_for(schema_of().label), np.zeros((150, 1)), rows.target)
    g, h = numbers[:, 0] * 2.0**-BITS, numbers[:, 1] * 2.0**-BITS
    leaf = model.decision_function(table)[:, 0]
    reached = sum(
        g[leaf == np.float32(v)].sum() ** 2 / (h[leaf == np.float32(v)].sum() + 1.0) for v in values
    )
    assert reached == pytest.approx(_naive(table, 1, 1.0), rel=1e-9)


@pytest.mark.parametrize("task", TASKS)
def test_joint_prediction_is_that_of_the_merged_model(task: str) -> None:
    table, new = whole(400, task), whole(90, task, seed=5)
    parts, _ = train(shares(table, task), schema_of(task), settings())
    active = predict_jointly(parts, shares(new, task))
    expected = merged(list(parts.values())).decision_function(new)[active.index]
    assert np.array_equal(active.scores, expected)
    again = predict_jointly(parts, shares(table, task))
    assert again.asking.sent > active.asking.sent  # more rows make messages longer


def test_messages_of_a_prediction_do_not_depend_on_rows() -> None:
    parts, _ = train(shares(whole(400)), schema_of(), settings())
    counts = []
    for n in (20, 400):
        role = predict_jointly(parts, shares(whole(n, seed=9)))
        counts.append(role.asking.questions)
    assert counts[1] <= 3 + 2  # ids, one a level, the end
    assert counts[0] <= counts[1]


@pytest.mark.parametrize("protection", ["none", "paillier"])
def test_more_rows_than_a_block_and_few_rows_in_a_node(protection: str) -> None:
    table = whole(60, seed=8)
    chosen = settings(protection=protection, min_rows=2, max_depth=6, min_child_weight=0.0)
    parts, _ = train(shares(table), schema_of(), chosen)
    further = {"min_rows": 2, "max_depth": 6, "min_child_weight": 0.0}
    assert merged(list(parts.values())) == pooled(table, "binary", **further)


def test_a_gain_below_gamma_is_not_split() -> None:
    parts, _ = train(shares(whole(300)), schema_of(), settings(gamma=1e6))
    assert [len(part.splits) for part in parts.values()] == [0, 0, 0]
    assert all(len(tree.owner) == 1 for tree in parts["bank"].trees)
