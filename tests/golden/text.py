"""How stored bytes are written down: named bytes a line each in base64, and tables as JSON."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Any

Files = dict[str, bytes]


def lines_of(items: Iterable[tuple[str, bytes]]) -> bytes:
    """Named bytes, one a line."""
    return "".join(f"{name} {base64.b64encode(data).decode()}\n" for name, data in items).encode()


def items_in(text: bytes) -> list[tuple[str, bytes]]:
    """The inverse of `lines_of`."""
    pairs = (line.split(" ") for line in text.decode().splitlines())
    return [(name, base64.b64decode(data)) for name, data in pairs]


def as_json(values: Any) -> bytes:
    return (json.dumps(values, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def hashes_of(items: Iterable[tuple[str, bytes]]) -> list[str]:
    return [f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in items]
