"""`make mutants`: plants small defects in all that privacy rests on; lists what no test notices."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.mutations.campaign import SURVIVED, Record, chosen, run
from tests.mutations.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--total", type=int, default=330, help="defects, over all modules")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--result", type=Path, default=Path("benchmarks/results/mutants.json"))
    asked = parser.parse_args()
    record = Record(asked.result, asked.total)
    planted = chosen(asked.total)
    names = {one.name for one in planted}
    record.known = {name: one for name, one in record.known.items() if name in names}
    print(f"{len(planted)} defects in {len(TARGETS)} modules; {len(record.known)} have a verdict")
    run(planted, record, asked.jobs)
    record.write()
    survivors = [one for one in record.known.values() if one["verdict"] == SURVIVED]
    left = [one for one in survivors if one["name"] not in record.reasons]
    print(
        f"{len(planted)} defects, {len(survivors)} survived, {len(left)} of them without a reason"
    )
    for one in left:
        print(f"  {one['module']}:{one['line']}: {one['before']} -> {one['after']}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
