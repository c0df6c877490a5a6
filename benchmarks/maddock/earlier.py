"""Fits of an earlier result file: they count as done, so that a record can be added to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from maddock import cells
from maddock.compare import Chosen
from maddock.fits import Cache, Fit, repetitions

Known = tuple[int, str, str, float]


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def take(cache: Cache, document: dict[str, Any]) -> None:
    """Put the fits of a result file into a cache, in memory alone.

    A file lists the AUCs of a cell by repeat and split, the first split of every cell first, as
    `run_all` trains them: so a shorter list is the beginning of a longer one.
    """
    told = document["chosen"]
    settings = tuple((str(name), value) for name, value in told["settings"])
    chosen = Chosen(**{**told, "datasets": tuple(told["datasets"]), "settings": settings})
    known = _cells()
    source = f"result file of {document['date_utc']}"
    for cell in document["cells"]:
        key = cell["table"], cell["row"], cell["dataset"], cell["epsilon"]
        wanted = repetitions(chosen.cell(known[key]), chosen.splits, chosen.repeats)
        for one, auc in zip(wanted, cell["auc"], strict=False):
            entry = {"fit": json.loads(one.key), "auc": auc, "source": source}
            cache.found.setdefault(one.key, entry)


def _cells() -> dict[Known, Fit]:
    return {
        (cell.table, cell.row, cell.dataset, cell.epsilon): cell.fit
        for number in cells.TABLES
        for cell in cells.table_cells(number)
    }


def kept(conclusions: list[dict[str, Any]], document: dict[str, Any]) -> list[dict[str, Any]]:
    """Conclusions with those of the earlier file whose fits it does not list."""
    new = {one["conclusion"] for one in conclusions}
    return conclusions + [one for one in document["conclusions"] if one["conclusion"] not in new]
