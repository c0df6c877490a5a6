"""Figures in docs/deployment.md are those that benchmarks/network.py wrote to its result file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
FOUND = json.loads((ROOT / "benchmarks" / "results" / "network.json").read_text("utf-8"))


def table_row(name: str, measured: dict[str, Any]) -> str:
    """One line of the page's table."""
    cells = [
        name,
        f"{measured['rounds_per_second']:.1f}",
        f"{measured['longest_gap_seconds']:.1f}",
        str(measured["attempts_lost"]),
        str(measured["tries"]),
    ]
    return f"| {' | '.join(cells)} |"


def test_the_page_shows_what_was_measured() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text("utf-8").splitlines()
    for name, measured in FOUND["scenarios"].items():
        assert table_row(name, measured) in page, table_row(name, measured)


def test_every_training_ended_well_and_no_charge_was_lost() -> None:
    assert {name for name, one in FOUND["scenarios"].items() if one["code"]} == set()
    wrong = {name: count for name, count in FOUND["ledgers"].items() if name != "releases"}
    assert set(wrong.values()) == {0}, wrong
