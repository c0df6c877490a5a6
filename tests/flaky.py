"""Runs the tests many times, with fresh noise and in another order each time: `make flaky`.

Whatever failed at least once is listed with the seed that replays it. The result is written after
each run, so that a long campaign may be interrupted: the same command goes on with it, unless the
source, the tests, the selection or the arguments of pytest are others. With --minutes no run begins
that would not end in time, by the longest so far.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.randomness import NOISE, PROCESSES, REAL

ROOT = Path(__file__).parents[1]
RED, INTERRUPTED = 1, 2  # exit codes of pytest: tests failed, the user stopped it
Outcomes = dict[str, dict[str, Any]]


def draws_noise(name: str, outcome: dict[str, Any]) -> bool:
    """Whether what a test used can make its outcome a matter of luck."""
    return name.startswith(REAL) or bool({NOISE, PROCESSES} & {*outcome["used"]})


def run(seed: int, only: Sequence[str] | None, words: Sequence[str]) -> tuple[int, Outcomes]:
    """Run the tests once; returns pytest's exit code and what came of each test."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Path(folder) / "outcomes.json"
        settings = {"HEDGEROW_TEST_SEED": str(seed), "HEDGEROW_TEST_OUTCOMES": str(outcomes)}
        if only is not None:
            (Path(folder) / "only").write_text("\n".join(only), "utf-8")
            settings["HEDGEROW_TEST_ONLY"] = str(Path(folder) / "only")
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", *words]
        code = subprocess.run(command, env={**os.environ, **settings}).returncode
        found = json.loads(outcomes.read_text("utf-8")) if outcomes.exists() else {}
    return code, found


def commit() -> str:
    """The commit that was tested, with a mark if files differ from it."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()


def source() -> str:
    """A hash of what is tested and of the tests: runs of other files are never added up."""
    found = hashlib.sha256()
    for path in sorted(p for name in ("src", "tests") for p in (ROOT / name).rglob("*.py")):
        found.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


class Tally:
    """Runs so far, and the tests that failed in any of them."""

    def __init__(self, only: str, words: Sequence[str]) -> None:
        # What runs that are added up have in common. A commit may change documents, or be the one
        # that keeps the result: what was tested is the source.
        self.about = {"source": source(), "only": only, "pytest": [*words]}
        self.runs: list[dict[str, Any]] = []
        self.failures: dict[str, dict[str, Any]] = {}
        self.chosen: list[str] | None = None  # the tests of runs after the first; None: all

    def resume(self, path: Path) -> str:
        """Take over the runs of a result file of the same campaign; says what became of it."""
        if not path.exists():
            return ""
        stored = json.loads(path.read_text("utf-8"))
        others = [name for name, value in self.about.items() if stored.get(name) != value]
        if others:
            return f"{path} is of another campaign ({', '.join(others)}) and starts anew."
        self.runs, self.failures = stored["runs"], stored["failures"]
        self.chosen = stored["chosen"]
        return f"{path} has {len(self.runs)} runs of this source and selection; going on with them."

    def seconds_of_a_run(self) -> int:
        """What the next one takes, by those so far; 0 if there was none."""
        # With a selection the first one, of everything, is no measure for those after it.
        alike = self.runs[1:] if self.about["only"] == "noise" else self.runs
        return max((one["seconds"] for one in alike or self.runs), default=0)

    def add(self, seed: int, code: int, outcomes: Outcomes, seconds: float) -> None:
        """Count a run; of one that was interrupted, only what failed until then."""
        failed = [name for name, outcome in outcomes.items() if outcome["failed"]]
        reasons = {name: outcomes[name]["why"] for name in failed}
        interrupted = code == INTERRUPTED and bool(outcomes)  # without any, it could not start
        if (code not in (0, RED) and not interrupted) or (code == RED and not failed):
            reasons[f"the run itself (exit code {code})"] = ""
        for name, why in reasons.items():
            entry = self.failures.setdefault(name, {"seeds": [], "why": why})
            entry["seeds"].append(seed)
        if not interrupted:
            about = {"seed": seed, "commit": commit(), "tests": len(outcomes)}
            self.runs.append({**about, "failed": len(reasons), "seconds": int(seconds)})

    def write(self, path: Path) -> None:
        result = {**self.about, "runs": self.runs, "failures": self.failures, "chosen": self.chosen}
        written = path.with_name(f"{path.name}.new")  # whoever interrupts this keeps the last one
        written.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        written.replace(path)

    def words(self) -> str:
        n = len(self.runs)
        lines = [f"{len(self.failures)} of the tests failed at least once in {n} runs."]
        for name, entry in self.failures.items():
            lines.append(f"  {name}: {len(entry['seeds'])} of {n} runs")
            lines.append(f"    HEDGEROW_TEST_SEED={entry['seeds'][0]} python -m pytest '{name}'")
        return "\n".join(lines)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.flaky", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="with those that the file has")
    about = "noise: one run of all tests, then those that draw noise or start processes"
    parser.add_argument("--only", choices=["all", "noise"], default="all", help=about)
    parser.add_argument("--result", type=Path, default=Path("flaky.json"), help="a JSON file")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no run too late")
    parser.add_argument("--seed", type=int, help="of the runs' seeds; fresh ones if not given")
    parser.add_argument("words", nargs="*", help="arguments of pytest, behind --")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    asked = arguments(given)
    seeds = Random(secrets.randbits(64) if asked.seed is None else asked.seed)
    tally = Tally(asked.only, asked.words)
    deadline = time.monotonic() + 60 * asked.minutes
    if told := tally.resume(asked.result):
        print(told, flush=True)
    for number in range(1, asked.runs + 1):
        seed, started = seeds.randrange(1, 2**32), time.monotonic()
        if number <= len(tally.runs):  # done before; a given --seed goes on behind its seed
            continue
        if time.monotonic() + tally.seconds_of_a_run() > deadline:
            print("No time is left for another run; the same command goes on.")
            break
        print(f"run {number} of {asked.runs}: HEDGEROW_TEST_SEED={seed}", flush=True)
        code, outcomes = run(seed, tally.chosen, asked.words)
        tally.add(seed, code, outcomes, time.monotonic() - started)
        if asked.only == "noise" and tally.runs and tally.chosen is None:
            tally.chosen = [name for name, found in outcomes.items() if draws_noise(name, found)]
        tally.write(asked.result)
        if code == INTERRUPTED:
            print("Interrupted in this run, which does not count; the same command goes on.")
            break
    print(tally.words())
    return RED if tally.failures else 0 if len(tally.runs) >= asked.runs else INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
