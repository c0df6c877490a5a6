"""What a history is about, drawn from its seed: parties, trust, limits, and what is to be done.

Tables are tiny and a run has few releases: what is looked at is order, loss and repetition, not
models. Rows, plans and undisturbed models come from a small pool that a process makes once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from hedgerow.coordinator.gate import Gate
from hedgerow.data.rng import stream
from hedgerow.data.schema import Label, Numeric, Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.engines.local import local_federation
from hedgerow.evaluation.program import evaluation_plan
from hedgerow.methods.fedxgboost.run import agreement_for as vertical_agreement
from hedgerow.methods.fedxgboost.run import shares_of
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.methods.simfl.run import agreement_for as similarity_agreement
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.ensemble import Ensemble
from hedgerow.party.limits import Limits
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.accounting.request import Request
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import Budget
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.roles import Agreement
from hedgerow.testing.noise import noise_off
from hedgerow.testing.simulation.randomness import Dice
from hedgerow.testing.simulation.scheduler import START

PARTIES = ("ash", "birch", "cedar", "elm", "fir", "holly", "oak")
BINARY = Schema.from_bounds({"age": (0, 100), "dose": (0, 1)}, classes=[0, 1])
REGRESSION = Schema(
    (Numeric("age", 0, 100), Numeric("dose", 0, 1)), Label("days", lower=0.0, upper=30.0)
)
N_ROWS = 12
# How often plans have a last day, ledgers are put back, and a method is one of the rare ones.
ENDING, BACKUPS_KEPT, OF_OTHERS = 0.06, 0.1, 0.12
_SMALL = {"n_trees": 3, "max_depth": 2}
_BINS = {"n_trees": 1, "max_depth": 2, "n_bins": 4}
# By method: settings, and how often it is drawn under the trust of the parties.
METHODS: dict[str, tuple[dict[str, Any], float]] = {
    "dp-tr-newton": (_SMALL, 5.0),
    "random-trees": (_SMALL, 3.0),
    "dp-rf": (_SMALL, 1.0),
    "dp-gbm": (_BINS, 1.0),
    "dp-tr-newton-ih": ({**_SMALL, "n_trees": 2}, 0.7),
    "private-tree": ({"max_depth": 1, "n_bins": 4}, 1.0),
    "auto": ({}, 0.15),
}
# Others of the same loop, which ask in another order or more at once: in place of one of the above.
RARE_METHODS: dict[str, dict[str, Any]] = {
    "dp-tr-newton-literal": _SMALL,
    "feverless": _BINS,
    "dp-ebm": {"cycles": 1, "max_depth": 2},
    "dp-ebm-newton": _SMALL,
    "dp-tr-newton-ih-ebm": {**_SMALL, "n_trees": 2},
    "dp-tr-batch-newton-ih-ebm": {**_SMALL, "n_trees": 4},
}
_BY_COORDINATOR = {"dp-xgboost": ({"n_trees": 1, "max_depth": 1, "n_bins": 4}, 2.0)}


@dataclass(frozen=True)
class Work:
    """One command of the coordinator: a training, an evaluation or a session."""

    kind: str  # "train", "evaluate", "similarity", "vertical"
    run: str
    after: float  # seconds until it is begun
    plan: Plan | None = None
    agreement: Agreement | None = None


@dataclass(frozen=True)
class Scenario:
    """A federation, and what is to be done with it."""

    parties: tuple[str, ...]
    trust: str
    schema: Schema
    columns: bool  # parties hold some of the columns each
    works: tuple[Work, ...]
    limits: Mapping[str, Limits]
    connected: bool  # whether the engine knows who is connected
    noise: bool
    interleaved: bool
    wait_seconds: float
    budget: Budget | None
    backups: bool = False  # operators put old copies of ledgers back

    @property
    def tables(self) -> dict[str, Rows]:
        if self.columns:
            return vertical_tables(self.parties)
        return {name: table_of(name, self.schema) for name in self.parties}


def _values(name: str) -> dict[str, Any]:
    rng = stream(1, "simulation", name)
    return {"age": rng.uniform(0, 100, N_ROWS), "dose": rng.uniform(0, 1, N_ROWS)}


@lru_cache(maxsize=64)
def table_of(name: str, schema: Schema) -> Rows:
    """The rows of a party: the same in every history."""
    table = _values(name)
    if schema is REGRESSION:
        return rows_of(table, schema, table["age"] * 0.2 + table["dose"])
    return rows_of(table, schema, (table["age"] + 20 * table["dose"] > 60).astype(int))


@lru_cache(maxsize=16)
def vertical_tables(parties: tuple[str, ...]) -> dict[str, Rows]:
    """Rows that several parties hold some columns of."""
    return shares_of(table_of("together", BINARY), BINARY, vertical_settings(parties, "none"))


def vertical_settings(parties: tuple[str, ...], protection: str) -> VerticalSettings:
    owners = {column: parties[j % len(parties)] for j, column in enumerate(BINARY.names)}
    return VerticalSettings(
        owners, parties[0], protection, n_trees=1, max_depth=1, min_rows=2, ids="agreed",
        merge=True,
    )  # fmt: skip


def row_words(scenario: Scenario) -> list[str]:
    """How values of rows would look in a log or a message, if they got there."""
    names = ("together",) if scenario.columns else scenario.parties
    values = [value for name in names for column in _values(name).values() for value in column]
    return [f"{value:.5g}" for value in values if abs(value) > 0.01]


@lru_cache(maxsize=1024)
def undisturbed(
    method: str, parties: tuple[str, ...], trust: str, regression: bool, seed: int, spare: int = 0
) -> Ensemble:
    """The model of a run in which nothing went wrong, without noise."""
    schema = REGRESSION if regression else BINARY
    plan = training_plan(method, trust, schema, seed, "undisturbed", spare)
    tables = {name: table_of(name, schema) for name in parties}
    ledger = Ledger.in_memory()
    with noise_off():
        federation = local_federation(tables, schema, ledger, trust=trust)
        return method_named(method).grow(Gate(federation, plan, ledger))


@lru_cache(maxsize=1024)
def training_plan(method: str, trust: str, schema: Schema, seed: int, run: str, spare: int) -> Plan:
    usual = {**METHODS, **_BY_COORDINATOR, "ldp": (_SMALL, 0.0)}
    settings = usual[method][0] if method in usual else RARE_METHODS[method]
    pure = method in ("private-tree", "dp-xgboost")
    accounting, delta = ("pure", 0.0) if pure else ("exact", 1e-6)
    privacy = Privacy(1.0, delta, trust, accounting=accounting, spare=spare)
    return plan_for(schema, privacy, method, settings, seed=seed, run=run)


def draw_scenario(seed: int) -> Scenario:
    """What the history of a seed is about."""
    return _with_rare_things(_drawn(Dice(seed, "scenario")), Dice(seed, "rare"))


def _with_rare_things(scenario: Scenario, dice: Dice) -> Scenario:
    """The same, sometimes with what a campaign would else not meet often enough."""
    works = scenario.works
    if dice.chance(ENDING):
        works = tuple(
            replace(work, plan=_ending(work.plan, _day_of(work.after, dice.integer(-1, 2))))
            for work in works
        )
    backups = dice.chance(BACKUPS_KEPT)
    of_others = 0.6 <= dice.unit() < 0.6 + OF_OTHERS  # so that seeds that tests name keep theirs
    if of_others and scenario.trust != "nobody":
        works = tuple(_of_others(work, scenario, dice.choice(list(RARE_METHODS))) for work in works)
    return replace(scenario, works=works, backups=backups)


def _of_others(work: Work, scenario: Scenario, method: str) -> Work:
    """The same training by another method; evaluations and sessions stay as they are."""
    plan = work.plan
    if work.kind != "train" or plan is None:
        return work
    about = (scenario.trust, scenario.schema, plan.seed, work.run, plan.privacy.spare)
    made = training_plan(method, *about)
    return replace(work, plan=replace(made, request=plan.request))


def _day_of(after: float, more_days: int) -> str:
    return datetime.fromtimestamp(START + after + more_days * 86_400, UTC).date().isoformat()


def _ending(plan: Plan | None, day: str) -> Plan | None:
    return None if plan is None else replace(plan, request=Request(ends=day))


def _drawn(dice: Dice) -> Scenario:
    trust = dice.choice(("parties",) * 7 + ("coordinator", "coordinator", "nobody"))
    many = dice.choice((3,) * 14 + (4,) * 4 + (5, 7) if trust == "parties" else (1, 2, 3, 3))
    parties = PARTIES[:many]
    first = dice.weighted({"train": 8.0, "evaluate": 1.0, "similarity": 0.6, "vertical": 0.6})
    if first in ("similarity", "vertical"):
        most = 2 if first == "vertical" else dice.choice((2, 3))  # two columns, two owners
        parties, trust = PARTIES[:most], "coordinator"
    columns = first == "vertical"
    schema = REGRESSION if first == "train" and dice.chance(0.15) else BINARY
    count = dice.choice((1,) * 12 + (2, 2, 3))
    kinds = [first] + [_next(dice, first) for _ in range(count - 1)]
    apart = count > 1 and dice.chance(0.4)  # days between runs, so that months matter
    works, after = [], 0.0
    for number, kind in enumerate(kinds, start=1):
        works.append(_work(dice, kind, f"run-{number}", parties, trust, schema, after))
        after += dice.between(0.0, 40.0) * 86_400 if apart else dice.choice((0.0, 0.05, 0.2, 2.0))
    limits = {name: _limits(dice, apart) for name in parties}
    return Scenario(
        parties, trust, schema, columns, tuple(works), limits,
        connected=dice.chance(0.5), noise=dice.chance(0.4), interleaved=count > 1 and not apart,
        wait_seconds=dice.choice((0.0, 0.0, 0.0, 3.0, 12.0)),
        budget=Budget(1.3, 1e-6) if dice.chance(0.05) else None,
    )  # fmt: skip


def _next(dice: Dice, first: str) -> str:
    if first == "vertical":
        return dice.choice(("vertical", "train"))
    return dice.choice(("train", "train", first))


def _work(
    dice: Dice, kind: str, run: str, parties: tuple[str, ...], trust: str, schema: Schema,
    after: float,
) -> Work:  # fmt: skip
    if kind == "similarity":
        settings = SimilaritySettings(n_trees=2, max_depth=2)
        return Work(kind, run, after, None, similarity_agreement(schema, parties, settings, run))
    if kind == "vertical":
        chosen = vertical_settings(parties, dice.choice(("none", "ldp")))
        return Work(kind, run, after, None, vertical_agreement(schema, chosen, run))
    seed, spare = dice.integer(1, 2), dice.choice((0, 1, 1, 1, 2, 3))
    if kind == "evaluate":
        plan = _measuring_plan(schema is REGRESSION, seed, trust, spare, run)
        return Work(kind, run, after, plan)
    weights = {name: weight for name, (_, weight) in METHODS.items()}
    if trust == "coordinator":
        weights |= {name: weight for name, (_, weight) in _BY_COORDINATOR.items()}
    if trust == "nobody":
        weights = {"ldp": 1.0, "dp-tr-newton": 1.0, "random-trees": 1.0}
    if schema is REGRESSION:
        weights.pop("private-tree", None)
    method = dice.weighted(weights)
    return Work(kind, run, after, training_plan(method, trust, schema, seed, run, spare))


@lru_cache(maxsize=256)
def _measuring_plan(regression: bool, seed: int, trust: str, spare: int, run: str) -> Plan:
    model = undisturbed("dp-tr-newton", PARTIES[:3], "coordinator", regression, seed)
    return evaluation_plan(model, Privacy(1.0, 1e-6, trust, spare=spare), run)


def start_of(work: Work, schema: Schema) -> Ensemble | None:
    """The model that an evaluation measures."""
    if work.kind != "evaluate":
        return None
    assert work.plan is not None
    for seed in (1, 2):
        found = undisturbed("dp-tr-newton", PARTIES[:3], "coordinator", schema is REGRESSION, seed)
        if found.hash == work.plan.settings.model:
            return found
    raise AssertionError("a plan of another model")


def _limits(dice: Dice, apart: bool) -> Limits:
    """What a party allows; most allow what is asked, some stop it."""
    roles = frozenset({"simfl", "fedxgboost-none-merged", "fedxgboost-ldp-merged"})
    if apart and dice.chance(0.5):
        return Limits(roles=roles, per_month=Budget(1.2, 1e-6))
    if dice.chance(0.6):  # a ceiling of a run bounds what a ledger that is put back has lost
        return Limits(roles=roles, per_run=Budget(3.0, 1e-6) if dice.chance(0.5) else None)
    choices = [
        Limits(roles=roles, budget=Budget(1.2, 1e-6)),
        Limits(roles=roles, per_month=Budget(1.2, 1e-6)),
        Limits(roles=roles, per_run=Budget(1.5, 1e-6), least_parties=3),
        Limits(roles=roles, approve=True),
        Limits(roles=roles, parties=tuple((name, "") for name in PARTIES)),
    ]
    if dice.chance(0.1):
        choices = [
            Limits(roles=frozenset()),
            Limits(roles=roles, parties=(("ash", ""),)),
            Limits(roles=roles, methods=frozenset({"auto"})),
        ]
    return dice.choice(choices)
