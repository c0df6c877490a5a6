"""Settings by family: every field means something to its method, and plan files say all of them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from hedgerow.errors import PlanError, SettingsError
from hedgerow.methods.registry import METHODS
from hedgerow.privacy.accounting.plan import EVALUATION
from hedgerow.privacy.settings import (
    DEFAULTS,
    FAMILIES,
    MEANINGS,
    AutoSettings,
    BoostingSettings,
    EvaluationSettings,
    PrivateTreeSettings,
    Settings,
    settings_from,
    settings_table,
)


def test_every_method_has_a_family_and_no_family_is_without() -> None:
    assert set(FAMILIES) == {*METHODS, EVALUATION}


@pytest.mark.parametrize("family", sorted(set(FAMILIES.values()), key=lambda cls: cls.__name__))
def test_a_setting_that_families_share_is_the_same_in_all(family: type[Settings]) -> None:
    for field in fields(family):
        assert field.default == DEFAULTS[field.name]
        assert field.metadata["meaning"] == MEANINGS[field.name]
        field.metadata["kind"].checked(field.name, field.default)


@pytest.mark.parametrize("method", METHODS)
def test_settings_survive_the_table_of_a_plan(method: str) -> None:
    settings = METHODS[method].settings({})
    table = settings_table(settings)
    assert list(table) == [name for name in DEFAULTS if name != "rounds"]  # it came later
    assert settings_from(method, table) == settings


def test_rounds_stand_in_a_plan_only_where_they_are_not_the_usual_ones() -> None:
    many = METHODS["auto"].settings({"rounds": 200})
    table = settings_table(many)
    assert table == {**settings_table(METHODS["auto"].settings({"rounds": 16})), "rounds": 200}
    assert settings_from("auto", table) == many
    for wrong in (15, 401, 16.0):
        with pytest.raises(SettingsError, match="rounds is"):
            METHODS["auto"].settings({"rounds": wrong})


def test_a_setting_of_another_method_is_refused_with_the_own_ones() -> None:
    with pytest.raises(SettingsError, match=r"'auto' does not use 'n_trees'.*It uses: monotone, "):
        METHODS["auto"].settings({"n_trees": 5})
    with pytest.raises(
        SettingsError, match=r"unknown setting 'trees'; known to method 'auto': mon"
    ):
        METHODS["auto"].settings({"trees": 5})
    with pytest.raises(SettingsError, match=r"'private-tree' does not use 'n_trees', and the plan"):
        settings_from("private-tree", {**DEFAULTS, "n_trees": 5})
    assert settings_from("private-tree", dict(DEFAULTS)) == PrivateTreeSettings()
    assert not hasattr(AutoSettings(), "n_trees")


def test_a_plan_of_a_method_that_is_not_known_keeps_what_it_says() -> None:
    said = {
        **DEFAULTS,
        "n_trees": 7,
        "rows_hint": 90,
        "warm_start": "m",
        "warm_start_says": "public",
    }
    other = settings_from("of-tomorrow", said)
    assert settings_table(other) == settings_table(Settings()) | {
        "n_trees": 7, "rows_hint": 90, "warm_start": "m", "warm_start_says": "public",
    }  # fmt: skip
    assert (other.public_rows, other.model, other.model_says) == (90, "m", "public")
    assert settings_from("of-tomorrow", dict(DEFAULTS)) == Settings()
    assert settings_from("x", {"candidates": "quantiles-not-private"}).reads_rows


@pytest.mark.parametrize(
    "wrong",
    [{"n_trees": 0}, {"n_trees": True}, {"split": "best"}, {"cuts": "0"}, {"warm_start": 3}],
    ids=str,
)
@pytest.mark.parametrize("method", ["of-tomorrow", "auto", "random-trees"])
def test_a_wrong_value_is_refused_whoever_it_is_for(method: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        settings_from(method, wrong)


def test_a_method_that_needs_other_settings_says_so() -> None:
    with pytest.raises(PlanError, match=r"needs BoostingSettings, and the plan has AutoSettings"):
        BoostingSettings.of(AutoSettings())


def test_what_every_plan_is_asked_has_an_answer() -> None:
    boosting, evaluation = BoostingSettings(), EvaluationSettings(warm_start="m")
    assert (boosting.public_rows, boosting.model, boosting.directions) == (0, "", {})
    assert evaluation.model == "m"
    assert BoostingSettings(candidates="quantiles-not-private").reads_rows
    assert (BoostingSettings(batch_size=5).trees_per_round, evaluation.trees_per_round) == (5, 1)
    assert BoostingSettings(cycles=3).for_columns(4) == BoostingSettings(n_trees=12)
