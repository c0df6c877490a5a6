"""Does a federation survive losing its processes? Kills them with SIGKILL, at random moments.

Four parties and a coordinator run over gRPC on this machine. During each training run a few
processes, drawn at random, are killed: a party's, the coordinator's port, and `hedgerow train`
itself. What an operator would start again is started again, and the same `train` command is
repeated until it ends. After every run all five ledgers are verified and compared. Prints counts
and writes benchmarks/results/federation_faults.json. No figure of another tool stands beside it: we
know of none.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pyarrow import parquet

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.e2e.test_sites import (  # noqa: E402
    NAMES,
    SCHEMA,
    Training,
    books,
    coordinator_books,
    table,
)

from hedgerow.deployment.trial import Sites  # noqa: E402
from hedgerow.model.ensemble import Ensemble  # noqa: E402

RESULT = Path(__file__).parent / "results" / "federation_faults.json"
LIMITS = "format = 1\ndelta = 1e-6\n[epsilon]\nper_run = 2.0\nper_month = 1000.0\ntotal = 1000.0\n"
WORDS = ("--method", "random-trees", "--trees", "20", "--spare", "8", "--wait-seconds", "60")
TRIES = 12  # repetitions of one command before it counts as stuck


def disturbed(
    training: Training, sites: Sites, kills: int, rng: np.random.Generator, counts: Counter[str]
) -> tuple[int, str]:
    """Run the command once, killing while it runs; sites that ended are started again."""
    process = training.start()
    for _ in range(kills):
        time.sleep(rng.uniform(1.0, 5.0))
        if process.poll() is not None:
            break
        found = sorted(sites.processes)
        place = int(rng.integers(len(found) + 1))
        if place == len(found):
            process.kill()
            counts["train"] += 1
            break
        sites.processes[found[place]].kill()
        counts["coordinator" if found[place] == "coordinator" else "party"] += 1
        restart(sites)
    restart(sites)
    code, _, words = training.end(process)
    return code, words


def restart(sites: Sites) -> None:
    for name, process in sites.processes.items():
        if process.poll() is not None:
            sites.start(name)


def compare(sites: Sites) -> dict[str, int]:
    """Releases without a charge, answers given twice, and parties that paid for nothing asked."""
    charged, released = coordinator_books(sites.by_name["coordinator"])
    parties = {name: books(sites.by_name[name]) for name in NAMES}
    return {
        "releases": len(released),
        "releases_uncharged_by_coordinator": len(released - charged),
        "releases_charged_by_fewer_than_three_parties": sum(
            sum(line in found for found in parties.values()) < 3 for line in released
        ),
        "attempts_charged_twice": sum(len(f) - len(set(f)) for f in parties.values()),
        "answers_the_coordinator_never_charged": sum(
            len(set(f) - charged) for f in parties.values()
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--kills", type=int, default=3, help="at most so many a try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    rng, killed, ended = np.random.default_rng(options.seed), Counter[str](), Counter[str]()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as name:
        folder, tables = Path(name), {}
        SCHEMA.write(folder / "schema.toml")
        (folder / "limits.toml").write_text(LIMITS)
        for seed, party in enumerate(NAMES):
            tables[party] = folder / f"{party}.parquet"
            parquet.write_table(table(seed), tables[party])
        limits = folder / "limits.toml"
        with Sites.make(folder, tables, folder / "schema.toml", limits=limits) as sites:
            for run in range(options.runs):
                (folder / str(run)).mkdir()
                training = Training(sites, folder / str(run), *WORDS)
                for tries in range(1, TRIES + 1):
                    kills = options.kills if tries <= 3 else 0
                    code, words = disturbed(training, sites, kills, rng, killed)
                    if code not in (5, -9):
                        break
                ended["finished" if code == 0 else f"code {code}"] += 1
                if code:
                    print(words[-2000:], file=sys.stderr)
                else:
                    assert Ensemble.load(training.out).statement.guarantee == "epsilon-delta"
                found = compare(sites)
                print(f"run {run + 1}: code {code}, {tries} tries; {found}", flush=True)
                write(options, killed, ended, found, time.monotonic() - started)
    print(options.out.read_text())


def write(
    options: argparse.Namespace,
    killed: Counter[str],
    ended: Counter[str],
    found: dict[str, int],
    seconds: float,
) -> None:
    """What is known so far; written after every run, so that a long one may be stopped."""
    values = {
        "command": " ".join(["python benchmarks/federation_faults.py", *sys.argv[1:]]),
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds),
        "runs": sum(ended.values()),
        "ended": dict(ended),
        "kills": sum(killed.values()),
        "killed": dict(killed.most_common()),
        **found,
    }
    options.out.write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
