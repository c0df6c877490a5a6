"""Does a federation between hosts survive its network, its processes and strangers?

A coordinator and four parties run on hosts of their own (network namespaces; it needs root), set up
by the documented commands. Each scenario trains one model of 60 rounds while something goes wrong,
repeats the command where it says that it can go on, and then compares all five ledgers. Prints how
many rounds a second there were and the longest gap, beside what was measured of the engine that
hedgerow had before (NVFlare, tamed), and writes benchmarks/results/network.json; with --only the
rest of the file stays. Whatever else loads the machine counts: the file says how much did.

With --repeat each scenario is tried so often, and benchmarks/results/network_repeated.json has how
many trials ended well and which sites' processes died.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hedgerow.engines.site import COORDINATOR
from network import strangers
from network.hosts import Line, Network, missing
from network.sites import PARTIES, PORT, Outcome, Sites

RESULT = Path(__file__).parent / "results" / "network.json"
REPEATED = RESULT.with_name("network_repeated.json")
FAR = Line(delay_seconds=0.05)  # a run takes long enough for something to happen on the way
# What was measured of the engine before, in namespaces too, when it was given up.
BEFORE = {
    "round trip of 100 ms": "2.2 rounds/s",
    "a party gone for good": "0.47 rounds/s, 68 s gap",
    "a silent connection during": "hung for ever",
}
Scenario = Callable[[Sites], Outcome]


def plain(line: Line) -> Scenario:
    def scenario(sites: Sites) -> Outcome:
        sites.network.set_lines(dict.fromkeys(PARTIES, line))
        return sites.train()

    return scenario


def cut(name: str, seconds: float) -> Scenario:
    """Nothing goes to or from a host for a while."""

    def scenario(sites: Sites) -> Outcome:
        def fault() -> None:
            own = Line() if name == COORDINATOR else FAR
            sites.network.set_lines({name: Line(cut=True)})
            time.sleep(seconds)
            sites.network.set_lines({name: own})

        return sites.train(fault, after=15)

    return scenario


def killed(name: str, again: bool) -> Scenario:
    def scenario(sites: Sites) -> Outcome:
        def fault() -> None:
            sites.kill(name)
            if again:
                sites.start(name)

        outcome = sites.train(fault, after=15)
        if not again:
            sites.start(name)
        return outcome

    return scenario


def training_killed(sites: Sites) -> Outcome:
    return sites.train(lambda: sites.training.kill(), after=15)


def full_disk(sites: Sites) -> Outcome:
    """A party's disk has no space for a while; its site folder is a file system of its own."""
    place, filler = sites.folder / PARTIES[0], sites.folder / PARTIES[0] / "filler"

    def fault() -> None:
        with filler.open("wb") as file:
            try:
                while True:
                    file.write(bytes(2**16))
                    file.flush()
            except OSError:
                pass
        time.sleep(5)
        filler.unlink()

    kept = sites.folder / "kept"
    sites.kill(PARTIES[0])
    shutil.copytree(place, kept, symlinks=True, ignore=shutil.ignore_patterns("*.sock*"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(place)]
    subprocess.run(mount, check=True)
    try:
        shutil.copytree(kept, place, dirs_exist_ok=True)
        sites.start(PARTIES[0])
        sites.wait_for_all()
        outcome = sites.train(fault, after=15)
    finally:
        sites.kill(PARTIES[0])
        shutil.rmtree(kept)
        shutil.copytree(place, kept, symlinks=True, ignore=shutil.ignore_patterns("*.sock*"))
        subprocess.run(["umount", str(place)], check=True)
        shutil.copytree(kept, place, dirs_exist_ok=True)
        shutil.rmtree(kept)
        sites.start(PARTIES[0])
    return outcome


def wrong_clock(sites: Sites) -> Outcome:
    """A party whose clock is 400 days ahead; the coordinator names it."""
    name = PARTIES[1]
    sites.kill(name)
    sites.before[name] = ["faketime", "-f", "+400d"]
    sites.start(name)
    try:
        sites.wait_for_all()
        from network.sites import status

        remarks = [p["remarks"] for p in status(sites.folder)["parties"] if p["name"] == name]
        outcome = sites.train()
        outcome.further["coordinator status says"] = remarks[0]
    finally:
        sites.kill(name)
        del sites.before[name]
        sites.start(name)
    return outcome


def knocking(kind: str, count: int, during: bool) -> Scenario:
    """Strangers at the port, before the run begins or in the middle of it."""

    def scenario(sites: Sites) -> Outcome:
        address = sites.network.address(COORDINATOR)
        command = [sys.executable, strangers.__file__, kind, address, str(PORT), str(count), "60"]
        opened: list[subprocess.Popen[Any]] = []

        def fault() -> None:
            process = sites.network.start("stranger", command, stdout=subprocess.PIPE)
            assert process.stdout is not None
            process.stdout.readline()
            opened.append(process)

        before = memory(sites)
        if not during:
            fault()
        log = sites.folder / f"{COORDINATOR}.log"
        lines = log.read_text("utf-8").count("turned away")
        outcome = sites.train(fault if during else None, after=10)
        for process in opened:
            process.kill()
        time.sleep(3)  # the coordinator looks for silent ones once a second
        outcome.further["log lines about strangers"] = (
            log.read_text("utf-8").count("turned away") - lines
        )
        outcome.further["coordinator grew by MB"] = round(memory(sites) - before, 1)
        return outcome

    return scenario


def cold(sites: Sites) -> Outcome:
    """Every site starts with nothing compiled, and is asked at once."""
    with tempfile.TemporaryDirectory() as cache:
        sites.environment = {"NUMBA_CACHE_DIR": cache}
        for name in PARTIES:
            sites.kill(name)
            sites.start(name)
        try:
            return sites.train()
        finally:
            sites.environment = {}


def memory(sites: Sites) -> float:
    """The largest memory of the coordinator's process so far, in MB; 0 if it has ended."""
    text = Path(f"/proc/{sites.processes[COORDINATOR].pid}/status").read_text("ascii")
    found = text.partition("VmHWM:")[2].split()
    return int(found[0]) / 1024 if found else 0.0


SCENARIOS: dict[str, tuple[Scenario, bool]] = {  # and whether the lines are far
    "nothing wrong": (plain(Line()), False),
    "round trip of 100 ms": (plain(FAR), False),
    "round trip of 300 ms": (plain(Line(delay_seconds=0.15)), False),
    "2 % of frames lost": (plain(Line(loss=0.02)), False),
    "5 Mbit/s": (plain(Line(bytes_per_second=625_000)), False),
    "coordinator cut off for 30 s": (cut(COORDINATOR, 30), True),
    "a party cut off for 30 s": (cut(PARTIES[0], 30), True),
    "a party gone for good": (killed(PARTIES[3], again=False), True),
    "a party killed and started again": (killed(PARTIES[3], again=True), True),
    "coordinator killed and started again": (killed(COORDINATOR, again=True), True),
    "train killed and repeated": (training_killed, True),
    "a party's disk full for 5 s": (full_disk, True),
    "a party's clock 400 days ahead": (wrong_clock, True),
    "a silent connection before": (knocking("silent", 1, during=False), True),
    "a silent connection during": (knocking("silent", 1, during=True), True),
    "200 idle connections": (knocking("silent", 200, during=True), True),
    "400 connections of garbage": (knocking("garbage", 400, during=True), True),
    "heads of messages of 1.5 GB": (knocking("huge", 8, during=True), True),
    "sites that have compiled nothing": (cold, False),
}


def unavailable(name: str) -> str:
    if name == "a party's clock 400 days ahead" and shutil.which("faketime") is None:
        return "the command faketime is missing"
    return ""


def show(console: Console, found: dict[str, Any]) -> None:
    shown = Table(title="One training of 60 rounds over four parties on hosts of their own")
    for title in ("scenario", "ends", "tries", "rounds/s", "longest gap, s", "lost", "before"):
        shown.add_column(title, justify="left" if title in ("scenario", "before") else "right")
    for name, one in found.items():
        if "skipped" in one:
            shown.add_row(name, "skipped", "", "", "", "", one["skipped"])
            continue
        ends = "well" if one["code"] == 0 else f"code {one['code']}"
        numbers = (one["rounds_per_second"], one["longest_gap_seconds"], one["attempts_lost"])
        shown.add_row(name, ends, str(one["tries"]), *map(str, numbers), BEFORE.get(name, ""))
    console.print(shown)


def together(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Trials of one scenario as one entry."""
    died = Counter(name for one in trials for name in one["ended_by_themselves"])
    return {
        "trials": len(trials),
        "ended_well": sum(one["code"] == 0 for one in trials),
        "hung": sum(one["words"] == "HUNG" for one in trials),
        "processes_that_died": dict(died),
        "most_tries": max(one["tries"] for one in trials),
        "attempts_lost": sum(one["attempts_lost"] for one in trials),
        "releases": sum(one["releases"] for one in trials),
        "rounds_per_second": statistics.median(one["rounds_per_second"] for one in trials),
        "longest_gap_seconds": max(one["longest_gap_seconds"] for one in trials),
        "further": [one["further"] for one in trials],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(SCENARIOS), help="names of scenarios")
    parser.add_argument("--keep", type=Path, help="a folder for sites and their logs")
    parser.add_argument("--repeat", type=int, default=0, help="trials of each scenario")
    parser.add_argument("--out", type=Path)
    options, console = parser.parse_args(), Console()
    if reason := missing():
        console.print(f"Nothing was measured: {reason}.")
        return
    out: Path = options.out or (REPEATED if options.repeat else RESULT)
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as folder:
        place = options.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        names = (COORDINATOR, *PARTIES, "stranger")
        with Network(names) as network, Sites(network, place) as sites:
            stored = earlier(out) if options.only != list(SCENARIOS) and not options.repeat else {}
            found: dict[str, Any] = stored.get("scenarios", {})
            for name in options.only:
                if reason := unavailable(name):
                    found[name] = {"skipped": reason}
                    continue
                trials: list[dict[str, Any]] = []
                for _ in range(max(1, options.repeat)):
                    trials.append(trial(name, sites))
                    console.print(name, trials[-1])
                    found[name] = together(trials) if options.repeat else trials[0]
                    write(out, found, added(sites.compare(), stored.get("ledgers", {})))
    if options.repeat:
        console.print(found)
    else:
        show(console, found)
    console.print(json.loads(out.read_text("utf-8"))["ledgers"])


def trial(name: str, sites: Sites) -> dict[str, Any]:
    """One training while one thing goes wrong; whatever ended by itself is started again."""
    scenario, far = SCENARIOS[name]
    sites.network.set_lines(dict.fromkeys(PARTIES, FAR if far else Line()))
    sites.wait_for_all()
    outcome = asdict(scenario(sites))
    load = round(os.getloadavg()[0], 1)
    return {**outcome, "ended_by_themselves": sites.start_again(), "load": load}


def earlier(path: Path) -> dict[str, Any]:
    """What the file has of other scenarios."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def added(ledgers: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    """What was counted in the ledgers of this run and of those that the file has already."""
    return {what: count + before.get(what, 0) for what, count in ledgers.items()}


def write(path: Path, found: dict[str, Any], ledgers: dict[str, int]) -> None:
    values = {
        "command": " ".join(["python benchmarks/network.py", *sys.argv[1:]]),
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "scenarios": found,
        "ledgers": ledgers,
    }
    path.write_text(json.dumps(values, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
