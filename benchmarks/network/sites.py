"""A federation of four parties, each on a host of its own, set up by the documented commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from hedgerow import Schema
from hedgerow.engines.site import COORDINATOR, Site
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.verify import verify
from network.hosts import Network

PARTIES = ("north", "river", "summit", "valley")
PORT = 8002
SCHEMA = Schema.from_bounds({"age": (0, 100), "dose": (0, 1), "pulse": (30, 200)}, classes=[0, 1])
LIMITS = "format = 1\ndelta = 1e-6\n[epsilon]\nper_run = 2.0\nper_month = 1e4\ntotal = 1e4\n"
ROWS = 5_000  # of each party
READY_SECONDS = 120.0
RUN_SECONDS = 300.0  # a command that takes longer counts as hung
TREES = 60
WORDS = (
    *("--epsilon", "1", "--delta", "1e-6", "--method", "random-trees", "--trees", str(TREES)),
    *("--spare", "8", "--wait-seconds", "60", "--timeout-seconds", "15", "--json"),
)
Charge = tuple[str, int, int]  # run, slot, attempt


@dataclass
class Outcome:
    """How one training went."""

    code: int
    tries: int
    seconds: float
    releases: int = 0
    rounds_per_second: float = 0.0
    longest_gap_seconds: float = 0.0
    attempts_lost: int = 0
    fewest_parties: int = 0
    words: str = ""  # the last line that the command said, where it did not end well
    further: dict[str, Any] = field(default_factory=dict)


class Sites:
    """The coordinator and its parties as processes on their hosts; use it in `with`."""

    def __init__(self, network: Network, folder: Path) -> None:
        self.network, self.folder = network, folder
        self.site: dict[str, Site] = {}
        self.processes: dict[str, subprocess.Popen[Any]] = {}
        self.before: dict[str, Sequence[str]] = {}  # words in front of a site's command
        self.environment: dict[str, str] = {}
        self._runs = 0

    def __enter__(self) -> Sites:
        self._set_up()
        for name in self.site:
            self.start(name)
        self.wait_for_all()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)

    def _set_up(self) -> None:
        """What people at the sites type, once."""
        SCHEMA.write(self.folder / "schema.toml")
        (self.folder / "limits.toml").write_text(LIMITS, "utf-8")
        address = f"{self.network.address(COORDINATOR)}:{PORT}"
        self.run("coordinator", "init", str(self.folder / COORDINATOR), "--listen", address)
        for seed, name in enumerate(PARTIES):
            self.run("party", "init", str(self.folder / name))
            parquet.write_table(table(seed), self.folder / f"{name}.parquet")
        self.site = {n: Site.open(self.folder / n) for n in (COORDINATOR, *PARTIES)}
        cards = [str(next((self.folder / name).glob("*.card.toml"))) for name in self.site]
        roster, yes = str(self.folder / "roster.toml"), "--yes"
        coordinator = ("--site", str(self.folder / COORDINATOR))
        self.run("federation", "roster", *cards, "--out", roster, *coordinator, yes)
        for name in PARTIES:
            self.run("party", "pin", str(self.folder / name), roster, yes)

    def run(self, *words: str) -> None:
        subprocess.run(hedgerow(words), check=True, capture_output=True)

    def start(self, name: str) -> None:
        """Start a site, again if it has ended; its words go to a log of its own."""
        words = ["coordinator", "start", str(self.folder / name)]
        if name != COORDINATOR:
            limits = ["--limits", str(self.folder / "limits.toml")]
            words = ["party", "start", str(self.folder / name), *limits]
            words += ["--data", str(self.folder / f"{name}.parquet")]
            words += ["--schema", str(self.folder / "schema.toml")]
        command = [*self.before.get(name, ()), *hedgerow(words)]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = self.network.start(
                name, command, stdout=log, stderr=log, env=self._environment(),
                start_new_session=True,
            )  # fmt: skip

    def kill(self, name: str) -> None:
        """With whatever stands in front of its command."""
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait()

    def start_again(self) -> dict[str, int]:
        """Start what has ended by itself; returns such sites with their exit codes."""
        ended = {n: p.returncode for n, p in self.processes.items() if p.poll() is not None}
        for name in ended:
            self.start(name)
        return ended

    def _environment(self) -> dict[str, str] | None:
        return {**os.environ, **self.environment} if self.environment else None

    def wait_for_all(self) -> None:
        """Until the coordinator says that every party is connected."""
        deadline = time.monotonic() + READY_SECONDS
        # Not by its exit code: a clock that is wrong on purpose is a problem for as long as it is.
        while not _all_connected(status(self.folder)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not every site is there; their logs are in {self.folder}")
            time.sleep(0.2)

    def train(self, fault: Callable[[], None] | None = None, after: int = 0) -> Outcome:
        """Train once; `fault` happens after so many releases. The command is repeated while it
        says that it can go on."""
        self._runs += 1
        out = self.folder / f"model-{self._runs}.hedge"
        site, schema = str(self.folder / COORDINATOR), str(self.folder / "schema.toml")
        words = ["train", "--site", site, "--schema", schema, "--out", str(out), *WORDS]
        known, began, said = self._releases(), time.monotonic(), ""
        for tries in range(1, 5):
            process = self.network.start(
                COORDINATOR, hedgerow(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, env=self._environment(),
            )  # fmt: skip
            self.training = process
            while fault is not None and process.poll() is None:
                if len(self._releases()) - len(known) >= after:
                    fault()
                    fault = None
                time.sleep(0.1)
            try:
                _, said = process.communicate(timeout=RUN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                return Outcome(-1, tries, time.monotonic() - began, words="HUNG")
            if process.returncode not in (5, -9):
                break
        return self._outcome(process.returncode, tries, time.monotonic() - began, known, said)

    def _outcome(
        self, code: int, tries: int, seconds: float, known: Mapping[Charge, Any], said: str
    ) -> Outcome:
        fresh = {k: v for k, v in self._releases().items() if k not in known}
        times = sorted(when for when, _ in fresh.values())
        gaps = np.diff(times) if len(times) > 1 else np.zeros(1)
        charged = [one for one in charges(self.site[COORDINATOR], COORDINATOR) if one not in known]
        run = next(iter(fresh))[0] if fresh else ""
        last = [line for line in said.splitlines() if line.strip()][-1:] if code else []
        return Outcome(
            code, tries, round(seconds, 2), len(fresh),
            round(len(gaps) / max(float(gaps.sum()), 1e-9), 2) if len(times) > 1 else 0.0,
            round(float(gaps.max()), 2),
            sum(one[0] == run for one in charged) - len(fresh),
            min((parties for _, parties in fresh.values()), default=0),
            " ".join(last)[:300],
        )  # fmt: skip

    def _releases(self) -> dict[Charge, tuple[float, int]]:
        """When each release was stored, and over how many parties it was."""
        path = self.site[COORDINATOR].ledger_path
        if not path.exists():
            return {}
        with Ledger.open(path, create=False) as ledger:
            return {
                (x.run, x.slot, x.attempt): (_seconds(x.time), len(x.values["receipts"]))
                for x in ledger.lines(COORDINATOR, "release")
            }

    def compare(self) -> dict[str, int]:
        """What the five ledgers say of each other; all but the first should be 0."""
        coordinator = set(charges(self.site[COORDINATOR], COORDINATOR))
        released, parties = set(self._releases()), {n: charges(self.site[n], n) for n in PARTIES}
        for name, site in self.site.items():
            with Ledger.open(site.ledger_path, create=False) as ledger:
                assert verify(ledger), name
        return {
            "releases": len(released),
            "releases_without_a_charge": len(released - coordinator),
            "releases_charged_by_fewer_than_three_parties": sum(
                sum(one in paid for paid in parties.values()) < 3 for one in released
            ),
            "attempts_charged_twice": sum(len(paid) - len(set(paid)) for paid in parties.values()),
            "charges_unknown_to_the_coordinator": sum(
                len(set(paid) - coordinator) for paid in parties.values()
            ),
        }


def charges(site: Site, owner: str) -> list[Charge]:
    with Ledger.open(site.ledger_path, create=False) as ledger:
        return [(x.run, x.slot, x.attempt) for x in ledger.lines(owner, "charge")]


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    made = {
        "age": rng.uniform(0, 100, ROWS),
        "dose": rng.uniform(0, 1, ROWS),
        "pulse": rng.uniform(30, 200, ROWS),
    }
    odds = made["age"] / 20 - 2.5 + 2 * (made["dose"] > 0.6)
    return pa.table({**made, "label": (rng.random(ROWS) < 1 / (1 + np.exp(-odds))).astype(int)})


def hedgerow(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "hedgerow", *words]


def status(folder: Path) -> Any:
    command = hedgerow(["coordinator", "status", str(folder / COORDINATOR), "--json"])
    return json.loads(subprocess.run(command, capture_output=True, text=True).stdout or "{}")


def _all_connected(found: Any) -> bool:
    parties = found.get("parties", [])
    return len(parties) == len(PARTIES) and all(one["connected"] for one in parties)


def _seconds(time_utc: str) -> float:
    return datetime.fromisoformat(time_utc).timestamp()
