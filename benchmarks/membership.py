"""Who was in the training: membership told from models by likelihood ratios.

    HEDGEROW_DATA=folder python benchmarks/membership.py [--models 32]

Of a pool of rows every model is trained on a random half. Of each model and each row the attacker
knows how well the row's label fits, and from all other models how well it fits where the row was
in and where it was not: two normal curves, whose ratio says how likely the row was in (Carlini et
al., *Membership inference attacks from first principles*, 2022). XGBoost is the positive control;
`dp-tr-newton-literal` over three parties is beside it, with its noise switched off and at several
epsilons. The best guesser that the promise allows is right in Phi(mu / 2) of cases.
Results are added to results/membership.json after every setting; the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from scipy import stats
from sklearn.metrics import roc_auc_score

from hedgerow import Privacy, Schema, plan_for
from hedgerow.data.rng import stream
from hedgerow.data.tables import rows_of
from rebuilding.cells import Space, codes_of
from reconstruction import (
    DEPTH,
    EPSILONS,
    N_ROWS,
    N_TREES,
    floats,
    of_hedgerow,
    of_xgboost,
    scores_of,
)

OUT = Path(__file__).parent / "results" / "membership.json"
TABLES = ("stroke", "diabetes")
FEW = 0.01  # of rows that were not in: how many of those that were are told at that cost


def fits_of(table: str, setting: str, n_models: int) -> tuple[Any, Any]:
    """How well each row of the pool fits each model, and whether it was in: (model, row)."""
    folder = Path(os.environ["HEDGEROW_DATA"])
    schema = Schema.read(folder / f"{table}.toml")
    rows, space = rows_of(folder / f"{table}.parquet", schema), Space(schema)
    rng = stream(0, "membership", table)
    pool = rng.permutation(rows.n_rows)[: 2 * N_ROWS]
    rows, codes = rows.take(pool), codes_of(rows)[pool]
    inside = np.zeros((n_models, 2 * N_ROWS), np.bool_)
    margins = np.zeros(inside.shape)
    for model in range(n_models):
        here = rng.permutation(2 * N_ROWS)[:N_ROWS]
        inside[model, here] = True
        if setting == "XGBoost":
            _, booster = of_xgboost(codes[here], rows.target[here], space)
            table_ = xgboost.DMatrix(floats(codes, space))
            margins[model] = booster.predict(table_, output_margin=True)
        else:
            epsilon = None if setting == "off" else float(setting)
            _, made = of_hedgerow(rows.take(here), schema, epsilon)
            margins[model] = scores_of(made, rows)
    return margins * (2 * rows.target - 1), inside


def ratios(fits: Any, inside: Any) -> Any:
    """The logarithm of each ratio, from all models but the one that is attacked: (model, row)."""
    found = np.zeros(fits.shape)
    for model in range(len(fits)):
        others, was_in = np.delete(fits, model, 0), np.delete(inside, model, 0)
        centres = [
            np.nanmean(np.where(where, others, np.nan), axis=0) for where in (was_in, ~was_in)
        ]
        apart = np.where(was_in, others - centres[0], others - centres[1])
        spread = np.sqrt(np.mean(apart**2, axis=0)) + 1e-9  # few models: one spread for both
        found[model] = stats.norm.logpdf(fits[model], centres[0], spread) - stats.norm.logpdf(
            fits[model], centres[1], spread
        )
    return found


def summary(found: Any, inside: Any) -> dict[str, Any]:
    """Over models: area under the curve, right guesses, members told at few false alarms."""
    areas = np.array([roc_auc_score(i, f) for i, f in zip(inside, found, strict=True)])
    right = np.array([np.mean((f > 0) == i) for i, f in zip(inside, found, strict=True)])
    limit = np.quantile(found[~inside], 1 - FEW)
    return {
        "auc": round(float(areas.mean()), 4),
        "auc_error": round(float(areas.std(ddof=1) / len(areas) ** 0.5), 4),
        "right": round(float(right.mean()), 4),
        "told_at_one_percent": round(float(np.mean(found[inside] > limit)), 4),
    }


def most_right(table: str, setting: str) -> float | None:
    """What the best guesser reaches at most; nothing is promised without noise."""
    if setting in ("XGBoost", "off"):
        return None
    schema = Schema.read(Path(os.environ["HEDGEROW_DATA"]) / f"{table}.toml")
    settings = {"n_trees": N_TREES, "max_depth": DEPTH}
    privacy = Privacy(float(setting), 1e-6, "parties")
    plan = plan_for(schema, privacy, "dp-tr-newton-literal", settings)
    return round(float(stats.norm.cdf(plan.mu / 2)), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=32)
    options = parser.parse_args()
    known = json.loads(OUT.read_text("utf-8"))["found"] if OUT.exists() else {}
    for table in TABLES:
        for setting in ("XGBoost", "off", *(f"{epsilon:g}" for epsilon in reversed(EPSILONS))):
            name = f"{table}, {setting}"
            if name not in known:
                fits, inside = fits_of(table, setting, options.models)
                found = summary(ratios(fits, inside), inside)
                known[name] = {**found, "at_most_right": most_right(table, setting)}
            facts = {"models": options.models, "pool": 2 * N_ROWS, "trees": N_TREES, "depth": DEPTH}
            OUT.write_text(json.dumps({**facts, "found": known}, indent=1) + "\n", "utf-8")
            print(name, json.dumps(known[name]), flush=True)


if __name__ == "__main__":
    main()
