"""`hedgerow train --engine dask`: over TLS, on a cluster of its own, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from hedgerow.cli.app import app
from hedgerow.errors import HedgerowError
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.verify import verify
from hedgerow.testing import noise_off
from tests.engines.dask.conftest import Started
from tests.slow import slow

PROMISE = ("--epsilon", "1", "--delta", "1e-6", "--seed", "5")


def command(folder: Path, out: Path, *words: str) -> list[str]:
    data = ("--schema", str(folder / "schema.toml"), "--data", str(folder / "*.parquet"))
    return ["train", "--engine", "dask", *data, "--out", str(out), *PROMISE, *words]


def there(started: Started) -> tuple[str, ...]:
    tls = started.tls
    files = ("--tls-ca", tls.ca_file, "--tls-cert", tls.certificate, "--tls-key", tls.key)
    return ("--scheduler", started.address, *files)


def call(words: list[str]) -> Result:
    return CliRunner().invoke(app, words)


def refused(words: list[str]) -> str:
    error = call(words).exception
    assert isinstance(error, HedgerowError), error
    return str(error)


def test_a_folder_trains_over_tls(started: Started, folder: Path, tmp_path: Path) -> None:
    out, local = tmp_path / "m.hedge", tmp_path / "local.hedge"
    whole = tmp_path / "whole.parquet"
    files = sorted(folder.glob("*.parquet"))
    pq.write_table(pq.ParquetDataset([str(file) for file in files]).read(), whole)
    with noise_off():
        found = call(command(folder, out, "--json", *there(started)))
        assert found.exit_code == 0, found.exception
        words = ("--schema", str(folder / "schema.toml"), "--data", f"all={whole}", *PROMISE)
        assert call(["train", *words, "--out", str(local)]).exit_code == 0
    facts = json.loads(found.stdout)
    assert facts["parties"] == ["all"]
    assert facts["slots_lost"] == 0
    assert Ensemble.load(out).trees == Ensemble.load(local).trees
    with Ledger.open(Path(facts["ledger"])) as ledger:
        assert {one.owner for one in verify(ledger)} == {"all", "coordinator"}


@slow
def test_ctrl_c_on_a_cluster_of_its_own_loses_nothing(
    started: Started, folder: Path, tmp_path: Path
) -> None:
    """A terminal sends Ctrl-C to every process; the run then goes on on another cluster."""
    words = ("--method", "dp-tr-newton", "--trees", "60")
    own = command(folder, tmp_path / "m.hedge", *words)
    log = tmp_path / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "hedgerow", "--verbose", *own, "--workers", "1"],
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        deadline = time.monotonic() + 120
        while " slot 5 of" not in log.read_text() and time.monotonic() < deadline:
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(300) == 5, log.read_text()
    assert "nothing is paid twice" in log.read_text()
    resumed = call([*own, "--json", "--resume", *there(started)])
    assert resumed.exit_code == 0, resumed.exception
    facts = json.loads(resumed.stdout)
    assert facts["slots_lost"] == 0
    assert facts["releases_replayed"] >= 5
    assert facts["releases_replayed"] + facts["releases_asked"] == 60


def test_a_bad_partition_spends_nothing(started: Started, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    file = copy / "part-3.parquet"
    rows = pq.read_table(file)
    codes = [999] * rows.num_rows
    pq.write_table(rows.set_column(rows.column_names.index("code"), "code", [codes]), file)
    told = refused(command(copy, tmp_path / "m.hedge", *there(started)))
    assert "part-3.parquet: column 'code' has 150 rows with a value that is not among" in told
    assert "Nothing was asked and nothing was spent." in told
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--trust", "parties"), "one owner"),
        (("--method", "ldp"), "one owner"),
        (("--set", "candidates=quantiles-not-private"), "no place has them"),
        (("--data", "b.parquet"), "--data once and there are 2"),
        (("--workers", "0"), "at least 1"),
        (("--workers", "2", "--scheduler", "tcp://127.0.0.1:9"), "without --scheduler"),
        (("--tls-ca", "ca.pem"), "needs --scheduler"),
        (("--tls-ca", "ca.pem", "--scheduler", "tls://127.0.0.1:9"), "together"),
        (("--engine", "local", "--workers", "2"), "--workers belongs to --engine dask"),
    ],
)
def test_what_cannot_be_is_refused_before_a_cluster_starts(
    words: tuple[str, ...], told: str, folder: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("hedgerow.engines.dask.cluster.LocalCluster", None)
    said = refused(command(folder, tmp_path / "m.hedge", *words))
    assert told in said
    assert "othing was" in said
