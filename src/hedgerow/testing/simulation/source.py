"""What histories are histories of: a hash of hedgerow's source, its commit, and what it ran on.

The same seed is the same history on the same source with the same libraries alone.
"""

from __future__ import annotations

import platform
import subprocess
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import cryptography
import numpy as np

import hedgerow
from hedgerow.packing import digest

PACKAGE = Path(hedgerow.__file__).parent


@dataclass(frozen=True)
class Source:
    """One state of hedgerow's code, and the libraries under it."""

    hash: str  # of all modules of the package
    commit: str  # that has just this source; "" if none is known to
    python: str
    sqlite: str
    numpy: str
    cryptography: str

    def to_dict(self) -> dict[str, str]:
        told = asdict(self)
        return {"source": told.pop("hash"), **told}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Source:
        kept = {**values}
        return Source(kept.pop("source"), **kept)

    def is_same(self, other: Source) -> bool:
        """Whether a seed gives the same history on both; commits may differ in documents alone."""
        return replace(self, commit="") == replace(other, commit="")


@cache
def this_source() -> Source:
    """What runs in this process, as its files were when it was asked first."""
    return Source(
        source_hash(PACKAGE), _commit(), platform.python_version(), apsw.sqlite_lib_version(),
        np.__version__, cryptography.__version__,
    )  # fmt: skip


def source_hash(folder: Path) -> str:
    """One hash of the names and texts of all Python files below a folder."""
    files = sorted(file for file in folder.rglob("*.py"))
    parts = [part for file in files for part in (_name(file, folder), file.read_bytes())]
    return digest("hedgerow source 1", *parts)


def _name(file: Path, folder: Path) -> str:
    return file.relative_to(folder).as_posix()


def _commit() -> str:
    """The commit of the checkout that the package lies in, if its files are as committed."""
    try:
        changed = _git("status", "--porcelain", "--", ".")
        return "" if changed else _git("rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(*words: str) -> str:
    command = ["git", "-C", str(PACKAGE), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
