"""What exact composition saves, what privacy costs in time, and which way of choosing is better."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from dpxgboost.cells import Cache, Cell
from dpxgboost.data import Data, least_rows, load, split_of
from dpxgboost.methods import OWN, PAPER, PUBLISHED_SETTINGS, choices, error_of, fitted
from hedgerow.methods.registry import plan_for
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off

FIRST_SEED = 100  # development splits: the final ones decide nothing
# Beside the method's own settings: permute-and-flip, separation, clipping, all rows.
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "selector = exponential": {"selector": "exponential"},
    "utility = gain": {"utility": "gain"},
    "both": {"selector": "exponential", "utility": "gain"},
    "gradient_rule = filter": {"gradient_rule": "filter"},
}
# Figures 1 and 2: the paper's settings with one of them changed, by line and point.
BINS, LEAF_EPSILONS = (8, 16, 32, 64, 128), (1.0, 2.0, 5.0, 10.0)
SKETCHES = {"histogram asked, a third of the budget": 1 / 3, "evenly spaced, nothing asked": 0.0}
LEAVES: dict[str, dict[str, Any]] = {
    "plain": {"leaf_rule": "plain"},
    "noisy average": {"leaf_rule": "sum-and-count"},
    "200 rows a leaf": {"leaf_rule": "least-rows", "min_samples_leaf": 200},
    "600 rows a leaf": {"leaf_rule": "least-rows", "min_samples_leaf": 600},
}


def figure_points(
    splits: int, of: Sequence[str]
) -> Iterator[tuple[str, str, str, float, int, dict[str, Any]]]:
    """(figure, dataset, line, x, split, settings), the first split of all points first."""
    for seed in range(splits):
        for n_bins in BINS if "1" in of else ():
            for line, share in SKETCHES.items():
                yield "1", "adult", line, float(n_bins), seed, {
                    "n_bins": n_bins, "sketch_share": share, "min_samples_leaf": 50,
                }  # fmt: skip
        for epsilon in LEAF_EPSILONS if "2" in of else ():
            for line, settings in LEAVES.items():
                if seed < 2:  # covtype has 581,012 rows
                    yield "2", "covtype", line, epsilon, seed, {"min_samples_leaf": 50, **settings}


def figures(
    known: list[dict[str, Any]],
    of: Sequence[str],
    splits: int,
    deadline: float,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Test errors of figures 1 (adult, epsilon 1, by bins) and 2 (covtype, by epsilon)."""
    found = {(one["figure"], one["line"], one["x"]): one for one in known}
    for figure, dataset, line, x, seed, settings in figure_points(splits, of):
        one = found.setdefault((figure, line, x), {
            "figure": figure, "dataset": dataset, "line": line, "x": x, "errors": [],
        })  # fmt: skip
        if len(one["errors"]) > seed or time.monotonic() > deadline:
            continue
        data = load(dataset)
        split = split_of(data, seed)
        epsilon = 1.0 if figure == "1" else x
        given = {**PUBLISHED_SETTINGS, **settings, "accounting": "pure"}
        model, _ = fitted(data, split, "dp-xgboost", epsilon, 0.0, given)
        one["errors"].append(
            round(error_of(data, split, model.predict(data.table.take(split.test))), 3)
        )
        say(f"figure {figure}, {line}, {x:g}: {one['errors'][-1]:.2f} %")
    return [one for one in found.values() if one["errors"]]


def composition(data: Data) -> list[dict[str, Any]]:
    """The same noise, counted by adding up and by exact composition at delta = 1 / rows."""
    delta = 1 / round(0.7 * data.rows.n_rows)
    found = []
    for rate in (0.1, 1.0):
        for by in ("tree", "question"):
            for n_trees in (20, 100):
                settings = {"sample_rate": rate, "sample_by": by, "n_trees": n_trees}
                for epsilon in (1.0, 10.0):
                    privacy = Privacy(epsilon, 0.0, accounting="pure")
                    plan = plan_for(data.schema, privacy, "dp-xgboost", settings, seed=0)
                    found.append(
                        {
                            "dataset": data.name, "delta": delta, **settings,
                            "pure": round(plan.budget.pure_epsilon, 6),
                            "composed": round(plan.budget.epsilon_at(delta), 4),
                        }
                    )  # fmt: skip
    return found


def runtime(
    data: Data, repeats: int, say: Callable[[str], None], n_trees: int = 5
) -> dict[str, Any]:
    """CPU and wall seconds a tree, private and with noise off, in turn; the best of each."""
    split = split_of(data, FIRST_SEED)
    measured: dict[str, Any] = {"dataset": data.name, "trees": n_trees, "repeats": repeats}
    for method in (PAPER, OWN):
        name, settings, delta = choices(data, method, len(split.train))
        settings = {**settings, "n_trees": n_trees}
        times: dict[str, list[dict[str, float]]] = {"private": [], "noise off": []}
        for _ in range(repeats):
            for kind, seconds in times.items():
                with nullcontext() if kind == "private" else noise_off():
                    _, taken = fitted(data, split, name, 1.0, delta, settings)
                seconds.append(taken)
        per_tree = {
            f"{kind} {clock}": min(one[clock] for one in seconds) / n_trees
            for kind, seconds in times.items()
            for clock in ("cpu", "seconds")
        }
        ratio = {
            clock: per_tree[f"private {clock}"] / per_tree[f"noise off {clock}"]
            for clock in ("cpu", "seconds")
        }
        measured[method] = {"per tree": per_tree, "ratio": ratio, "all": times}
        say(
            f"{data.name}, {method}: {per_tree['private cpu']:.3f} s of CPU a tree, "
            f"{per_tree['noise off cpu']:.3f} with noise off: {ratio['cpu']:.2f} "
            f"(wall {ratio['seconds']:.2f})"
        )
    return measured


def variant_cells(datasets: list[str], epsilon: float, splits: int) -> list[Cell]:
    seeds = range(FIRST_SEED, FIRST_SEED + splits)
    return [Cell(d, OWN, epsilon, s, v) for s in seeds for d in datasets for v in VARIANTS]


def run_variants(
    cells: list[Cell], cache: Cache, deadline: float, say: Callable[[str], None]
) -> dict[Cell, float]:
    for cell in cells:
        if cache.get(cell) is not None:
            continue
        if time.monotonic() > deadline:
            say("not all variants were run: the time was over")
            break
        data = load(cell.dataset)
        split = split_of(data, cell.seed)
        settings = {
            "min_samples_leaf": least_rows(data.rows.n_rows), "accounting": "pure",
            **VARIANTS[cell.variant],
        }  # fmt: skip
        model, seconds = fitted(data, split, "dp-xgboost", cell.epsilon or 1.0, 0.0, settings)
        error = error_of(data, split, model.predict(data.table.take(split.test)))
        cache.add(cell, {"error": error, **seconds})
        say(f"{cell}: {error:.3f}")
    return {cell: found["error"] for cell in cells if (found := cache.get(cell)) is not None}


def paired(found: dict[Cell, float]) -> Iterator[dict[str, Any]]:
    """By how much the error grows when the defaults are changed, split by split."""
    keys = sorted({(c.dataset, c.epsilon or 0.0, c.variant) for c in found})
    for dataset, epsilon, variant in keys:
        if not variant:
            continue
        seeds = [c.seed for c in found if (c.dataset, c.epsilon) == (dataset, epsilon)]
        more = [
            found[changed] - found[plain]
            for seed in sorted(set(seeds))
            if (changed := Cell(dataset, OWN, epsilon, seed, variant)) in found
            and (plain := Cell(dataset, OWN, epsilon, seed)) in found
        ]
        if more:
            error = float(np.std(more, ddof=1) / len(more) ** 0.5) if len(more) > 1 else None
            yield {
                "dataset": dataset, "epsilon": epsilon, "variant": variant, "splits": len(more),
                "grows by": round(float(np.mean(more)), 4),
                "standard error": None if error is None else round(error, 4),
            }  # fmt: skip
