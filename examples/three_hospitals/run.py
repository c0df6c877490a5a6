"""Three hospitals train one model together; the rows are made up here.

Run it with `python examples/three_hospitals/run.py`. It takes a few seconds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from hedgerow import PrivateBoostingClassifier, Schema

HERE = Path(__file__).parent
HOSPITALS = ("north", "river", "summit")


def patients(n_rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Made-up patients; every fourth blood pressure is missing."""
    age = rng.integers(18, 100, n_rows).astype(float)
    pressure = np.where(rng.random(n_rows) < 0.25, np.nan, rng.normal(135, 20, n_rows))
    smoker = rng.choice(["never", "former", "current"], n_rows, p=[0.5, 0.3, 0.2])
    ward = rng.choice(["surgery", "medicine", "emergency"], n_rows)
    risk = 0.05 * (age - 60) + 1.2 * (smoker == "current") + 0.8 * (ward == "emergency")
    risk += 0.03 * np.nan_to_num(pressure - 135)
    returned = rng.random(n_rows) < 1 / (1 + np.exp(1.5 - risk))
    answer = np.where(returned, "yes", "no")
    return {
        "age": age, "pressure": pressure, "smoker": smoker, "ward": ward, "returned": answer,
    }  # fmt: skip


def auc(model: PrivateBoostingClassifier, table: dict[str, np.ndarray]) -> float:
    return float(roc_auc_score(table["returned"] == "yes", model.decision_function(table)))


def main() -> None:
    rng = np.random.default_rng(2024)
    schema = Schema.read(HERE / "schema.toml")
    table, new = patients(9_000, rng), patients(4_000, rng)
    hospital = rng.choice(HOSPITALS, len(table["age"]), p=[0.5, 0.3, 0.2])

    together = PrivateBoostingClassifier(schema, epsilon=1.0, delta=1e-6)
    together.fit(table, parties=hospital)

    own = {name: values[hospital == "summit"] for name, values in table.items()}
    alone = PrivateBoostingClassifier(schema, epsilon=1.0, delta=1e-6)
    alone.fit(own)

    print(f"AUC on new patients, three hospitals together: {auc(together, new):.3f}")
    print(f"AUC on new patients, the smallest one alone:   {auc(alone, new):.3f}")
    print()
    print(together.statement_.words())


if __name__ == "__main__":
    main()
