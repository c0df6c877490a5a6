"""How long a run with Paillier's encryption will take: operations counted, a few of them timed.

Counts follow from the schema, the settings and a number of rows, and are what full trees would
need: trees that end earlier take less. No row and no party is asked. Rates are those of this
machine, by a key that is thrown away.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import clock
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.methods.fedxgboost import paillier
from hedgerow.methods.fedxgboost.processes import Processes
from hedgerow.methods.fedxgboost.protections.encrypted import packing_for
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.losses import loss_for

TIMED, REPETITIONS = 8, 3  # operations of a kind in a measurement, and measurements
ROWS_UNKNOWN = 100_000  # what is told where nobody here knows the rows
OPERATIONS = ("encrypt", "add", "subtract", "close", "decrypt")
Counts = dict[str, float]


@dataclass(frozen=True)
class PaillierEstimate:
    """CPU seconds of all parties together, and where the time goes.

    `seconds` is the wall clock of this machine if all parties run on its cores, as in one process.
    """

    n_rows: int
    rows_known: bool
    n_trees: int
    cpu_seconds: float
    cores: int
    shares: dict[str, float]  # of the CPU seconds, by operation

    @property
    def seconds(self) -> float:
        return self.cpu_seconds / self.cores

    def words(self) -> str:
        dearest = max(self.shares, key=lambda name: self.shares[name])
        rows = f"{self.n_rows:,} rows" if self.rows_known else f"each {self.n_rows:,} common rows"
        return (
            f"Paillier will take about {duration(self.cpu_seconds)} of CPU for {self.n_trees:,} "
            f"trees over {rows}, all parties together ({duration(self.seconds)} on {self.cores} "
            f"cores like those here); {100 * self.shares[dearest]:.0f} % of it to {dearest}. "
            "Nothing was sent yet. Fewer trees and rows take less in proportion; protection ldp "
            "takes seconds, and costs accuracy."
        )

    def to_dict(self) -> dict[str, object]:
        return {
            "rows": self.n_rows, "rows_known": self.rows_known, "trees": self.n_trees,
            "cores": self.cores,
            "cpu_seconds": round(self.cpu_seconds, 1),
            "shares": {name: round(share, 3) for name, share in self.shares.items()},
        }  # fmt: skip


def estimate(schema: Schema, settings: VerticalSettings, n_rows: int = 0) -> PaillierEstimate:
    """What a run over so many common rows would take here; of 100,000 where nobody knows."""
    known, n_rows = n_rows > 0, n_rows or ROWS_UNKNOWN
    counts, rates = counts_of(schema, settings, n_rows), rates_of(schema, settings, n_rows)
    seconds = {name: settings.n_trees * counts[name] * rates[name] for name in OPERATIONS}
    total = sum(seconds.values())
    shares = {name: part / max(total, 1e-9) for name, part in seconds.items()}
    cores = len(os.sched_getaffinity(0))
    return PaillierEstimate(n_rows, known, settings.n_trees, total, cores, shares)


def counts_of(schema: Schema, settings: VerticalSettings, n_rows: int) -> Counts:
    """Operations of one tree, of all parties: on ciphertexts of rows, of bins, and sent ones.

    A row's ciphertext is added once a column and level, below the root only in the smaller of two
    twins, which have half of the rows at most; the larger one's bins are differences. All bins of
    all nodes of a level are closed, several in one ciphertext, and decrypted.
    """
    packing = packing_for(settings, loss_for(schema.label).n_outputs, n_rows, settings.key_bits)
    parts = packing.n_parts
    found: Counts = {**dict.fromkeys(OPERATIONS, 0.0), "encrypt": float(n_rows * parts)}
    for party in settings.passive:
        columns = settings.columns_of(party, schema)
        n_bins = sum(bins_of(schema, settings, column) for column in columns)
        for depth in range(settings.max_depth):
            nodes = min(2**depth, max(1, n_rows // settings.min_rows))
            rows = n_rows if depth == 0 else n_rows / 2
            closed = -(-nodes * n_bins * parts // packing.together)
            found["add"] += rows * len(columns) * parts
            found["subtract"] += (nodes // 2) * n_bins * parts
            found["close"] += closed
            found["decrypt"] += closed
    return found


def bins_of(schema: Schema, settings: VerticalSettings, column: int) -> int:
    """The most bins that a column can have, with that of missing values."""
    grid = base_grid(schema)[column]
    cells = min(grid.n_cells, settings.max_bins) if grid.ordered else grid.n_cells
    return 1 + cells


def rates_of(schema: Schema, settings: VerticalSettings, n_rows: int) -> Counts:
    """Seconds of one operation of each kind on one core of this machine."""
    n_fields = 2 * loss_for(schema.label).n_outputs
    key = paillier.make_key(settings.key_bits)
    packing = packing_for(settings, n_fields // 2, n_rows, key.public.bits)
    numbers = np.arange(TIMED * n_fields, dtype=np.int64).reshape(TIMED, n_fields)
    cells = np.arange(TIMED * TIMED, dtype=np.int64).reshape(TIMED, TIMED) % TIMED
    n_sums = TIMED * packing.n_parts
    with Processes(1) as here:
        made, encrypt = _timed(lambda: paillier.encrypt(key, numbers, packing, here))
        sums, add = _timed(lambda: paillier.add_up(key.public, made, cells, TIMED, here))
        _, subtract = _timed(lambda: paillier.subtract(key.public, sums, made, here))
        closed, close = _timed(lambda: paillier.close(key.public, sums, packing, here))
        _, decrypt = _timed(lambda: paillier.open_sums(key, closed, packing, TIMED, here))
    return {
        "encrypt": encrypt / n_sums,
        "add": add / (TIMED * n_sums),
        "subtract": subtract / n_sums,
        "close": close / len(closed),
        "decrypt": decrypt / len(closed),
    }


def _timed(work: Callable[[], NDArray[Any]]) -> tuple[NDArray[Any], float]:
    """What came of it, and the seconds of the quickest of some repetitions."""
    least = float("inf")
    for _ in range(REPETITIONS):  # other work on the machine makes single ones longer
        begun = clock.monotonic()
        found = work()
        least = min(least, clock.monotonic() - begun)
    return found, least


def duration(seconds: float) -> str:
    """3 s, 12 min, 9.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
