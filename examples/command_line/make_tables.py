"""Make up the tables of three banks and of new customers, and the schema they agreed on.

`python make_tables.py FOLDER` writes schema.toml, north.csv, east.csv, harbour.csv and new.csv.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from hedgerow import Categorical, Label, Numeric, Schema


def main() -> None:
    folder = Path(sys.argv[1])
    schema = Schema(
        columns=(
            Numeric("income", 0, 200_000),
            Numeric("age", 18, 100, integer=True),
            Categorical("home", ("rent", "own", "family"), other="category"),
        ),
        label=Label("default", ("no", "yes")),
        name="loans",
    )
    schema.write(folder / "schema.toml")
    rng = np.random.default_rng(5)
    for name, n_rows in (("north", 4000), ("east", 3000), ("harbour", 2000), ("new", 2000)):
        write(folder / f"{name}.csv", schema, n_rows, rng)


def write(path: Path, schema: Schema, n_rows: int, rng: np.random.Generator) -> None:
    income = rng.lognormal(10.5, 0.5, n_rows).round(2)
    age = rng.integers(18, 90, n_rows)
    home = rng.choice(["rent", "own", "family"], n_rows)
    risk = 1.5 * (home == "rent") - 0.04 * (age - 40) - 1.2 * np.log(income / 36_000)
    default = np.where(rng.random(n_rows) < 1 / (1 + np.exp(1.2 - risk)), "yes", "no")
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow([*schema.names, schema.label.name])
        lines.writerows(zip(income, age, home, default, strict=True))


if __name__ == "__main__":
    main()
