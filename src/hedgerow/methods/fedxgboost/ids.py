"""Ids of rows: what counts as one, and whether parties that claim the same ids have them.

Errors name counts and never an id.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.errors import FormatError, TableError

KEY_BYTES = 32


def checked_ids(ids: Sequence[object]) -> tuple[str, ...]:
    """Ids as text, each once; anything else is refused with counts, never with an id."""
    missing = sum(_is_missing(one) for one in ids)
    other = sum(not isinstance(one, str) and not _is_missing(one) for one in ids)
    texts = [str(one) for one in ids if isinstance(one, str)]
    empty = sum(not one.strip() for one in texts)
    unwritable = sum(not _is_utf8(one) for one in texts)
    repeated = len(texts) - len(set(texts))
    faults = [
        (missing, "are missing"),
        (empty, "are empty"),
        (other, "are not text"),
        (unwritable, "cannot be written as UTF-8"),
        (repeated, "occur in an earlier row already"),
    ]
    found = [f"{count:,} {what}" for count, what in faults if count]
    if found:
        raise TableError(
            f"of {len(ids):,} ids {', '.join(found)}. Nothing was sent. Ids are text, one for "
            "every row and none twice; write numbers as text the same way in every party."
        )
    if not texts:
        raise TableError("there are no ids: the table has no rows. Nothing was sent.")
    return tuple(texts)


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True)
class IdsSeal:
    """What a party says about agreed ids: their number, and a hash of them in order and sorted."""

    count: int
    ordered: str
    unordered: str


def fresh_salt() -> bytes:
    """A salt for `seal_ids`, chosen by the active party and sent to all."""
    return secrets.token_bytes(KEY_BYTES)


def seal_ids(ids: Sequence[object], salt: bytes) -> IdsSeal:
    """Hashes of all ids at once. Who does not know all but a few of them can test no guess."""
    if len(salt) != KEY_BYTES:
        raise FormatError(f"the salt has {len(salt)} bytes, not {KEY_BYTES}")
    texts = checked_ids(ids)
    return IdsSeal(len(texts), _seal(salt, texts), _seal(salt, sorted(texts)))


def check_agreed_ids(own: IdsSeal, others: Mapping[str, IdsSeal]) -> None:
    """Refuse to go on unless all parties have the same ids in the same order."""
    faults = []
    for name, seal in others.items():
        if seal.count != own.count:
            faults.append(f"{name} has {seal.count:,} rows and the active party {own.count:,}")
        elif seal.unordered != own.unordered:
            faults.append(f"{name} has other ids")
        elif seal.ordered != own.ordered:
            faults.append(f"{name} has the same ids in another order")
    if faults:
        raise TableError(
            f"the ids are not the agreed ones: {'; '.join(faults)}. No row was shown. Sort all "
            "tables alike, or let the parties intersect their ids."
        )


def _seal(salt: bytes, texts: Sequence[str]) -> str:
    state = hmac.new(salt, digestmod="sha256")
    for one in texts:
        raw = one.encode("utf-8")
        state.update(len(raw).to_bytes(8, "little") + raw)
    return state.hexdigest()
