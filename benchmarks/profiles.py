"""Where does the time of a fit go? Profiles of a few fits, as text tables.

For each case: CPU seconds of the best of three fits without a profiler, then one fit under it, with
functions by their own time. Writes benchmarks/results/profiles/<case>-<label>.txt, so that a change
can be seen beside what was there before.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import re
import time
from collections.abc import Callable
from typing import Any

from speed.clock import FOLDER, source
from speed.fits import ONE, SECURE, Ours
from speed.tables import Given, covtype, synthetic

LINES = 40


def adult() -> Callable[[], Any] | None:
    """The default method on adult, from a data frame."""
    from accuracy.data import load
    from hedgerow import PrivateBoostingClassifier
    from speed.tables import data_folder

    if data_folder("adult.parquet", "adult.toml") is None:
        return None
    data = load("adult")
    frame = data.table.select(list(data.schema.names)).to_pandas()
    return lambda: PrivateBoostingClassifier(data.schema, epsilon=1.0, delta=1e-5).fit(
        frame, data.truth
    )


def with_table(make: Callable[[], Given | None], ours: Ours) -> Callable[[], Any] | None:
    given = make()
    return None if given is None else lambda: ours.fit(given)


CASES: dict[str, Callable[[], Callable[[], Any] | None]] = {
    "adult": adult,
    "rounds": lambda: with_table(lambda: synthetic(1_000), ONE),  # the fixed cost of 101 rounds
    "secure": lambda: with_table(lambda: synthetic(1_000), SECURE),
    "million": lambda: with_table(lambda: synthetic(1_000_000), ONE),
    "covtype": lambda: with_table(covtype, ONE),
    "parties": lambda: with_table(lambda: synthetic(100_000), Ours(200, "coordinator", "auto")),
}


def profile_of(fit: Callable[[], Any]) -> str:
    """Seconds without a profiler, and a table of functions by own time with one."""
    fit()
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        fit()
        seconds.append(time.process_time() - begun)
    # CPU seconds of all threads: other work on the machine does not count.
    profile, text = cProfile.Profile(time.process_time), io.StringIO()
    profile.runcall(fit)
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(LINES)
    # Where a file lies on this machine says nothing; from the package on it does.
    table = re.sub(r"\S*/(site-packages|src|lib/python[\d.]+)/", "", text.getvalue())
    return f"CPU seconds without the profiler, best of three: {min(seconds):.3f}\n{table}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("label", help="what the files are called after: before, after, ...")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    options = parser.parse_args()
    folder = FOLDER / "results" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.cases:
        fit = CASES[name]()
        if fit is None:
            print(f"{name} is left out: HEDGEROW_DATA names no folder with its files")
            continue
        found = profile_of(fit)
        command = f"python benchmarks/profiles.py {options.label} --cases {name}"
        (folder / f"{name}-{options.label}.txt").write_text(f"{command}\n{source()}\n{found}")
        print(name, found.splitlines()[0])


if __name__ == "__main__":
    main()
