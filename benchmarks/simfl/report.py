"""The tables of the SimFL benchmark as text, each figure beside the published one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from statistics import mean, stdev
from typing import Any

PUBLISHED = Path(__file__).resolve().parents[1] / "published" / "simfl2020.toml"
ROWS = ("simfl", "tfl", "solo-a", "solo-b", "all-in", "simfl-paper", "tfl-round-robin")
TABLES = ((0.8, "two_parties_unbalanced_80"), (None, "two_parties_balanced"))


def report(results: dict[str, Any]) -> str:
    with PUBLISHED.open("rb") as file:
        published = tomllib.load(file)
    most = max((c["trees"] for c in results["cells"]), default=0)
    cells = [c for c in results["cells"] if c["trees"] == most]
    lines: list[str] = []
    for theta, name in TABLES:
        lines += errors(cells, theta, published[name], published["datasets"])
        lines += differences(cells, theta)
    lines += figures(cells)
    lines += growth(cells)
    lines += costs(cells, published)
    for one in results["scaling"]:
        lines.append(
            f"{one['rows']:>9,} rows, ten parties: preprocessing "
            f"{one['seconds_preprocessing']:.1f} s, {one['trees']} trees "
            f"{one['seconds_training']:.1f} s; collisions found "
            f"{100 * one['share_of_most_collisions']:.1f} % of the most"
        )
    return "\n".join(lines)


def found(cells: Any, **wanted: Any) -> list[Any]:
    """Cells with these values; ALL-IN has no partition."""
    if wanted.get("method") == "all-in":
        wanted = {k: v for k, v in wanted.items() if k not in ("theta", "parties")}
    return [c for c in cells if all(c[k] == v for k, v in wanted.items())]


def by_split(cells: Any, **wanted: Any) -> dict[int, float]:
    return {c["seed"]: c["error"] for c in found(cells, **wanted)}


def with_error(values: Any) -> str:
    """A mean and its standard error."""
    error = f" +- {stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{error}"


def errors(cells: Any, theta: Any, published: Any, names: list[str]) -> list[str]:
    title = "balanced" if theta is None else f"theta = {100 * theta:.0f} %"
    lines = [f"\nTest error, two parties, {title} (mean, standard error [least, most]; published)"]
    for dataset in sorted({c["dataset"] for c in found(cells, theta=theta, parties=2)}):
        for method in ROWS:
            here = {"theta": theta, "parties": 2, "dataset": dataset, "method": method}
            ours = list(by_split(cells, **here).values())
            if not ours:
                continue
            key = {"simfl-paper": "simfl", "tfl-round-robin": "tfl"}.get(method, method)
            theirs = published[key.replace("-", "_")][names.index(dataset)]
            spread = f"[{min(ours):.1f}, {max(ours):.1f}] of {len(ours)}"
            lines.append(f"{dataset:>9} {method:<16} {with_error(ours)} {spread}; {theirs}")
    return lines


def differences(cells: Any, theta: Any) -> list[str]:
    """SimFL less every other method on the same splits."""
    lines = ["SimFL less the other, same splits (mean, standard error, splits that it wins)"]
    for dataset in sorted({c["dataset"] for c in found(cells, theta=theta, parties=2)}):
        here = {"theta": theta, "parties": 2, "dataset": dataset}
        simfl = by_split(cells, **here, method="simfl")
        for method in ROWS[1:]:
            other = by_split(cells, **here, method=method)
            apart = [simfl[k] - other[k] for k in sorted(simfl.keys() & other.keys())]
            if apart:
                won = f"{sum(a < 0 for a in apart)} of {len(apart)}"
                lines.append(f"{dataset:>9} {method:<16} {with_error(apart)}, {won}")
    return lines


def figures(cells: Any) -> list[str]:
    """Figures 2 to 4: by theta, and by the number of parties; the paper prints curves alone."""
    lines = []
    keys = sorted(
        {(c["dataset"], c["theta"] or 0.0, c["parties"]) for c in cells if c["parties"] > 1},
        key=lambda k: (k[0], k[2], k[1]),
    )
    for dataset, theta, parties in keys:
        shown = []
        for method in ROWS:
            here = {"dataset": dataset, "theta": theta or None, "parties": parties}
            ours = list(by_split(cells, **here, method=method).values())
            shown.append(f"{method} {mean(ours):.2f} ({len(ours)})" if ours else f"{method} -")
        title = "balanced" if not theta else f"theta {theta:g}"
        lines.append(f"{dataset}, {parties} parties, {title}: " + ", ".join(shown))
    return ["\nBy theta and number of parties: means (splits)", *lines]


def growth(cells: Any) -> list[str]:
    """Errors by number of trees, two parties."""
    lines = ["\nError by number of trees, two parties (means of splits)"]
    for dataset in sorted({c["dataset"] for c in cells}):
        for theta, _ in TABLES:
            for method in ROWS:
                here = found(cells, dataset=dataset, theta=theta, parties=2, method=method)
                if here:
                    counts = here[0]["errors_by_trees"]
                    means = {n: mean(c["errors_by_trees"][n] for c in here) for n in counts}
                    shown = ", ".join(f"{n}: {e:.1f}" for n, e in means.items())
                    lines.append(f"{dataset} theta {theta} {method}: {shown}")
    return lines


def costs(cells: Any, published: Any) -> list[str]:
    lines = ["\nTime (processor seconds) and bytes of SimFL"]
    seconds, bytes_ = published["ten_parties_balanced_seconds"], "ten_parties_balanced_megabytes"
    for c in cells:
        if c["method"] not in ("simfl", "simfl-paper"):
            continue
        sent, theirs = c["bytes"], c["published_bytes"]
        before = sum(sent.get(k, 0) for k in ("facts", "tables", "places"))
        after = sum(sent.get(k, 0) for k in ("sums", "leaves", "trees"))
        lines.append(
            f"{c['dataset']} {c['method']} {c['parties']} parties, theta {c['theta']}: "
            f"preprocessing {c['seconds_preprocessing']:.1f} s and {before / 1e6:.2f} MB "
            f"(formula {theirs['preprocessing'] / 1e6:.2f}), {c['trees']} trees "
            f"{c['seconds_training']:.1f} s and {after / 1e6:.2f} MB "
            f"(formula {theirs['training'] / 1e6:.2f})"
        )
    for i, name in enumerate(published["datasets"]):
        per = {k: v[i] for k, v in {**seconds, **published[bytes_]}.items()}
        lines.append(f"published, ten parties, {name}: {per}")
    return lines
