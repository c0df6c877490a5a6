"""One way to turn plain values and arrays into bytes: for the wire, files, hashes and the ledger.

Layout: uint32 header length, JSON header, raw little-endian arrays in the order of the header's
table. No pickle, no names to import; every length is checked before anything is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError

MAX_HEADER = 1 << 26
Shape = tuple[int, ...]
_DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        "int8",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int32",
        "int64",
        "float32",
        "float64",
    )
}

_HEADER_LENGTH = struct.Struct("<I")
_NAMES = {np.dtype(name).newbyteorder(order): name for name in _DTYPES for order in ("<", ">")}


def pack(values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None) -> bytes:
    """Pack JSON-able values and numeric arrays. The same input always gives the same bytes."""
    shapes: dict[str, tuple[str, Shape]] = {}
    chunks: list[memoryview] = []  # not copied before they are joined
    for name, array in sorted((arrays or {}).items()):
        kind = _NAMES.get(array.dtype)
        if kind is None:
            raise FormatError(f"array {name!r} has dtype {array.dtype}, which is not packed")
        shapes[name] = (kind, array.shape)
        chunks.append(np.ascontiguousarray(array, _DTYPES[kind]).data)
    header = _header(values, shapes)
    return b"".join([_HEADER_LENGTH.pack(len(header)), header, *chunks])


def packed_size(values: Mapping[str, Any], arrays: Mapping[str, tuple[str, Shape]]) -> int:
    """How many bytes `pack` would make of values and of arrays of these dtypes and shapes."""
    header = _header(values, dict(sorted(arrays.items())))
    inside = sum(math.prod(shape) * _DTYPES[kind].itemsize for kind, shape in arrays.values())
    return _HEADER_LENGTH.size + len(header) + inside


def _header(values: Mapping[str, Any], arrays: Mapping[str, tuple[str, Shape]]) -> bytes:
    """Piece by piece, as `canonical_json` would: much is packed, and most of it is arrays."""
    table = [
        f'[{_quoted(name)},"{kind}",[{",".join(map(str, shape))}]]'
        for name, (kind, shape) in arrays.items()
    ]
    text = _ENCODER.encode(values) if values else "{}"
    return f'{{"arrays":[{",".join(table)}],"values":{text}}}'.encode()


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The inverse of `pack`; raises FormatError on anything that does not fit."""
    if len(data) < 4:
        raise FormatError("message is shorter than its own length field")
    (length,) = struct.unpack_from("<I", data)
    if length > MAX_HEADER or 4 + length > len(data):
        raise FormatError("header length does not fit the message")
    try:
        text = data[4 : 4 + length].decode("utf-8")
        header = _DECODER.decode(text)
        if "\\u" in text:  # else no escape names text that UTF-8 cannot carry
            canonical_json(header)
        values, table = header["values"], header["arrays"]
        entries = [(str(name), str(dtype), [int(n) for n in shape]) for name, dtype, shape in table]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise FormatError("header is not readable") from error
    if not isinstance(values, dict):
        raise FormatError("header values are not a table")
    arrays: dict[str, NDArray[Any]] = {}
    offset = 4 + length
    for name, dtype, shape in entries:
        if dtype not in _DTYPES or name in arrays or len(shape) > 4 or min(shape, default=0) < 0:
            raise FormatError(f"array {name!r} is not described correctly")
        count = math.prod(shape)
        size = count * _DTYPES[dtype].itemsize
        if offset + size > len(data):
            raise FormatError(f"array {name!r} is longer than the message")
        flat = np.frombuffer(data, dtype=_DTYPES[dtype], count=count, offset=offset)
        try:
            arrays[name] = flat.reshape(shape).astype(np.dtype(dtype), copy=True)
        except (ValueError, OverflowError) as error:
            raise FormatError(f"array {name!r} has an impossible shape") from error
        offset += size
    if offset != len(data):
        raise FormatError("message has bytes left over")
    return values, arrays


_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


@lru_cache(maxsize=256)
def _quoted(name: str) -> str:
    return _ENCODER.encode(name)


def canonical_json(value: Any) -> bytes:
    """JSON with sorted keys and no spaces, so that equal values have equal bytes."""
    return _ENCODER.encode(value).encode("utf-8")


_LENGTH = struct.Struct("<Q")
_MUCH = 4096


def digest(*parts: bytes | str) -> str:
    """SHA-256 over length-prefixed parts, as hex."""
    pieces, longest = list[bytes](), 0
    for part in parts:
        raw = part.encode("utf-8") if isinstance(part, str) else part
        length = len(raw)
        pieces += (_LENGTH.pack(length), raw)
        if length > longest:
            longest = length
    if longest <= _MUCH:
        return hashlib.sha256(b"".join(pieces)).hexdigest()
    found = hashlib.sha256()
    for piece in pieces:  # what is long is not copied
        found.update(piece)
    return found.hexdigest()


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):  # 1e999
        raise ValueError(f"{text} is not a finite number")
    return value


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
