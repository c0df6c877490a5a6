"""What attacks on trees tell of rows, and which planted defects tests notice: docs/audit.md."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.record.blocks import result, table

OTHERS = {
    "XGBoost": "XGBoost's own file, all parties pooled",
    "Flower bagging": "Flower's bagging: each party's own trees",
    "NVFlare histograms": "NVFlare's histograms: each party's sums",
    "off": "`dp-tr-newton-literal`, noise off",
    "8": "`dp-tr-newton-literal`, epsilon 8",
    "1": "`dp-tr-newton-literal`, epsilon 1",
    "private-tree off": "`private-tree`, noise off",
    "private-tree 8": "`private-tree`, epsilon 8",
    "private-tree 1": "`private-tree`, epsilon 1",
    "dp-xgboost off": "`dp-xgboost`, noise off",
    "dp-xgboost 8": "`dp-xgboost`, epsilon 8",
    "dp-xgboost 1": "`dp-xgboost`, epsilon 1",
}
SETTINGS = ("XGBoost", "off", "8", "4", "1", "0.1")


def _points(value: float | None, error: float | None = None) -> str:
    return "" if value is None else f"{value:+.2f}" + ("" if error is None else f" ({error:.2f})")


def others_block() -> str:
    found = result("reconstruction")["summary"]
    lines = [
        (name, words, one["draws"], _points(one["points_above_guesser"], one["standard_error"]),
         _points(one["points_above_guesser_held_out"]),
         _points(one["points_of_seen_rows_alone"], one["standard_error_of_those"]),
         f"{one['auc']:.2f}")
        for name in ("stroke", "diabetes")
        for setting, words in OTHERS.items()
        if (one := found.get(f"{name}, {setting}"))
    ]  # fmt: skip
    head = ("table", "what is seen", "draws", "points above the guesser", "rows never seen",
            "of seen rows alone", "AUC")  # fmt: skip
    return table(head, lines)


def membership_block() -> str:
    found = result("membership")["found"]
    lines = []
    for name in ("stroke", "diabetes"):
        for setting in SETTINGS:
            one = found[f"{name}, {setting}"]
            most = one["at_most_right"]
            lines.append((
                name, OTHERS.get(setting, f"`dp-tr-newton-literal`, epsilon {setting}"),
                f"{one['auc']:.3f} ({one['auc_error']:.3f})", f"{100 * one['right']:.1f} %",
                "nothing is promised" if most is None else f"{100 * most:.1f} %",
                f"{100 * one['told_at_one_percent']:.1f} %",
            ))  # fmt: skip
    head = ("table", "model", "AUC", "guessed right", "at most, as promised",
            "members told at 1 % false alarms")  # fmt: skip
    return table(head, lines)


def mutants_block() -> str:
    """By part of the source, and what the defects with names met."""
    found: list[dict[str, Any]] = result("mutants")["mutants"]
    of_part: dict[str, Counter[str]] = {}
    for one in found:
        part = one["module"].split(".")[1]
        of_part.setdefault(part, Counter())[one["verdict"]] += 1
    of_part["all"] = sum(of_part.values(), Counter())
    lines = [
        (part, sum(n.values()), n["noticed"], n["equivalent"], n["survived"], n["open"])
        for part, n in of_part.items()
    ]
    return table(("part", "defects", "noticed", "change nothing", "survived", "open"), lines)


def tried_block() -> str:
    found = result("mutants")
    settled = sum(one["verdict"] != "open" for one in found["mutants"])
    return (
        f"{settled} of {found['chosen']} chosen defects have a verdict so far; the same command "
        "goes on with the others. Open ones passed the first of their tests and have not met the "
        "rest."
    )


def named_block() -> str:
    found = [one for one in result("mutants")["mutants"] if one["operator"] == "named"]
    lines = [
        (one["label"], f"`{one['noticed_by'].split('[')[0]}`", f"{one['seconds']:.0f}")
        for one in found
    ]
    return table(("defect", "the test that turned red", "seconds"), lines)


def blocks() -> dict[str, str]:
    return {
        "rows rebuilt elsewhere": others_block(),
        "membership": membership_block(),
        "tried so far": tried_block(),
        "planted defects": mutants_block(),
        "named defects": named_block(),
    }
