"""Make up three banks with some customers in common, and the schema and limits they agreed on.

`python make_tables.py FOLDER` writes schema.toml, limits.toml, north.csv, east.csv, harbour.csv.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from hedgerow import Label, Numeric, Schema

SCHEMA = Schema(
    columns=(
        Numeric("income", 0, 200_000),
        Numeric("spent", 0, 5_000),
        Numeric("late", 0, 12, integer=True),
    ),
    label=Label("default", ("no", "yes")),
    name="customers of three banks",
)
LIMITS = """\
format = 2
delta = 1e-6
least_parties = 3
roles = ["simfl", "fedxgboost-paillier-merged"]  # what may be done without an epsilon

[epsilon]
per_run = 1.0
total = 4.0
"""


def main() -> None:
    folder, rng = Path(sys.argv[1]), np.random.default_rng(31)
    SCHEMA.write(folder / "schema.toml")
    (folder / "limits.toml").write_text(LIMITS, encoding="utf-8")
    n = 900
    income, spent = rng.lognormal(10.5, 0.5, n).round(2), rng.lognormal(6, 0.7, n).round(2)
    late = rng.poisson(1.5, n).clip(0, 12)
    risk = 0.9 * late + np.log(spent / 400) - 0.8 * np.log(income / 36_000) - 1.5
    default = np.where(rng.random(n) < 1 / (1 + np.exp(-risk)), "yes", "no")
    for bank in ("north", "east", "harbour"):
        with (folder / f"{bank}.csv").open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file)
            lines.writerow(["customer", "income", "spent", "late", "default"])
            for i in rng.permutation(n)[:600]:  # two thirds of all people are its customers
                lines.writerow([f"c{i:04d}", income[i], spent[i], late[i], default[i]])


if __name__ == "__main__":
    main()
