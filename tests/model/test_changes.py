"""Other changes than one unit: replaced ones, groups, labels; and that nothing less would do."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.integrate import quad
from scipy.stats import norm

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.model.changes import GROUPS, leaving_words
from hedgerow.model.losses import loss_for
from hedgerow.model.statement import Statement
from hedgerow.model.tradeoff import epsilon_of, group_delta, plain_guess, renyi_epsilon
from hedgerow.privacy.accounting.gaussian import mu_of
from hedgerow.queries import NO_TREES, ColumnCounts, ColumnSums, LabelSums, ScoreCounts, SumQuery
from hedgerow.queries.cuts import n_bins_of

DELTA = 1e-6
SCHEMA = Schema.from_bounds({"age": (0, 1)}, classes=["no", "yes"])


def promised(epsilon: float, **others: object) -> Statement:
    said = Statement(
        "epsilon-delta", epsilon, DELTA, "coordinator", mu=mu_of(epsilon, DELTA, 10_000),
        parties=("a", "b"), releases=9,
    )  # fmt: skip
    return replace(said, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_epsilons_of_groups_are_no_less_than_those_of_another_accountant(epsilon: float) -> None:
    said = promised(epsilon)
    added, replaced, *groups = said.changes()
    assert (added.epsilon, added.units) == (epsilon, 1)
    assert replaced.epsilon == groups[0].epsilon == said.replaced_epsilon
    for change in groups:
        mu = change.units * said.mu
        curve = privacy_loss_distribution.from_gaussian_mechanism(
            1 / mu, value_discretization_interval=1e-3, use_connect_dots=True
        )
        assert change.epsilon >= curve.get_epsilon_for_delta(DELTA) - 2e-3
        assert change.epsilon <= renyi_epsilon(mu, DELTA) * (1 + 1e-9)
        assert change.delta == DELTA
        assert norm.cdf(mu / 2) <= change.best_guess < norm.cdf(mu / 2) + 1e-10


@pytest.mark.parametrize("units", [2, 5])
def test_the_delta_of_a_group_is_the_integral_over_two_normals(units: int) -> None:
    said = promised(1.0)
    epsilon = said.changes()[1 + GROUPS.index(units) + 1].epsilon
    mu = units * said.mu
    over = quad(
        lambda x: norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x),
        epsilon / mu + mu / 2, 40, epsabs=1e-14,
    )[0]  # fmt: skip
    assert 0.97 * DELTA < over <= DELTA


def test_pure_epsilons_are_multiplied() -> None:
    said = promised(0.3, guarantee="pure", delta=0.0, accounting="pure", mu=0.0)
    found = {change.units: change for change in said.changes((3, 7))[2:]}
    assert found[7].epsilon == pytest.approx(2.1)
    assert found[7].best_guess == plain_guess(found[7].epsilon)
    assert [change.delta for change in said.changes()] == [0.0] * 5


def test_composed_pure_questions_are_counted_by_what_they_book_as() -> None:
    said = promised(1.0, accounting="pure", mu=0.5)
    assert said.changes((4,))[-1].epsilon == epsilon_of(2.0, DELTA, 0)


def test_where_only_epsilon_and_delta_are_known_delta_grows() -> None:
    said = promised(0.5, mu=0.0)
    change = said.changes((3,))[-1]
    assert change.epsilon == 1.5
    assert change.delta == pytest.approx(DELTA * (1 + math.exp(0.5) + math.exp(1.0)))
    assert said.replaced_epsilon == math.inf  # there is none at the same delta
    assert said.changes((100,))[-1].to_dict()["epsilon"] is None
    assert said.changes((100,))[-1].cells()[1] == "none"
    assert group_delta(800.0, DELTA, 2) == 1.0


def test_labels_alone_are_counted_by_labels() -> None:
    said = promised(1.0, guarantee="label", delta=0.0, mu=0.0)
    assert [c.what for c in said.changes((2,))] == ["one label changed", "2 labels changed"]
    assert [c.epsilon for c in said.changes((2,))] == [1.0, 2.0]
    assert said.changes()[0].best_guess == plain_guess(1.0)


def test_under_trust_in_nobody_units_are_replaced() -> None:
    changes = promised(1.0, trust="nobody", unit="person").changes((2,))
    assert [change.what for change in changes] == [
        "one person replaced (its label, one value, or all of it)", "2 persons replaced",
    ]  # fmt: skip
    assert changes[0].epsilon == 1.0


@pytest.mark.parametrize("guarantee", ["none", "not private"])
def test_nothing_is_promised_of_groups_where_nothing_is_promised(guarantee: str) -> None:
    said = promised(1.0, guarantee=guarantee)
    assert said.changes() == ()
    assert leaving_words(said) == ""


def test_numbers_fit_into_json_and_leave_what_is_stored_alone() -> None:
    said = promised(1.0)
    before = json.dumps(said.to_dict())
    told = json.dumps([change.to_dict() for change in said.changes((10**9,))], allow_nan=False)
    assert json.loads(told)[0]["best_guess"] == said.best_guess()
    assert json.dumps(said.to_dict()) == before


def test_all_runs_of_the_ledger_have_numbers_of_their_own() -> None:
    said = promised(
        1.0, ledger_runs=3, ledger_epsilon=2.0, ledger_delta=DELTA, ledger_mu=mu_of(2.0, DELTA, 0)
    )
    for one, whole in zip(said.changes(), said.of_the_ledger.changes(), strict=True):
        assert whole.epsilon > one.epsilon
    assert promised(1.0).of_the_ledger == promised(1.0)


def test_a_party_that_leaves_leaves_what_was_released() -> None:
    assert leaving_words(promised(1.0)).startswith("If a party leaves, what was released")
    alone = leaving_words(promised(1.0, parties=("a",)))
    assert alone.startswith("If a row is deleted")


# -- nothing less would do: rows that move an answer as far as the table says --


def column(matrix: list[list[int]] | None, clip: float, update: str = "slope") -> ColumnSums:
    grid, cuts = base_grid(SCHEMA), ((),)
    matrices = () if matrix is None else (np.array(matrix, np.int8),)
    return ColumnSums(
        (0,), cuts, (n_bins_of(grid[0], ()),), (1.0,), loss_for(SCHEMA.label).name, NO_TREES,
        update, clip, matrices, () if matrix is None else (0,),
    )  # fmt: skip


Row = dict[str, Any]


def moved(query: SumQuery, old: Row, new: Row, score: float = 0.0, bits: int = 26) -> float:
    """How far a changed table moves an answer, in units of what one row may."""
    answers = []
    for values in (old, new):
        rows = rows_of(values, SCHEMA)
        answers.append(query.answer(rows, np.full((rows.n_rows, 1), score), SCHEMA, bits))
    weights = np.repeat([b.weight for b in query.blocks], [b.size for b in query.blocks])
    distance = float(np.linalg.norm((answers[0] - answers[1]) / weights)) / 2.0**bits
    return distance / query.sensitivity.l2


def test_a_changed_label_can_move_an_answer_twice_as_far_as_one_row() -> None:
    query = column(None, clip=0.5)
    label = moved(query, {"age": [0.3], "label": ["no"]}, {"age": [0.3], "label": ["yes"]})
    assert label == pytest.approx(2.0)


def test_a_changed_value_can_move_an_answer_twice_as_far_as_one_row() -> None:
    # The bins of values and of missing ones get opposite signs.
    query = column([[1, -1], [1, -1]], clip=0.5)
    query.check(SCHEMA)
    value = moved(query, {"age": [0.3], "label": ["no"]}, {"age": [None], "label": ["no"]})
    assert value == pytest.approx(2.0)


@pytest.mark.parametrize("units", GROUPS)
def test_a_group_can_move_an_answer_as_many_times_as_far(units: int) -> None:
    query = LabelSums(2)
    none: Row = {"age": [0.1], "label": ["no"]}
    more: Row = {"age": [0.1] * (units + 1), "label": ["no"] + ["yes"] * units}
    assert moved(query, none, more) == pytest.approx(units)


@pytest.mark.parametrize(
    "query",
    [LabelSums(2), ColumnCounts.of(SCHEMA), ScoreCounts(2, (0.0, 1.0), NO_TREES)],
    ids=lambda query: query.kind,
)
def test_where_nothing_is_negative_a_replaced_row_moves_less(query: SumQuery) -> None:
    found = [
        moved(query, {"age": [a], "label": [k]}, {"age": [b], "label": [n]})
        for a in (0.1, 0.9, None)
        for b in (0.1, 0.9, None)
        for k in ("no", "yes")
        for n in ("no", "yes")
    ]
    assert max(found) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("bits", [16, 26, 31])
def test_a_changed_label_moves_newtons_sums_no_further_than_one_row(bits: int) -> None:
    query = column(None, math.inf, "newton")
    found = [
        moved(query, {"age": [0.3], "label": ["no"]}, {"age": [0.3], "label": ["yes"]}, x, bits)
        for x in np.linspace(-12, 12, 97)
    ]
    assert 0.999 < max(found) <= 1.0
