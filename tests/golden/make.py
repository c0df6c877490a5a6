"""Writes the stored files anew after a format changed: `python -m tests.golden.make [FOLDER]`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.golden.formats import FORMATS
from tests.golden.machine import arithmetic
from tests.golden.text import as_json

STORED = Path(__file__).parent / "stored"


def main(wanted: list[str]) -> None:
    if unknown := sorted(set(wanted) - set(FORMATS)):
        raise SystemExit(f"no stored folder {unknown[0]!r}; known: {', '.join(FORMATS)}")
    for name in wanted or FORMATS:
        folder = STORED / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file, data in FORMATS[name][0]().items():
            (folder / file).write_bytes(data)
        print(f"{name}: {len(list(folder.iterdir()))} files")
    (STORED / "machine.json").write_bytes(as_json(arithmetic()))


if __name__ == "__main__":
    main(sys.argv[1:])
