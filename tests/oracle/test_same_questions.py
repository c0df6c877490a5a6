"""Given the same releases, neighbouring tables are asked exactly the same questions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hedgerow.coordinator.federation import Federation, Total
from hedgerow.coordinator.gate import Gate
from hedgerow.data.rng import stream
from hedgerow.data.schema import Schema
from hedgerow.estimators.boosting import PrivateBoostingClassifier
from hedgerow.methods.maddock.candidates import CANDIDATES
from hedgerow.model.losses import TREE_UPDATES
from hedgerow.privacy.ledger.reservation import Release
from hedgerow.queries import ColumnHessians, SumQuery, query_bytes, query_from_bytes, size_of
from hedgerow.queries.calibration import Noise
from tests.conftest import MIXED, Table, mixed_table

Question = tuple[bytes, Noise, int, int, tuple[str, ...]]
SETTINGS = {"batch_size": 2}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """Every question that reaches the parties; what comes back is replaced by fixed numbers."""
    questions: list[Question] = []
    right = Federation.sum

    def recorded(self: Federation, query: SumQuery, noise: Noise, slot: int, attempt: int) -> Total:
        total = right(self, query, noise, slot, attempt)
        questions.append((query_bytes(query), noise, slot, attempt, total.parties))
        return total

    def fixed(self: Gate, query: SumQuery, total: Total, noise: Noise) -> Release:
        values = stream(len(questions), "release").normal(0, 40 * 2.0**noise.bits, size_of(query))
        sigmas = tuple(sigma / 2.0**noise.bits for sigma in noise.sigmas)
        return Release(values.astype(np.int64), noise.bits, sigmas, sigmas[0], "fixed")

    monkeypatch.setattr(Federation, "sum", recorded)
    monkeypatch.setattr(Gate, "_noisy", fixed)
    return questions


def questions_for(asked: list[Question], table: Table, **parameters: Any) -> list[Question]:
    asked.clear()
    parties = [f"p{i % 5}" for i in range(len(table["sick"]))]
    PrivateBoostingClassifier(
        MIXED,
        epsilon=1.0,
        method="random-trees",
        n_trees=6,
        max_depth=3,
        random_state=4,
        **parameters,
    ).fit(table, parties=parties)
    return list(asked)


def without(table: Table, row: int) -> Table:
    return {name: values[:row] + values[row + 1 :] for name, values in table.items()}


def telling_rows(table: Table) -> list[int]:
    """Rows whose loss could show: the extremes, a rare value, the first, the last."""
    doses = [0.0 if d is None else d for d in table["dose"]]
    return [int(np.argmax(doses)), int(np.argmin(doses)), table["age"].index(None), 0, -1]


@pytest.mark.parametrize("trust", ["coordinator", "parties", "nobody"])
def test_removing_a_row_changes_no_question(asked: list[Question], trust: str) -> None:
    table = mixed_table(80, seed=8)
    table["site"][40] = "west"  # the only one of its kind
    expected = questions_for(asked, table, trust=trust, settings=SETTINGS)
    assert len(expected) == 4  # the base rate and three batches
    for row in [40, *telling_rows(table)]:
        row %= 80
        assert questions_for(asked, without(table, row), trust=trust, settings=SETTINGS) == expected


@pytest.mark.parametrize("update", TREE_UPDATES)
@pytest.mark.parametrize("candidates", CANDIDATES)
def test_removing_a_row_changes_no_candidate(
    asked: list[Question], candidates: str, update: str
) -> None:
    """Refined cuts follow from releases alone, which are fixed here."""
    table = mixed_table(80, seed=8)
    settings = {**SETTINGS, "candidates": candidates, "update": update, "candidate_rounds": 2}
    expected = questions_for(asked, table, settings=settings)
    refining = [q for q, *_ in expected if query_from_bytes(q).kind == ColumnHessians.kind]
    assert len(refining) == (2 if candidates == "iterative-hessian" else 0)
    assert len(set(refining)) == len(refining)  # the second asks about cuts that moved
    for row in telling_rows(table)[:3]:
        assert questions_for(asked, without(table, row % 80), settings=settings) == expected


def test_changing_every_label_changes_no_question(asked: list[Question]) -> None:
    table = mixed_table(80, seed=8)
    expected = questions_for(asked, table)
    assert questions_for(asked, {**table, "sick": ["yes"] * 80}) == expected


def test_bounds_read_from_the_rows_are_found(
    asked: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison can fail: a schema made from the rows asks other questions."""

    def from_rows(self: PrivateBoostingClassifier, X: Any, y: Any) -> Schema:
        seen = [d for d in X["dose"] if d is not None]
        return Schema.from_bounds(
            {"dose": (min(seen), max(seen))}, classes=["no", "yes"], label="sick"
        )

    monkeypatch.setattr(PrivateBoostingClassifier, "_schema", from_rows)
    table = mixed_table(80, seed=8)
    expected = questions_for(asked, table)
    assert questions_for(asked, without(table, telling_rows(table)[0])) != expected


def test_other_releases_lead_to_other_questions(
    asked: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions name the ensemble, hence depend on releases: recording them means something."""
    table = mixed_table(80, seed=8)
    expected = questions_for(asked, table)
    monkeypatch.setattr(
        Gate,
        "_noisy",
        lambda self, query, total, noise: Release(
            np.ones(size_of(query), np.int64), noise.bits, (1.0, 1.0), 1.0, "fixed"
        ),
    )
    found = questions_for(asked, table)
    assert found[0] == expected[0]
    assert [q[0] for q in found[1:]] != [q[0] for q in expected[1:]]
