"""Record and replay at scale: how many (question, neighbour) pairs, and how far answers move.

    python benchmarks/replay.py [--pairs 1000000] [--neighbours 300] [--replays 10]

Every run of tests/contracts/replays.py (methods, tasks, units, trusts, private evaluations) is
recorded on tables of 4 to 60 random units at an epsilon between 0.5 and 100. On some neighbours the
whole run is played again with the releases frozen; on many only the exact answers to the recorded
questions are computed anew. Stops at the first violation and says which seed shows it. Results are
added to results/replay.json after every round of runs; the same command goes on from there. Then
each defect of tests/contracts/replay_defects.py is planted and looked for.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from hedgerow.data.rng import stream

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.contracts.replay_defects import DEFECTS, found_by
from tests.contracts.replays import CASES, Case

OUT = Path(__file__).parent / "results" / "replay.json"
EPSILONS = (0.5, 2.0, 8.0, 30.0, 100.0)


def play(case: Case, seed: int, n_neighbours: int, n_replays: int, told: dict[str, Any]) -> None:
    """Record one run, replay it, and add what was compared."""
    rng = stream(seed, "campaign", str(case))
    case = replace(case, epsilon=float(rng.choice(EPSILONS)))
    replay = case.replay(int(rng.integers(4, 61)), seed)
    recorded = replay.record()
    by_kind = Counter(question.query.kind for question in recorded.questions)
    for number, neighbour in enumerate(case.neighbours(replay, n_neighbours, seed)):
        check = replay.check if number < n_replays else replay.check_answers
        found = check(recorded, neighbour)
        told["replays"] += found.replays
        told["pairs"] += found.pairs
        told["largest"] = max(told["largest"], found.largest)
        told["changes"][neighbour.change] = told["changes"].get(neighbour.change, 0) + found.pairs
        for kind, count in by_kind.items():
            told["kinds"][kind] = told["kinds"].get(kind, 0) + count
    told["runs"] += 1
    told["methods"][case.method] = told["methods"].get(case.method, 0) + 1
    told["trusts"][case.trust] = told["trusts"].get(case.trust, 0) + 1


def defects() -> list[dict[str, Any]]:
    found = []
    for name, defect in DEFECTS.items():
        began = time.monotonic()
        said = found_by(defect)
        seconds = round(time.monotonic() - began, 2)
        found.append({"defect": name, "seconds": seconds, "found": said})
        print(f"{seconds:6.2f} s  {name}: {said}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--neighbours", type=int, default=300)
    parser.add_argument("--replays", type=int, default=10)
    options = parser.parse_args()
    told: dict[str, Any] = {
        "rounds": 0, "runs": 0, "replays": 0, "pairs": 0, "largest": 0.0,
        "cpu_seconds": 0.0, "changes": {}, "kinds": {}, "methods": {}, "trusts": {},
    }  # fmt: skip
    if OUT.exists():
        told.update(json.loads(OUT.read_text("utf-8")))
    while told["pairs"] < options.pairs:
        began, seed = time.process_time(), told["rounds"]
        for case in CASES:
            try:
                play(case, seed, options.neighbours, options.replays, told)
            except AssertionError as error:
                sys.exit(f"VIOLATION with seed {seed}, {case}: {error}")
        told["rounds"] += 1
        told["cpu_seconds"] = round(told["cpu_seconds"] + time.process_time() - began, 1)
        OUT.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
        print(f"{told['pairs']:,} pairs, {told['replays']:,} replays, {told['runs']:,} runs")
    told["defects"] = defects()
    OUT.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
