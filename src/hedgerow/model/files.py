"""`.hedge` files: magic, format number, length, packed header and arrays, SHA-256."""

from __future__ import annotations

import hashlib
import os
import struct
from os import PathLike
from pathlib import Path

from hedgerow.data.schema import Schema
from hedgerow.errors import FormatError
from hedgerow.failpoints import fail_point
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.leaf_noise import stack_known, with_known
from hedgerow.model.stacking import stack_trees, unstack_trees
from hedgerow.model.statement import Statement
from hedgerow.packing import pack, unpack

MAGIC = b"HEDGEROW"
FORMAT = 2  # 2: deviations and covers of leaves
MAX_SIZE = 1 << 32
_HEAD = struct.Struct("<8sIQ")


def model_bytes(model: Ensemble) -> bytes:
    """A model as the bytes of its file; equal models with equal records give equal bytes."""
    values = {
        "schema": model.schema.to_dict(),
        "statement": model.statement.to_dict(),
        "averaged": model.averaged,
        "record": model.record,
    }
    body = pack(values, {**stack_trees(model.trees), **stack_known(model.trees)})
    head = _HEAD.pack(MAGIC, FORMAT, len(body))
    return head + body + hashlib.sha256(head + body).digest()


def model_from_bytes(data: bytes, source: str = "model") -> Ensemble:
    """Read a model; raises FormatError on anything that is not a whole, unchanged file."""
    if len(data) < _HEAD.size + 32 or data[:8] != MAGIC:
        raise FormatError(f"{source} is not a hedgerow model; name a .hedge file")
    _, version, length = _HEAD.unpack_from(data)
    if version > FORMAT:
        raise FormatError(
            f"{source} has model format {version}, newer than this hedgerow reads ({FORMAT}); "
            f"install the hedgerow version that writes model format {version}"
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
    values, arrays = unpack(data[_HEAD.size : -32])
    try:
        schema = Schema.from_dict(values["schema"], source)
        statement = Statement.from_dict(values["statement"])
        averaged, record = values["averaged"], dict(values["record"])
        if not isinstance(averaged, bool):
            raise FormatError("`averaged` is not true or false")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FormatError(f"{source} is not readable: {error}") from error
    trees = with_known(unstack_trees(arrays), arrays)
    return Ensemble(trees, schema, statement, averaged, record)


def write_model(model: Ensemble, path: str | PathLike[str]) -> None:
    """Write beside the target, sync, then rename."""
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(model_bytes(model))
            file.flush()
            os.fsync(file.fileno())
        fail_point("write-model")
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def read_model(path: str | PathLike[str]) -> Ensemble:
    file = Path(path)
    try:
        if file.stat().st_size > MAX_SIZE:
            raise FormatError(f"{file} is larger than any hedgerow model")
        data = file.read_bytes()
    except FileNotFoundError as error:
        raise FormatError(f"no model at {file}; check the path") from error
    except IsADirectoryError as error:
        raise FormatError(f"{file} is a folder; name the model file (.hedge) in it") from error
    except OSError as error:
        raise FormatError(f"cannot read the model {file}: {error}") from error
    return model_from_bytes(data, str(file))
