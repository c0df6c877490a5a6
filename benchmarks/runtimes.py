"""What does each way between a coordinator and its parties cost, and do all give one model?

Three parties on this machine, played by this process behind sockets, are asked over: sockets alone
(no network, no runtime), the engine `grpc`, a stock NVFlare 2.9 and a stock Flower 1.41, all of
them with TLS on loopback. Prints seconds a round (one message to every party and its reply of the
same size) by size of the message, and trains the same small model over each way with noise off:
trees and charges must equal those of three parties of one process, and so must the models of a
SimFL and a vertical session. Writes
benchmarks/results/runtimes.json. Flower runs in an environment of its own, which is made first;
HEDGEROW_FLOWER names a folder to keep it in. Whatever else loads the machine counts: the file says
how much did. With `--ways` only some are measured, and the file keeps what it has of the others.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.conftest import MIXED
from tests.engines.relays.played import PlayedParties
from tests.engines.relays.stock_flower import StockFlower, make_environment
from tests.engines.relays.stock_nvflare import StockNvflare
from tests.engines.relays.trained import PARTS, ROWS, THREE, trained, trained_here

from hedgerow.coordinator.federation import Federation
from hedgerow.data.tables import Rows
from hedgerow.engines.party_end import PartyEnd
from hedgerow.engines.relay import RelayEngine, RelayService
from hedgerow.engines.sockets import Listener
from hedgerow.engines.switchboard import (
    CoordinatorEnd,
    Switchboard,
    listen,
)
from hedgerow.protocol.engine import Reply
from hedgerow.protocol.roles import RoleFactory
from hedgerow.testing import check_sessions

RESULT = Path(__file__).parent / "results" / "runtimes.json"
SIZES = (1_000, 1_000_000, 10_000_000)
TIMEOUT_SECONDS = 120.0
Way = Callable[[Path, PlayedParties], Any]  # gives the socket at which messages are carried


class NoRuntime:
    """Parties' sockets called directly: what our own ends of a relay take."""

    slack_seconds = 0.0

    def __init__(self, sockets: Mapping[str, Path]) -> None:
        self._ends = {n: PartyEnd(n, str(place)) for n, place in sockets.items()}

    def nodes(self) -> Sequence[str]:
        return list(self._ends)

    def carry(self, messages: Mapping[str, bytes], seconds: float) -> dict[str, Reply]:
        with ThreadPoolExecutor(len(messages)) as pool:
            sent = {n: pool.submit(self._ends[n].answer, data) for n, data in messages.items()}
            return {name: Reply(found.result()) for name, found in sent.items()}


@contextmanager
def over_sockets(folder: Path, parties: PlayedParties) -> Iterator[Path]:
    path = folder / "relay.sock"
    with Switchboard(NoRuntime(parties.sockets)) as board, listen(CoordinatorEnd(str(path)), board):
        yield path


@contextmanager
def over_grpc(folder: Path, parties: PlayedParties) -> Iterator[Path]:
    from tests.engines.grpc.rig import Rig

    rig = Rig(THREE)
    for name in THREE:
        rig.handlers[name] = lambda message, name=name: parties.handlers[name](message)
    try:
        rig.connect()
        with Listener(folder / "relay.sock", RelayService(rig.server).handle):
            yield folder / "relay.sock"
    finally:
        rig.close()


@contextmanager
def over_nvflare(folder: Path, parties: PlayedParties) -> Iterator[Path]:
    with StockNvflare(folder / "stock", THREE, parties.sockets) as stock:
        stock.submit()
        yield stock.socket


@contextmanager
def over_flower(folder: Path, parties: PlayedParties) -> Iterator[Path]:
    programs = make_environment(folder / "environment")
    with StockFlower(folder / "stock", programs, THREE, parties.sockets) as stock:
        stock.submit()
        yield stock.socket


WAYS: dict[str, tuple[Way, int]] = {  # how, and rounds to measure of each size
    "sockets": (over_sockets, 20),
    "grpc": (over_grpc, 20),
    "nvflare": (over_nvflare, 20),
    "flower": (over_flower, 3),
}


def measure(way: Way, repeats: int) -> dict[str, Any]:
    """Rounds and a model over one way, from nothing."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as name:
        folder = Path(name)
        began = time.monotonic()
        with PlayedParties(folder, THREE) as parties, way(folder, parties) as socket:
            parties.handlers.update(dict.fromkeys(THREE, lambda message: message))
            engine = RelayEngine(socket, THREE, "Start it.")
            ask(engine, 1)
            first = time.monotonic() - began
            rounds = {str(size): [ask(engine, size) for _ in range(repeats)] for size in SIZES}
            began = time.monotonic()
            federation = parties.federation(socket, PARTS, MIXED, "parties")
            found, here = trained(federation, parties.ledgers), trained_here()
            took = time.monotonic() - began
            return {
                "to_first_reply": first,
                "rounds": rounds,
                "median": {size: statistics.median(took) for size, took in rounds.items()},
                "training": {
                    "seconds": took,
                    "round_trips": found.round_trips,
                    "same_trees": found.trees == here.trees,
                    "same_charges": found.charges == here.charges,
                },
                "sessions": {"steps": 25, "seconds": hold_sessions(parties, socket)},
                "load": os.getloadavg()[0],
            }


def hold_sessions(parties: PlayedParties, socket: Path) -> float:
    """Seconds for a SimFL and a vertical session; an error unless the models are the same."""

    def made(tables: Mapping[str, Rows], roles: Mapping[str, RoleFactory]) -> Federation:
        in_order = [tables[name] for name in THREE]
        return parties.federation(socket, in_order, MIXED, "coordinator", roles)

    began = time.monotonic()
    check_sessions(made, MIXED, ROWS, THREE, short=True)
    return time.monotonic() - began


def ask(engine: RelayEngine, size: int) -> float:
    """Seconds for one message of this size to every party, and the same back."""
    message = bytes(size)
    began = time.monotonic()
    replies = engine.ask(THREE, message, TIMEOUT_SECONDS)
    took = time.monotonic() - began
    for name, reply in replies.items():
        if reply.body != message:
            raise SystemExit(f"{name} gave no answer: {reply.problem}")
    return took


def show(found: Mapping[str, dict[str, Any]], console: Console) -> None:
    shown = Table(title="Seconds a round, three parties on this machine (median)")
    columns = (
        "way",
        "1 kB",
        "1 MB",
        "10 MB",
        "to first reply",
        "small model",
        "same model, charges",
    )
    for column in columns:
        shown.add_column(column, justify="left" if column == "way" else "right")
    for name, row in found.items():
        training = row["training"]
        shown.add_row(
            name,
            *(f"{row['median'][str(size)]:.3f}" for size in SIZES),
            f"{row['to_first_reply']:.1f}",
            f"{training['seconds']:.1f}, {training['round_trips']} round trips",
            "yes" if training["same_trees"] and training["same_charges"] else "NO",
        )
    console.print(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    ways = [w for w in options.ways if w != "grpc" or importlib.util.find_spec("grpc")]
    console = Console()
    known = json.loads(options.out.read_text("utf-8"))["ways"] if options.out.exists() else {}
    result: dict[str, Any] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "ways": {name: known[name] for name in WAYS if name in known},
    }
    for name in ways:
        console.print(f"{name} ...")
        result["ways"][name] = {
            "command": "python benchmarks/runtimes.py " + " ".join(sys.argv[1:]),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            **measure(*WAYS[name]),
        }
    show(result["ways"], console)
    options.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    console.print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
