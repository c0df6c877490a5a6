"""The one-run audit of `auto`, repeated: how often its bound exceeds the claim, and what it finds.

    HEDGEROW_DATA=folder python benchmarks/one_run_audit.py [--runs 100] [--defect-runs 5]

For the schemas of adult and stroke at epsilon 1 and 4: so many audits of a plan of `auto` over
made-up rows. A valid 95 % bound exceeds the claim in at most 5 % of them; 11 of 100 is the most
that luck allows, once in a hundred such tables. Then the same with a defect planted: noise halved,
one block without noise, clip forgotten. Results are added to results/one_run_audit.json after every
run; the same command goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import Privacy, Schema, plan_for
from hedgerow.audit import one_run

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.audit.defects import DEFECTS

OUT = Path(__file__).parent / "results" / "one_run_audit.json"
TABLES, EPSILONS, DELTA = ("adult", "stroke"), (1.0, 4.0), 1e-6


PLANTED: dict[str, Any] = {"none": nullcontext, **DEFECTS}


def audit(schema: Schema, epsilon: float, seed: int, defect: str) -> dict[str, Any]:
    plan = plan_for(schema, Privacy(epsilon, DELTA, "coordinator"), "auto")
    planted: AbstractContextManager[Any] = PLANTED[defect]()
    began = time.process_time()
    with planted:
        found = one_run(plan, schema, seed=seed)
    told = found.to_dict()
    names = ("claimed_mu", "largest_mu", "estimated_mu", "lower_mu", "any_lower_mu", "violation")
    return {
        **{name: told[name] for name in names},
        "canaries": found.canaries,
        "cpu_seconds": round(time.process_time() - began, 2),
    }


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    claim = runs[0]["claimed_mu"]
    lower = [float("inf") if r["lower_mu"] == "infinite" else r["lower_mu"] for r in runs]
    ratios = np.array([r["estimated_mu"] for r in runs]) / claim
    return {
        "runs": len(runs),
        "claimed_mu": claim,
        "bound_above_claim": int(sum(low > claim for low in lower)),
        "any_bound_above_claim": int(sum(r["any_lower_mu"] > claim for r in runs)),
        "reported_as_violation": int(sum(bool(r["violation"]) for r in runs)),
        "estimate_within_factor_two": int(np.sum((ratios >= 0.5) & (ratios <= 2))),
        "estimate_over_claim": [round(float(q), 3) for q in np.quantile(ratios, (0, 0.5, 1))],
        "largest_over_claim": round(max(r["largest_mu"] for r in runs) / claim, 4),
        "median_lower_mu": "infinite" if np.isinf(np.median(lower)) else float(np.median(lower)),
        "median_any_lower_mu": float(np.median([r["any_lower_mu"] for r in runs])),
        "cpu_seconds_a_run": round(float(np.median([r["cpu_seconds"] for r in runs])), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--defect-runs", type=int, default=5)
    options = parser.parse_args()
    known = json.loads(OUT.read_text("utf-8"))["runs"] if OUT.exists() else {}
    for number in range(options.runs):
        for defect in PLANTED:
            for table in TABLES:
                schema = Schema.read(Path(os.environ["HEDGEROW_DATA"]) / f"{table}.toml")
                for epsilon in EPSILONS:
                    wanted = options.runs if defect == "none" else options.defect_runs
                    runs = known.setdefault(f"{table}, epsilon {epsilon:g}, {defect}", [])
                    if number < wanted and len(runs) <= number:
                        runs.append(audit(schema, epsilon, number, defect))
        found = {"summary": {name: summary(runs) for name, runs in known.items()}, "runs": known}
        OUT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    for name, row in found["summary"].items():
        print(name, json.dumps(row))


if __name__ == "__main__":
    main()
