"""How many cells of rows the sums in leaves give away: XGBoost beside hedgerow.

    HEDGEROW_DATA=folder python benchmarks/reconstruction.py [--draws 20]

The attacker knows every column's marginals, how many rows there are, and of every tree its splits,
leaf values and the sums of gradients and Hessians in its leaves: from XGBoost's own file, or from
everything that a run of `dp-tr-newton-literal` over three parties released (more than its model or
an export shows). It looks for a table that fits (rebuilding/search.py). Rows are matched one to
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
from contextlib import nullcontext
from dataclasses import asdict
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
from rebuilding.cells import Space, codes_of, rebuilt_share
from rebuilding.search import searched, trees_from

OUT = Path(__file__).parent / "results" / "reconstruction.json"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "reconstruction.svg"
TABLES, EPSILONS = ("stroke", "diabetes"), (0.1, 1.0, 4.0, 8.0)
N_ROWS, N_TREES, DEPTH, STEPS = 102, 40, 4, 600_000  # rows of all three parties
GUESSERS = 20
ETA, REG_LAMBDA, EXACT = 0.3, 1.0, 10.0  # EXACT: weight of a sum without noise


def of_xgboost(codes: Any, y: Any, space: Space) -> tuple[list[dict[str, Any]], Any]:
    """What XGBoost's file shows: value and cover of a leaf are -eta G / (H + lambda) and H."""
    values = {"objective": "binary:logistic", "eta": ETA, "max_depth": DEPTH, "base_score": 0.5,
              "lambda": REG_LAMBDA, "tree_method": "exact", "nthread": 1}  # fmt: skip
    booster = xgboost.train(values, xgboost.DMatrix(floats(codes, space), label=y), N_TREES)
    shown = [json.loads(t) for t in booster.get_dump(dump_format="json", with_stats=True)]
    parts = [_of_dump(tree, space) for tree in shown]
    return [p for p in parts if p["feature"]], booster


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
        inner = np.flatnonzero(structure.feature >= 0)
        place = {int(node): i for i, node in enumerate(inner)}

        def child(node: int, structure: Any = structure, place: Any = place) -> int:
            return place[node] if node in place else -1 - int(structure.leaf[node])

        values = record.release.values
        parts.append({
            "feature": structure.feature[inner],
            "right": [right_codes(structure, i, space.grid[structure.feature[i]]) for i in inner],
            "child": [(child(int(structure.left[i])), child(int(structure.right[i])))
                      for i in inner],
            "value": tree.values[:, 0],
            "sums": np.stack([values[:n], values[n:]], axis=1),
            "weight": (EXACT, EXACT) if exact else tuple(1 / s for s in record.release.sigmas),
        })  # fmt: skip
    return [part for part in parts if len(part["feature"])]


def draw(table: str, setting: str, number: int) -> dict[str, Any]:
    """One draw of rows, one model, one attack, one guesser."""
    folder = Path(os.environ["HEDGEROW_DATA"])
    schema = Schema.read(folder / f"{table}.toml")
    rows, space = rows_of(folder / f"{table}.parquet", schema), Space(schema)
    codes, y, rng = codes_of(rows), rows.target, stream(number, "reconstruction", table)
    order = rng.permutation(len(y))
    train, held, test = order[:N_ROWS], order[N_ROWS : 2 * N_ROWS], order[2 * N_ROWS :][:1000]
    began = time.process_time()
    if setting == "XGBoost":
        parts, booster = of_xgboost(codes[train], y[train], space)
        scores = booster.predict(xgboost.DMatrix(floats(codes[test], space)))
    else:
        epsilon = None if setting == "off" else float(setting)
        transcript, model = of_hedgerow(rows.take(train), schema, epsilon)
        parts = _of_transcript(transcript, model.trees, space, epsilon is None)
        scores = scores_of(model, rows.take(test))
    marginals = space.marginals(codes)  # of the whole table: public knowledge, say
    start = space.drawn(N_ROWS, marginals, rng)
    positive = np.arange(N_ROWS) < y[train].sum()
    made, left = searched(trees_from(parts), start, positive.astype(float), STEPS, number)
    return {
        "rebuilt": asdict(rebuilt_share(space, made, codes[train])),
        "rebuilt_held_out": asdict(rebuilt_share(space, made, codes[held])),
        **guessed(space, marginals, codes[train], codes[held], number),
        "auc": float(roc_auc_score(y[test], scores)),
        "left": left,
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def guessed(space: Space, marginals: Any, train: Any, held: Any, number: int) -> dict[str, Any]:
    """Twenty guessers who draw from the marginals: the mean of each figure, and its deviation."""
    rng = stream(number, "guessers")
    made = [space.drawn(N_ROWS, marginals, rng) for _ in range(GUESSERS)]
    found: dict[str, Any] = {}
    for name, truth in (("guessed", train), ("guessed_held_out", held)):
        all_ = [asdict(rebuilt_share(space, guess, truth)) for guess in made]
        found[name] = {cells: float(np.mean([one[cells] for one in all_])) for cells in all_[0]}
        found[f"{name}_deviation"] = float(np.std([one["all_cells"] for one in all_], ddof=1))
    return found


def scores_of(model: Any, rows: Any) -> Any:
    running, wanted = RunningScores(rows, model.schema), NO_TREES
    for tree in model.trees:
        wanted = wanted.then(tree.to_bytes())
    running.sync(wanted, 0, model.trees)
    return running.at(wanted)[:, 0]


def summary(draws: list[dict[str, Any]]) -> dict[str, Any]:
    def points(one: str, other: str, cells: str = "all_cells") -> Any:
        return np.array([100 * (d[one][cells] - d[other][cells]) for d in draws])

    above = points("rebuilt", "guessed")
    held = points("rebuilt_held_out", "guessed_held_out")
    guessed = np.mean([100 * d["guessed"]["all_cells"] for d in draws])
    return {
        "draws": len(draws),
        "rebuilt": round(100 * float(np.mean([d["rebuilt"]["all_cells"] for d in draws])), 1),
        "guessed": round(float(guessed), 1),
        "deviation_of_a_guesser": round(
            100 * float(np.mean([d["guessed_deviation"] for d in draws])), 2
        ),
        "points_above_guesser": round(float(above.mean()), 2),
        "standard_error": _error(above),
        "points_above_guesser_held_out": round(float(held.mean()), 2),
        "points_of_seen_rows_alone": round(float((above - held).mean()), 2),
        "standard_error_of_those": _error(above - held),
        "numbers_above_guesser": round(float(points("rebuilt", "guessed", "numbers").mean()), 2),
        "rare_above_guesser": _rare(points("rebuilt", "guessed", "rare")),
        "auc": round(float(np.mean([d["auc"] for d in draws])), 3),
    }


def _error(points: Any) -> float | None:
    return round(float(points.std(ddof=1) / len(points) ** 0.5), 2) if len(points) > 1 else None


def _rare(points: Any) -> float | None:
    return round(float(np.nanmean(points)), 2) if np.isfinite(points).any() else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    known = json.loads(OUT.read_text("utf-8"))["draws"] if OUT.exists() else {}
    settings = ("XGBoost", "off", *(f"{epsilon:g}" for epsilon in reversed(EPSILONS)))
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
    step = (region.bottom - region.top) / len(found)
    for number, (name, row) in enumerate(found.items()):
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
