"""Vertical and similarity estimators fit over parties with limits and a ledger, as sites do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow import (
    SimilarityBoostingClassifier,
    VerticalBoostingClassifier,
    VerticalBoostingRegressor,
)
from hedgerow.engines import local_session
from hedgerow.engines.local import local_federation
from hedgerow.errors import BudgetExceeded, SettingsError
from hedgerow.estimators.inputs import split_rows
from hedgerow.methods.simfl.run import similarity_role
from hedgerow.privacy.ledger.labels import label_spending
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import Budget, set_budget
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from tests.methods.fedxgboost.tables import OWNERS, schema_of, whole

TABLE = whole(200)
SMALL: dict[str, Any] = {"n_trees": 1, "max_depth": 2}


def noisy(ledger: Ledger | str | None = None, epsilon: float = 1.0) -> VerticalBoostingClassifier:
    settings = {"epsilon": epsilon}
    return VerticalBoostingClassifier(schema_of(), "ldp", settings=settings, ledger=ledger, **SMALL)


def fitted(model: VerticalBoostingClassifier) -> VerticalBoostingClassifier:
    return model.fit(TABLE, owners=OWNERS, active="bank")


def test_three_fits_are_three_charges_on_the_ledger() -> None:
    ledger = Ledger.in_memory()
    for fit in range(3):
        fitted(noisy(ledger, epsilon=0.5))
        for owner in ("bank", COORDINATOR):
            assert len(ledger.lines(owner, "disclose")) == fit + 1
            assert label_spending(ledger, owner) == pytest.approx(0.5 * (fit + 1))
    assert label_spending(ledger, "shop") == 0  # it has no labels
    verify(ledger)


def test_a_fit_beyond_the_budget_is_refused_before_anybody_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Ledger.in_memory()
    set_budget(ledger, Budget(2.5, 1e-6))
    fitted(noisy(ledger))
    fitted(noisy(ledger))
    made: list[str] = []
    right = local_session.Session._begin
    monkeypatch.setattr(local_session.Session, "_begin", lambda self: made.append(right(self)))
    with pytest.raises(BudgetExceeded, match=r"from 2\.000 to 3\.000, over the budget of 2\.5"):
        fitted(noisy(ledger))
    assert not made
    assert len(ledger.lines(COORDINATOR, "disclose")) == 2
    fitted(noisy(ledger, epsilon=0.5))
    assert made  # what fits goes on
    # What has no epsilon costs none.
    VerticalBoostingClassifier(schema_of(), "none", ledger=ledger, **SMALL).fit(
        TABLE, owners=OWNERS, active="bank"
    )


def test_labels_of_one_ledger_add_up_whoever_held_them() -> None:
    """The same labels in the hands of another party are the same labels."""
    ledger = Ledger.in_memory()
    set_budget(ledger, Budget(1.5, 1e-6))
    fitted(noisy(ledger))
    renamed = {column: owner.replace("bank", "house") for column, owner in OWNERS.items()}
    with pytest.raises(BudgetExceeded):
        noisy(ledger).fit(TABLE, owners=renamed, active="house")


def test_the_statement_says_what_is_counted(tmp_path: Path) -> None:
    alone = fitted(noisy()).statement_
    assert (alone.guarantee, alone.scope, alone.epsilon) == ("label", "this fit alone", 1.0)
    assert "no ledger adds it up" in alone.words()
    model = fitted(noisy(str(tmp_path / "ledger")))
    with Ledger.open(tmp_path / "ledger") as ledger:  # it was closed again
        (line,) = ledger.lines(COORDINATOR, "disclose")
    assert model.statement_.scope == f"run {line.run}"
    assert "the ledger of the party that has them adds it up" in model.statement_.words()
    assert {part.run for part in model.parts_.values()} == {line.run}


def test_everything_that_was_shown_is_on_record_a_joint_prediction_too() -> None:
    ledger = Ledger.in_memory()
    model = VerticalBoostingRegressor(schema_of("regression"), "none", ledger=ledger, **SMALL)
    table = whole(150, "regression")
    model.fit(table, owners=OWNERS, active="bank")
    scores = model.predict_jointly(table)
    assert np.array_equal(scores, model.model_.decision_function(table))
    roles = [line.values["agreement"]["program"] for line in ledger.lines("shop", "disclose")]
    assert roles == ["fedxgboost-none-merged", "fedxgboost-predict"]
    told = [d.seen_by for d in model.statement_.disclosures]
    assert "everyone with the merged model" in told


def test_parts_stay_apart_elsewhere() -> None:
    model = VerticalBoostingClassifier(schema_of(), "none", settings={"merge": False}, **SMALL)
    with pytest.raises(SettingsError, match="merge is false"):
        fitted(model)


def test_similar_rows_are_on_record_and_parties_that_exist_give_the_same_model() -> None:
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (180, 4))
    y, parties = (X[:, 0] > X[:, 1]).astype(int), np.arange(180) % 3
    ledger = Ledger.in_memory()
    own: dict[str, Any] = {"bounds": (-1, 1), "classes": [0, 1], "n_trees": 4, "random_state": 2}
    here = SimilarityBoostingClassifier(ledger=ledger, **own).fit(X, y, parties=parties)
    lines = ledger.lines(kind="disclose")
    assert [line.owner for line in lines] == [COORDINATOR, "0", "1", "2"]
    assert {line.values["agreement"]["program"] for line in lines} == {"simfl"}
    schema, rows = SimilarityBoostingClassifier(**own)._read(X, y)
    federation = local_federation(
        split_rows(rows, parties), schema, roles={"simfl": similarity_role}, packed=True
    )
    apart = SimilarityBoostingClassifier(ledger=ledger, **own).fit_federation(federation)
    assert apart.model_ == here.model_
    assert apart.statement_ == here.statement_
    assert len(ledger.lines(COORDINATOR, "disclose")) == 2
