"""Where results go: checked and synced before anything is spent, written by rename."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from hedgerow.errors import HedgerowError


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
