"""A whole federation on one machine, to try it out: real keys, cards, a roster and processes."""

from __future__ import annotations

import codecs
import glob
import json
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import clock
from hedgerow.data.csv_format import CsvFormat
from hedgerow.data.schema import Schema
from hedgerow.deployment.approvals import write_private
from hedgerow.deployment.limits_file import default_limits_text
from hedgerow.deployment.roster import roster_of
from hedgerow.deployment.warming import PARTY_METHODS, task_of, warm
from hedgerow.engines.cards import read_card
from hedgerow.engines.grpc import check_installed
from hedgerow.engines.site import COORDINATOR, Site
from hedgerow.engines.sockets import Unreachable, call
from hedgerow.errors import HedgerowError, SettingsError
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.verify import verify

_READY_SECONDS = 180.0  # to compile loops, on a machine that has other work
_LAST_LINES = 12  # of a site that did not start
_STATUS = b'{"question": "status"}'


KINDS = ("sums", "similarity", "vertical")


class Trial:
    """Makes every site, starts it as a process of its own, trains once, and stops them.

    Parameters
    ----------
    kind : "sums" (the private methods), "similarity" or "vertical"
    id_column : of vertical tables, the column that says which rows belong together
    """

    def __init__(
        self,
        schema: Path,
        data: Sequence[str],
        parties: int,
        epsilon: float,
        delta: float,
        method: str | None,
        folder: Path | None,
        out: Path,
        kind: str = "sums",
        id_column: str = "",
    ) -> None:
        check_installed()
        self._schema, self._out, self._folder = schema, out, folder
        self._epsilon, self._delta, self._method = epsilon, delta, method
        self._files, self._parties = tables_of(data), parties
        self._kind, self._id = kind, id_column
        if kind not in KINDS:
            raise SettingsError(f"--kind {kind!r} is not known; known: {', '.join(KINDS)}")
        if (kind == "vertical") != bool(id_column):
            raise SettingsError(
                "--kind vertical and --id COLUMN belong together: tables with different columns, "
                "and the column that says which rows belong together. Nothing was started."
            )
        if folder is not None and folder.exists():
            raise SettingsError(f"{folder} exists; name a new folder. Nothing was started.")
        if len(self._files) > 1 and parties not in (0, len(self._files)):
            raise SettingsError(
                f"there are {len(self._files)} tables and --parties {parties}; leave it out, "
                "or give one table, which is then split. Nothing was started."
            )
        if len(self._files) == 1 and (parties < 1 or kind == "vertical"):
            raise SettingsError(
                "one table is split over several parties by rows; say over how many, such as "
                "--parties 3, or give the table of each party. Nothing was started."
            )

    def run(self, tell: Callable[[str], None]) -> dict[str, Any]:
        """Everything in order; returns what a reader wants to know of it."""
        with ExitStack() as stack:
            stack.enter_context(_cleaning_up_when_terminated())
            folder = self._folder
            if folder is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hedgerow-")))
            folder.mkdir(parents=True, exist_ok=True)
            return self._run(folder.resolve(), stack, tell)

    def _run(self, folder: Path, stack: ExitStack, tell: Callable[[str], None]) -> dict[str, Any]:
        seconds: dict[str, float] = {}
        with _timed(seconds, "check tables, make keys, cards and a roster"):
            tables = self._tables(folder)
            sites = self._sites(folder, tables)
        tell(f"Site folders of {len(tables)} parties and a coordinator in {folder / 'sites'}.")
        with _timed(seconds, "start every site"):
            stack.enter_context(sites)
        tell("All sites run as processes of their own, and every party is connected over TLS.")
        with _timed(seconds, "train"):
            facts = self._train(sites.by_name[COORDINATOR], tables, folder)
        with _timed(seconds, "stop every site"):
            sites.stop()
        facts["ledgers"] = {name: verified(site) for name, site in sites.by_name.items()}
        return {**facts, "seconds": {k: round(v, 2) for k, v in seconds.items()}}

    def _sites(self, folder: Path, tables: dict[str, Path]) -> Sites:
        limits, further = None, list[str]()
        if self._kind != "sums":  # what has no epsilon must be allowed by every party
            limits = folder / "limits.toml"
            write_private(limits, default_limits_text().replace("# roles = ", "roles = "))
        if self._id:
            further = ["--id", self._id]
        return Sites.make(folder, tables, self._schema, limits=limits, further=further, trial=True)

    def _tables(self, folder: Path) -> dict[str, Path]:
        """One checked table a party; a single one is dealt out row by row."""
        from hedgerow.data.readers import read_table
        from hedgerow.data.tables import rows_of, share_of

        schema = Schema.read(self._schema)
        if len(self._files) > 1:
            tables = {f"party-{i + 1}": file for i, file in enumerate(self._files)}
        else:
            tables = {}
            whole = read_table(self._files[0], schema.csv)
            for i, part in enumerate(parts_of(whole, schema, self._parties)):
                file = folder / f"part-{i + 1}{self._files[0].suffix.lower()}"
                _write_table(part, file, schema.csv)
                tables[f"party-{i + 1}"] = file
        for file in tables.values():
            if self._id:
                share_of(file, schema, self._id)
            else:
                rows_of(file, schema)
        return tables

    def _train(self, site: Site, tables: dict[str, Path], folder: Path) -> dict[str, Any]:
        common = ["--site", str(site.path), "--json", "--schema", str(self._schema)]
        if self._kind == "sums":
            promise = ["--epsilon", str(self._epsilon), "--delta", str(self._delta)]
            method = ["--method", self._method] if self._method else []
            command = ["train", *common, "--out", str(self._out), *promise, *method]
        elif self._kind == "similarity":
            command = ["similarity", *common, "--out", str(self._out)]
        else:
            command = ["vertical", "train", *common, "--merge", str(self._out)]
            command += self._owners(tables)
        done = subprocess.run(hedgerow(command), stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise HedgerowError(
                f"training ended with code {done.returncode}; what it said stands above. "
                f"Logs of the sites are in {folder}"
            )
        facts: dict[str, Any] = json.loads(done.stdout)
        from hedgerow.model.ensemble import Ensemble

        facts["words"] = Ensemble.load(self._out).statement.words()
        return facts

    def _owners(self, tables: dict[str, Path]) -> list[str]:
        """Who has which columns, and who has the labels: public facts of vertical tables."""
        from hedgerow.data.readers import read_table

        schema, words = Schema.read(self._schema), list[str]()
        for name, file in tables.items():
            columns = read_table(file, schema.csv).column_names
            if owned := [column for column in schema.names if column in columns]:
                words += ["--owner", f"{name}={','.join(owned)}"]
            if schema.label.name in columns:
                words += ["--active", name]
        return words


@contextmanager
def _cleaning_up_when_terminated() -> Iterator[None]:
    """SIGTERM ends everything that was started, as Ctrl-C does."""

    def terminated(*_: object) -> None:
        sys.exit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def hedgerow(arguments: Sequence[str]) -> list[str]:
    """The command line of this very installation."""
    return [sys.executable, "-m", "hedgerow", *arguments]


def tables_of(data: Sequence[str]) -> list[Path]:
    """Files, or patterns of files, in a fixed order."""
    files: list[Path] = []
    for text in data:
        found = [Path(text)] if Path(text).is_file() else [Path(p) for p in sorted(glob.glob(text))]
        if not found:
            raise SettingsError(f"no table at {text}. Nothing was started.")
        files.extend(found)
    return [file.resolve() for file in files]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def pin_everywhere(
    sites: dict[str, Site], trust: str = "parties", colluding: int = 1, minimum: int = 3
) -> None:
    """What people do by telephone: cards exchanged, one roster, pinned at every site."""
    cards = [read_card(site.write_card()) for site in sites.values()]
    minimum = min(minimum, len(sites) - 1)  # a trial of two parties is allowed, and says so
    agreed = roster_of(cards, "trial", trust, colluding, minimum)
    for site in sites.values():
        site.pin(agreed)


class Sites:
    """A coordinator and parties as processes of this machine, each from its own site folder."""

    def __init__(
        self,
        sites: dict[str, Site],
        tables: dict[str, Path],
        schema: Path,
        logs: Path,
        limits: Path | None = None,
        further: Sequence[str] = (),
    ) -> None:
        self.by_name = sites
        self._limits = ["--limits", str(limits.resolve())] if limits else []
        self._further = tuple(further)  # words for `party start`
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._tables, self._schema, self._logs = tables, schema, logs

    @classmethod
    def make(
        cls,
        folder: Path,
        tables: dict[str, Path],
        schema: Path,
        trust: str = "parties",
        minimum: int = 3,
        limits: Path | None = None,
        further: Sequence[str] = (),
        trial: bool = False,
    ) -> Sites:
        """Make sites in `folder` and pin one roster everywhere; nothing is started yet."""
        places, address = folder / "sites", f"127.0.0.1:{free_port()}"
        made = partial(Site.create, trial=trial)
        sites = {COORDINATOR: made(places / COORDINATOR, COORDINATOR, address)}
        sites |= {name: made(places / name, name) for name in sorted(tables)}
        pin_everywhere(sites, trust, minimum=minimum)
        return cls(sites, tables, schema.resolve(), folder, limits, further)

    def __enter__(self) -> Sites:
        # Confined processes keep what they compile to themselves: compiled here, it is there once.
        warm(PARTY_METHODS, (task_of(Schema.read(self._schema).label),))
        try:
            for name in self.by_name:
                self.start(name)
            for name in self._tables:
                self.wait_for(name)
        except BaseException:
            self.stop()  # or the sites that did start would run on
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, name: str) -> None:
        """Start one site, again if it has ended; its words go to a log of its own."""
        if (before := self.processes.get(name)) is not None:
            before.wait(20)
        path = str(self.by_name[name].path)
        if name == COORDINATOR:
            arguments = ["coordinator", "start", path]
        else:
            data = ["--data", str(self._tables[name]), "--schema", str(self._schema)]
            arguments = ["party", "start", path, *data, *self._limits, *self._further]
        with (self._logs / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(hedgerow(arguments), stdout=log, stderr=log)

    def wait_for(self, name: str) -> None:
        """Until a party runs and is connected."""
        deadline = clock.monotonic() + _READY_SECONDS
        while clock.monotonic() < deadline and self.processes[name].poll() is None:
            try:
                found = json.loads(call(self.by_name[name].status_socket, _STATUS, 5.0))
                link = found.get("connection") or {}
                if found.get("state") == "running" and link.get("connected"):
                    return
            except Unreachable:
                pass
            clock.sleep(0.1)
        # With the words themselves: a folder that was made for this trial goes with it.
        said = (
            (self._logs / f"{name}.log").read_text("utf-8", "replace").splitlines()[-_LAST_LINES:]
        )
        code = self.processes[name].poll()
        how = f"is not connected after {_READY_SECONDS:g} seconds" if code is None else "ended"
        words = "\n".join(said or ["(none)"])
        raise HedgerowError(
            f"{name} did not start: it {how}. Nothing was asked. The last lines that it wrote:\n"
            f"{words}"
        )

    def stop(self) -> None:
        """End every site as its operator would, all at once."""
        running = [p for p in self.processes.values() if p.poll() is None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def verified(site: Site) -> dict[str, Any]:
    """A site's ledger, walked and added up again."""
    with Ledger.open(site.ledger_path, create=False) as ledger:
        (found,) = [o for o in verify(ledger) if o.owner == site.name]
        reserved = ledger.lines(site.name, "reserve")
    delta = float(reserved[-1].values["delta"]) if reserved else 1e-6
    epsilon = found.spending.epsilon(delta)
    return {"charges": found.charges, "answers": found.answers, "epsilon": epsilon}


def parts_of(whole: Any, schema: Schema, n_parts: int) -> list[Any]:
    """An Arrow table dealt out row by row; all rows of a person go to one part."""
    dealt = np.arange(whole.num_rows)
    if schema.unit.kind == "person":
        ids = np.asarray(whole.column(schema.unit.column).to_pylist(), dtype=str)
        dealt = np.unique(ids, return_inverse=True)[1]
    return [whole.take(np.flatnonzero(dealt % n_parts == i)) for i in range(n_parts)]


def _write_table(part: Any, file: Path, written: CsvFormat) -> None:
    if file.suffix == ".csv":
        from pyarrow.csv import WriteOptions, write_csv

        with file.open("wb") as opened:
            opened.write(codecs.BOM_UTF8)  # whatever encoding the schema says
            write_csv(part, opened, WriteOptions(delimiter=written.separator))
    else:
        from pyarrow.parquet import write_table

        write_table(part, file)


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    began = clock.monotonic()
    yield
    seconds[step] = clock.monotonic() - began
