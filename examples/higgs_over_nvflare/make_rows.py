"""Made-up collisions of particles for three sites: the same kind of rows as the HIGGS table, on
which NVFlare's examples of federated XGBoost train.

`python make_rows.py FOLDER` writes schema.toml, site-1.csv, site-2.csv, site-3.csv and new.csv.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from hedgerow import Label, Numeric, Schema

MEASURED, DERIVED = 21, 7
# Bounds come from what is known of the instruments, never from the rows.
SCHEMA = Schema(
    columns=(
        *(Numeric(f"measured_{i + 1}", -4, 4) for i in range(MEASURED)),
        *(Numeric(f"mass_{i + 1}", 0, 5) for i in range(DERIVED)),
    ),
    label=Label("signal", ("no", "yes")),
    name="collisions",
)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    SCHEMA.write(folder / "schema.toml")
    rng = np.random.default_rng(28)
    for name, n_rows in (("site-1", 6000), ("site-2", 4000), ("site-3", 5000), ("new", 3000)):
        write(folder / f"{name}.csv", n_rows, rng)


def write(path: Path, n_rows: int, rng: np.random.Generator) -> None:
    """Signal has heavier masses; measured columns alone do not tell it apart."""
    is_signal = rng.random(n_rows) < 0.53
    measured = rng.normal(0.0, 1.0, (n_rows, MEASURED))  # (row, column)
    pairs = np.abs(measured[:, 0 : 2 * DERIVED : 2] + measured[:, 1 : 2 * DERIVED : 2])
    mass = (0.6 + 0.4 * pairs) * rng.lognormal(0.0, 0.25, pairs.shape)  # (row, mass)
    mass *= np.where(is_signal, 1.2, 1.0)[:, None]
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow([*SCHEMA.names, SCHEMA.label.name])
        for row, signal in zip(np.hstack([measured, mass]).round(4), is_signal, strict=True):
            lines.writerow([*row, "yes" if signal else "no"])


if __name__ == "__main__":
    main()
