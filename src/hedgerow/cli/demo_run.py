"""The demonstration: three hospitals train together, and what that is worth.

Compares one private model over all three with each hospital alone under the same promise, and
with training on pooled rows without any privacy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.datasets import (
    HOSPITAL_SCHEMA,
    VISIT_SCHEMA,
    Table,
    hospital_tables,
    joined,
    split_table,
    visit_tables,
)
from hedgerow.data.rng import stream
from hedgerow.data.schema import Numeric, Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.engines.local import local_federation
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.trust import usual_trust
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import spending
from hedgerow.privacy.settings import Privacy

DELTA = 1e-6
TEST_SHARE = 0.2
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Score:
    """One model on the test patients of all hospitals."""

    name: str
    kind: str  # "alone", "together" or "pooled"
    n_rows: int
    epsilon: float | None
    auc: float
    log_loss: float
    own: Mapping[str, float]  # AUC on the test patients of single hospitals


@dataclass(frozen=True)
class Outcome:
    """Everything the demonstration found."""

    scores: tuple[Score, ...]
    epsilon: float
    delta: float
    rounds: int
    bytes_from_party: float
    bytes_to_party: float
    ledger_runs: int
    ledger_epsilon: float
    unit: str  # what is protected: "row", or "person" with at most `at_most` rows
    at_most: int
    words: str
    folder: str
    picture: str | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _World:
    """The tables of the demonstration and how to measure a model on them."""

    schema: Schema
    train: dict[str, Table]
    test: dict[str, Table]

    def score(
        self, name: str, kind: str, epsilon: float | None, predict: Callable[[Table], Any]
    ) -> Score:
        from sklearn.metrics import log_loss, roc_auc_score

        by_hospital, every, truth = {}, [], []
        for hospital, table in self.test.items():
            probability = np.asarray(predict(table))
            target = (table["readmitted"] == "yes").astype(int)
            by_hospital[hospital] = float(roc_auc_score(target, probability))
            every.append(probability)
            truth.append(target)
        p, y = np.concatenate(every), np.concatenate(truth)
        tables = [self.train[name]] if kind == "alone" else list(self.train.values())
        n_rows = sum(len(table["readmitted"]) for table in tables)
        auc, loss = float(roc_auc_score(y, p)), float(log_loss(y, p))
        return Score(name, kind, n_rows, epsilon, auc, loss, by_hospital)


def run_demo(
    folder: Path, epsilon: float, seed: int, tell: Tell, repeat_visits: bool = False
) -> Outcome:
    """Train, compare, write everything into the folder, and return what was found."""
    folder.mkdir(parents=True, exist_ok=True)
    tell("Making up three hospitals and their patients")
    world = _world(seed, repeat_visits)
    write_tables(folder, world.schema, world.train, world.test)
    scores = []
    for name, table in world.train.items():
        tell(f"Training {name} alone, epsilon = {epsilon:g}")
        alone, _ = _train(world.schema, {name: table}, epsilon, seed, Ledger.in_memory())
        scores.append(world.score(name, "alone", epsilon, _probability(alone)))
    tell(f"Training the three together, masked sums, epsilon = {epsilon:g}")
    with Ledger.open(folder / "model.hedge.ledger") as ledger:
        model, traffic = _train(world.schema, world.train, epsilon, seed, ledger, folder)
        spent = spending(ledger)
    model.save(folder / "model.hedge")
    scores.append(world.score("together", "together", epsilon, _probability(model)))
    tell("Training on pooled rows without privacy, for comparison")
    scores.append(world.score("pooled", "pooled", None, _pooled(world)))
    words = model.statement.words()
    (folder / "statement.txt").write_text(words + "\n", encoding="utf-8")
    picture = draw(tuple(scores), epsilon, folder / "comparison.png")
    unit = world.schema.unit
    outcome = Outcome(
        tuple(scores), epsilon, DELTA, *traffic, spent.runs, spent.epsilon(DELTA), unit.kind,
        unit.at_most, words, str(folder), None if picture is None else str(picture),
    )  # fmt: skip
    text = json.dumps(outcome.to_dict(), indent=2)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    return outcome


def write_tables(
    folder: Path, schema: Schema, train: dict[str, Table], test: dict[str, Table]
) -> None:
    """The schema and every table as CSV, so that one can go on with `hedgerow train`."""
    import pyarrow as pa
    from pyarrow import csv

    schema.write(folder / "schema.toml")
    for name, table in {**train, "test": joined(list(test.values()))}.items():
        arrow = pa.table({key: pa.array(v, from_pandas=True) for key, v in table.items()})
        csv.write_csv(arrow, folder / f"{name}.csv")


def _world(seed: int, repeat_visits: bool) -> _World:
    schema = VISIT_SCHEMA if repeat_visits else HOSPITAL_SCHEMA
    tables = visit_tables(seed) if repeat_visits else hospital_tables(seed)
    train, test = {}, {}
    for name, table in tables.items():
        rng = stream(seed, "split", name)
        train[name], test[name] = split_table(table, TEST_SHARE, rng, schema.unit.column)
    return _World(schema, train, test)


def _train(
    schema: Schema,
    tables: dict[str, Table],
    epsilon: float,
    seed: int,
    ledger: Ledger,
    plan_folder: Path | None = None,
) -> tuple[Ensemble, tuple[int, float, float]]:
    """A model, and its rounds and bytes from and to each party."""
    trust = usual_trust(len(tables))
    privacy = Privacy(epsilon, DELTA, trust)
    plan = plan_for(schema, privacy, seed=seed)
    if plan_folder is not None:
        plan.write(plan_folder / "model.hedge.plan.toml")
    rows: dict[str, Rows] = {name: rows_of(t, schema) for name, t in tables.items()}
    federation = local_federation(
        rows, schema, ledger, privacy.colluding, privacy.minimum_parties, trust
    )
    model = method_named(plan.method).grow(Gate(federation, plan, ledger))
    sent = federation.bytes_from_parties / len(tables)
    return model, (federation.rounds, sent, federation.bytes_to_parties / len(tables))


def _probability(model: Ensemble) -> Callable[[Table], NDArray[np.float64]]:
    return lambda table: model.predict(table)[:, 1]


def _pooled(world: _World) -> Callable[[Table], NDArray[np.float64]]:
    """Plain gradient boosting on all rows in one place: the model nobody is allowed to train."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    categorical = [column.kind == "categorical" for column in HOSPITAL_SCHEMA.columns]
    plain = HistGradientBoostingClassifier(
        categorical_features=categorical, learning_rate=0.06, max_iter=150, max_leaf_nodes=15,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    pool = joined(list(world.train.values()))
    plain.fit(_matrix(pool), (pool["readmitted"] == "yes").astype(int))
    return lambda table: np.asarray(plain.predict_proba(_matrix(table))[:, 1])


def _matrix(table: Table) -> NDArray[np.float64]:
    """Numbers as they are, categories by their place in the schema, NaN where missing."""
    columns = []
    for column in HOSPITAL_SCHEMA.columns:
        values = table[column.name]
        if not isinstance(column, Numeric):
            place: dict[Any, float] = {value: float(i) for i, value in enumerate(column.categories)}
            values = np.array([place.get(value, np.nan) for value in values])
        columns.append(values.astype(np.float64))
    return np.column_stack(columns)


def draw(scores: tuple[Score, ...], epsilon: float, path: Path) -> Path | None:
    """A bar chart of the comparison, or None if matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return None
    colours = {"alone": "#b9c4cc", "together": "#2f7d4f", "pooled": "#5b6770"}
    figure = Figure(figsize=(8.4, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    names = [_bar_name(score) for score in scores]
    places = np.arange(len(scores))[::-1]
    bars = axes.barh(
        places, [s.auc - 0.5 for s in scores], left=0.5, height=0.66,
        color=[colours[s.kind] for s in scores],
    )  # fmt: skip
    bars[[s.kind for s in scores].index("pooled")].set(
        facecolor="white", edgecolor=colours["pooled"], hatch="///", linewidth=1
    )
    for place, score in zip(places, scores, strict=True):
        weight = "bold" if score.kind == "together" else "normal"
        axes.text(score.auc + 0.004, place, f"{score.auc:.3f}", va="center", weight=weight)
    axes.set_yticks(places, names)
    axes.set_xlim(0.5, max(s.auc for s in scores) + 0.035)
    axes.set_xlabel("AUC on held-out patients of all three hospitals (0.5 = guessing)")
    axes.set_title(
        f"Three hospitals, one private model (epsilon = {epsilon:g})", loc="left", weight="bold"
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.grid(True, color="#e6e9eb")
    axes.set_axisbelow(True)
    figure.savefig(path)
    return path


def _bar_name(score: Score) -> str:
    if score.kind == "alone":
        return f"{score.name} alone, private\n{score.n_rows:,} patients"
    if score.kind == "together":
        return f"all three together, private\n{score.n_rows:,} patients"
    return f"rows pooled, NOT private\n{score.n_rows:,} patients"
