"""The one-run audit: sound runs pass for every task, trust and unit; planted defects do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow.audit import AuditResult, black_box, one_run
from hedgerow.audit.made_up import joined, made_up_canaries, made_up_rows
from hedgerow.audit.recorder import RecordingGate
from hedgerow.audit.scoring import scores_of
from hedgerow.data.rng import stream
from hedgerow.data.schema import Label, Schema, Unit
from hedgerow.data.weights import Weight
from hedgerow.engines.local import local_federation
from hedgerow.errors import FormatError, SettingsError
from hedgerow.evaluation import evaluate, evaluation_plan
from hedgerow.inspection import plot_audit
from hedgerow.inspection.report import report_html
from hedgerow.methods.registry import METHODS, method_named, plan_for
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off
from tests.audit.defects import DEFECTS
from tests.conftest import MIXED

PLAIN = Schema.from_bounds({"a": (0, 1), "b": (0, 5), "c": (0, 9)}, classes=["no", "yes"])
SCHEMAS = {
    "binary": MIXED,
    "multiclass": MIXED.with_label(Label("y", ("a", "b", "c"))),
    "regression": MIXED.with_label(Label("y", lower=-3.0, upper=12.0)),
    "persons": replace(MIXED, unit=Unit("person", "p", at_most=3)),
    "weights": replace(MIXED, weight=Weight("w", 5.0)),
}
FEW = {"n_trees": 6}
GAUSSIAN = [name for name, method in METHODS.items() if not method.can_be_pure]


def plan_of(schema: Schema, method: str = "auto", trust: str = "coordinator", **more: Any) -> Any:
    return plan_for(schema, Privacy(4.0, 1e-6, trust), method, more)


def check_sound(found: AuditResult) -> None:
    assert found.holds, found.violation
    assert found.largest_mu <= found.claimed_mu * (1 + 1e-9)
    assert found.largest_mu > 0.3 * found.claimed_mu  # canaries come near what is allowed
    assert found.estimated_mu == pytest.approx(found.largest_mu, abs=6 * found.estimate_error)


@pytest.mark.parametrize("task", SCHEMAS)
def test_auto_holds_for_every_task_and_unit(task: str) -> None:
    schema = SCHEMAS[task]
    found = one_run(plan_of(schema), schema, canaries=60, rows=2000, seed=1)
    check_sound(found)
    assert found.largest_mu > 0.8 * found.claimed_mu
    assert found.releases > 4


@pytest.mark.parametrize("method", [name for name in GAUSSIAN if name != "auto"])
def test_every_gaussian_method_holds(method: str) -> None:
    uses, trust = METHODS[method].uses, METHODS[method].trust or "coordinator"
    settings = {name: n for name, n in (("n_trees", 6), ("cycles", 2)) if name in uses}
    plan = plan_of(PLAIN, method, trust, **settings)
    check_sound(one_run(plan, PLAIN, canaries=60, rows=1000, seed=1))


@pytest.mark.parametrize("trust", ["parties", "nobody"])
def test_other_trusts_hold(trust: str) -> None:
    plan = plan_of(PLAIN, "dp-tr-newton", trust, **FEW)
    found = one_run(plan, PLAIN, canaries=60, rows=1000, seed=1)
    check_sound(found)
    if trust == "parties":  # one share of three is noise that the promise does not count on
        assert found.largest_mu < 0.82 * found.claimed_mu
        assert "share" in found.words()


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression", "persons"])
def test_private_evaluations_hold(task: str) -> None:
    schema = SCHEMAS[task]
    ledger = Ledger.in_memory()
    rows = made_up_rows(schema, 300, stream(1, "rows"))
    federation = local_federation({"all": rows}, schema, ledger)
    plan = plan_of(schema, "dp-rf", **FEW)
    model = method_named("dp-rf").grow(RecordingGate(federation, plan, ledger))
    measured = evaluation_plan(model, Privacy(2.0, 1e-6, "coordinator"))
    found = one_run(
        measured, schema, canaries=100, rows=1000, seed=1, start=model,
        run=lambda gate: evaluate(gate, model),
    )  # fmt: skip
    check_sound(found)
    assert found.method == "evaluation"


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_a_violation(defect: str) -> None:
    planted: Callable[[], AbstractContextManager[None]] = DEFECTS[defect]
    with planted():
        found = one_run(plan_of(MIXED), MIXED, canaries=60, rows=8000, seed=1)
    assert found.lower_mu > found.claimed_mu
    assert found.lower_epsilon > found.claimed_epsilon
    assert "VIOLATION" in found.words()


def test_noise_that_one_party_leaves_out_is_a_violation() -> None:
    plan = plan_of(PLAIN, "dp-tr-newton", "parties", **FEW)
    with DEFECTS["noise halved"]():
        assert not one_run(plan, PLAIN, canaries=60, rows=1000, seed=1).holds


def test_local_noise_that_is_halved_is_a_violation() -> None:
    plan = plan_of(PLAIN, "ldp", "nobody", **FEW)
    with DEFECTS["noise halved"]():
        found = one_run(plan, PLAIN, canaries=40, seed=1)
    assert found.lower_mu > found.claimed_mu


def test_scores_without_noise_are_the_coins() -> None:
    """What a score expects of a canary that is in is its squared length, and of others nothing."""
    rng, ledger = stream(1, "audit"), Ledger.in_memory()
    base, canaries = made_up_rows(PLAIN, 200, rng), made_up_canaries(PLAIN, 12, rng)
    coins = rng.random((12, 2)) < 0.5
    rows = joined([base, canaries.copies(coins)])
    assert rows.n_rows == 200 + coins.sum()
    with noise_off():
        federation = local_federation({"all": rows}, PLAIN, ledger)
        gate = RecordingGate(federation, plan_of(PLAIN, "dp-rf", **FEW), ledger)
        method_named("dp-rf").grow(gate)
    scores = scores_of(gate.transcript, canaries, base, coins)
    length = np.sqrt(scores.squares)[:, None]
    assert scores.known_others() == pytest.approx(coins * length, abs=1e-9)
    assert all(block.energy < 1e-12 for block in scores.blocks)


def test_what_cannot_be_audited_is_refused() -> None:
    pure = plan_for(PLAIN, Privacy(1.0, 0.0, "coordinator", accounting="pure"), "private-tree")
    with pytest.raises(SettingsError, match=r"pure epsilon.*--black-box"):
        one_run(pure, PLAIN)
    with pytest.raises(SettingsError, match="another schema"):
        one_run(plan_of(PLAIN), MIXED)
    with pytest.raises(SettingsError, match="confidence"):
        one_run(plan_of(PLAIN), PLAIN, confidence=1.0)
    with pytest.raises(SettingsError, match="2 canaries"):
        one_run(plan_of(PLAIN), PLAIN, canaries=1)
    with pytest.raises(SettingsError, match="Leave --black-box out"):
        black_box(plan_of(PLAIN, "ldp", "nobody"), PLAIN)
    with pytest.raises(SettingsError, match="at least 8 runs"):
        black_box(plan_of(PLAIN), PLAIN, runs=4)


@pytest.mark.parametrize("method", ["private-tree", "dp-tr-newton"])
def test_models_alone_tell_a_canary_only_without_noise(method: str) -> None:
    pure = METHODS[method].can_be_pure
    privacy = Privacy(0.5, 0.0 if pure else 1e-6, "coordinator",
                      accounting="pure" if pure else "exact")  # fmt: skip
    plan = plan_for(PLAIN, privacy, method, {} if pure else FEW)
    assert black_box(plan, PLAIN, runs=40, rows=10, seed=2).holds
    with noise_off():
        found = black_box(plan, PLAIN, runs=40, rows=10, seed=2)
    assert not found.holds
    assert found.lower_epsilon > found.claimed_epsilon


def test_a_result_survives_its_file_and_damage_is_named(tmp_path: Path) -> None:
    with DEFECTS["one block without noise"]():
        found = one_run(plan_of(PLAIN), PLAIN, canaries=40, rows=500, seed=1)
    assert found.lower_mu == math.inf
    found.save(tmp_path / "audit.json")
    assert AuditResult.load(tmp_path / "audit.json") == found
    assert "infinite" in plot_audit(found).svg
    assert "infinity" in found.words()
    for text in ("[]", "{}", "nonsense", '{"kind_of_file": "hedgerow audit", "format": 1}'):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(FormatError):
            AuditResult.load(tmp_path / "other.json")


def test_the_report_has_an_audit_of_the_same_promise_and_no_other() -> None:
    ledger, plan = Ledger.in_memory(), plan_of(PLAIN, "dp-rf", **FEW)
    rows = made_up_rows(PLAIN, 300, stream(1, "rows"))
    gate = RecordingGate(local_federation({"all": rows}, PLAIN, ledger), plan, ledger)
    model = method_named("dp-rf").grow(gate)
    found = one_run(plan, PLAIN, canaries=40, rows=500, seed=1)
    page = report_html(model, audit=found)
    assert "<h2>Audit</h2>" in page
    assert "never prove it" in page
    assert "<h2>Audit</h2>" not in report_html(model)
    with pytest.raises(SettingsError, match="audit is of method"):
        report_html(model, audit=replace(found, method="auto"))
