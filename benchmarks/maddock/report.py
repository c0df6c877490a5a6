"""Printed tables and the result file."""

from __future__ import annotations

import json
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from maddock import compare, earlier
from maddock.compare import Chosen
from maddock.fits import Cache

CONSOLE = Console(width=165)


def show(cache: Cache, chosen: Chosen, tables: Sequence[int]) -> None:
    """Tables, counts, ranks and conclusions, as far as the cache holds them."""
    lines = [line for number in tables for line in compare.table_lines(number, cache, chosen)]
    for number in tables:
        if number != 6:
            _show_table(number, [line for line in lines if line["table"] == number])
    if 6 in tables:
        _show_ranks(compare.ranks(cache, chosen))
    for text in compare.counts(lines):
        CONSOLE.print(text)
    for line in lines:
        if line.get("worse") and line["counted"]:
            CONSOLE.print(
                f"worse: table {line['table']}, {line['row']}, {line['dataset']}: "
                f"{line['mean']:.4f} against {line['published']:.4f} "
                f"({line['in_sds']:+.1f} sd, {line['fits']} fits)"
            )
    for line in compare.conclusions(cache, chosen):
        answer = "yes" if line["holds"] else "NO"
        CONSOLE.print(f"{answer:>3}  {line['conclusion']}: {line['figures']}")


def _show_table(number: int, lines: list[dict[str, Any]]) -> None:
    if not lines:
        return
    epsilon = lines[0]["epsilon"]
    shown = Table(title=f"Table {number}, epsilon {epsilon:g}: ours (sd), published, in its sd")
    names = list(dict.fromkeys(line["dataset"] for line in lines))
    shown.add_column("row", no_wrap=True)
    for name in names:
        shown.add_column(name, justify="right")
    for row in dict.fromkeys(line["row"] for line in lines):
        of_row = {line["dataset"]: line for line in lines if line["row"] == row}
        shown.add_row(row, *(_cell(of_row.get(name)) for name in names))
    CONSOLE.print(shown)


def _cell(line: dict[str, Any] | None) -> str:
    if line is None:
        return ""
    spread = "" if line["sd"] is None else f" ({line['sd']:.3f})"
    text = f"{line['mean']:.4f}{spread}"
    if "published" in line:
        text += f" {line['published']:.4f} {line['in_sds']:+.1f}"
        if line["worse"]:
            text = f"[red]{text} <[/red]"
    return text


def _show_ranks(found: list[dict[str, Any]]) -> None:
    if not found:
        return
    shown = Table(title="Table 6: average rank, ours and published")
    shown.add_column("method")
    for one in found:
        shown.add_column(f"epsilon {one['epsilon']:g}", justify="right")
    for i, method in enumerate(found[0]["methods"]):
        shown.add_row(
            method, *(f"{one['ours'][i]:.2f}  {one['published'][i]:.2f}" for one in found)
        )
    shown.add_row("Spearman", *(f"{one['spearman']:.2f}" for one in found))
    CONSOLE.print(shown)


def write(
    cache: Cache, chosen: Chosen, tables: Sequence[int], drawn: dict[str, Any], out: Path,
    seconds: float, before: Sequence[dict[str, Any]] = (),
) -> None:  # fmt: skip
    """Everything that was printed or drawn, with every single AUC; `before` are earlier files."""
    lines = [line for number in tables for line in compare.table_lines(number, cache, chosen)]
    packages = ("hedgerow", "numpy", "numba", "scikit-learn")
    conclusions = compare.conclusions(cache, chosen)
    for document in before:
        conclusions = earlier.kept(conclusions, document)
    written = {
        "command": " ".join(["python", "benchmarks/maddock_tables.py", *sys.argv[1:]]),
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "seconds_of_all_fits": round(sum(e.get("seconds", 0) for e in cache.found.values())),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "sources": Counter(entry["source"] for entry in cache.found.values()),
        "earlier": [
            {name: one[name] for name in ("command", "date_utc", "seconds_of_all_fits", "sources")}
            for one in before
        ],
        "delta": "1 / training rows",
        "chosen": asdict(chosen),
        "counts": compare.counts(lines),
        "conclusions": conclusions,
        "ranks": compare.ranks(cache, chosen),
        "cells": [_rounded(line) for line in lines],
        "figures": drawn,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(_compact(written), encoding="utf-8")
    CONSOLE.print(f"{seconds:.0f} s; written to {out}")


def _rounded(line: dict[str, Any]) -> dict[str, Any]:
    return {k: round(v, 5) if isinstance(v, float) else v for k, v in line.items()}


def _compact(document: dict[str, Any]) -> str:
    """One line a cell: long lists of numbers stay readable in a diff."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            body = ",\n  ".join(json.dumps(entry) for entry in value)
            parts.append(f" {json.dumps(key)}: [\n  {body}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
