"""Other private ways to a model beside the default method, and what fine cells change."""

from __future__ import annotations

from statistics import mean
from typing import Any

from tests.record.blocks import result, table

TABLES, EPSILONS = ("adult", "bank", "higgs"), (0.1, 1.0, 4.0)
TITLES = {"auto": "auto", "interpret": "DP-EBM"}


def rivals_block() -> str:
    """Mean test AUC over the same splits, by table and epsilon."""
    entries = [*result("accuracy_rivals")["results"], *result("accuracy")["results"]]
    lines = []
    for method in ("auto", "interpret", *rivals()):
        shown = [_auc(entries, t, method, e) for t in TABLES for e in EPSILONS]
        lines.append((TITLES.get(method, method), *(f"{auc:.3f}" for auc in shown)))
    head = (
        "test AUC",
        *(f"{t}, {e:g}" if e == 0.1 else f"{e:g}" for t in TABLES for e in EPSILONS),
    )
    return table(head, lines)


def rivals() -> list[str]:
    return list(dict.fromkeys(one["method"] for one in result("accuracy_rivals")["results"]))


def _auc(entries: list[dict[str, Any]], dataset: str, method: str, epsilon: float) -> float:
    (one,) = [
        e
        for e in entries
        if (e["dataset"], e["method"], e["epsilon"]) == (dataset, method, epsilon)
    ]
    return mean(one["auc"])


def fine_block() -> str:
    lines = []
    for one in result("fine_cells")["cells"]:
        better = f"{one['change']:+.4f} ({one['error']:.4f})"
        values = [f"{one[way]:.4f}" for way in ("without", "with")]
        sent = " to ".join(f"{size / 1000:.0f}" for size in one["bytes_per_party"])
        lines.append((one["table"], f"{one['epsilon']:g}", *values, better, sent))
    return table(("table", "epsilon", "without", "with", "change (error)", "kB sent"), lines)


def blocks() -> dict[str, str]:
    return {"rivals": rivals_block()}


def fine_blocks() -> dict[str, str]:
    return {"fine": fine_block()}
