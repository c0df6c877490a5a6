"""Sites of a federation on one machine: folders, real party processes, an engine over sockets."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hedgerow.coordinator.federation import Federation, Reply
from hedgerow.coordinator.gate import Gate
from hedgerow.engines.cards import PinnedRoster
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Unreachable, call
from hedgerow.methods.registry import METHODS, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.identity import Roster
from tests.cli.conftest import write_csv
from tests.conftest import MIXED, mixed_table

ROOT = Path(__file__).resolve().parents[2]


class SocketEngine:
    """Carries messages to the party processes of this machine."""

    simulated = False

    def __init__(self, sites: dict[str, Site]) -> None:
        self.by_name = sites
        self.before_ask: Callable[[bytes], None] = lambda message: None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.by_name))

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        self.before_ask(message)

        def one(name: str) -> Reply:
            try:
                return Reply(call(self.by_name[name].party_socket, message, timeout_seconds))
            except Unreachable as error:
                return Reply(None, str(error))

        with ThreadPoolExecutor(len(names)) as pool:
            return dict(zip(names, pool.map(one, names), strict=True))


class Sites:
    """A coordinator's site folder, a site folder for every party, tables and processes."""

    def __init__(self, folder: Path, names: Sequence[str], n_rows: int = 120) -> None:
        self.folder = folder
        MIXED.write(folder / "schema.toml")
        self.coordinator = Site.create(folder / "coordinator", "coordinator", "here:1")
        self.by_name = {name: Site.create(folder / name, name) for name in names}
        for seed, name in enumerate(names):
            write_csv(folder / f"{name}.csv", mixed_table(n_rows, seed))
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.runs: dict[str, Ledger] = {}  # the coordinator's ledger of each run
        self._said: dict[str, str] = {}
        self._listeners: dict[int, threading.Thread] = {}
        self.engine = SocketEngine(self.by_name)

    def roster(self, trust: str = "parties", minimum: int = 3) -> Roster:
        keys = tuple((name, self.by_name[name].identity().public) for name in sorted(self.by_name))
        return Roster(keys, self.coordinator.identity().public, 1, minimum, trust)

    def pin(self, roster: Roster | None = None) -> None:
        for site in self.by_name.values():
            site.pin(PinnedRoster("trial", roster or self.roster()))

    def start(self, name: str, *words: str, fail_at: str = "") -> subprocess.Popen[str]:
        """Start a party; its table is named at its first start only, then remembered."""
        site = self.by_name[name]
        if not (site.folder / "start.toml").exists():
            table = f"data={self.folder / name}.csv"
            words = (table, f"schema={self.folder / 'schema.toml'}", *words)
        environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "HEDGEROW_FAIL_AT": fail_at}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.deployment.driver", str(site.path), *words],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.processes[name] = process
        listener = threading.Thread(target=self._listen, args=(name, process), daemon=True)
        listener.start()
        self._listeners[process.pid] = listener
        return process

    def _listen(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._said[name] = self.said(name) + line

    def said(self, name: str) -> str:
        """All that the processes of a party have shown so far."""
        return self._said.get(name, "")

    def code(self, name: str) -> int:
        """Exit code of a party's process that ends by itself; then all its words were read."""
        process = self.processes[name]
        code = process.wait(300)
        self._listeners[process.pid].join(300)
        return code

    def await_words(self, name: str, words: str, times: int = 1) -> None:
        deadline = time.monotonic() + 300
        while self.said(name).count(words) < times:
            assert time.monotonic() < deadline, f"{name} never said {words!r}:\n{self.said(name)}"
            time.sleep(0.05)

    def await_disk(self, pid: int, limit: int) -> None:
        """Until the process has that limit on the size of files."""
        deadline = time.monotonic() + 300
        while resource.prlimit(pid, resource.RLIMIT_FSIZE)[0] != limit:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def start_all(self, *words: str) -> None:
        for name in self.by_name:
            self.start(name, *words)
        for name in self.by_name:
            self.await_words(name, "answering for trial")

    def restart(self, name: str) -> None:
        seen = self.said(name).count("answering for trial")
        self.start(name)
        self.await_words(name, "answering for trial", seen + 1)

    def end(self) -> dict[str, int]:
        """End every process that was started; exit codes by name."""
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        return {name: self.code(name) for name in self.processes}

    def federation(self) -> Federation:
        identity = self.coordinator.identity()
        return Federation(self.engine, MIXED, self.pinned_roster(), identity, timeout_seconds=60.0)

    def pinned_roster(self) -> Roster:
        return next(iter(self.by_name.values())).roster()

    def plan(self, epsilon: float = 1.0, method: str = "auto", spare: int = 2) -> Plan:
        settings = {"n_trees": 5, "max_depth": 2} if method == "random-trees" else {}
        privacy = Privacy(epsilon, 1e-6, "parties", spare=spare)
        return plan_for(MIXED, privacy, method, settings=settings, seed=3)

    def train(self, plan: Plan, ledger: Ledger) -> Ensemble:
        self.runs[plan.run] = ledger
        return METHODS[plan.method].grow(Gate(self.federation(), plan, ledger))

    def check_books(self) -> None:
        """Every ledger verifies, nothing was answered twice, every release was charged by all."""
        charged = {}
        for name, site in self.by_name.items():
            with Ledger.open(site.ledger_path, create=False) as ledger:
                (owner,) = verify(ledger)
                assert owner.owner == name
                answers = [
                    (line.run, line.slot, line.attempt) for line in ledger.lines(name, "answer")
                ]
                assert len(answers) == len(set(answers)), "a context was answered twice"
                charges = ledger.lines(name, "charge")
                charged[name] = {(line.run, line.slot, line.attempt) for line in charges}
        for run, coordinator in self.runs.items():
            verify(coordinator)
            for line in coordinator.lines("coordinator", "release", run):
                assert set(line.values["receipts"]) == set(self.by_name)
                for name in self.by_name:
                    assert (run, line.slot, line.attempt) in charged[name]
