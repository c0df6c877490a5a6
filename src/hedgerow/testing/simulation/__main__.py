"""`python -m hedgerow.testing.simulation`: one history told, or a campaign of many."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from hedgerow.testing.simulation.campaign import run_campaign, shrink
from hedgerow.testing.simulation.history import simulate
from hedgerow.testing.simulation.record import Record
from hedgerow.testing.simulation.states import OFTEN, STATES


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 if a rule was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m hedgerow.testing.simulation",
        description="Run a whole federation under a simulated network, disk and clock: one seed "
        "is one history.",
    )
    parser.add_argument("--seed", type=int, help="run the history of this seed")
    parser.add_argument("--trace", action="store_true", help="print what happened, line by line")
    parser.add_argument("--seeds", type=int, metavar="N", help="run a campaign of N histories")
    parser.add_argument("--first", type=int, default=0, metavar="S", help="its first seed (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--nice", type=int, default=0, help="leave others the processor (0 to 19)")
    parser.add_argument("--out", type=Path, help="result file; the same command goes on with it")
    parser.add_argument(
        "--old-backups", action="store_true",
        help="operators put older copies of ledgers back in every history",
    )  # fmt: skip
    given = parser.parse_args(arguments)
    if given.seed is not None:
        return _one(given.seed, given.trace, given.old_backups)
    if given.seeds is None:
        parser.error("give --seed, or --seeds for a campaign")
    os.nice(given.nice)
    try:
        record = run_campaign(
            given.first, given.seeds, given.jobs, given.out, given.old_backups, say=_say
        )
    except KeyboardInterrupt:
        kept = f"{given.out} has what was done; " if given.out else "nothing is kept; "
        print(f"interrupted: {kept}the same command goes on")
        return 130
    _report(record)
    return 1 if any(not failure.mended for failure in record.total.failures) else 0


def _say(line: str) -> None:
    print(line, flush=True)


def _one(seed: int, trace: bool, backups: bool) -> int:
    outcome = simulate(seed, backups=backups)
    if trace:
        print("\n".join(outcome.trace))
    print(f"seed {seed}: {len(outcome.happened)} faults, {len(outcome.violations)} violations")
    if not outcome.violations:
        return 0
    faults, shrunk = shrink(seed, outcome, backups=backups)
    print(f"broken with {len(faults)} of them: {'; '.join(map(str, faults)) or 'none needed'}")
    for violation in shrunk.violations:
        print(f"  {violation}")
    return 1


def _report(record: Record) -> None:
    found = record.to_dict()
    print(
        f"{found['histories']:,} histories, {found['faults']:,} faults, {found['releases']:,} "
        f"releases, {found['simulated_days']:,} simulated days: {found['violations']} violations"
    )
    for part in record.parts:
        where = part.source.commit[:12] or "no commit"
        print(f"{part.histories:>10,}  on source {part.source.hash[:12]} ({where})")
    for name, count in found["counts"].items():
        print(f"{count:>10,}  {name}")
    print(
        f"{len(STATES) - len(found['rare'])} of {len(STATES)} states reached {OFTEN} times or more"
    )
    for name, count in found["rare"].items():
        print(f"{count:>10,}  {name}: fewer")


if __name__ == "__main__":
    sys.exit(main())
