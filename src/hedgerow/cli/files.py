"""Where results go: checked and synced before anything is spent, written by rename."""

from __future__ import annotations

import fcntl
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hedgerow.errors import HedgerowError, PlanError


def check_writable(path: Path) -> None:
    """Write and sync a temporary file beside `path`, so that no budget is spent in vain."""
    folder = path.parent
    if path.is_dir():
        raise HedgerowError(f"{path} is a folder; name a file. Nothing was spent.")
    if not folder.is_dir():
        raise HedgerowError(f"the folder {folder} does not exist; make it. Nothing was spent.")
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}.") as file:
            file.write(b"hedgerow")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        reason = error.strerror or str(error)
        raise HedgerowError(f"cannot write to {folder}: {reason}. Nothing was spent.") from error


def write_text(path: Path, text: str) -> None:
    """Write beside the target, sync, then rename."""
    check_writable(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise HedgerowError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def held(path: Path, what: str) -> Iterator[None]:
    """While the block lasts this process alone has the file; PlanError if another has it."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken = os.path.samestat(os.fstat(file.fileno()), path.stat())
        except (BlockingIOError, FileNotFoundError):
            taken = False
        if not taken:  # locked, or replaced by one that was quicker
            raise PlanError(
                f"another process is at work on {what} of {path}. Nothing was asked and nothing "
                "was spent. Wait for it, then run the same command again."
            )
        yield
