"""`.hedge` files: magic, format number, length, packed header and arrays, SHA-256.

What stands inside belongs to `ensemble.py`; this is the container and its checks.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Mapping
from importlib.metadata import version as version_of
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hedgerow.errors import FormatError
from hedgerow.failpoints import fail_point
from hedgerow.packing import pack, unpack

MAGIC = b"HEDGEROW"
FORMAT = 2  # 2: deviations and covers of leaves
MAX_SIZE = 1 << 32
_HEAD = struct.Struct("<8sIQ")


def sealed(values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of a file: equal values and arrays give equal bytes."""
    body = pack(dict(values), dict(arrays))
    head = _HEAD.pack(MAGIC, FORMAT, len(body))
    return head + body + hashlib.sha256(head + body).digest()


def unsealed(data: bytes, source: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Values and arrays; FormatError on anything that is not a whole, unchanged file."""
    if len(data) < _HEAD.size + 32 or data[:8] != MAGIC:
        raise FormatError(f"{source} is not a hedgerow model{_kind_of(data)}; name a .hedge file")
    _, version, length = _HEAD.unpack_from(data)
    if version > FORMAT:
        raise FormatError(
            f"{source} has model format {version}, newer than this hedgerow reads ({FORMAT}); "
            f"install the hedgerow version that writes model format {version}: one later than "
            f"{version_of('hedgerow')}"
        )
    if 1 <= version < FORMAT:
        raise FormatError(
            f"{source} has model format {version}, older than this hedgerow reads ({FORMAT}); "
            "use the hedgerow version that wrote it, or train again"
        )
    if version < 1 or length > MAX_SIZE or len(data) != _HEAD.size + length + 32:
        raise FormatError(f"{source} is cut short or damaged; fetch it again")
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        raise FormatError(f"{source} was changed after it was written; fetch it again")
    return unpack(data[_HEAD.size : -32])


_OTHERS = {
    b"\x80": "it looks like a pickle, which joblib.load reads if you trust its author",
    b"SQLite format 3": "it looks like a ledger",
    b"{": "it looks like JSON, such as an evaluation or an export",
}


def _kind_of(data: bytes) -> str:
    """What a file seems to be instead, for whoever named the wrong one; "" if that is unknown."""
    kinds = [kind for start, kind in _OTHERS.items() if data.startswith(start)]
    return f" ({kinds[0]})" if kinds else ""


def write(data: bytes, path: str | PathLike[str]) -> None:
    """Write beside the target, sync, then rename."""
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fail_point("write-model")
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def read(path: str | PathLike[str]) -> bytes:
    """The bytes of a file that may be a model."""
    file = Path(path)
    try:
        if file.stat().st_size > MAX_SIZE:
            raise FormatError(f"{file} is larger than any hedgerow model")
        return file.read_bytes()
    except FileNotFoundError as error:
        raise FormatError(f"no model at {file}; check the path") from error
    except IsADirectoryError as error:
        raise FormatError(f"{file} is a folder; name the model file (.hedge) in it") from error
    except OSError as error:
        raise FormatError(f"cannot read the model {file}: {error}") from error
