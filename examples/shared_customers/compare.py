"""Predictions beside what became of the new customers: AUC, with the bank's columns alone too."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score


def read(path: Path) -> dict[str, dict[str, str]]:
    """Rows by customer."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row.get("customer") or row["id"]: row for row in csv.DictReader(file)}


def matrix(rows: dict[str, dict[str, str]]) -> np.ndarray:
    return np.array([[float(row["income"]), float(row["age"])] for row in rows.values()])


def main() -> None:
    folder = Path(sys.argv[1])
    truth, bank, new = (read(folder / f"{name}.csv") for name in ("truth", "bank", "new-bank"))
    alone = HistGradientBoostingClassifier(max_depth=4, max_iter=30, random_state=0)
    alone.fit(matrix(bank), [row["default"] for row in bank.values()])
    guesses = {
        "the bank's columns alone": dict(
            zip(new, alone.predict_proba(matrix(new))[:, 1], strict=True)
        )
    }
    for name, title in (
        ("none", "all columns, labels shown"),
        ("ldp", "all columns, labels at epsilon = 1"),
    ):
        found = read(folder / f"predicted-{name}.csv")
        guesses[title] = {i: float(row["probability_yes"]) for i, row in found.items()}
    common = sorted(set.intersection(*(set(one) for one in guesses.values())))
    real = [truth[i]["default"] == "yes" for i in common]
    print(f"AUC on {len(common):,} new customers that all three know:")
    for title, one in guesses.items():
        print(f"  {title:36} {roc_auc_score(real, [one[i] for i in common]):.3f}")


if __name__ == "__main__":
    main()
