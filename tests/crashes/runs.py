"""Starting, killing and checking `hedgerow train` as a real process; shared with the soak."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from hedgerow.data.schema import Schema
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.verify import verify

ROOT = Path(__file__).resolve().parents[2]
KILLED = -9
TREES = 12


def write_tables(folder: Path) -> list[str]:
    """Three small tables and their schema; returns the arguments of `train` that name them."""
    schema = Schema.from_bounds({"age": (0, 100), "dose": (0, 1)}, classes=[0, 1], label="ill")
    schema.write(folder / "schema.toml")
    rng = np.random.default_rng(5)
    arguments = ["--schema", str(folder / "schema.toml")]
    for name in ("north", "south", "west"):
        age, dose = rng.uniform(0, 100, 80), rng.uniform(0, 1, 80)
        ill = (age / 100 + dose > 1).astype(int)
        lines = [f"{a:.2f},{d:.3f},{i}" for a, d, i in zip(age, dose, ill, strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(["age,dose,ill", *lines]) + "\n")
        arguments += ["--data", f"{name}={folder / name}.csv"]
    return arguments


RANDOM_TREES = ("--method", "random-trees", "--trees", str(TREES), "--depth", "2")


def command(
    folder: Path, out: str, spare: int, quiet: bool = True, method: tuple[str, ...] = RANDOM_TREES
) -> list[str]:
    """The same command, run again and again: only the environment differs."""
    program = ["-m", "tests.crashes.driver"] if quiet else ["-m", "hedgerow.cli.app"]
    tables = write_tables(folder)
    options = ["--epsilon", "50", "--delta", "1e-6", *method]
    options += ["--trust", "parties", "--seed", "3", "--set", f"spare={spare}"]
    placed = ["--out", str(folder / out), "--ledger", str(folder / f"{out}.ledger")]
    return [sys.executable, *program, "train", *tables, *options, *placed]


def run(arguments: list[str], fail_at: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HEDGEROW_FAIL_AT": fail_at, "NUMBA_NUM_THREADS": "1"}
    return subprocess.run(
        arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=800
    )


class Commands:
    """Runs commands one after another in processes that a loaded one forks: quick to start."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._folder = folder
        self._driver = subprocess.Popen(
            [sys.executable, "-m", "tests.crashes.driver", "--many"], cwd=ROOT, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, arguments: list[str], fail_at: str = "") -> subprocess.CompletedProcess[str]:
        """What `run` does, for arguments of `command`."""
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        paths = {name: self._folder / name for name in ("stdout", "stderr")}
        wanted = {
            "words": arguments[arguments.index("train") :],
            "environment": {"HEDGEROW_FAIL_AT": fail_at},
            **{name: str(path) for name, path in paths.items()},
        }
        self._driver.stdin.write(json.dumps(wanted) + "\n")
        self._driver.stdin.flush()
        code = int(self._driver.stdout.readline())
        told = [path.read_text("utf-8") for path in paths.values()]
        return subprocess.CompletedProcess(arguments, code, *told)

    def close(self) -> None:
        self._driver.communicate(timeout=300)


def check_ledger(path: Path) -> tuple[int, int]:
    """Charges and releases of the coordinator; raises if anything left uncharged or twice."""
    if not path.exists():
        return 0, 0
    with Ledger.open(path) as ledger:
        verify(ledger)
        answers = ledger.lines(kind="answer")
        contexts = [(line.owner, line.run, line.slot, line.attempt) for line in answers]
        assert len(contexts) == len(set(contexts)), "a context was answered twice"
        charges = ledger.lines("coordinator", "charge")
        releases = ledger.lines("coordinator", "release")
        assert len({line.slot for line in releases}) == len(releases), "a slot was released twice"
        return len(charges), len(releases)
