"""dp-xgboost as a run: its books, what they hold, resuming, persons, samples, wrong settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow.coordinator import gate as gate_module
from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Label, Schema, Unit
from hedgerow.data.tables import Rows, rows_of
from hedgerow.engines.local import local_federation
from hedgerow.errors import HedgerowError, LedgerError, PlanError, SettingsError
from hedgerow.methods.maddock.growing_tree import GrowingTree
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.party.running_scores import RunningScores
from hedgerow.privacy.accounting.path_budget import PathBudget
from hedgerow.privacy.accounting.paths import Priced, priced_of
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.noise.poisson_sampling import PoissonSampler
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import LeafAverages, SplitChoices
from hedgerow.queries.base import NO_TREES
from hedgerow.queries.calibration import noise_for
from hedgerow.queries.gradients import Gradients
from hedgerow.testing import noise_off
from tests.contracts.attacks import choices_of

SCHEMA = Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, classes=[0, 1])
GENERAL = {"sample_rate", "gradient_bound", "utility", "batch_size"}  # refused for any method
SMALL = {"n_trees": 2, "max_depth": 2, "n_bins": 6}


def some_rows(n: int = 300, schema: Schema = SCHEMA) -> Rows:
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 1, (n, 2))
    return rows_of({"a": X[:, 0], "b": X[:, 1]}, schema, (X[:, 0] > 0.4).astype(int))


ROWS = some_rows()


def plan_of(
    accounting: str = "pure", spare: int = 0, schema: Schema = SCHEMA, **settings: Any
) -> Plan:
    privacy = Privacy(
        3.0, 0.0 if accounting == "pure" else 1e-6, accounting=accounting, spare=spare
    )
    return plan_for(schema, privacy, "dp-xgboost", {**SMALL, **settings}, seed=1, run="run")


def grow(plan: Plan, ledger: Ledger, rows: Rows = ROWS, schema: Schema = SCHEMA) -> Ensemble:
    parts = {f"p{i}": rows.take(np.arange(i, rows.n_rows, 3)) for i in range(3)}
    federation = local_federation(parts, schema, ledger, trust="coordinator")
    return method_named("dp-xgboost").grow(Gate(federation, plan, ledger))


@pytest.mark.parametrize("sample_by", ["tree", "question"])
@pytest.mark.parametrize("accounting", ["pure", "exact"])
def test_a_run_spends_its_plan_and_the_books_add_up(accounting: str, sample_by: str) -> None:
    plan = plan_of(accounting, 1, sample_rate=0.4, sample_by=sample_by)
    ledger = Ledger.in_memory()
    model = grow(plan, ledger)
    charges = ledger.lines(COORDINATOR, "charge")
    assert len(charges) == len(plan.slots) == 2 * 4
    spent = plan.budget.accountant(charges).epsilon()
    whole = sum(r.cost for r in PathBudget.of(plan.budget).branches.rounds)
    assert whole * (1 - 1e-6) < spent <= whole
    assert model.statement.guarantee == ("pure" if accounting == "pure" else "epsilon-delta")
    assert (model.statement.epsilon, model.statement.releases) == (3.0, 8)
    assert {one.owner: one.charges for one in verify(ledger)} == dict.fromkeys(
        ["coordinator", "p0", "p1", "p2"], 8
    )
    assert len(model.trees) == 1 + 2


@pytest.mark.parametrize("lie", ["dearer", "cheaper than its nodes", "the round before", "tree"])
def test_a_ledger_with_a_charge_that_does_not_fit_is_refused(lie: str) -> None:
    ledger, plan = Ledger.in_memory(), plan_of(spare=1)
    grow(plan, ledger)
    last = ledger.lines(COORDINATOR, "charge")[-1]
    priced = priced_of(last)
    slot, values = last.slot, {"request": "x", "epsilon": priced.most}
    fresh = Ledger.in_memory()
    for line in ledger.lines(COORDINATOR)[:-2]:  # all but the last charge and its release
        fresh.append(
            COORDINATOR, line.kind, line.run, line.slot, line.attempt, line.values, line.arrays
        )
    verify(fresh)
    if lie == "dearer":
        priced = priced.scaled(1.01)
        values["epsilon"] = priced.most
    elif lie == "cheaper than its nodes":
        values["epsilon"] = priced.most / 2
    elif lie == "the round before":  # charged there, it would be a second tree's third question
        slot = 3
    else:
        splits = dict(priced.splits)
        splits[1] = "0" * 64
        priced = Priced(splits, priced.prices)
    number = 1 + max(
        (x.attempt for x in fresh.lines(COORDINATOR, "charge", "run", slot)), default=0
    )
    fresh.append(COORDINATOR, "charge", "run", slot, number, values, priced.arrays())
    with pytest.raises(LedgerError):
        verify(fresh)


class Killed(BaseException):
    """Stands for a process that is gone: nothing catches it."""


@pytest.mark.parametrize("place", ["sync", "noise", "store"])
def test_a_run_that_was_killed_goes_on_with_the_same_rows(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored choices are replayed, and a restarted party has the same sample."""
    drawn: list[tuple[str, bytes]] = []
    right = RunningScores._sampled

    def seen(self: RunningScores, sampler: PoissonSampler, *more: Any) -> Any:
        rows, scores = right(self, sampler, *more)
        drawn.append((f"{sampler.key.hex()} {sampler.draw.round}", rows.codes.narrow.tobytes()))
        return rows, scores

    monkeypatch.setattr(RunningScores, "_sampled", seen)
    plan, passed = plan_of(spare=1, sample_rate=0.5), [0]

    def dying(name: str) -> None:
        passed[0] += name == place
        if name == place and passed[0] == (6 if place != "sync" else 20):
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(gate_module, "fail_point", dying)
        patched.setattr("hedgerow.privacy.ledger.reservation.fail_point", dying)
        with Ledger.open(tmp_path / "x.ledger") as ledger, pytest.raises(Killed):
            grow(plan, ledger)
    with Ledger.open(tmp_path / "x.ledger") as ledger:
        before = {
            line.slot: line.arrays["total"].tolist()
            for line in ledger.lines(COORDINATOR, "release")
        }
        assert 0 < len(before) < 8
        model = grow(plan, ledger)
        after = {
            line.slot: line.arrays["total"].tolist()
            for line in ledger.lines(COORDINATOR, "release")
        }
        assert before.items() <= after.items()
        assert len(after) == 8
        assert len(model.trees) == 3
        verify(ledger)
        assert grow(plan, ledger) == model  # all of it is replayed
    samples: dict[str, set[bytes]] = {}
    for name, rows in drawn:
        samples.setdefault(name, set()).add(rows)
    assert len(samples) == 3 * 2
    assert all(len(found) == 1 for found in samples.values())
    assert len({next(iter(found)) for found in samples.values()}) == 6


def test_a_choice_leaves_nothing_of_the_sums_in_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact: list[bytes] = []
    right = Gate._noisy

    def seen(self: Gate, query: Any, total: Any, noise: Any) -> Any:
        values = total.values.view(np.int64)
        found = [values]
        found += [one for one, _ in query.utilities(values, self.schema, noise.bits)]
        # Round numbers may stand for something else; of the others none may be there.
        exact.extend(v.tobytes() for v in np.concatenate(found) if abs(v) > 2**18 and v % 256)
        return right(self, query, total, noise)

    monkeypatch.setattr(Gate, "_noisy", seen)
    plan = plan_of(sketch_share=0.0, leaf_rule="plain")
    with Ledger.open(tmp_path / "x.ledger") as ledger:
        grow(plan, ledger)
        for line in ledger.lines(COORDINATOR, "release"):
            if plan.slots[line.slot].kind == SplitChoices.kind:
                ways = line.arrays["total"].tolist()
                assert ways == [way for way in ways if 0 <= way < 2 * 2 * 7]
                assert (line.values["receipts"], line.values["sigmas"]) == ({}, [])
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert line.arrays["total"].tobytes() in data  # what is stored can be found in this way
    assert len(exact) >= 8
    assert not [value for value in exact if value in data]


@pytest.mark.parametrize("k", [1, 3])
def test_a_person_of_several_rows_gets_as_many_times_the_noise(k: int) -> None:
    schema = replace(SCHEMA, unit=Unit("person", "id", k)) if k > 1 else SCHEMA
    plan, gradients = plan_of(schema=schema), Gradients("squared", NO_TREES, 0.5)
    choices = choices_of(SCHEMA, GrowingTree(), (0, 1), gradients, price=0.5, utility="gain")
    found = noise_for(choices, 0.0, plan, schema)
    assert found.sigmas == (-(-k * choices.utility_range // 0.5),)
    assert (found.mechanism, found.bits) == ("permute-and-flip", 20)
    for rule in ("plain", "sum-and-count"):
        leaves = LeafAverages(GrowingTree().structure(), gradients, 0.5, rule)
        blocks = leaves.released_blocks
        scales = noise_for(leaves, 0.0, plan, schema).sigmas
        assert scales == pytest.approx([k * block.weight * 2**20 for block in blocks])
    half = noise_for(choices, 0.0, plan, schema, 0.5)
    assert half.sigmas[0] == pytest.approx(2 * found.sigmas[0], abs=2)


def test_a_sampled_person_takes_part_with_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = replace(SCHEMA, unit=Unit("person", "id", 3))
    rng = np.random.default_rng(3)
    table = {"a": rng.uniform(0, 1, 90), "b": rng.uniform(0, 1, 90), "id": np.arange(90) % 30}
    rows = rows_of(table, schema, rng.integers(0, 2, 90))
    seen: list[Any] = []
    right = RunningScores._sampled
    monkeypatch.setattr(RunningScores, "_sampled", lambda *a: seen.append(right(*a)) or seen[-1])
    plan, ledger = plan_of(schema=schema, sample_rate=0.5, n_trees=4), Ledger.in_memory()
    federation = local_federation({"all": rows}, schema, ledger)
    model = method_named("dp-xgboost").grow(Gate(federation, plan, ledger))
    for sample, _ in seen:
        assert set(np.unique(sample.persons, return_counts=True)[1]) <= {3}
        assert len(sample.persons) < 90
    assert "person" in model.statement.neighbours


def test_questions_on_a_sample_are_about_that_part_of_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    totals: list[float] = []
    right = Gate._noisy

    def seen(self: Gate, query: Any, total: Any, noise: Any) -> Any:
        if isinstance(query, LeafAverages):
            totals.append(total.values.view(np.int64).reshape(2, -1)[1].sum() / 2**20)
        return right(self, query, total, noise)

    monkeypatch.setattr(Gate, "_noisy", seen)
    with noise_off():
        grow(plan_of(sample_rate=0.3, n_trees=6, max_depth=1), Ledger.in_memory(), some_rows(3000))
    assert len(totals) == 6
    assert len(set(totals)) > 1  # every tree has rows of its own; two may be equally many
    assert all(abs(n - 900) < 6 * np.sqrt(3000 * 0.21) for n in totals)


def test_exact_sums_are_for_plans_of_pure_questions_alone() -> None:
    gaussian = plan_for(SCHEMA, Privacy(1.0, 1e-6), "random-trees", {"n_trees": 2}, seed=1)
    gradients = Gradients("squared", NO_TREES)
    for query in (
        choices_of(SCHEMA, GrowingTree(), (0, 1), gradients),
        LeafAverages(GrowingTree().structure(), gradients, 0.5, "plain"),
    ):
        with pytest.raises(PlanError, match="Nothing was asked"):
            noise_for(query, gaussian.slots[0].mu, gaussian, SCHEMA)


@pytest.mark.parametrize(
    ("label", "privacy", "settings", "pieces"),
    [
        ((0, 1), {}, {"sketch_share": 0.5, "leaf_share": 0.5},
         ("sketch_share = 0.5", "leaf_share = 0.5", "nothing for the splits")),
        ((0, 1, 2), {}, {"loss": "squared"}, ("3 classes", 'loss = "log"')),
        ((0, 1, 2), {}, {"loss": "log", "gradient_rule": "filter"}, ('gradient_rule = "clip"',)),
        ((0, 1), {"accounting": "renyi", "delta": 1e-6}, {}, ("pure or exact", "'renyi'")),
        ((0, 1), {"trust": "parties"}, {}, ("'coordinator'", "'parties'")),
        ((0, 1), {}, {"sample_rate": 0.0}, ("sample_rate is 0.0", "above 0")),
        ((0, 1), {}, {"gradient_bound": 2.0}, ("gradient_bound is 2.0",)),
        ((0, 1), {}, {"utility": "gini"}, ("utility is 'gini'", "separation, gain")),
        ((0, 1), {}, {"batch_size": 3}, ("does not use 'batch_size'",)),
    ],
    ids=str,
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(
    label: Any, privacy: dict[str, Any], settings: dict[str, Any], pieces: tuple[str, ...]
) -> None:
    schema = SCHEMA.with_label(Label("y", label))
    promise = Privacy(**{"epsilon": 1.0, "delta": 0.0, "accounting": "pure", **privacy})
    with pytest.raises(SettingsError) as found:
        plan_for(schema, promise, "dp-xgboost", settings)
    if not set(settings) & GENERAL:
        pieces = (*pieces, "Nothing was asked")
    for piece in pieces:
        assert piece in str(found.value)


def test_a_table_without_anything_to_cut_is_refused() -> None:
    from hedgerow.data.schema import Ordinal

    schema = Schema((Ordinal("only", ("one",)),), Label("y", (0, 1)))
    with pytest.raises(HedgerowError, match="can be cut"):
        plan_for(schema, Privacy(1.0, 0.0, accounting="pure"), "dp-xgboost")
