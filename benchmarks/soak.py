"""Does a run survive being killed? Kills `hedgerow train` with SIGKILL again and again.

Half of the kills come at a random fail point, half at a random moment. After each, the ledger is
verified; the same command is then run again, until it ends. With noise off its model must equal
that of an undisturbed run. Prints its counts and writes benchmarks/results/soak.json.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.crashes.runs import KILLED, check_ledger, command, run  # noqa: E402

from hedgerow.failpoints import FAIL_POINTS  # noqa: E402
from hedgerow.model.ensemble import Ensemble  # noqa: E402

SPARE = 60
KILLS_PER_RUN = 25


def killed_at_random_moment(arguments: list[str], seconds: float) -> int:
    """Start the command, kill it after some seconds, return its exit code."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
    process = subprocess.Popen(
        arguments, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        return process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    counts = {"kills": 0, "runs": 0, "equal": 0, "charges": 0, "releases": 0}
    counts["ledger_checks"] = 0  # each raises on an uncharged release or a double answer
    kinds = {"fail point": 0, "random moment": 0}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        undisturbed = run(command(folder, "whole.hedge", SPARE))
        assert undisturbed.returncode == 0, undisturbed.stderr
        whole = Ensemble.load(folder / "whole.hedge")
        while counts["kills"] < options.kills:
            out = f"run-{counts['runs']}.hedge"
            arguments, here = command(folder, out, SPARE), 0
            while counts["kills"] < options.kills and here < KILLS_PER_RUN:
                if rng.random() < 0.5:
                    fail_at = f"{rng.choice(FAIL_POINTS)}@{rng.integers(1, 4)}"
                    code, kind = run(arguments, fail_at).returncode, "fail point"
                else:
                    code = killed_at_random_moment(arguments, rng.uniform(0.8, 3.0))
                    kind = "random moment"
                check_ledger(folder / f"{out}.ledger")
                counts["ledger_checks"] += 1
                if code == 0:
                    break
                assert code == KILLED, code
                counts["kills"], here = counts["kills"] + 1, here + 1
                kinds[kind] += 1
            done = run(arguments)
            assert done.returncode == 0, done.stderr
            charges, releases = check_ledger(folder / f"{out}.ledger")
            counts["ledger_checks"] += 1
            counts["charges"] += charges
            counts["releases"] += releases
            counts["equal"] += Ensemble.load(folder / out) == whole
            counts["runs"] += 1
            print(f"{counts['kills']} kills, {counts['runs']} runs, {counts['equal']} equal")
    result = {
        **counts,
        "kills_by_kind": kinds,
        "seconds": round(time.monotonic() - started),
        "command": f"python benchmarks/soak.py --kills {options.kills} --seed {options.seed}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    print(json.dumps(result, indent=2))
    target = ROOT / "benchmarks" / "results" / "soak.json"
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if counts["equal"] != counts["runs"]:
        sys.exit("a resumed run gave another model than the undisturbed one")


if __name__ == "__main__":
    main()
