"""With noise off: one party = five = five masked = an independent implementation, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hedgerow import kernels
from hedgerow.data.binning import base_grid
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off, seeded
from tests.conftest import MIXED, mixed_rows, mixed_table, split_rows, train
from tests.oracle.reference import Reference, rows_of_table

TABLE = mixed_table(220, seed=3)
ROWS = mixed_rows(TABLE)
UNEVEN = (1, 7, 100, 40)  # and 72 for the fifth party
CASES = [
    {"batch_size": batch, "start_share": start, "category_split": split}
    for batch in (1, 3)
    for start in (0.0, 0.02)
    for split in ("subset", "equality")
]


def settings_of(case: dict[str, Any]) -> dict[str, Any]:
    return {"n_trees": 7, "max_depth": 3, "n_bins": 16, "shrinkage": "none", **case}


def privacy(trust: str, epsilon: float = 2.0) -> Privacy:
    return Privacy(epsilon, 1e-5, trust)  # type: ignore[arg-type]


def reference_differs(model: Ensemble, plan: Any) -> bool:
    structures = [tree.structure for tree in model.trees]
    edges = [grid.edges for grid in base_grid(MIXED)]
    expected = Reference(rows_of_table(TABLE), MIXED, plan, edges).run(structures).values
    assert len(expected) == len(model.trees)
    return any(
        not np.array_equal(tree.values, values)
        for tree, values in zip(model.trees, expected, strict=True)
    )


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(str(v) for v in c.values()))
def test_any_parties_and_any_trust_give_the_reference_model(case: dict[str, Any]) -> None:
    with noise_off():
        alone, plan, _ = train({"all": ROWS}, MIXED, privacy("coordinator"), settings_of(case))
        open_sums, _, _ = train(
            split_rows(ROWS, UNEVEN), MIXED, privacy("coordinator"), settings_of(case)
        )
        masked, _, federation = train(
            split_rows(ROWS, UNEVEN), MIXED, privacy("parties"), settings_of(case)
        )
    assert len(federation.names) == 5
    assert alone == open_sums
    assert alone == masked
    assert not reference_differs(alone, plan)
    assert all(tree.values.any() for tree in alone.trees)
    assert {m.statement.guarantee for m in (alone, open_sums, masked)} == {"not private"}


def test_noise_off_under_trust_in_nobody_gives_the_same_model() -> None:
    with noise_off():
        alone, _, _ = train({"all": ROWS}, MIXED, privacy("nobody"), settings_of(CASES[0]))
        split, _, _ = train(
            split_rows(ROWS, UNEVEN), MIXED, privacy("nobody"), settings_of(CASES[0])
        )
    assert alone == split


def test_the_number_of_threads_does_not_change_a_model() -> None:
    rows = mixed_rows(mixed_table(17 * kernels.BLOCK + 5, seed=6))  # two ranges, the last uneven
    models = []
    for threads in (1, 2):
        before = kernels.use_threads(threads)
        try:
            with noise_off():
                model, _, _ = train(
                    {"all": rows}, MIXED, privacy("coordinator"), settings_of(CASES[2])
                )
        finally:
            kernels.use_threads(before)
        models.append(model)
    assert models[0] == models[1]


def test_the_cases_use_every_sort_of_column() -> None:
    with noise_off():
        model, _, _ = train({"all": ROWS}, MIXED, privacy("coordinator"), settings_of(CASES[0]))
    used = {int(f) for tree in model.trees for f in tree.structure.feature if f >= 0}
    assert used == set(range(len(MIXED.columns)))


def test_the_comparison_notices_a_wrong_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    right = kernels.leaf_sums

    def rounded_up(*arguments: Any, **named: Any) -> Any:
        total = right(*arguments, **named)
        total[0] += 1 << 12  # far less than any noise, and one leaf only
        return total

    monkeypatch.setattr(kernels, "leaf_sums", rounded_up)
    with noise_off():
        model, plan, _ = train({"all": ROWS}, MIXED, privacy("coordinator"), settings_of(CASES[0]))
    assert reference_differs(model, plan)


@pytest.mark.parametrize("trust", ["coordinator", "parties"])
def test_prediction_from_raw_values_equals_the_running_scores(trust: str) -> None:
    with noise_off():
        model, _, federation = train(
            split_rows(ROWS, UNEVEN), MIXED, privacy(trust), settings_of(CASES[2])
        )
    table = {name: values for name, values in TABLE.items() if name != "sick"}
    found = []
    for name in federation.names:
        scores = federation.engine.parties[name]._scores  # type: ignore[attr-defined]
        assert 0 < scores.ref.length < len(model.trees)  # the last batch is not asked about
        found.append(scores.at(scores.ref))
        seen = Ensemble(model.trees[: scores.ref.length], MIXED, model.statement)
    assert np.array_equal(np.concatenate(found), seen.decision_function(table))


def test_seeded_noise_repeats_itself_and_is_not_called_private() -> None:
    models = []
    for _ in range(2):
        with seeded(11):
            model, _, _ = train({"all": ROWS}, MIXED, privacy("coordinator"), settings_of({}))
        models.append(model)
    with noise_off():
        without, _, _ = train({"all": ROWS}, MIXED, privacy("coordinator"), settings_of({}))
    assert models[0] == models[1]
    assert models[0] != without
    assert models[0].statement.guarantee == "not private"
    assert "NOT PRIVATE" in models[0].statement.words()


def test_real_noise_changes_the_model_and_carries_the_guarantee() -> None:
    with noise_off():
        without, _, _ = train({"all": ROWS}, MIXED, privacy("coordinator"), settings_of({}))
    model, _, _ = train({"all": ROWS}, MIXED, privacy("coordinator"), settings_of({}))
    assert model != without
    assert model.statement.guarantee == "epsilon-delta"
