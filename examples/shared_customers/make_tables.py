"""Make up customers of a bank, a telephone company and a shop, and the schema they agreed on.

`python make_tables.py FOLDER` writes schema.toml, bank.csv, phone.csv and shop.csv, the same of new
customers (new-bank.csv and so on, without labels), and truth.csv with what became of these.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import Categorical, Label, Numeric, Schema

HELD = {"bank": ("income", "age"), "phone": ("late_bills", "plan"), "shop": ("spent", "returns")}
SCHEMA = Schema(
    columns=(
        Numeric("income", 0, 200_000),
        Numeric("age", 18, 100, integer=True),
        Numeric("late_bills", 0, 12, integer=True),
        Categorical("plan", ("prepaid", "monthly", "family")),
        Numeric("spent", 0, 5_000),
        Numeric("returns", 0, 20, integer=True),
    ),
    label=Label("default", ("no", "yes")),
    name="shared customers",
)


def customers(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    income, age = rng.lognormal(10.5, 0.5, n).round(2), rng.integers(18, 90, n)
    late, plan = rng.poisson(1.5, n).clip(0, 12), rng.choice(["prepaid", "monthly", "family"], n)
    spent, returns = rng.lognormal(6, 0.7, n).clip(0, 5_000).round(2), rng.poisson(2, n).clip(0, 20)
    risk = 0.7 * late + 0.8 * (plan == "prepaid") + 0.25 * returns - 0.03 * (age - 40)
    risk += np.log(spent / 400) - 0.8 * np.log(income / 36_000) - 2.5
    default = np.where(rng.random(n) < 1 / (1 + np.exp(-risk)), "yes", "no")
    return {
        "income": income, "age": age, "late_bills": late, "plan": plan, "spent": spent,
        "returns": returns, "default": default,
    }  # fmt: skip


def write(path: Path, names: tuple[str, ...], people: Any, ids: Any, table: dict[str, Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["customer", *names])
        lines.writerows([ids[i], *(table[name][i] for name in names)] for i in people)


def main() -> None:
    folder, rng = Path(sys.argv[1]), np.random.default_rng(8)
    SCHEMA.write(folder / "schema.toml")
    for prefix, n in (("", 2000), ("new-", 1000)):
        table, ids = customers(n, rng), [f"{prefix}{i:05d}" for i in range(n)]
        for party, names in HELD.items():
            label = ("default",) if (party, prefix) == ("bank", "") else ()
            # Each has its own order, and nobody knows all customers of the others.
            people = rng.permutation(n)[: int(0.95 * n)]
            write(folder / f"{prefix}{party}.csv", (*names, *label), people, ids, table)
        if prefix:
            write(folder / "truth.csv", ("default",), range(n), ids, table)


if __name__ == "__main__":
    main()
