"""Runs to record and replay: every method, task, trust, unit and private evaluation, small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.rng import stream
from hedgerow.data.schema import Label, Numeric, Schema, Unit
from hedgerow.data.tables import Rows
from hedgerow.data.weights import Weight
from hedgerow.engines.local import local_federation
from hedgerow.evaluation import evaluate, evaluation_plan
from hedgerow.methods.registry import METHODS, method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import Neighbour, neighbours_of, random_rows, seeded
from hedgerow.testing.replay import Replay
from tests.conftest import MIXED

TASKS = {
    "binary": MIXED,
    "fine": replace(MIXED, columns=(*MIXED.columns, Numeric("gain", 0, 9_999, integer=True))),
    "multiclass": MIXED.with_label(Label("y", ("a", "b", "c"))),
    "regression": MIXED.with_label(Label("y", lower=-3.0, upper=12.0)),
    "counts": MIXED.with_label(Label("n", upper=9, loss="poisson", exposure="e", max_exposure=2.0)),
    "quantile": MIXED.with_label(Label("y", lower=-3.0, upper=12.0, loss="quantile", quantile=0.8)),
    "huber": MIXED.with_label(Label("y", lower=-3.0, upper=12.0, loss="huber", huber=1.0)),
    "survival": MIXED.with_label(Label("t", event="e", cuts=(1.0, 2.0, 5.0))),
    "periods": MIXED.with_label(Label("t", event="e", cuts=(1.0, 2.0, 5.0), change_at=2.0)),
}
UNITS = {
    "rows": lambda schema: schema,
    "persons": lambda schema: replace(schema, unit=Unit("person", "p", at_most=2)),
    "weights": lambda schema: replace(schema, weight=Weight("w", 5.0)),
}
# Settings that make a run short and reach questions that the defaults do not ask.
FEW: Mapping[str, Mapping[str, Any]] = {
    "auto": {},
    "random-trees": {"n_trees": 3, "candidates": "quantiles"},
    "dp-ebm": {"cycles": 2},
    "dp-gbm": {"n_trees": 2, "max_depth": 2},
    "feverless": {"n_trees": 2, "max_depth": 2},
    "private-tree": {"max_depth": 2},
    "dp-xgboost": {"n_trees": 2, "max_depth": 2},
}


@dataclass(frozen=True)
class Case:
    """One run by name: what the parameters of tests and the rows of the campaign are."""

    method: str
    task: str = "binary"
    unit: str = "rows"
    trust: str = "coordinator"
    packed: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float = 8.0

    def __str__(self) -> str:
        packed = ", packed" if self.packed else ""
        told = "".join(f", {name} {value}" for name, value in self.settings.items())
        told += f", epsilon {self.epsilon:g}" if self.epsilon != 8.0 else ""
        return f"{self.method}, {self.task}, {self.unit}, trust in {self.trust}{told}{packed}"

    @property
    def schema(self) -> Schema:
        return UNITS[self.unit](TASKS[self.task])

    def replay(self, n_rows: int = 24, seed: int = 0) -> Replay:
        """The run over random rows."""
        schema, rng = self.schema, stream(seed, "replayed table", str(self))
        masked = self.trust == "parties"
        tables = [random_rows(schema, n_rows, rng) for _ in range(3 if masked else 1)]
        make = _packed if self.packed else None
        plan, play, start = self._run(schema, seed)
        return Replay(play, plan, schema, tables[0], tuple(tables[1:]), start, make, seed)

    def neighbours(self, replay: Replay, n: int, seed: int = 0) -> Iterator[Neighbour]:
        """At most so many neighbours of its table, of the changes that its trust is about."""
        rng, sampled = stream(seed, "neighbours", str(self)), replay.plan.budget.sampled
        for one in neighbours_of(self.schema, replay.rows, n, rng, last=sampled):
            if self.trust != "nobody" or one.change == "replaced":
                yield one

    def _run(self, schema: Schema, seed: int) -> tuple[Plan, Any, Ensemble | None]:
        if self.method != "evaluation":
            plan = plan_for(schema, self._privacy(), self.method, self._settings(), seed)
            return plan, method_named(self.method).grow, None
        model = model_for(schema, seed)
        plan = evaluation_plan(model, self._privacy())
        return plan, partial(_evaluated, model), model

    def _privacy(self) -> Privacy:
        pure = self.method in METHODS and METHODS[self.method].can_be_pure
        delta, accounting = (0.0, "pure") if pure else (1e-6, "exact")
        return Privacy(self.epsilon, delta, self.trust, accounting=accounting)

    def _settings(self) -> Mapping[str, Any]:
        return {**FEW.get(self.method, {"n_trees": 3}), **self.settings}


def model_for(schema: Schema, seed: int = 0) -> Ensemble:
    """A small model to evaluate."""
    rows, ledger = random_rows(schema, 40, stream(seed, "rows of a model")), Ledger.in_memory()
    method, few = "dp-tr-newton", {"n_trees": 3}
    if schema.label.task == "survival" or schema.label.loss is not None:
        method, few = "auto", {}
    plan = plan_for(schema, Privacy(50.0, 1e-6, "coordinator"), method, few, 0)
    with seeded(seed):
        gate = Gate(local_federation({"all": rows}, schema, ledger), plan, ledger)
        return method_named(plan.method).grow(gate)


def _evaluated(model: Ensemble, gate: Gate) -> object:
    return evaluate(gate, model).to_dict()


def _packed(tables: Mapping[str, Rows], schema: Schema, plan: Plan, ledger: Ledger) -> Federation:
    p = plan.privacy
    agreed = (p.colluding, p.minimum_parties, p.trust)
    return local_federation(tables, schema, ledger, *agreed, packed=True)


def _cases() -> list[Case]:
    cases = []
    for name, method in METHODS.items():
        trusts = (method.trust,) if method.trust else ("coordinator", "parties")
        cases += [Case(name, trust=trust) for trust in trusts]
        cases.append(Case(name, unit="persons" if name != "ldp" else "rows", trust=trusts[0]))
        if not method.can_be_pure:
            cases += [Case(name, task, trust=trusts[0]) for task in ("multiclass", "regression")]
            cases.append(Case(name, unit="weights", trust=trusts[0]))
    cases += [Case("private-tree", "multiclass"), Case("dp-tr-newton", trust="nobody")]
    cases += [Case("auto", trust="nobody"), Case("auto", packed=True, trust="parties")]
    # Few rows are one curve for all; with much epsilon they are more than that.
    cases += [Case("auto", "survival", unit) for unit in UNITS]
    cases += [Case("auto", "survival", unit, epsilon=3000.0) for unit in UNITS]
    cases += [Case("auto", "survival", trust="parties", epsilon=3000.0)]
    cases += [Case("auto", "periods", epsilon=epsilon) for epsilon in (30.0, 3000.0)]
    cases += [Case("random-trees", task) for task in ("survival", "periods")]
    for task in ("counts", "quantile", "huber"):
        cases += [Case("auto", task, unit) for unit in UNITS]
        cases += [Case("auto", task, epsilon=3000.0), Case("auto", task, trust="parties")]
    # Few rows ask about fine cells only with very much epsilon.
    cases += [
        Case("auto", "fine", trust=trust, epsilon=3e4) for trust in ("coordinator", "parties")
    ]
    cases += [Case("dp-xgboost", settings={"loss": "log"})]
    cases += [Case("dp-xgboost", settings={"sample_rate": 0.5})]
    cases += [Case("evaluation", task, "rows") for task in TASKS]
    cases += [Case("evaluation", unit=unit) for unit in ("persons", "weights")]
    cases += [Case("evaluation", trust=trust) for trust in ("parties", "nobody")]
    return list({str(case): case for case in cases}.values())


CASES = _cases()
