"""What does the engine between sites cost a round, and how many parties and bytes does it carry?

*Rounds*: random trees on adult over three parties that run as processes of their own (gRPC, TLS,
loopback), beside the same parties in one process, taking turns; with ledgers on the disk, in a file
system in memory, and none. Every charge and every answer waits for the disk, several times a round,
so the engine's own part is seen where the disk costs nothing.

*Carried*: one message to every party and a reply of the same size, with the most memory that the
coordinator's process had. *Trained*: a model over many parties. There the coordinator is a process
of its own, and all parties live in this one, each with a stream of its own.

Writes benchmarks/results/federation.json. Whatever else loads the machine counts: the file says how
much did.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.deployment.trial import Sites, free_port, hedgerow, parts_of, pin_everywhere
from hedgerow.engines.grpc.client import Link, Target
from hedgerow.engines.local import local_federation
from hedgerow.engines.relay import RelayEngine
from hedgerow.engines.site import COORDINATOR, Site
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.party.party import Party
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy

RESULT = Path(__file__).parent / "results" / "federation.json"
IN_MEMORY = Path("/dev/shm")
MOST_EXTRA_MS, MOST_MB = 10.0, 300.0  # goals
ROUNDS, TURNS = 60, 3
CARRIED = ((3, 1_000), (3, 1_000_000), (3, 10_000_000), (50, 1_000), (50, 100_000), (200, 1_000))
TRAINED = (50, 200)
LIMITS = "format = 1\ndelta = 1e-5\n[epsilon]\nper_run = 2.0\nper_month = 1e4\ntotal = 1e4\n"
WAIT_SECONDS = 300.0
Handler = Callable[[bytes], bytes]


def train(federation: Federation, ledger: Ledger, n_trees: int = ROUNDS) -> list[float]:
    """Milliseconds of each round of one run, after the first."""
    privacy = Privacy(1.0, 1e-5, "parties", minimum_parties=3)
    settings = {"n_trees": n_trees}
    plan = plan_for(federation.schema, privacy, "random-trees", settings, seed=1)
    marks: list[float] = []
    gate = Gate(federation, plan, ledger, observe=lambda _: marks.append(time.monotonic()))
    method_named("random-trees").grow(gate)
    return [1e3 * (after - before) for before, after in pairwise(marks)]


def rounds(data: Path, place: Path | None) -> dict[str, Any]:
    """Three parties in one process and apart, in turns; `place` holds ledgers and sites."""
    schema, table = Schema.read(data / "adult.toml"), pq.read_table(data / "adult.parquet")
    took: dict[str, list[float]] = {"here, no file": [], "here": [], "apart": []}
    with tempfile.TemporaryDirectory(prefix="hedgerow-", dir=place) as name:
        folder, tables, rows = Path(name), dict[str, Path](), dict[str, Rows]()
        for i, part in enumerate(parts_of(table, schema, 3)):
            tables[f"party-{i + 1}"] = folder / f"part-{i + 1}.parquet"
            pq.write_table(part, tables[f"party-{i + 1}"])
            rows[f"party-{i + 1}"] = rows_of(part, schema)
        limits = folder / "limits.toml"
        limits.write_text(LIMITS, "utf-8")
        with Sites.make(folder, tables, data / "adult.toml", limits=limits) as sites:
            site = sites.by_name[COORDINATOR]
            with RelayEngine(site.carrier_socket, site.roster().names, "") as engine:
                for turn in range(-1, TURNS):  # the first compiles and is not counted
                    found = {"here, no file": train(local_federation(rows, schema), _none())}
                    with Ledger.open(folder / f"here-{turn}.sqlite") as ledger:
                        found["here"] = train(local_federation(rows, schema, ledger), ledger)
                    apart = Federation(engine, schema, site.roster(), site.identity())
                    with Ledger.open(site.ledger_path) as ledger:
                        found["apart"] = train(apart, ledger)
                    for way, times in found.items() if turn >= 0 else ():
                        took[way] += times
    median = {way: statistics.median(times) for way, times in took.items()}
    return {"median_ms": median, "load": os.getloadavg()[0]}


def _none() -> Ledger:
    return Ledger.in_memory()


@dataclass(frozen=True)
class Carrier:
    """A coordinator as a process of its own, with parties of this process."""

    site: Site
    engine: RelayEngine
    pid: int
    seconds_to_connect: float

    @property
    def most_mb(self) -> float:
        """The most memory that the coordinator's process had."""
        text = Path(f"/proc/{self.pid}/status").read_text("ascii")
        return int(text.partition("VmHWM:")[2].split()[0]) / 1024


@contextmanager
def coordinator(n: int, handlers: Callable[[dict[str, Site]], dict[str, Handler]]) -> Iterator[Any]:
    """So many parties connected to a coordinator's process."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as name:
        folder, address = Path(name), f"127.0.0.1:{free_port()}"
        sites = {COORDINATOR: Site.create(folder / COORDINATOR, COORDINATOR, address)}
        names = [f"party-{i + 1:03}" for i in range(n)]
        sites |= {name: Site.create(folder / name, name) for name in names}
        pin_everywhere(sites)
        site = sites[COORDINATOR]
        target = Target(address, site.certificate()[1], site.roster())
        command = hedgerow(["coordinator", "start", str(site.path)])
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        links = [
            Link(name, sites[name].identity(), 1, handle, lambda: target)
            for name, handle in handlers(sites).items()
        ]
        try:
            began = time.monotonic()
            for link in links:
                link.start()
            engine = RelayEngine(site.carrier_socket, names, "")
            if missing := engine.await_parties(WAIT_SECONDS):
                raise SystemExit(f"{len(missing)} of {n} parties did not connect")
            yield Carrier(site, engine, process.pid, time.monotonic() - began)
        finally:
            for link in links:
                link.stop()
            process.terminate()
            process.wait(30)


def carried(n: int, size: int, repeats: int = 10) -> dict[str, Any]:
    def echoes(sites: Mapping[str, Site]) -> dict[str, Handler]:
        return {name: (lambda message: message) for name in sites if name != COORDINATOR}

    with coordinator(n, echoes) as carrier:
        before, took = carrier.most_mb, []
        for _ in range(repeats):
            message, began = os.urandom(size), time.monotonic()
            replies = carrier.engine.ask(carrier.engine.names, message, WAIT_SECONDS)
            took.append(time.monotonic() - began)
            assert all(reply.body == message for reply in replies.values()), replies
        return {
            "parties": n, "bytes": size, "median_seconds": statistics.median(took),
            "seconds_to_connect": carrier.seconds_to_connect, "connected_mb": before,
            "most_mb": carrier.most_mb, "load": os.getloadavg()[0],
        }  # fmt: skip


def trained(data: Path, n: int, n_trees: int = 10) -> dict[str, Any]:
    schema, table = Schema.read(data / "adult.toml"), pq.read_table(data / "adult.parquet")
    parts = parts_of(table, schema, n)

    def parties(sites: Mapping[str, Site]) -> dict[str, Handler]:
        made: dict[str, Handler] = {}
        names = [name for name in sites if name != COORDINATOR]
        for name, part in zip(names, parts, strict=True):
            party = Party(name, rows_of(part, schema), schema, identity=sites[name].identity())
            party.pin(sites[name].roster())
            made[name] = partial(Party.handle, party)
        return made

    with coordinator(n, parties) as carrier:
        site = carrier.site
        apart = Federation(carrier.engine, schema, site.roster(), site.identity(), WAIT_SECONDS)
        with Ledger.open(site.ledger_path) as ledger:
            times = train(apart, ledger, n_trees)
            releases = ledger.lines(COORDINATOR, "release")
        return {
            "parties": n, "releases": len(releases),
            "fewest_parties": min(len(line.values["receipts"]) for line in releases),
            "median_ms": statistics.median(times), "most_mb": carrier.most_mb,
            "load": os.getloadavg()[0],
        }  # fmt: skip


def show(found: Mapping[str, Any], console: Console) -> None:
    shown = Table("ledgers", "here, no file", "here", "apart", title="Three parties, ms a round")
    for place, row in found["rounds"].items():
        shown.add_row(place, *(f"{ms:.1f}" for ms in row["median_ms"].values()))
    console.print(shown)
    shown = Table("parties", "bytes", "s a round", "coordinator MB", title="One message to all")
    for row in found["carried"]:
        cells = f"{row['median_seconds']:.4f}", f"{row['most_mb']:.0f}"
        shown.add_row(str(row["parties"]), f"{row['bytes']:,}", *cells)
    console.print(shown)
    for row in found["trained"]:
        console.print(
            f"{row['parties']} parties: {row['releases']} releases over {row['fewest_parties']} at "
            f"least, {row['median_ms']:.0f} ms a round, coordinator {row['most_mb']:.0f} MB"
        )
    for place, row in found["rounds"].items():
        extra = row["median_ms"]["apart"] - row["median_ms"]["here"]
        verdict(console, f"ms beyond one process a round, {place}", extra, MOST_EXTRA_MS)
    for row in found["carried"]:
        what = f"MB of the coordinator, {row['parties']} parties, {row['bytes']:,} bytes"
        verdict(console, what, row["most_mb"], MOST_MB)


def verdict(console: Console, what: str, value: float, goal: float) -> None:
    console.print(f"{'yes' if value <= goal else 'no '} {what}: {value:.1f}, goal {goal:g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--parts", nargs="+", default=["rounds", "carried", "trained"])
    options, console = parser.parse_args(), Console()
    if "HEDGEROW_DATA" not in os.environ:
        sys.exit("set HEDGEROW_DATA to the folder with adult.parquet and adult.toml")
    data = Path(os.environ["HEDGEROW_DATA"])
    found: dict[str, Any] = {"rounds": {}, "carried": [], "trained": []}
    if "rounds" in options.parts:
        found["rounds"]["on the disk"] = rounds(data, None)
        if IN_MEMORY.is_dir():
            found["rounds"]["in memory"] = rounds(data, IN_MEMORY)
    if "carried" in options.parts:
        found["carried"] = [carried(*case) for case in CARRIED]
    if "trained" in options.parts:
        found["trained"] = [trained(data, n) for n in TRAINED]
    show(found, console)
    values = {
        "command": " ".join(["python benchmarks/federation.py", *sys.argv[1:]]),
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        **found,
    }
    options.out.write_text(json.dumps(values, indent=1) + "\n", "utf-8")
    console.print(f"written to {options.out}")


if __name__ == "__main__":
    main()
