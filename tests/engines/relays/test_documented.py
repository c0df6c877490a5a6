"""Figures in docs/runtimes.md are those that benchmarks/runtimes.py wrote to its result file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
FOUND = json.loads((ROOT / "benchmarks" / "results" / "runtimes.json").read_text("utf-8"))
SHOWN = {"sockets": "sockets", "grpc": "own engine", "nvflare": "NVFlare", "flower": "Flower"}


def table_row(way: str, measured: dict[str, Any]) -> str:
    """One line of the page's table."""
    rounds = (f"{seconds:.3g}" for seconds in measured["median"].values())
    training = measured["training"]
    cells = [
        SHOWN[way],
        *rounds,
        f"{measured['to_first_reply']:.0f} s",
        f"{training['seconds']:.1f} s",
        str(training["round_trips"]),
    ]
    return f"| {' | '.join(cells)} |"


def test_the_page_shows_what_was_measured() -> None:
    page = (ROOT / "docs" / "runtimes.md").read_text("utf-8")
    for way, measured in FOUND["ways"].items():
        assert table_row(way, measured) in page.splitlines(), table_row(way, measured)


def test_every_way_was_measured_and_gave_the_same_model_and_charges() -> None:
    assert set(FOUND["ways"]) == set(SHOWN)
    for measured in FOUND["ways"].values():
        assert measured["training"]["same_trees"]
        assert measured["training"]["same_charges"]
