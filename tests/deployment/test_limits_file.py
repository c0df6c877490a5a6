"""limits.toml: everything that may stand in it, everything that may not, and the month."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.deployment.approvals import plan_in_words
from hedgerow.deployment.limits_file import (
    default_limits_text,
    limits_from_text,
    limits_in_words,
    read_limits,
)
from hedgerow.errors import BudgetExceeded, FormatError, SettingsError
from hedgerow.evaluation import evaluation_plan
from hedgerow.methods.registry import METHODS, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Statement
from hedgerow.model.tree import single_leaf
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.spending import Budget, month_spending, spending
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.identity import Identity, Roster, fingerprint
from hedgerow.protocol.messages import Refusal
from hedgerow.queries import QUERIES
from hedgerow.testing import ManualClock, manual_clock
from tests.conftest import MIXED, promise
from tests.privacy.ledger.test_ledger import a_plan

MARK = fingerprint(Identity().public)
WHOLE = {
    "format": 2,
    "delta": 1e-6,
    "least_parties": 3,
    "approve": "each plan",
    "methods": ["auto"],
    "kinds": ["label-sums", "leaf-sums"],
    "roles": ["simfl"],
    "coordinator": MARK.lower(),
    "epsilon": {"per_run": 1, "per_month": 2.5, "total": 10.0},
    "party": [{"name": "b", "fingerprint": MARK}, {"name": "c"}],
}


def read(document: dict[str, Any]) -> Limits:
    return limits_from_text(tomli_w.dumps(document), "a")


def test_nothing_without_an_epsilon_is_allowed_unless_it_is_named() -> None:
    assert read({"format": 1, "delta": 1e-6}).roles == frozenset()


def test_every_key_is_read() -> None:
    assert read(WHOLE) == Limits(
        budget=Budget(10.0, 1e-6),
        per_run=Budget(1.0, 1e-6),
        per_month=Budget(2.5, 1e-6),
        least_parties=3,
        kinds=frozenset({"label-sums", "leaf-sums"}),
        methods=frozenset({"auto"}),
        roles=frozenset({"simfl"}),
        coordinator=MARK,
        parties=(("a", ""), ("b", MARK), ("c", "")),
        approve=True,
        delta=1e-6,
    )
    assert read({"format": 1, "delta": 1e-6}) == Limits(roles=frozenset(), delta=1e-6)


def test_the_default_text_is_complete_and_also_without_its_comment_marks() -> None:
    limits = limits_from_text(default_limits_text(), "a")
    assert (limits.per_run, limits.per_month) == (Budget(2.0, 1e-6), Budget(4.0, 1e-6))
    assert limits.budget == Budget(10.0, 1e-6)
    marked = ("# methods", "# kinds", "# coordinator", "# [[party]]", "# name", "# fingerprint")
    lines = [
        line[2:] if line.startswith(marked) else line for line in default_limits_text().splitlines()
    ]
    full = limits_from_text("\n".join(lines), "a")
    assert full.kinds == frozenset(QUERIES)
    assert full.methods == frozenset({"auto"})
    assert full.parties is not None
    assert dict(full.parties)["hospital-b"] == full.coordinator != ""


ALL_PARTIES = Roster((("a", "1"), ("b", "2"), ("c", "3")), "4", 1, 3, "parties")


def test_a_share_for_pure_runs_belongs_to_its_ceiling() -> None:
    text = "format = 2\ndelta = 1e-6\n[epsilon]\ntotal = 4\ntotal_pure = 1\nper_month = 2\n"
    limits = limits_from_text(text, "a")
    assert limits.budget == Budget(4.0, 1e-6, 1.0)
    assert limits.per_month == Budget(2.0, 1e-6)
    assert any("in total" in words and "1 of it for pure runs" in words
               for words in limits_in_words(limits))  # fmt: skip
    with pytest.raises(SettingsError, match="per_month_pure is 3, more than per_month, 2"):
        limits_from_text(text + "per_month_pure = 3\n", "a")
    with pytest.raises(SettingsError, match="total_pure is a share of total, which is missing"):
        limits_from_text(text.replace("total = 4\n", ""), "a")


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_passes_under_its_own_name(method: str) -> None:
    privacy = promise(method, "parties", delta=1e-6)
    limits = read({"format": 1, "delta": 1e-6, "methods": [method]})
    limits.check_plan(plan_for(MIXED, privacy, method, seed=1), ALL_PARTIES)


@pytest.mark.parametrize(("real", "called"), [("random-trees", "auto"), ("auto", "random-trees")])
def test_a_plan_of_another_method_does_not_pass_under_an_allowed_name(
    real: str, called: str
) -> None:
    limits = read({"format": 1, "delta": 1e-6, "methods": [called]})
    plan = plan_for(MIXED, Privacy(1.0, 1e-6, "parties"), real, seed=1)
    for name in (real, called):
        with pytest.raises(Refusal) as found:
            limits.check_plan(replace(plan, method=name), ALL_PARTIES)
        assert found.value.word == "over-limits"
    free = read({"format": 1, "delta": 1e-6})
    free.check_plan(replace(plan, method=called), ALL_PARTIES)


def a_model() -> Ensemble:
    leaf = single_leaf(np.array([0.2]))
    return Ensemble((leaf,), MIXED, Statement("epsilon-delta", 1.0, 1e-6, "parties"))


def test_an_evaluation_passes_under_its_own_name_and_nothing_else_does() -> None:
    privacy = Privacy(1.0, 1e-6, "parties")
    limits = read({"format": 1, "delta": 1e-6, "methods": ["evaluation"]})
    limits.check_plan(evaluation_plan(a_model(), privacy), ALL_PARTIES)
    for method in ("auto", "random-trees"):
        plan = plan_for(MIXED, privacy, method, seed=1)
        for name in (method, "evaluation"):
            with pytest.raises(Refusal) as found:
                limits.check_plan(replace(plan, method=name), ALL_PARTIES)
            assert found.value.word == "over-limits"


def test_a_person_who_approves_is_told_that_a_plan_measures_a_model() -> None:
    model = a_model()
    words = " ".join(plan_in_words(evaluation_plan(model, Privacy(1.0, 1e-6, "parties"))))
    assert f"It measures the model {model.hash}" in words
    assert "epsilon = 1, delta = 1e-06" in words
    assert "It builds on" not in words


@pytest.mark.parametrize(
    ("method", "settings", "kind"),
    [
        ("random-trees", {"split": "histogram"}, "node-histograms"),
        ("random-trees", {"candidates": "quantiles"}, "column-counts"),
        ("random-trees", {"candidates": "iterative-hessian"}, "column-hessians"),
        ("dp-rf", {"split": "histogram", "batch_fraction": 0.0}, "node-histograms"),
        ("dp-gbm", {"split": "totally-random", "candidates": "iterative-hessian"}, "leaf-sums"),
    ],
)
def test_settings_that_a_method_has_stay_within_its_kinds(
    method: str, settings: dict[str, Any], kind: str
) -> None:
    plan = plan_for(MIXED, Privacy(1.0, 1e-6, "parties"), method, settings, seed=1)
    assert kind in plan.budget.kinds()
    read({"format": 1, "delta": 1e-6, "methods": [method]}).check_plan(plan, ALL_PARTIES)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 0}, "format is 0; it must be 2"),
        ({"format": True}, "format is True; it must be 2"),
        ({"epsilom": 1}, r"'epsilom' \(did you mean 'epsilon'\?\); known: format, delta, epsilon"),
        (
            {"epsilon": {"per_year": 1}},
            "unknown key 'per_year'.*; known: per_run, per_month",
        ),
        ({"programs": ["simfl"]}, "called roles since format 2: rename the key, .* format = 2"),
        ({"epsilon": 1.0}, r"must be a table: \[epsilon\]"),
        ({"epsilon": {"per_run": 0}}, r"\[epsilon\] has per_run = 0; it must be a number above 0"),
        ({"epsilon": {"total": math.nan}}, "total = nan"),
        ({"epsilon": {"total": math.inf}}, "total = inf"),
        ({"epsilon": {"total": 10**400}}, "total = a whole number beyond"),
        ({"epsilon": {"total": True}}, "total = True"),
        ({"delta": 1.0}, "delta is 1.0; it must be a number above 0 and below 1"),
        ({"delta": "1e-6"}, "delta is '1e-6'"),
        ({"least_parties": 0}, "least_parties is 0"),
        ({"least_parties": 2.0}, "least_parties is 2.0"),
        ({"methods": ["best"]}, "methods number 1 is 'best'; choose one of auto, random-trees"),
        ({"methods": []}, "list of at least one"),
        ({"kinds": "label-sums"}, "kinds is 'label-sums'; it must be a list"),
        ({"kinds": ["rows"]}, "kinds number 1 is 'rows'; choose one of label-sums"),
        ({"approve": True}, "approve is True; it must be 'each plan' or 'none'"),
        ({"coordinator": "1234"}, "eight groups of four"),
        ({"party": [{"name": "B"}]}, "must be a party name: 1 to 40 of a-z"),
        ({"party": [{"name": "-b"}]}, "no hyphen first"),
        ({"party": [{"name": "b"}, {"name": "b"}]}, "listed twice"),
        ({"party": [{"nick": "b"}]}, "unknown key 'nick'; known: name, fingerprint"),
        ({"party": [{"name": "b", "fingerprint": 5}]}, "eight groups of four"),
        ({"party": "b"}, r"write \[\[party\]\] tables"),
    ],
)
def test_a_mistake_is_named_with_what_may_stand_there(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said) as found:
        read({**WHOLE, **change})
    assert "nothing was spent" in str(found.value)


def test_a_newer_format_names_the_version_needed() -> None:
    with pytest.raises(FormatError, match=r"writes limits file format 3.*nothing was spent"):
        read({**WHOLE, "format": 3})


def test_a_missing_delta_or_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="the limits file has no 'delta'"):
        read({"format": 1})
    with pytest.raises(SettingsError, match="--write"):
        read_limits(tmp_path / "none.toml", "a")
    with pytest.raises(SettingsError, match="not valid TOML"):
        limits_from_text("format = ", "a")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "fingerprint", "per_run", "total", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_none(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_none(v) for v in value if v is not None]
    return value


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*WHOLE, "unknown"]), VALUES, max_size=4))
def test_any_document_is_read_or_refused_in_words(changes: dict[str, Any]) -> None:
    try:
        limits = read(without_none({**WHOLE, **changes}))
    except (SettingsError, FormatError):
        return
    for budget in (limits.per_run, limits.per_month, limits.budget):
        assert budget is None or (0 < budget.epsilon < math.inf and 0 < budget.delta < 1)
    assert limits.least_parties >= 1
    assert limits.methods is None or limits.methods <= {*METHODS, "evaluation"}
    assert limits.kinds is None or limits.kinds <= set(QUERIES)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    with pytest.raises(SettingsError):
        limits_from_text(text, "a")


@pytest.fixture
def clock() -> Iterator[ManualClock]:
    with manual_clock(datetime(2030, 5, 17, 12, 0, tzinfo=UTC)) as moved:
        yield moved


MONTHLY = Budget(1.2, 1e-5)  # one run of epsilon 1 and no second one


def reserve(ledger: Ledger, run: str) -> None:
    Reservation(ledger, a_plan(1.0, run), "a", per_month=MONTHLY)


def test_a_month_is_31_rolling_days(clock: ManualClock) -> None:
    ledger = Ledger.in_memory()
    reserve(ledger, "first")
    clock.move(days=31, seconds=-1)
    with pytest.raises(BudgetExceeded, match=r"last 31 days' epsilon from 1\.000 to 1\.4"):
        reserve(ledger, "second")
    clock.move(seconds=2)
    reserve(ledger, "second")
    assert month_spending(ledger, "a").runs == 1
    assert spending(ledger, "a").runs == 2


def test_runs_of_a_month_compose_exactly(clock: ManualClock) -> None:
    ledger = Ledger.in_memory()
    for run in ("first", "second"):
        Reservation(ledger, a_plan(1.0, run), "a")
        clock.move(days=1)
    plan, month = a_plan(1.0), month_spending(ledger, "a")
    assert month.mu == pytest.approx(plan.mu * math.sqrt(2), rel=1e-12)
    assert 1.0 < month.epsilon(1e-5) < 2.0


def test_a_clock_that_was_set_back_makes_no_room(clock: ManualClock) -> None:
    ledger = Ledger.in_memory()
    reserve(ledger, "first")
    clock.move(days=-400)
    with pytest.raises(BudgetExceeded):
        reserve(ledger, "second")
    assert month_spending(ledger, "a").runs == 1


def test_what_was_reserved_while_the_clock_was_ahead_counts_after_it_is_right(
    clock: ManualClock,
) -> None:
    ledger = Ledger.in_memory()
    clock.move(days=100)
    reserve(ledger, "first")
    clock.move(days=-100)
    assert month_spending(ledger, "a").runs == 1
    clock.move(days=40)
    assert month_spending(ledger, "a").runs == 1  # its own time is still ahead
    clock.move(days=92)
    assert month_spending(ledger, "a").runs == 0


def test_what_was_reserved_while_the_clock_was_behind_counts_after_it_is_right(
    clock: ManualClock,
) -> None:
    ledger = Ledger.in_memory()
    ledger.append("a", "boot")  # the ledger has seen this day
    clock.move(days=-400)
    reserve(ledger, "first")
    clock.move(days=400, hours=1)
    assert month_spending(ledger, "a").runs == 1
    with pytest.raises(BudgetExceeded):
        reserve(ledger, "second")
    clock.move(days=31)
    assert month_spending(ledger, "a").runs == 0


def test_a_start_while_the_clock_was_ahead_does_not_age_later_runs(clock: ManualClock) -> None:
    ledger = Ledger.in_memory()
    clock.move(days=4000)
    ledger.append("a", "boot")
    clock.move(days=-4000)
    reserve(ledger, "first")
    clock.move(days=32)
    assert month_spending(ledger, "a").runs == 0


def test_a_resumed_run_is_not_counted_twice(clock: ManualClock) -> None:
    ledger = Ledger.in_memory()
    for _ in range(3):
        reserve(ledger, "first")
    assert month_spending(ledger, "a").runs == 1


def test_the_month_is_checked_together_with_the_reservation(clock: ManualClock) -> None:
    """Two plans that were both checked cannot both be reserved."""
    ledger = Ledger.in_memory()
    one = Reservation(ledger, a_plan(1.0, "one"), "a", at_once=False, per_month=MONTHLY)
    two = Reservation(ledger, a_plan(1.0, "two"), "a", at_once=False, per_month=MONTHLY)
    one.reserve()
    with pytest.raises(BudgetExceeded):
        two.reserve()
    assert spending(ledger, "a").runs == 1
