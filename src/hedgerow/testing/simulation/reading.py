"""Bytes that travelled are read once a history, for all: reading depends on nothing else.

Parties of one process share messages in production, too; what is read is never written to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hedgerow.errors import FormatError
from hedgerow.protocol.identity import Announcement
from hedgerow.protocol.messages import Message

_PLAIN = (str, int)  # and not bool: True is 1 to a dictionary


@contextmanager
def read_once() -> Iterator[None]:
    """Inside the block the same bytes give the same message, or the same error."""
    read_anew, read_announcement = Message.from_bytes, Announcement.from_dict
    known: dict[bytes, Message | FormatError] = {}
    announced: dict[tuple[tuple[str, Any], ...], Announcement] = {}

    def from_bytes(data: bytes) -> Message:
        found = known.get(data)
        if found is None:
            try:
                found = read_anew(data)
            except FormatError as error:
                found = error.with_traceback(None)
            known[data] = found
        if isinstance(found, FormatError):
            raise found
        return found

    def from_dict(values: Any) -> Announcement:
        if not isinstance(values, dict) or not all(type(v) in _PLAIN for v in values.values()):
            return read_announcement(values)
        key = tuple(values.items())
        if key not in announced:
            announced[key] = read_announcement(values)
        return announced[key]

    setattr(Announcement, "from_dict", staticmethod(from_dict))  # noqa: B010 - for a while
    setattr(Message, "from_bytes", staticmethod(from_bytes))  # noqa: B010
    try:
        yield
    finally:
        setattr(Announcement, "from_dict", staticmethod(read_announcement))  # noqa: B010
        setattr(Message, "from_bytes", staticmethod(read_anew))  # noqa: B010


def read(data: bytes) -> Message | None:
    """A message that travelled; None if nobody can read it."""
    try:
        return Message.from_bytes(data)
    except FormatError:
        return None
