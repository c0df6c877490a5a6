"""How quickly the console shows a ledger of 100,000 lines, and how much memory that takes.

    python benchmarks/console.py --lines 100000

A process with the ledger answers at a party's socket, `hedgerow console` serves pages before it.
Each page is opened several times; the first and the median are written to
benchmarks/results/console.json, with the peak memory of both processes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

from hedgerow.data.schema import Schema
from hedgerow.deployment.accounts import Accounts
from hedgerow.deployment.console.party_questions import PartyQuestions
from hedgerow.deployment.service import PartyService
from hedgerow.deployment.start import Start
from hedgerow.deployment.status import StatusService
from hedgerow.deployment.trial import free_port, hedgerow
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Listener
from hedgerow.methods.registry import plan_for
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.settings import Privacy

RESULT = Path(__file__).parent / "results" / "console.json"
SCHEMA = Schema.from_bounds({"age": (0, 100), "dose": (0, 1)}, classes=[0, 1])
PAGES = ("/", "/budget", "/plans", "/ledger", "/ledger?kind=refuse", "/standing", "/refusals")
REPEAT = 5
N_RUNS = 200


def fill(site: Site, n_lines: int) -> int:
    """A ledger of so many lines: runs with charges and answers, and refusals between them."""
    with Ledger.open(site.ledger_path) as ledger, ledger.transaction():
        each = n_lines // N_RUNS
        for number in range(N_RUNS):
            run = f"run-{number:04d}"
            plan = plan_for(SCHEMA, Privacy(0.05, 1e-6), "random-trees",
                            settings={"n_trees": each // 3}, seed=1, run=run)  # fmt: skip
            reservation = Reservation(ledger, plan, site.name)
            for slot in range(len(plan.slots)):
                reservation.charge(slot, f"request {slot}", 1)
                ledger.append(site.name, "answer", run, slot, 1, values={"context": "x" * 64})
            while ledger.last()[0] < (number + 1) * each:
                values = {"word": "bad-signature"}
                ledger.append(site.name, "refuse", f"odd-{ledger.last()[0]}", values=values)
        return ledger.last()[0]


def serve(path: str) -> None:
    """The child that holds the ledger, until its input ends."""
    site, start = Site.open(Path(path)), Start()
    in_force = start.in_force(site)
    with Ledger.open(site.ledger_path, create=False) as ledger:
        status = StatusService(site, ledger, in_force.limits, lambda: "running")
        pages = PartyQuestions(site, start, in_force, ledger, SCHEMA, 0, status, lambda: None)
        service = PartyService(status, pages.questions(), pages.health)
        with Listener(site.console_socket, service.handle_console):
            print("ready", flush=True)
            sys.stdin.read()


def peak_mb(process: int) -> float:
    text = Path(f"/proc/{process}/status").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("VmHWM")]
    return round(int(line.split()[1]) / 1024, 1)


def measured(n_lines: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as folder:
        site = Site.create(Path(folder) / "hospital-a", "hospital-a")
        lines = fill(site, n_lines)
        Accounts(site).put("Anna", "reader")
        port = free_port()
        words = ["console", str(site.path), "--listen", f"127.0.0.1:{port}"]
        party = subprocess.Popen([sys.executable, __file__, "--serve", str(site.path)], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        assert party.stdout is not None
        assert party.stdout.readline() == "ready\n"
        console = subprocess.Popen(hedgerow(words), stderr=subprocess.PIPE, text=True)
        try:
            assert console.stderr is not None
            while "The console of" not in console.stderr.readline():
                pass
            base = f"http://127.0.0.1:{port}"
            cookie = signed_in(base, Accounts(site).make_link("Anna"))
            pages = {path: times(base + path, cookie) for path in PAGES}
            began = time.perf_counter()
            n_bytes = len(fetched(f"{base}/ledger.csv", cookie))
            csv_seconds = time.perf_counter() - began
            return {
                "lines": lines,
                "runs": N_RUNS,
                "seconds": pages,
                "csv": {"seconds": round(csv_seconds, 2), "megabytes": round(n_bytes / 1e6, 1)},
                "peak_mb": {"console": peak_mb(console.pid), "party": peak_mb(party.pid)},
            }
        finally:
            console.terminate()
            party.communicate()
            console.communicate()


def signed_in(base: str, code: str) -> str:
    opener = urllib.request.build_opener(_Stay)
    body = urllib.parse.urlencode({"code": code}).encode()
    reply = opener.open(urllib.request.Request(f"{base}/enter", body, {"origin": base}))
    return str(reply.headers["set-cookie"]).partition(";")[0]


class _Stay(urllib.request.HTTPRedirectHandler):
    def http_error_303(self, req, fp, code, msg, headers):  # type: ignore[no-untyped-def]
        return fp


def fetched(url: str, cookie: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"cookie": cookie})) as reply:
        return bytes(reply.read())


def times(url: str, cookie: str) -> dict[str, float]:
    found = []
    for _ in range(REPEAT):
        began = time.perf_counter()
        fetched(url, cookie)
        found.append(time.perf_counter() - began)
    return {"first": round(found[0], 3), "median": round(statistics.median(found), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--serve", default="")
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    machine = {"python": platform.python_version(), "cores": os.cpu_count()}
    result = {"machine": machine, **measured(given.lines)}
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
