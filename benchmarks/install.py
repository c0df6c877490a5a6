"""How large is an installation, and how long until it answers? Beside other packages of the field.

Each is installed by pip into an empty environment of its own, as `pip install` does it; hedgerow
from a wheel of this clone, and with --before from one of an earlier commit too. Megabytes are those
of files on disk without pip itself, seconds of pip depend on what it has in its cache. Imports and
--help are the best of three, once Python has its compiled files. Prints a table, writes
benchmarks/results/install.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from speed.clock import FOLDER, facts
from startup import process

OTHERS = {"interpret-core": "interpret", "diffprivlib": "diffprivlib", "xgboost-cpu": "xgboost"}
NOT_COUNTED = {"pip", "setuptools"}  # of every environment
SIZES = """
import json
from importlib.metadata import distributions
def size(found):
    files = (found.locate_file(file) for file in found.files or ())
    return sum(file.stat().st_size for file in files if file.is_file())
print(json.dumps({found.name: [found.version, size(found)] for found in distributions()}))
"""


def wheel_of(source: Path, folder: Path) -> str:
    folder.mkdir()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return str(wheel)


def earlier(commit: str, folder: Path) -> Path:
    """The files of a commit."""
    folder.mkdir()
    archive = subprocess.run(
        ["git", "archive", commit], cwd=FOLDER.parent, check=True, capture_output=True
    )
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def best(command: list[str]) -> dict[str, float] | None:
    """The best of three, or None where the program fails with the versions that pip chose."""
    try:
        process(command)  # Python compiles what is imported for the first time
    except SystemExit:
        return None
    return min((process(command) for _ in range(3)), key=lambda found: found["cpu"])


def measured(requirement: str, module: str, commands: dict[str, list[str]]) -> dict[str, Any]:
    """Install into an empty environment: seconds, megabytes, and what programs take there."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as place:
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        python = f"{place}/bin/python"
        install = process([python, "-m", "pip", "install", "--quiet", requirement])
        told = subprocess.run([python, "-c", SIZES], check=True, capture_output=True, text=True)
        sizes = {n: found for n, found in json.loads(told.stdout).items() if n not in NOT_COUNTED}
        programs = {f"import {module}": [python, "-c", f"import {module}"]}
        programs |= {name: [python, *words] for name, words in commands.items()}
        return {
            "install": install,
            "megabytes": round(sum(size for _, size in sizes.values()) / 1e6),
            "packages": {
                f"{name} {version}": round(size / 1e6, 1)
                for name, (version, size) in sorted(sizes.items(), key=lambda item: -item[1][1])
            },
            "programs": {name: best(words) for name, words in programs.items()},
        }


def show(results: dict[str, Any]) -> None:
    table = Table("package", "MB", "packages", "pip, s", "CPU s", "largest, MB", "CPU s to start")
    for name, found in results.items():
        most = [*found["packages"].items()][:4]
        largest = ", ".join(f"{package.split()[0]} {size:.0f}" for package, size in most)
        started = ", ".join(
            f"{program}: {'fails' if used is None else format(used['cpu'], '.2f')}"
            for program, used in found["programs"].items()
        )
        seconds = (f"{found['install'][clock]:.0f}" for clock in ("wall", "cpu"))
        count = str(len(found["packages"]))
        table.add_row(name, str(found["megabytes"]), count, *seconds, largest, started)
    Console(width=150).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", metavar="COMMIT", help="hedgerow of this commit as well")
    parser.add_argument("--out", type=Path, default=FOLDER / "results" / "install.json")
    given, begun = parser.parse_args(), time.time()
    ours = {
        "import hedgerow, the classifier": ["-c", "from hedgerow import PrivateBoostingClassifier"],
        "hedgerow --help": ["-m", "hedgerow", "--help"],
    }
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as place:
        sources = {"hedgerow": FOLDER.parent}
        if given.before:
            sources[f"hedgerow, {given.before}"] = earlier(given.before, Path(place) / "earlier")
        for number, (name, source) in enumerate(sources.items()):
            wheel = wheel_of(source, Path(place) / str(number))
            results[name] = measured(wheel, "hedgerow", ours)
    for name, module in OTHERS.items():
        results[name] = measured(name, module, {})
    show(results)
    document = {**facts("install", begun), "environments": results}
    given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
