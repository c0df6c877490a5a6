"""Algorithms 5 and 6 of Gubler (2023) as written, on the rows of `private_tree.py`, beside ours.

    python benchmarks/private_tree_written.py --minutes 20

`5` is algorithm 5 and `6` algorithm 6, which costs more than the epsilon that it names: `cost`
says how many times. `6, bounds paid` is the same with the budget of bounds shared out among them.
`program` is what the report's program does otherwise than the report says
(private_tree/written.py). Ours are read from results/private_tree.json: the same rounds. What was
computed stays in the result file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from private_tree.simulation import BOUND, PARTIES, SETTINGS, Panel, rows_of_round
from private_tree.written import Written

HERE = Path(__file__).parent / "results"
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
PANELS = [
    Panel(n, p, depth, rho)
    for n in (250, 1000, 100)
    for p in (10, 25, 50)
    for depth in (5, 10)
    for rho in (0.9, 0.3)
]
ONE_COLUMN = [Panel(n, p, 5, 0.0) for n, p in ((1000, 10), (1000, 25), (4000, 10))]
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
SHARES_PANEL = Panel(300, 10, 7, 0.3)
FORMS: dict[str, dict[str, bool]] = {
    "5": {}, "6": {"saves": True}, "6, bounds paid": {"saves": True, "bounds_pay": True},
    "5, program": {"program": True}, "6, program": {"saves": True, "program": True},
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="stop after so many")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=HERE / "private_tree_written.json")
    given = parser.parse_args()
    cache = json.loads(given.out.read_text()) if given.out.exists() else {}
    cells, start = cache.setdefault("cells", {}), time.monotonic()
    for key, work in jobs(given.rounds):
        if time.monotonic() > start + 60 * given.minutes:
            break
        if key not in cells:
            cells[key] = work()
    cache["seconds"] = round(cache.get("seconds", 0.0) + time.monotonic() - start, 1)
    cache["command"] = "python benchmarks/private_tree_written.py, again until all rounds are there"
    cache["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    cache["versions"] = {name: version(name) for name in ("hedgerow", "numpy")}
    cache.update(summary(cells, json.loads((HERE / "private_tree.json").read_text())["cells"]))
    given.out.write_text(json.dumps(cache).replace("}, ", "},\n") + "\n", "utf-8")
    for key, one in cache["panels"].items():
        print(key, one["rounds"], {name: round(mean, 3) for name, mean in one["mean"].items()})


def jobs(rounds: int) -> Iterator[tuple[str, Any]]:
    for i in range(rounds):
        for panel in PANELS + ONE_COLUMN:
            yield f"{name_of(panel)} #{i}", lambda p=panel, i=i: round_of(p, i, EPSILONS, {})
        for leaf in SHARES:
            for bounds in SHARES:
                shares = {"leaf_share": leaf, "bounds_share": bounds}
                key = f"shares {leaf:g} {bounds:g} #{i}"
                yield key, lambda s=shares, i=i: round_of(SHARES_PANEL, i, (2.0,), s)


def name_of(panel: Panel) -> str:
    return panel.key if panel.rho else f"one column of {panel.p} n={panel.n}"


def round_of(
    panel: Panel, seed: int, epsilons: tuple[float, ...], shares: dict[str, float]
) -> dict[str, float]:
    """Test accuracies of one round, and how many times its epsilon algorithm 6 has cost."""
    (X, y), (X_test, y_test) = rows_of_round(panel, seed)
    given: dict[str, Any] = {**SETTINGS, **shares}
    given["min_samples"] = given.pop("min_samples_leaf")
    found = {}
    for epsilon in epsilons:
        for name, form in FORMS.items():
            rng = np.random.default_rng([seed, int(10 * epsilon)])
            tree = Written(epsilon, panel.depth, rng, **form, **given)
            tree.fit(X, y, np.arange(len(y)) % PARTIES, BOUND)
            found[f"{name} {epsilon:g}"] = float((tree.predict(X_test) == y_test).mean())
            if name.startswith("6"):
                found[f"cost of {name} {epsilon:g}"] = round(tree.spent / epsilon, 4)
    return found


def summary(cells: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """Means by panel, those of ours over the same rounds, and paired tests of 6 against 5."""
    grouped: dict[str, dict[int, dict[str, float]]] = {}
    for key, one in cells.items():
        name, _, number = key.rpartition(" #")
        grouped.setdefault(name, {})[int(number)] = one
    panels, shares = {}, {}
    for name, rounds in grouped.items():
        mean = {key: float(np.mean([o[key] for o in rounds.values()])) for key in rounds[0]}
        if name.startswith("shares"):
            shares[name.removeprefix("shares ")] = {k: round(v, 5) for k, v in mean.items()}
            continue
        beside = [ours[f"{name} #{i}"] for i in rounds if f"{name} #{i}" in ours]
        for key in beside[0] if beside else ():
            mean[f"ours, {key}"] = float(np.mean([one[key] for one in beside]))
        panels[name] = {
            "rounds": len(rounds), "beside": len(beside),
            "mean": {key: round(value, 5) for key, value in mean.items()},
            "tests": tests(list(rounds.values())),
        }  # fmt: skip
    return {"panels": panels, "shares": shares}


def tests(rounds: list[dict[str, float]]) -> dict[str, Any]:
    found = {}
    for form, base in (("6", "5"), ("6, bounds paid", "5"), ("6, program", "5, program")):
        for epsilon in EPSILONS:
            apart = [one[f"{form} {epsilon:g}"] - one[f"{base} {epsilon:g}"] for one in rounds]
            varies = len(apart) > 1 and float(np.std(apart)) > 0
            p = float(ttest_rel(apart, np.zeros(len(apart))).pvalue) if varies else None
            found[f"{form} above {base} {epsilon:g}"] = {
                "gain": round(float(np.mean(apart)), 5),
                "p": p,
            }
    return found


if __name__ == "__main__":
    main()
