"""Runs the tests many times, with fresh noise and in another order each time: `make flaky`.

Whatever failed at least once is listed with the seed that replays it.
"""

from __future__ import annotations

import argparse
import json
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


class Tally:
    """Runs so far, and the tests that failed in any of them."""

    def __init__(self, only: str) -> None:
        self.only, self.commit = only, commit()
        self.runs: list[dict[str, Any]] = []
        self.failures: dict[str, dict[str, Any]] = {}

    def add(self, seed: int, code: int, outcomes: Outcomes, seconds: float) -> None:
        failed = [name for name, outcome in outcomes.items() if outcome["failed"]]
        reasons = {name: outcomes[name]["why"] for name in failed}
        if code not in (0, RED) or (code == RED and not failed):
            reasons[f"the run itself (exit code {code})"] = ""
        for name, why in reasons.items():
            entry = self.failures.setdefault(name, {"seeds": [], "why": why})
            entry["seeds"].append(seed)
        self.runs.append(
            {"seed": seed, "tests": len(outcomes), "failed": len(reasons), "seconds": int(seconds)}
        )

    def write(self, path: Path) -> None:
        result = {"commit": self.commit, "only": self.only, "runs": self.runs}
        path.write_text(json.dumps({**result, "failures": self.failures}, indent=1) + "\n", "utf-8")

    def words(self) -> str:
        n = len(self.runs)
        lines = [f"{len(self.failures)} of the tests failed at least once in {n} runs."]
        for name, entry in self.failures.items():
            lines.append(f"  {name}: {len(entry['seeds'])} of {n} runs")
            lines.append(f"    HEDGEROW_TEST_SEED={entry['seeds'][0]} python -m pytest '{name}'")
        return "\n".join(lines)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.flaky", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    about = "noise: one run of all tests, then those that draw noise or start processes"
    parser.add_argument("--only", choices=["all", "noise"], default="all", help=about)
    parser.add_argument("--result", type=Path, default=Path("flaky.json"), help="a JSON file")
    parser.add_argument("--seed", type=int, help="of the runs' seeds; fresh ones if not given")
    parser.add_argument("words", nargs="*", help="arguments of pytest, behind --")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    asked = arguments(given)
    seeds = Random(secrets.randbits(64) if asked.seed is None else asked.seed)
    tally, chosen = Tally(asked.only), None
    for number in range(1, asked.runs + 1):
        seed, started = seeds.randrange(1, 2**32), time.monotonic()
        print(f"run {number} of {asked.runs}: HEDGEROW_TEST_SEED={seed}", flush=True)
        code, outcomes = run(seed, chosen, asked.words)
        tally.add(seed, code, outcomes, time.monotonic() - started)
        tally.write(asked.result)
        if code == INTERRUPTED:
            break
        if asked.only == "noise" and chosen is None:
            chosen = [name for name, outcome in outcomes.items() if draws_noise(name, outcome)]
    print(tally.words())
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
