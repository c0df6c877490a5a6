"""A year of models from the same rows, under one budget; the rows are made up here.

Run it with `python examples/budget_over_a_year/run.py`. It takes some seconds.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from hedgerow import Ledger, PrivateBoostingClassifier, Schema
from hedgerow.errors import BudgetExceeded

EPSILON, DELTA = 2.0, 1e-6  # of the whole year
SCHEMA = Schema.from_bounds(
    {"age": (0, 110), "pressure": (60, 240), "dose": (0, 5)},
    classes=["no", "yes"],
    label="relapse",
)
Table = tuple[np.ndarray, np.ndarray]


def patients(n_rows: int, rng: np.random.Generator) -> Table:
    X = rng.uniform([20, 90, 0], [90, 200, 5], size=(n_rows, 3))
    risk = 0.06 * (X[:, 0] - 55) + 0.03 * (X[:, 1] - 145) - 0.8 * (X[:, 2] - 2.5)
    return X, np.where(rng.random(n_rows) < 1 / (1 + np.exp(-risk)), "yes", "no")


def quarter(epsilon: float, ledger: Ledger, table: Table, hospital: np.ndarray, new: Table) -> None:
    """One model of the year, its quality on new patients, and what it leaves of the budget."""
    model = PrivateBoostingClassifier(SCHEMA, epsilon, DELTA).fit(*table, parties=hospital)
    auc = roc_auc_score(new[1] == "yes", model.decision_function(new[0]))
    print(f"  trained at epsilon = {epsilon:.3g}; AUC on new patients {auc:.3f}")
    print(
        f"  the year so far: epsilon = {ledger.spent:.2f} of {EPSILON:g}; "
        f"the next run may cost {ledger.next_run:.2f}"
    )


def main() -> None:
    rng = np.random.default_rng(12)
    table, new = patients(3_000, rng), patients(1_000, rng)
    hospital = rng.choice(["north", "river", "summit"], 3_000)
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger.open(Path(folder) / "year.ledger", epsilon=EPSILON, delta=DELTA) as ledger,
    ):  # everything that is trained in this block is charged to the ledger
        for name in ("spring", "summer", "autumn", "winter"):
            print(name)
            try:
                quarter(1.0, ledger, table, hospital, new)
            except BudgetExceeded as error:
                print(f"  refused: {error}")
                quarter(0.99 * ledger.next_run, ledger, table, hospital, new)
    print("The budget is used up. What was trained can be used for ever; nothing more is asked.")


if __name__ == "__main__":
    main()
