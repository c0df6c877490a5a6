"""How many cells of rows the sums in leaves give away: XGBoost beside hedgerow.

    HEDGEROW_DATA=folder python benchmarks/reconstruction.py [--draws 20]

The attacker knows every column's marginals, how many rows there are, and of every tree its splits,
leaf values and the sums of gradients and Hessians in its leaves: from XGBoost's own file, or from
everything that a run of `dp-tr-newton-literal` over three parties released (more than its model or
an export shows). It looks for a table that fits (rebuilding/search.py). The same with what a server
of Flower's bagging or NVFlare's histograms sees of each party (rebuilding/federations.py), and with
what `private-tree` and `dp-xgboost` release; of the former's counts an integer programme makes the
likeliest table (rebuilding/counting.py). Rows are matched one to
one; a category has to be equal, a number within 0.319 deviations. Beside it a guesser who draws
from the marginals, under the same matching; and both matched with rows that no model has seen.
Results are added to results/reconstruction.json after every draw; the same command goes on from
there.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from sklearn.metrics import roc_auc_score

from hedgerow import Ledger, Privacy, Schema, local_federation, plan_for
from hedgerow.audit.recorder import RecordingGate, Transcript
from hedgerow.data.rng import stream
from hedgerow.data.tables import rows_of
from hedgerow.inspection.drawing import Axes, Canvas, Picture, Region
from hedgerow.methods.registry import method_named
from hedgerow.model.code_trees import right_codes
from hedgerow.party.running_scores import RunningScores
from hedgerow.queries import NO_TREES
from hedgerow.testing import noise_off
from rebuilding.cells import Rebuilt, Space, codes_of, rebuilt_share
from rebuilding.counting import rebuilt as counted
from rebuilding.federations import (
    N_PARTIES,
    Attacked,
    bagged_margin,
    bagging,
    histogram_parts,
    of_others,
    of_parties,
    shuffled_by_label,
)
from rebuilding.search import searched, trees_from
from rebuilding.summary import summary

OUT = Path(__file__).parent / "results" / "reconstruction.json"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "reconstruction.svg"
TABLES, EPSILONS = ("stroke", "diabetes"), (0.1, 1.0, 4.0, 8.0)
N_ROWS, N_TREES, DEPTH, STEPS = 102, 40, 4, 600_000  # rows of all three parties
GUESSERS = 20
ETA, REG_LAMBDA, EXACT = 0.3, 1.0, 10.0  # EXACT: weight of a sum without noise
XGBOOST = {"objective": "binary:logistic", "eta": ETA, "max_depth": DEPTH, "base_score": 0.5,
           "lambda": REG_LAMBDA, "tree_method": "exact", "nthread": 1}  # fmt: skip
OTHERS = ("Flower bagging", "NVFlare histograms", "private-tree off", "private-tree 8",
          "private-tree 1", "dp-xgboost off", "dp-xgboost 8", "dp-xgboost 1")  # fmt: skip


def of_xgboost(codes: Any, y: Any, space: Space) -> tuple[list[dict[str, Any]], Any]:
    """What XGBoost's file shows: value and cover of a leaf are -eta G / (H + lambda) and H."""
    table = xgboost.DMatrix(floats(codes, space), label=y)
    booster = xgboost.train(XGBOOST, table, N_TREES)
    return [p for p in _dumped(booster, space) if p["feature"]], booster


def _dumped(booster: Any, space: Space) -> list[dict[str, Any]]:
    shown = booster.get_dump(dump_format="json", with_stats=True)
    return [_of_dump(json.loads(tree), space) for tree in shown]


def floats(codes: Any, space: Space) -> Any:
    values = codes.astype(float)
    for j, grid in enumerate(space.grid):
        values[codes[:, j] == grid.missing_code, j] = np.nan
    return values


def _of_dump(tree: dict[str, Any], space: Space) -> dict[str, Any]:
    part: dict[str, Any] = {name: [] for name in ("feature", "right", "child", "value", "sums")}
    part["weight"] = (EXACT, EXACT)

    def add(node: dict[str, Any]) -> int:
        if "leaf" in node:
            cover = node["cover"]
            part["value"].append(node["leaf"])
            part["sums"].append((-node["leaf"] * (cover + REG_LAMBDA) / ETA, cover))
            return -len(part["value"])
        place, j = len(part["feature"]), int(node["split"].removeprefix("f"))
        grid = space.grid[j]
        right = np.arange(grid.n_codes) >= node["split_condition"]
        right[grid.missing_code] = node["missing"] != node["yes"]
        part["feature"].append(j)
        part["right"].append(right)
        part["child"].append([0, 0])
        by_id = {child["nodeid"]: child for child in node["children"]}
        for side, name in enumerate(("yes", "no")):
            part["child"][place][side] = add(by_id[node[name]])
        return place

    add(tree)
    return part


def of_hedgerow(rows: Any, schema: Schema, epsilon: float | None) -> tuple[Transcript, Any]:
    """Everything that a run over three parties released; None: noise switched off."""
    ledger = Ledger.in_memory()
    parts = rows.split(np.arange(rows.n_rows) % 3, 3)
    plan = plan_for(schema, Privacy(epsilon or 8.0, 1e-6, "parties"), "dp-tr-newton-literal",
                    {"n_trees": N_TREES, "max_depth": DEPTH})  # fmt: skip
    with noise_off() if epsilon is None else nullcontext():
        tables = {f"p{i}": part for i, part in enumerate(parts)}
        gate = RecordingGate(local_federation(tables, schema, ledger), plan, ledger)
        model = method_named(plan.method).grow(gate)
    return gate.transcript, model


def _of_transcript(
    transcript: Transcript, trees: Any, space: Space, exact: bool
) -> list[dict[str, Any]]:
    parts = []
    for record in transcript.records:
        (structure,), n = record.query.structures, record.query.n_leaves
        tree = trees[record.query.ensemble.length]  # made of this very release
        values = record.release.values
        sums = np.stack([values[:n], values[n:]], axis=1)
        weight = (EXACT, EXACT) if exact else tuple(1 / s for s in record.release.sigmas)
        parts.append(_of_structure(structure, tree.values[:, 0], sums, weight, space))
    return [part for part in parts if len(part["feature"])]


def _of_structure(
    structure: Any, values: Any, sums: Any, weight: Any, space: Space
) -> dict[str, Any]:
    inner = np.flatnonzero(structure.feature >= 0)
    place = {int(node): i for i, node in enumerate(inner)}

    def child(node: int) -> int:
        return place[node] if node in place else -1 - int(structure.leaf[node])

    right = [right_codes(structure, i, space.grid[structure.feature[i]]) for i in inner]
    children = [(child(int(structure.left[i])), child(int(structure.right[i]))) for i in inner]
    of_tree = {"feature": structure.feature[inner], "right": right, "child": children}
    return {**of_tree, "value": values, "sums": sums, "weight": weight}


@dataclass(frozen=True, eq=False)
class Case:
    """One draw of rows, and what its attackers and its judges know."""

    schema: Schema
    space: Space
    rows: Any
    codes: Any
    train: Any
    held: Any
    test: Any
    number: int

    @property
    def y(self) -> Any:
        return self.rows.target

    @cached_property
    def marginals(self) -> Any:
        return self.space.marginals(self.codes)  # of the whole table: public knowledge, say

    @property
    def positive(self) -> Any:
        return (np.arange(N_ROWS) < self.y[self.train].sum()).astype(float)


def case_of(table: str, number: int) -> tuple[Case, Any]:
    folder = Path(os.environ["HEDGEROW_DATA"])
    schema = Schema.read(folder / f"{table}.toml")
    rows, rng = (
        rows_of(folder / f"{table}.parquet", schema),
        stream(number, "reconstruction", table),
    )
    order = rng.permutation(rows.n_rows)
    train, held, test = order[:N_ROWS], order[N_ROWS : 2 * N_ROWS], order[2 * N_ROWS :][:1000]
    case = Case(schema, Space(schema), rows, codes_of(rows), train, held, test, number)
    return case, rng


def pooled(case: Case, setting: str, rng: Any) -> tuple[list[Attacked], Any]:
    """One table of all parties: XGBoost's file, or a transcript of hedgerow."""
    x = case.codes[case.train]
    if setting == "XGBoost":
        parts, booster = of_xgboost(x, case.y[case.train], case.space)
        table = xgboost.DMatrix(floats(case.codes[case.test], case.space))
        scores = booster.predict(table)
    else:
        epsilon = None if setting == "off" else float(setting)
        transcript, model = of_hedgerow(case.rows.take(case.train), case.schema, epsilon)
        parts = _of_transcript(transcript, model.trees, case.space, epsilon is None)
        scores = scores_of(model, case.rows.take(case.test))
    start = case.space.drawn(N_ROWS, case.marginals, rng)
    return [Attacked(parts, start, case.positive, np.arange(N_ROWS))], scores


def bagged(case: Case, rng: Any) -> tuple[list[Attacked], Any]:
    """Flower: the server sees every party's own trees; it attacks one party after the other."""
    x, y = case.codes[case.train], case.y[case.train]
    params = {**XGBOOST, "tree_method": "exact"}
    grown = bagging(floats(x, case.space), y, N_TREES // N_PARTIES, params)
    parts = [[_dumped(tree, case.space)[0] for tree in trees] for trees in grown]
    found = []
    for number, own in enumerate(of_parties(N_ROWS)):
        seen = [part if p == number else of_others(part)
                for trees in parts for p, part in enumerate(trees)]  # fmt: skip
        start = case.space.drawn(len(own), case.marginals, rng)
        labels = (np.arange(len(own)) < y[own].sum()).astype(float)
        pool = case.space.drawn(4096, case.marginals, rng)
        found.append(Attacked(seen, start, labels, own, pool=pool))
    return found, bagged_margin(grown, floats(case.codes[case.test], case.space))


def with_histograms(case: Case, rng: Any) -> tuple[list[Attacked], Any]:
    """NVFlare: one model, and the server adds up the parties' histograms, which it sees."""
    x, y = case.codes[case.train], case.y[case.train]
    parts, booster = of_xgboost(x, y, case.space)
    found = []
    for own in of_parties(N_ROWS):
        start, labels = shuffled_by_label(x[own], y[own], rng)
        found.append(Attacked(histogram_parts(parts, x[own], y[own]), start, labels, own, True))
    return found, booster.predict(xgboost.DMatrix(floats(case.codes[case.test], case.space)))


def attacked(case: Case, setting: str, rng: Any) -> tuple[list[Any], list[Any], Any]:
    """Rows made for each table that is attacked, which rows those are, and scores of test rows."""
    method, _, noise = setting.partition(" ")
    if method == "private-tree":
        records, model = of_pure(case, method, noise, {"min_samples_leaf": 2})
        labels = case.y[case.train].astype(np.int64)
        made = counted(records, case.space, case.marginals, labels, rng)
        return [made], [np.arange(N_ROWS)], scores_of(model, case.rows.take(case.test))
    if method == "dp-xgboost":
        few = {"n_trees": 12, "max_depth": DEPTH, "min_samples_leaf": 2}
        records, model = of_pure(case, method, noise, few)
        parts = _of_averages(records, model.trees, case.space)
        start = case.space.drawn(N_ROWS, case.marginals, rng)
        tables = [Attacked(parts, start, case.positive, np.arange(N_ROWS), bend=0.5)]
        scores = scores_of(model, case.rows.take(case.test))
    elif method == "Flower":
        tables, scores = bagged(case, rng)
    elif method == "NVFlare":
        tables, scores = with_histograms(case, rng)
    else:
        tables, scores = pooled(case, setting, rng)
    made = [_searched(table, case.number) for table in tables]
    return made, [table.truth for table in tables], scores


def _searched(table: Attacked, number: int) -> Any:
    trees = trees_from(table.parts, table.bend)
    more = {"by_label": table.by_label, "pool": table.pool}
    return searched(trees, table.start, table.labels, STEPS, number, **more)[0]


def of_pure(case: Case, method: str, noise: str, settings: dict[str, Any]) -> tuple[Any, Any]:
    """Releases and model of a method of pure epsilon over three parties; "off": without noise."""
    off, ledger = noise == "off", Ledger.in_memory()
    trust = "coordinator" if method == "dp-xgboost" else "parties"
    privacy = Privacy(8.0 if off else float(noise), 0.0, trust, accounting="pure")
    plan = plan_for(case.schema, privacy, method, settings)
    parts = case.rows.take(case.train).split(np.arange(N_ROWS) % 3, 3)
    with noise_off() if off else nullcontext():
        tables = {f"p{i}": part for i, part in enumerate(parts)}
        gate = RecordingGate(
            local_federation(tables, case.schema, ledger, trust=trust), plan, ledger
        )
        model = method_named(method).grow(gate)
    return list(gate.transcript.records), model


def _of_averages(records: list[Any], trees: Any, space: Space) -> list[dict[str, Any]]:
    """Sums of gradients and counts of the leaves of dp-xgboost's trees."""
    parts = []
    for record in records:
        if record.query.kind != "leaf-averages":
            continue
        tree, n = trees[record.query.ensemble.length], record.query.structure.n_leaves
        values = record.release.values
        sums = np.stack([values[:n], values[n:]], axis=1)
        sigmas = record.release.sigmas
        weight = tuple(1 / sigma if sigma else EXACT for sigma in sigmas)
        parts.append(_of_structure(record.query.structure, tree.values[:, 0], sums, weight, space))
    return [part for part in parts if len(part["feature"])]


def draw(table: str, setting: str, number: int) -> dict[str, Any]:
    """One draw of rows, one model, one attack, one guesser."""
    began = time.process_time()
    case, rng = case_of(table, number)
    made, truth, scores = attacked(case, setting, rng)
    of_train, of_held = case.codes[case.train], case.codes[case.held]
    return {
        "rebuilt": _mean(rebuilt_share(case.space, m, of_train[t])
                         for m, t in zip(made, truth, strict=True)),
        "rebuilt_held_out": _mean(rebuilt_share(case.space, m, of_held[t])
                                  for m, t in zip(made, truth, strict=True)),
        **guessed(case, truth),
        "auc": float(roc_auc_score(case.y[case.test], scores)),
        "cpu_seconds": round(time.process_time() - began, 1),
    }  # fmt: skip


def _mean(found: Iterable[Rebuilt]) -> dict[str, float]:
    all_ = [asdict(one) for one in found]
    with warnings.catch_warnings():  # a table may have no rare category
        warnings.simplefilter("ignore", RuntimeWarning)
        return {cells: float(np.nanmean([one[cells] for one in all_])) for cells in all_[0]}


def guessed(case: Case, truth: list[Any]) -> dict[str, Any]:
    """Twenty guessers who draw from the marginals: the mean of each figure, and its deviation."""
    rng, space = stream(case.number, "guessers"), case.space
    found: dict[str, Any] = {}
    made = [[space.drawn(len(t), case.marginals, rng) for t in truth] for _ in range(GUESSERS)]
    for name, rows in (("guessed", case.train), ("guessed_held_out", case.held)):
        codes = case.codes[rows]
        all_ = [_mean(rebuilt_share(space, g, codes[t]) for g, t in zip(guess, truth, strict=True))
                for guess in made]  # fmt: skip
        found[name] = {cells: float(np.mean([one[cells] for one in all_])) for cells in all_[0]}
        found[f"{name}_deviation"] = float(np.std([one["all_cells"] for one in all_], ddof=1))
    return found


def scores_of(model: Any, rows: Any) -> Any:
    running, wanted = RunningScores(rows, model.schema), NO_TREES
    for tree in model.trees:
        wanted = wanted.then(tree.to_bytes())
    running.sync(wanted, 0, model.trees)
    return running.at(wanted)[:, -1]  # of the second class, where there are two outputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    known = json.loads(OUT.read_text("utf-8"))["draws"] if OUT.exists() else {}
    settings = ("XGBoost", "off", *(f"{epsilon:g}" for epsilon in reversed(EPSILONS)), *OTHERS)
    for number in range(options.draws):
        for table in TABLES:
            for setting in settings:
                draws = known.setdefault(f"{table}, {setting}", [])
                if len(draws) <= number:
                    draws.append(draw(table, setting, number))
        facts = {"rows": N_ROWS, "trees": N_TREES, "depth": DEPTH, "steps": STEPS}
        found = {name: summary(draws) for name, draws in known.items()}
        OUT.write_text(json.dumps({**facts, "summary": found, "draws": known}, indent=1) + "\n")
    for name, row in found.items():
        print(name, json.dumps(row))
    picture(found).save(PICTURE)


def picture(found: dict[str, Any]) -> Picture:
    """Points above the guesser, of rows that were trained on and of others."""
    canvas = Canvas(640.0, 420.0, "Cells rebuilt from trees, beside a guesser")
    told = "percentage points above a draw from the marginals; band: two standard errors"
    canvas.heading(canvas.title, told, ("rows of the training", "other rows"))
    region = Region(170.0, 84.0, 616.0, 372.0)
    axes = Axes.within(canvas, region, (-4.0, 6.0), (0.0, 1.0))
    axes.grid_down()
    axes.ticks_below()
    axes.names("percentage points")
    shown = {name: row for name, row in found.items() if name.split(", ")[1] not in OTHERS}
    step = (region.bottom - region.top) / len(shown)
    for number, (name, row) in enumerate(shown.items()):
        height = region.top + (number + 0.5) * step
        table, setting = name.split(", ")
        said = {"XGBoost": "XGBoost", "off": "no noise"}.get(setting, f"epsilon {setting}")
        canvas.text(region.left - 8, height + 4, f"{table}, {said}", "end")
        for series, key in enumerate(("points_above_guesser", "points_above_guesser_held_out")):
            value, error = row[key], row["standard_error"] or 0.0
            band = (value - 2 * error, value + 2 * error) if not series else (np.nan, np.nan)
            axes.dot_across(value, height + 4 * series - 2, band, series)
    return canvas.picture()


if __name__ == "__main__":
    main()
