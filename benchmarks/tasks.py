"""How many lines do ten tasks of a data scientist take, here and in other libraries?

The snippets lie in tasks/, a folder for each library and a file for each task. All of them run,
each library in an environment of its own, on the same made-up CSV files; each goes on from what
`train` has left, and is checked to have done its task. Counted are lines that are neither empty nor
comments, as `ruff format` breaks them. Where a library cannot do a task, tasks/impossible.toml says
why. Prints a table, writes benchmarks/results/tasks.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from speed.clock import FOLDER, facts
from tasks.execute import LEFT

SNIPPETS = FOLDER / "tasks"
# In environments of their own: diffprivlib does not import beside a current scikit-learn.
REQUIREMENTS = {
    "interpret": ("interpret-core==0.7.8", "pandas"),
    "xgboost": ("xgboost-cpu==3.2.0", "scikit-learn", "pandas"),
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn<1.6", "pandas"),
}
LIBRARIES = ("hedgerow", *REQUIREMENTS)
HEADER = ["age", "hours", "job", "site", "sick", "cost", "ward"]


def people(n_rows: int, rng: np.random.Generator) -> list[list[Any]]:
    """Made-up people with what is to be predicted: two classes, a number, three classes."""
    age, hours = rng.uniform(18, 90, n_rows), rng.uniform(0, 80, n_rows)
    job = rng.choice(["desk", "field", "none"], n_rows)
    site = rng.choice(["north", "river", "summit"], n_rows)
    risk = 0.08 * (age - 54) + 0.03 * (hours - 40) + 1.5 * (job == "field")
    sick = rng.uniform(size=n_rows) < 1 / (1 + np.exp(-risk))
    cost = np.clip(500 + 80 * risk + rng.normal(0, 50, n_rows), 0, 1000)
    ward = np.digitize(risk + rng.normal(0, 1, n_rows), [-1, 1])
    return [
        [f"{age[i]:.1f}", "" if rng.random() < 0.1 else f"{hours[i]:.1f}", job[i], site[i],
         "yes" if sick[i] else "no", f"{cost[i]:.1f}", ("east", "north", "west")[ward[i]]]
        for i in range(n_rows)
    ]  # fmt: skip


def write_tables(folder: Path) -> None:
    rng = np.random.default_rng(2026)
    for name, n_rows in {"people": 4000, "later": 1000}.items():
        rows = people(n_rows, rng)
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([HEADER, *rows])
    (folder / "truth").write_text(" ".join(str(int(row[4] == "yes")) for row in rows))


def python_of(library: str) -> str:
    """The interpreter that has a library; its environment is made once and kept."""
    if library == "hedgerow":
        return sys.executable
    place = FOLDER / ".cache" / "environments" / library
    if not (place / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *REQUIREMENTS[library]], check=True)
        (place / "done").touch()
    return str(place / "bin" / "python")


def lines_of(path: Path) -> int:
    """Lines that are neither empty nor comments."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def run(library: str, tables: Path) -> dict[str, Any]:
    """What came of the tasks of a library: lines and seconds, what failed, or why none are."""
    reasons = tomllib.loads((SNIPPETS / "impossible.toml").read_text(encoding="utf-8"))[library]
    command = [python_of(library), "-W", "ignore", str(SNIPPETS / "execute.py")]
    done = subprocess.run(
        [*command, str(SNIPPETS / library)],
        cwd=tables, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    told = json.loads(done.stdout.splitlines()[-1])
    for task, result in told["tasks"].items():
        result["lines"] = lines_of(SNIPPETS / library / f"{task}.py")
    told["tasks"] = {t: told["tasks"].get(t) or {"impossible": reasons[t]} for t in LEFT}
    return told


def cell(result: dict[str, Any]) -> str:
    if "failed" in result:
        return f"failed: {result['failed']}"
    return str(result["lines"]) if "lines" in result else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=LIBRARIES)
    parser.add_argument("--out", type=Path, default=FOLDER / "results" / "tasks.json")
    given, begun = parser.parse_args(), time.time()
    results = {}
    for library in given.libraries:
        with tempfile.TemporaryDirectory() as place:
            write_tables(Path(place))
            results[library] = run(library, Path(place))
    table = Table("task", *results)
    for task in LEFT:
        table.add_row(task, *(cell(found["tasks"][task]) for found in results.values()))
    Console(width=150).print(table)
    outcomes = [result for found in results.values() for result in found["tasks"].values()]
    if failed := sum("failed" in result for result in outcomes):
        sys.exit(f"{failed} snippets failed. Nothing was written.")
    document = {**facts("tasks", begun), "requirements": REQUIREMENTS, "libraries": results}
    given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
