"""`make mutants`: plants small defects in all that privacy rests on; lists what no test notices."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.mutations.campaign import EQUAL, NOTICED, SURVIVED, Record, chosen, run
from tests.mutations.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--total", type=int, default=330, help="defects, over all modules")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=600.0, help="begin none after so long")
    parser.add_argument("--again", action="store_true", help="try survivors without a reason again")
    parser.add_argument("--measure", action="store_true", help="which tests run which lines, anew")
    parser.add_argument("--result", type=Path, default=Path("benchmarks/results/mutants.json"))
    asked = parser.parse_args()
    record = Record(asked.result, asked.total)
    planted = chosen(asked.total)
    names = {one.name for one in planted}
    kept = {NOTICED, EQUAL} if asked.again else {NOTICED, EQUAL, SURVIVED}
    record.known = {
        name: one for name, one in record.known.items() if name in names and one["verdict"] in kept
    }
    print(f"{len(planted)} defects in {len(TARGETS)} modules; {len(record.known)} have a verdict")
    run(planted, record, asked.jobs, asked.minutes, asked.measure)
    record.write()
    return told(planted, record)


def told(planted: list, record: Record) -> int:  # type: ignore[type-arg]
    """Print what came of it: 0 if every defect has a verdict, and every survivor a reason."""
    found = [record.judged(one) for one in record.known.values()]
    counts = Counter(one["verdict"] for one in found)
    left = [one for one in found if one["verdict"] == SURVIVED]
    missing = len(planted) - len(found)
    print(
        f"{len(planted)} defects: {counts[NOTICED]} noticed, {counts[EQUAL]} equivalent, "
        f"{len(left)} survived, {missing} not tried yet"
    )
    for one in left:
        print(
            f"  {one['module']}:{one['line']}: {one['operator']}: {one['before']} -> {one['after']}"
        )
    stale = record.reasons.keys() - {one["name"] for one in found}
    for name in sorted(stale) if not missing else ():
        print(f"  a reason for no defect: {name}")
    return 1 if left or missing or stale else 0


if __name__ == "__main__":
    sys.exit(main())
