"""One run on a local Dask cluster, in processes of its own: `python -m speed.cluster_cell`.

Takes what to train as JSON and prints its figures as JSON. Memory is that of the coordinator, the
scheduler in it and all workers together, looked at ten times a second.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from hedgerow.coordinator.gate import Gate
from hedgerow.engines.dask.cluster import connected
from hedgerow.engines.dask.engine import dask_federation
from hedgerow.engines.dask.rows import ClusterRows
from hedgerow.engines.dask.sources import ParquetFolder
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from speed.clock import source
from speed.tables import schema_of


class Sampled:
    """Peak memory and CPU seconds of this process and all that it started."""

    def __init__(self) -> None:
        self.peak_mb, self._stop = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            total = sum(self._each(lambda one: one.memory_info().rss))
            self.peak_mb = max(self.peak_mb, total / 1e6)

    def cpu(self) -> float:
        return sum(self._each(lambda one: sum(one.cpu_times()[:2])))

    def _each(self, what: Any) -> list[float]:
        here, found = psutil.Process(), []
        for one in (here, *here.children(recursive=True)):
            try:
                found.append(float(what(one)))
            except psutil.Error:
                continue
        return found

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def run(folder: str, n_columns: int, workers: int) -> dict[str, Any]:
    schema, privacy = schema_of(n_columns), Privacy(1.0, 1e-8, "coordinator")
    plan = plan_for(schema, privacy, "auto", {}, 0)
    sampled, begun = Sampled(), time.perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix="hedgerow-") as name,
        Ledger.open(Path(name) / "ledger") as ledger,
        connected(None, None, workers) as client,
    ):
        started, start_cpu = time.perf_counter(), sampled.cpu()
        rows = ClusterRows(ParquetFolder(folder, client, schema), schema, client)
        read, read_cpu = time.perf_counter(), sampled.cpu()
        federation = dask_federation(rows, schema, privacy, ledger)
        model = method_named("auto").grow(Gate(federation, plan, ledger))
        done, done_cpu = time.perf_counter(), sampled.cpu()
        sampled.stop()
        return {
            "wall": done - started,
            "cpu": done_cpu - start_cpu,
            "start_wall": started - begun,
            "read_wall": read - started,
            "read_cpu": read_cpu - start_cpu,
            "peak_mb": sampled.peak_mb,
            "n_rows": rows.n_rows,
            "partitions": rows.n_partitions,
            "rounds": federation.rounds,
            "bytes_to_workers": rows.cluster.sent,
            "bytes_from_workers": rows.received,
            "workers_lost": rows.cluster.lost,
            "trees": len(model.trees),
            "load_average": psutil.getloadavg()[0],
            "source": source(),
        }


if __name__ == "__main__":
    print(json.dumps(run(**json.loads(sys.argv[1]))))
