"""One fit in a process of its own, so that its peak memory is its own: `python -m speed.cell`.

Takes what to fit as JSON and prints its figures as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import hedgerow.estimators.boosting as estimators
from hedgerow.coordinator.federation import Federation
from speed.clock import memory, source, timed
from speed.fits import labels_of
from speed.tables import schema_of, write_parquet

TINY = 2_000  # rows of the fit that imports and compiles everything


class Noted:
    """What `fit` does on its way: seconds until its rows are read, and the federation it makes."""

    def __init__(self) -> None:
        self.read_at = (0.0, 0.0)
        self.federation: Federation | None = None
        self._rows_of, self._make = estimators.rows_of, estimators.local_federation
        estimators.rows_of, estimators.local_federation = self.rows_of, self.make

    def rows_of(self, *given: Any, **named: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        rows = self._rows_of(*given, **named)
        self.read_at = (time.perf_counter() - wall, time.process_time() - cpu)
        return rows

    def make(self, *given: Any, **named: Any) -> Federation:
        self.federation = self._make(*given, **named)
        return self.federation


def fit(table: Path, n_columns: int, parties: Any, trust: str, ledger: Path) -> Any:
    model = estimators.PrivateBoostingClassifier(
        schema_of(n_columns), trust=trust, ledger=str(ledger), random_state=0
    )
    return model.fit(str(table), parties=parties)


def run(table: str, n_rows: int, n_columns: int, parties: int, trust: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as name:
        folder, noted = Path(name), Noted()
        write_parquet(folder / "tiny.parquet", TINY, 28)
        fit(folder / "tiny.parquet", 28, None, "coordinator", folder / "tiny.ledger")
        labels, at = labels_of(n_rows, parties), folder / "run.ledger"  # labels: the caller's
        base = memory("VmRSS")
        figures, model = timed(lambda: fit(Path(table), n_columns, labels, trust, at))
        assert noted.federation is not None
        return {
            **figures,
            "read_wall": noted.read_at[0],
            "read_cpu": noted.read_at[1],
            "base_mb": base,
            "peak_mb": memory("VmHWM"),
            "ledger_mb": at.stat().st_size / 1e6,
            "rounds": noted.federation.rounds,
            "bytes_to_parties": noted.federation.bytes_to_parties,
            "bytes_from_parties": noted.federation.bytes_from_parties,
            "trees": len(model.model_.trees),
            "source": source(),
        }


if __name__ == "__main__":
    print(json.dumps(run(**json.loads(sys.argv[1]))))
