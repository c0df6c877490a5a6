"""A newcomer's first hour: six commands from an empty environment to a report of a messy file.

The wheel goes into an empty environment, away from the clone, and what a newcomer types runs there
on a CSV file as an office writes it: semicolons, decimal commas, a Windows encoding, ids with
repeats, dates, several words for what is missing. Warnings of Python are errors, and no column may
be left out without a word. `make dist` runs it; --result writes what was seen to a JSON file.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from tests.installed import Environment

FILE, LABEL = "patienten.csv", "Wiederkehr"
MOST_COMMANDS = 6
INSTALL = "pip install hedgerow"  # here: the wheel that was built
TYPED = (
    f"hedgerow schema draft --data {FILE} --label {LABEL} --out schema.toml",
    f"hedgerow schema check schema.toml --data {FILE}",
    f"hedgerow train --schema schema.toml --data {FILE} --epsilon 1 --delta 1e-6 --out model.hedge",
    "hedgerow explain model.hedge --column Gewicht --svg picture.svg",
    "hedgerow report model.hedge --out report.html",
)
COLUMNS = (
    "", "Patienten-Nr", "Aufnahme", "Größe", "Gewicht", "CRP", "Raucher", "PLZ", "Ort",
    "Auslastung", "Kosten", "Land", "Bemerkung", "Notfall", LABEL,
)  # fmt: skip
DESCRIBED = {"Größe", "Gewicht", "Raucher", "Ort", "Kosten", "Notfall"}  # by the draft
MADE = ("schema.toml", "model.hedge", "picture.svg", "report.html")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_PLACES = ("Köln", "Zürich", "Genève", "Málaga", "Ängelholm", "Besançon")
_WORDS = ("Patient", "stabil", "müde", "Schmerzen", "Kontrolle", "nächste", "Woche", "Befund")
_GAPS = ("", "NA", "k.A.", "NULL", "?")
_BAD = re.compile(r"Warning|Traceback|Error\b")


def write_messy_file(path: Path, n_rows: int, seed: int = 1) -> None:
    """Made-up patients in a file as German spreadsheets write it."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="", encoding="cp1252") as file:
        lines = csv.writer(file, delimiter=";")
        lines.writerow(COLUMNS)
        for row in range(n_rows):
            lines.writerow([row, *_patient(rng, n_rows)])


def _patient(rng: np.random.Generator, n_rows: int) -> list[str]:
    day = datetime.date(2023, 1, 1) + datetime.timedelta(days=int(rng.integers(0, 900)))
    height, weight, protein = rng.normal(171, 9), rng.normal(78, 14), rng.exponential(20)
    smoker, emergency = rng.random() < 0.3, rng.random() < 0.4
    risk = 0.05 * (weight - 78) + 1.2 * smoker + emergency + 0.02 * (protein - 20) - 1
    return [
        f"{rng.integers(1, 3 * n_rows // 4):06d}",  # some come several times
        day.strftime("%d.%m.%Y"),
        _german(height),
        str(rng.choice(_GAPS)) if rng.random() < 0.12 else _german(weight),
        "<5" if protein < 5 else _german(protein),
        "ja" if smoker else "nein",
        f"{rng.integers(1000, 99999):05d}",
        str(rng.choice(_PLACES)),
        f"{rng.integers(0, 101)} %",
        _german(rng.exponential(3000), digits=2),
        "DE",
        " ".join(rng.choice(_WORDS, 5)),
        str(bool(emergency)),
        "ja" if rng.random() < 1 / (1 + np.exp(-risk)) else "nein",
    ]


def _german(number: float, digits: int = 1) -> str:
    """1.234,5 with a point between thousands."""
    return f"{number:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def unexplained(said: str) -> list[str]:
    """Lines that a newcomer would take for a fault."""
    return [line for line in said.splitlines() if _BAD.search(line)]


def columns_without_a_word(schema: Path, said: str) -> list[str]:
    """Columns of the file that are neither in the drafted schema nor spoken of."""
    facts = tomllib.loads(schema.read_text(encoding="utf-8"))
    used = {column["name"] for column in facts["column"]}
    used |= {facts["label"]["name"], facts["unit"].get("column", LABEL)}
    told = " ".join(said.split())
    return [
        name
        for name in COLUMNS
        if name not in used and (repr(name) if name else "a column without a name") not in told
    ]


def render(page: Path, picture: Path) -> int | None:
    """Let a browser draw a page; how many colours it shows, or None where there is no browser."""
    if CHROMIUM is None:
        return None
    profile = picture.parent / ".profile"
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        f"--user-data-dir={profile}", "--window-size=1100,1600", f"--screenshot={picture}",
        page.as_uri(),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    from matplotlib.image import imread

    shown = imread(picture)
    return len(np.unique(shown.reshape(-1, shown.shape[-1]), axis=0))


def play(wheel: Path, folder: Path, n_rows: int) -> dict[str, Any]:
    """The first hour; what each command took and said."""
    environment = Environment(folder)
    work = folder / "work"
    write_messy_file(work / FILE, n_rows)
    begun = _clocks()
    environment.install(str(wheel))
    commands: list[dict[str, Any]] = [{"command": INSTALL, **_since(begun), "said": []}]
    for typed in TYPED:
        begun = _clocks()
        done = environment.run(*shlex.split(typed))
        if faults := unexplained(done.stdout + done.stderr):
            sys.exit(f"{typed}\nsays what it does not explain: {faults}")
        lines = done.stderr.replace(str(work), "~").splitlines()
        commands.append({"command": typed, **_since(begun), "said": lines})
    if silent := columns_without_a_word(work / "schema.toml", "\n".join(commands[1]["said"])):
        sys.exit(f"These columns were left out without a word: {silent}")
    return {
        "rows": n_rows,
        "columns": len(COLUMNS),
        "commands": commands,
        "seconds": round(sum(one["seconds"] for one in commands), 1),
        "cpu_seconds": round(sum(one["cpu_seconds"] for one in commands), 1),
        "load": round(os.getloadavg()[0], 1),
        "bytes": {name: (work / name).stat().st_size for name in (FILE, *MADE)},
    }


def _clocks() -> tuple[float, float]:
    """Seconds by the clock, and CPU seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), used.ru_utime + used.ru_stime


def _since(begun: tuple[float, float]) -> dict[str, float]:
    wall, cpu = (round(now - then, 1) for now, then in zip(_clocks(), begun, strict=True))
    return {"seconds": wall, "cpu_seconds": cpu}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the wheel is")
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--result", type=Path, help="write what was seen to this JSON file")
    parser.add_argument("--keep", type=Path, help="put what was made here, with pictures of it")
    given = parser.parse_args()
    (wheel,) = given.folder.resolve().glob("*.whl")
    with tempfile.TemporaryDirectory() as place:
        seen = play(wheel, Path(place), given.rows)
        work, colours = Path(place) / "work", {}
        for name in ("picture.svg", "report.html"):
            colours[name] = render(work / name, work / f"{name}.png")
            if colours[name] is not None and colours[name] < 10:
                sys.exit(f"A browser shows next to nothing of {name}.")
        if given.keep:
            shutil.copytree(work, given.keep, ignore=shutil.ignore_patterns(".*"))
    seen = {"command": f"python -m tests.newcomer {shlex.join(sys.argv[1:])}",
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            **seen, "colours": colours}  # fmt: skip
    if given.result:
        text = json.dumps(seen, indent=1, ensure_ascii=False)
        given.result.write_text(f"{text}\n", encoding="utf-8")
    n_said = sum(len(one["said"]) for one in seen["commands"])
    print(f"{len(seen['commands'])} commands, {seen['seconds']:.0f} s, {n_said} lines of advice.")


if __name__ == "__main__":
    main()
