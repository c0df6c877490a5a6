"""Files of exports: written beside the target, synced, then renamed."""

from __future__ import annotations

import os
import secrets
from os import PathLike
from pathlib import Path

from hedgerow.errors import ExportError


def write_bytes(path: str | PathLike[str], data: bytes) -> Path:
    """Write a whole file or none; returns its path."""
    target = Path(path)
    if target.is_dir():
        raise ExportError(f"{target} is a folder; name a file. Nothing was written.")
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with partial.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ExportError(f"cannot write {target}: {error.strerror or error}") from error
    return target
