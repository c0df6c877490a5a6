"""Marked blocks: text between two comments of a page that a script writes, and nobody else."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PUBLISHED = ROOT / "benchmarks" / "published"
NONE = "-"  # nothing is recorded, or nothing was published


def result(name: str) -> Any:
    """A result file; it is read once, and nobody changes what is returned."""
    return _read(RESULTS / f"{name}.json")


@cache
def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def published(name: str) -> dict[str, Any]:
    """Figures as a paper prints them."""
    return tomllib.loads((PUBLISHED / f"{name}.toml").read_text(encoding="utf-8"))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def written(text: str, blocks: Mapping[str, str]) -> str:
    """A page with its blocks; one that the page lacks is an error."""
    for name, block in blocks.items():
        start, end = f"<!-- record: {name} -->", f"<!-- end of {name} -->"
        if text.count(start) != 1 or text.count(end) != 1:
            raise ValueError(f"the page has no single block {name!r}")
        around = "\n\n" if block.startswith(("|", "-", "!")) else "\n"
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        text = pattern.sub(lambda _: f"{start}{around}{block}{around}{end}", text)  # noqa: B023
    return text


def names_in(text: str) -> list[str]:
    return re.findall(r"<!-- record: (.+?) -->", text)


def times(count: int, noun: str = "fit") -> str:
    """1 fit, 2 fits."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def span(numbers: Iterable[int]) -> str:
    """1, or 1 to 3."""
    least, most = min(found := list(numbers)), max(found)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
