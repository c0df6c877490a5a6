"""The published figures and, for cells that ours does not reach, why."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from maddock.cells import EPSILON_OF, Cell

FILE = Path(__file__).resolve().parent.parent / "published" / "maddock2022.toml"
SMALLER = ("higgs",)  # fewer rows here than in the paper: shown, not counted


def read() -> dict[str, Any]:
    with FILE.open("rb") as file:
        return tomllib.load(file)


def section(table: int) -> str:
    return {4: "split_candidates", 5: "batched", 6: "rank"}.get(table, f"table{table}")


def value_of(document: dict[str, Any], cell: Cell) -> tuple[float, float] | None:
    """Published mean and standard deviation of a cell; None where the paper has none."""
    part = document[section(cell.table)]
    if cell.table == 6 or cell.row not in part:
        return None
    place = part["datasets"].index(cell.dataset)
    return part[cell.row][place], document[f"{section(cell.table)}_sd"][cell.row][place]


def weight_table(epsilon: float) -> int:
    return next(table for table, value in EPSILON_OF.items() if value == epsilon)
