"""The one readable tree: the report's simulation (figures 2 to 5) and three real tables.

    python benchmarks/private_tree.py --minutes 25

Results go to results/private_tree.json beside this file, pictures to results/private_tree. What
was computed stays there: run it again to go on. Real tables are read from HEDGEROW_DATA and left
out without it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from private_tree import pictures, tables
from private_tree.simulation import SETTINGS, Panel, round_of

RESULTS = Path(__file__).parent / "results" / "private_tree.json"
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
ROUNDS = 50
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
METHODS = ("saving", "saving, 5 parties", "plain", "diffprivlib")
REFERENCES = ("cart, 10 bins", "cart, 16 bins", "cart, 128 bins", "cart, unbinned")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=25.0, help="stop after so many")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--diffprivlib", default="", help="an interpreter that has it")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    cache = json.loads(given.out.read_text()) if given.out.exists() else {}
    cells = cache.setdefault("cells", {})
    deadline, start = time.monotonic() + 60 * given.minutes, time.monotonic()
    saved = start
    for key, work in jobs(given.rounds, given.diffprivlib):
        if key not in cells:
            if time.monotonic() > deadline:
                break
            cells[key] = work()
            if time.monotonic() > saved + 60:  # a run that is stopped loses a minute
                given.out.write_text(text_of(cache), "utf-8")
                saved = time.monotonic()
    cache["seconds"] = cache.get("seconds", 0.0) + time.monotonic() - start
    if given.diffprivlib or "diffprivlib" not in cache:
        cache["diffprivlib"] = tables.diffprivlib_version(given.diffprivlib)
    cache.update(summary(cells))
    cache["command"] = "python benchmarks/private_tree.py, again until all rounds are there"
    cache["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    cache["versions"] = {name: version(name) for name in ("hedgerow", "numpy", "scikit-learn")}
    given.out.write_text(text_of(cache), "utf-8")
    folder = given.out.parent / given.out.stem
    drawn = [pictures.figure_two(cache, folder)]
    for number, n in ((3, 250), (4, 1000), (5, 100)):
        drawn.append(pictures.figure_panels(cache, n, number, folder))
    report(cache, [path for path in drawn if path is not None])


def jobs(rounds: int, python: str) -> Iterator[tuple[str, Any]]:
    """Everything there is to compute, by key; the first rounds of all panels come first."""
    for key, work in table_jobs(python):
        yield key, work
    for i in range(rounds):
        for panel in PANELS:
            yield f"{panel.key} #{i}", lambda p=panel, i=i: round_of(p, i, EPSILONS, SETTINGS)
        for panel in ONE_COLUMN:  # with the method's own shares
            key = f"one column of {panel.p} n={panel.n} #{i}"
            yield key, lambda p=panel, i=i: round_of(p, i, EPSILONS, {})
        if i < 20:
            for leaf in SHARES:
                for bounds in SHARES:
                    shares = {**SETTINGS, "leaf_share": leaf, "bounds_share": bounds}
                    key = f"shares {leaf:g} {bounds:g} #{i}"
                    yield key, lambda s=shares, i=i: round_of(SHARES_PANEL, i, (2.0,), s)


def table_jobs(python: str) -> Iterator[tuple[str, Any]]:
    if not os.environ.get("HEDGEROW_DATA"):
        return
    usable = tables.diffprivlib_version(python)[0].isdigit()
    names = [name for name in METHODS if name != "diffprivlib" or usable]
    for table in tables.TABLES:
        for seed in range(5):
            for name in REFERENCES:
                key = f"{table} {name} #{seed}"
                yield key, lambda t=table, n=name, s=seed: tables.cell(t, n, 0.0, s)
            for name in names:
                for epsilon in tables.EPSILONS:
                    key = f"{table} {name} epsilon={epsilon:g} #{seed}"
                    work = (table, name, epsilon, seed, python)
                    yield key, lambda w=work: tables.cell(*w)


def summary(cells: dict[str, dict[str, float]]) -> dict[str, Any]:
    grouped: dict[str, list[dict[str, float]]] = {}
    for key, values in cells.items():
        grouped.setdefault(key.rsplit(" #", 1)[0], []).append(values)
    panels = {key: panel_summary(found) for key, found in grouped.items() if key.startswith("n=")}
    means = {key: means_of(found) for key, found in grouped.items()}
    saving = {key[7:]: m["saving 2"] for key, m in means.items() if key.startswith("shares")}
    plain: dict[str, list[float]] = {}
    for key, m in means.items():
        if key.startswith("shares"):
            plain.setdefault(key.split()[1], []).append(m["plain 2"])
    first = tables.TABLES
    return {
        "panels": panels,
        "one_column": {
            key: panel_summary(found) for key, found in grouped.items() if key.startswith("one ")
        },
        "shares": {"saving": saving, "plain": {k: float(np.mean(v)) for k, v in plain.items()}},
        "tables": {k: {**m, "n": len(grouped[k])} for k, m in means.items() if k.startswith(first)},
    }


def means_of(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def panel_summary(found: list[dict[str, float]]) -> dict[str, Any]:
    """Means, and one-sided paired tests: saving above no saving, and above the local tree."""
    tests = {}
    for epsilon in EPSILONS:
        ours = [one[f"saving {epsilon:g}"] for one in found]
        for name, other in (("plain", f"plain {epsilon:g}"), ("local", "local")):
            theirs = [one[other] for one in found]
            gain = float(np.mean(ours) - np.mean(theirs))
            varies = len(found) > 1 and float(np.std(np.subtract(ours, theirs))) > 0
            p = float(ttest_rel(ours, theirs, alternative="greater").pvalue) if varies else None
            tests[f"saving above {name} {epsilon:g}"] = {"gain": gain, "p": p}
    return {"rounds": len(found), "mean": means_of(found), "tests": tests}


def text_of(cache: dict[str, Any]) -> str:
    return json.dumps(cache).replace("}, ", "},\n") + "\n"  # a line a cell


def report(cache: dict[str, Any], drawn: list[Path]) -> None:
    print(f"diffprivlib: {cache['diffprivlib']}; {cache['seconds']:.0f} s in all")
    for key, values in cache["tables"].items():
        print(f"{key:46s} accuracy {values['accuracy']:.4f}  AUC {values['auc']:.4f}")
    for key, panel in {**cache["panels"], **cache["one_column"]}.items():
        means, tests = panel["mean"], panel["tests"]
        texts = [f"{name} {value:.3f}" for name, value in means.items()]
        print(f"{key} ({panel['rounds']} rounds): {', '.join(texts)}")
        for epsilon in ("2", "5"):
            both = [(n, tests[f"saving above {n} {epsilon}"]) for n in ("plain", "local")]
            print(
                "   ",
                *(f"above {n} at {epsilon}: {t['gain']:+.3f} (p = {t['p']})" for n, t in both),
            )
    for path in drawn:
        print(f"drawn: {path}")


if __name__ == "__main__":
    main()
