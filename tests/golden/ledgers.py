"""Ledgers: a file with a run of every kind, its lines, and what it adds up to."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hedgerow.packing import canonical_json
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.verify import verify
from tests.golden import runs
from tests.golden.fixed import fixed
from tests.golden.text import Files, as_json, hashes_of
from tests.golden.trained import model_of


def _kept_ledger(path: Path) -> Ledger:
    """One ledger with a run of every kind: Gaussian, pure, an evaluation, two sessions."""
    with fixed("ledger"):
        run = runs.Run(ledger=Ledger.open(path), lasting=True)
    model = model_of(runs.train("random-trees", "binary", run))
    runs.train("private-tree", "binary", run)
    runs.train("auto", "binary", run)
    runs.measure(model, "binary", run)
    runs.similarity(run)
    runs.vertical("ldp", run)
    return run.ledger


def lines_in(ledger: Ledger) -> list[tuple[str, bytes]]:
    """Every line as bytes, its hash among them."""
    found = []
    for line in ledger.lines():
        fields = [value.hex() if isinstance(value, bytes) else value for value in line]
        found.append((f"{line.seq:04d}-{line.owner}-{line.kind}", canonical_json(fields)))
    return found


def ledgers() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        ledger = _kept_ledger(path)
        lines = lines_in(ledger)
        ledger.close()
        return {"ledger.sqlite": path.read_bytes(), "lines.json": as_json(hashes_of(lines))}


def spending() -> Files:
    """What the stored ledger adds up to for every owner."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = _kept_ledger(Path(folder) / "ledger.sqlite")
        found = spent_in(ledger)
        ledger.close()
    return {"spending.json": as_json(found)}


def spent_in(ledger: Ledger) -> dict[str, Any]:
    return {
        one.owner: {
            "mu": one.spending.mu.hex(),
            "pure": float(one.spending.pure).hex(),
            "coordinates": one.spending.coordinates,
            "runs": one.spending.runs,
            "charges": one.charges,
            "releases": one.releases,
            "answers": one.answers,
        }
        for one in verify(ledger)
    }
