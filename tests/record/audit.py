"""What attacks find of vertical protections: the tables of docs/vertical.md."""

from __future__ import annotations

from typing import Any

from tests.record.blocks import result, table

SHARES = ("0.1", "0.5", "0.9", "0.95")
EPSILONS = ("0.5", "1", "3")


def record(dataset: str = "credit1_full") -> dict[str, Any]:
    found: dict[str, Any] = result("vertical_audit")["datasets"][dataset]
    return found


def splits_block() -> str:
    """Shares found by r, beside guessing; where guessing differs by r, its least and most."""
    one = record()
    first, second = one["smm-1"], one["smm-2"]
    wide = one["labels from SMM-2 with 32 bins"]
    rows: dict[str, tuple[list[float], list[float]]] = {}
    for words, part, name, way in (
        ("splits from smm-1, one tree, rounded", first, "splits, 1 trees", "rounding"),
        ("splits from smm-1, one tree, projections", first, "splits, 1 trees", "projections"),
        ("splits from smm-1, 8 trees", first, "splits, 8 trees", "best"),
        ("splits from smm-1, 20 trees", first, "splits, 20 trees", "best"),
        ("labels from smm-1's vectors, two levels", first, "labels from vectors", "best"),
    ):
        told = [part[share][name] for share in SHARES]
        rows[words] = [t["baseline"] for t in told], [t[way] for t in told]
    for words, answers in (("one answer", "1"), ("two answers", "2")):
        told = [wide[share] for share in SHARES]
        rows[f"labels from smm-2, 32 bins, {words}"] = (
            [t["guessing"] for t in told], [t[answers] for t in told],
        )  # fmt: skip
    told = [second[share]["bins from vectors"] for share in SHARES]
    rows["rows whose bin is found in smm-2's vectors"] = (
        [t["baseline"] for t in told], [t["best"] for t in told],
    )  # fmt: skip
    head = ("credit1_full, shares found", "guessing", "r = 10 %", "50 %", "90 %", "95 %")
    lines = [
        (words, _ends(guessed), *(f"{share:.3f}" for share in found))
        for words, (guessed, found) in rows.items()
    ]
    return table(head, lines)


def _ends(shares: list[float]) -> str:
    low, high = f"{min(shares):.3f}", f"{max(shares):.3f}"
    return low if low == high else f"{low} to {high}"


def labels_block() -> str:
    one = record()
    lines: list[tuple[object, ...]] = [
        ("plain gradients", *[f"{one['labels without protection']['accuracy']:.3f}"] * 3)
    ]
    for way, by_epsilon in one["labels under noise, by epsilon of a tree"].items():
        shown = [f"{by_epsilon[epsilon]['accuracy']:.3f}" for epsilon in EPSILONS]
        lines.append((f"{way}, each of 20 trees", *shown))
    once = [f"{one['labels randomised once'][e]['accuracy']:.3f}" for e in EPSILONS]
    lines.append(("labels randomised once, in all", *once))
    head = ("labels guessed right, credit1_full", *(f"epsilon {e}" for e in EPSILONS))
    return table(head, lines)


def blocks() -> dict[str, str]:
    return {"attacks on splits": splits_block(), "attacks on labels": labels_block()}
