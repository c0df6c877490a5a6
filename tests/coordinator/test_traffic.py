"""What a plan says it will send, against what the wire carried."""

from __future__ import annotations

import doctest
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow.cli.screen import size_text
from hedgerow.coordinator import traffic as module
from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.coordinator.traffic import OPENING_ROUNDS, Traffic, traffic
from hedgerow.data.schema import Label, Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.errors import PlanError
from hedgerow.methods.registry import METHODS, Method, method_named, plan_for
from hedgerow.privacy.accounting.budget import Slot
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy, settings_table
from hedgerow.queries import QUERIES
from hedgerow.testing import noise_off
from tests.conftest import MIXED, federation_of, mixed_rows, mixed_table, promise, split_rows
from tests.oracle.runs import LABELS, schema_of, table_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "methods.md"
NUMERIC = Schema.from_bounds({"a": (0, 1), "b": (-5, 5), "c": (0, 3)}, classes=[0, 1])
RANDOM = "totally-random"
SMALL = {"n_trees": 12, "max_depth": 3, "n_bins": 8}


def number_rows(n_rows: int) -> Rows:
    rng = np.random.default_rng(3)
    table = {name: rng.normal(1, 2, n_rows) for name in NUMERIC.names}
    return rows_of(table, NUMERIC, (table["a"] > 1).astype(int))


def run(
    schema: Schema, rows: Rows, method: str, trust: str = "parties", **changes: Any
) -> tuple[Plan, Federation]:
    """A method on three parties of equally long names, with real noise."""
    chosen = method_named(method)
    privacy = promise(method, trust)
    settings = {name: value for name, value in SMALL.items() if name in chosen.uses} | changes
    plan = plan_for(schema, privacy, method, settings, seed=1)
    federation = federation_of(split_rows(rows, [30, 40]), schema, privacy)
    chosen.grow(Gate(federation, plan, Ledger.in_memory()))
    return plan, federation


def check(plan: Plan, federation: Federation, close: bool = True) -> Traffic:
    """Never below what was carried; hardly above where every planned question was asked.

    A drawn tree over one column may run out of cuts, and a tree is then smaller than planned.
    """
    bound = traffic(plan, federation.schema, federation.names)
    sent, received = max(federation.sent.values()), max(federation.received.values())
    assert sent <= bound.sent
    assert received <= bound.received
    assert federation.rounds <= bound.questions
    settings = settings_table(plan.settings)
    one_column = settings["features_per_tree"] == 1
    close &= federation.rounds == bound.questions
    if close and not (one_column and settings["split"] != RANDOM):
        assert bound.sent <= (1.3 if one_column else 1.05) * sent
        assert bound.received <= (1.75 if one_column else 1.5) * received
        assert federation.round_trips == bound.rounds
    return bound


@pytest.mark.parametrize("loss", ["logistic", "softmax-3", "squared"])
def test_many_rounds_send_no_more_than_their_plan_says(loss: str) -> None:
    schema = schema_of(loss)
    rows = rows_of(table_of(400, 1), schema)
    privacy = Privacy(200.0, 1e-6, "parties")
    plan = plan_for(schema, privacy, "auto", {"rounds": 60}, seed=1)
    federation = federation_of(split_rows(rows, [100, 150]), schema, privacy)
    method_named("auto").grow(Gate(federation, plan, Ledger.in_memory()))
    bound = check(plan, federation, close=False)
    assert federation.rounds > 40
    few = plan_for(schema, privacy, "auto", seed=1)
    assert bound.sent > traffic(few, schema, federation.names).sent


@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize("method", METHODS)
def test_no_method_sends_more_than_its_plan_says(method: str, loss: str) -> None:
    schema = schema_of(loss)
    if method == "private-tree" and not schema.label.classes:
        pytest.skip("a tree of classes")
    # Multiclass labels are no regression.
    changes = {"loss": "log"} if (method, loss) == ("dp-xgboost", "softmax-3") else {}
    check(*run(schema, rows_of(table_of(120, 4), schema), method, **changes))


@pytest.mark.parametrize("epsilon", [1.0, 500.0])
def test_times_to_an_event_send_no_more_than_their_plan_says(epsilon: float) -> None:
    label = Label("t", event="e", cuts=(1, 2, 4, 8))
    schema, rng = schema_of("logistic").with_label(label), np.random.default_rng(4)
    outcome = {"t": rng.exponential(4, 120), "e": rng.integers(0, 2, 120)}
    rows, privacy = rows_of({**table_of(120, 2), **outcome}, schema), Privacy(epsilon, 1e-5)
    plan = plan_for(schema, privacy, "auto", {}, seed=1)
    federation = federation_of(split_rows(rows, [30, 40]), schema, privacy)
    method_named("auto").grow(Gate(federation, plan, Ledger.in_memory()))
    check(plan, federation, close=False)


@pytest.mark.parametrize("method", METHODS)
def test_without_category_sets_the_bound_on_questions_is_close_too(method: str) -> None:
    plan, federation = run(NUMERIC, number_rows(120), method)
    bound = check(plan, federation)
    if federation.rounds == bound.questions:
        assert bound.received <= 1.4 * max(federation.received.values())


@pytest.mark.parametrize(
    "changes",
    [
        {"split": "partially-random"},
        {"split": "partially-random", "candidates": "iterative-hessian", "features_per_tree": 2},
        {"split": "histogram", "candidates": "iterative-hessian"},
        {"split": "histogram", "features_per_tree": 1},
        {"split": "histogram", "reuse_histogram": False, "features_per_tree": 2},
        {"candidates": "log", "batch_size": 5},
        {"candidates": "quantiles", "n_bins": 4},
        {"candidates": "quantiles", "split": "histogram", "n_bins": 4},
        {"update": "gradient", "candidates": "iterative-hessian", "start_share": 0.0},
        {"max_depth": 1, "n_trees": 101},
    ],
    ids=str,
)
@pytest.mark.parametrize("trust", ["coordinator", "nobody"])
def test_no_choice_of_settings_sends_more_than_its_plan_says(
    changes: dict[str, Any], trust: str
) -> None:
    rows = mixed_rows(mixed_table(120, seed=2))
    check(*run(MIXED, rows, "random-trees", trust, **changes))


@pytest.mark.parametrize("schema", [NUMERIC, MIXED], ids=["numeric", "mixed"])
@pytest.mark.parametrize("method", [m for m in METHODS if "max_depth" in METHODS[m].uses])
def test_deep_trees_that_grow_without_noise_send_no_more(method: str, schema: Schema) -> None:
    rows = number_rows(600) if schema is NUMERIC else mixed_rows(mixed_table(600, seed=2))
    with noise_off():
        check(*run(schema, rows, method, max_depth=5), close=False)


def test_trees_that_stop_early_send_less() -> None:
    plan, federation = run(NUMERIC, number_rows(120), "dp-gbm", gain_penalty=1e6)
    expected = check(plan, federation)
    assert federation.rounds < expected.questions
    assert max(federation.sent.values()) < 0.5 * expected.sent


def test_party_names_that_are_not_known_count_as_the_longest() -> None:
    plan, _ = run(NUMERIC, number_rows(120), "dp-tr-newton")
    by_number, by_name = traffic(plan, NUMERIC, 3), traffic(plan, NUMERIC, ["a", "b", "c"])
    answers = len(plan.slots) + 1  # and one announcement
    assert by_number.sent - by_name.sent == 39 * answers
    assert traffic(plan, NUMERIC, [c * 40 for c in "abc"]) == by_number
    assert by_number.rounds == len(plan.slots) + OPENING_ROUNDS


def test_one_party_more_costs_each_its_name_and_its_announcement() -> None:
    plan, _ = run(NUMERIC, number_rows(120), "dp-tr-newton")
    three, four = (traffic(plan, NUMERIC, list(names)) for names in ("abc", "abcd"))
    assert four.sent == three.sent
    assert 0 < four.received - three.received < 600 + 5 * len(plan.slots)


def test_the_example_of_the_source_runs() -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def with_slot(plan: Plan, slot: Slot) -> Plan:
    return replace(plan, budget=replace(plan.budget, slots=(slot,)))


@pytest.mark.parametrize("kind", QUERIES)
def test_every_kind_of_question_has_a_size(kind: str) -> None:
    plan = plan_for(MIXED, Privacy(1.0, 1e-5), "random-trees", settings={"n_trees": 1}, seed=1)
    asked = with_slot(plan, Slot("one", kind, plan.slots[0].mu, 64))
    assert traffic(asked, MIXED, 3).sent > 8 * 3
    unknown = with_slot(plan, Slot("one", "guess", plan.slots[0].mu, 64))
    with pytest.raises(PlanError, match="'guess', whose size is not known"):
        traffic(unknown, MIXED, 3)


# The public example of docs/methods.md


def example(method: Method, n_trees: int = 100) -> tuple[Plan, Schema]:
    """T trees of depth 4 over ten numeric columns of 32 bins, binary."""
    schema = Schema.from_bounds({f"c{j}": (0, 1) for j in range(10)}, classes=[0, 1])
    trust = method.trust or "parties"
    own = settings_table(method.settings({}))
    size = {"cycles": n_trees} if own["cycles"] else {"n_trees": n_trees}
    chosen = {**size, "max_depth": 4, "n_bins": 32}
    settings = {name: value for name, value in chosen.items() if name in method.uses}
    privacy = promise(method.name, trust, delta=1e-6)
    return plan_for(schema, privacy, method.name, settings, seed=1), schema


def value_of(formula: str, letters: dict[str, int]) -> int:
    """What a formula such as "T m/B + s" amounts to."""
    total = 0
    for term in formula.split(" + "):
        above, _, below = term.partition("/")
        product = 1
        for factor in above.split():
            product *= letters.get(factor) or int(factor)
        total += -(-product // letters.get(below, 1))
    return total


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_formula_of_the_rounds_is_right(method: Method) -> None:
    plan, schema = example(method)
    if plan.budget.adaptive.slots:  # priced during the run: a ceiling
        assert method.rounds == f"at most {plan.n_slots}"
        return
    settings = settings_table(plan.settings)
    letters = {
        "T": 100,
        "m": len(schema.columns),
        "d": settings["max_depth"],
        "B": plan.settings.trees_per_round,
        "s": settings["candidate_rounds"],
    }
    assert value_of(method.rounds, letters) == len(plan.slots)


def line_of(method: Method) -> str:
    plan, schema = example(method)
    found = traffic(plan, schema, 3)
    asked = ", ".join(method.queries)
    sizes = (size_text(found.sent), size_text(found.received))
    cells = (f"`{method.name}`", method.summary, asked, method.rounds, str(found.questions), *sizes)
    return f"| {' | '.join(cells)} |"


def test_the_table_of_the_methods_page_is_that_of_the_code() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.split("| method |")[1].split("\n\n")[0]
    lines = [line_of(method) for method in METHODS.values()]
    assert table.splitlines()[2:] == lines, "write instead:\n" + "\n".join(lines)


def test_the_sentence_about_the_published_figure_is_that_of_the_code() -> None:
    text = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    shown = re.search(r"1,000 trees of `feverless` are (\S+ \S+) in (\S+) rounds", text)
    assert shown
    plan, schema = example(METHODS["feverless"], 1000)
    found = traffic(plan, schema, 3)
    assert shown.groups() == (size_text(found.sent), f"{found.questions:,}")
