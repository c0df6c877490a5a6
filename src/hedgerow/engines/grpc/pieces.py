"""Messages in pieces. A piece is a flag, the number of its message, and a part of it.

All pieces but the last have one length and those of one message follow each other: what a peer can
make this side keep is one message of bounded length, and it has to send every byte of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from hedgerow.engines.sockets import LONGEST_MESSAGE
from hedgerow.errors import FormatError

PIECE_BYTES = 2**18  # small enough that a ping behind it is in time on a slow line
LONGEST_FRAME = 2**21  # gRPC reads no more than this of anybody
_HEAD = struct.Struct("<BQ")
_MORE, _LAST = 0, 1


def pieces_of(number: int, message: bytes) -> Iterator[bytes]:
    """A message as frames; an empty one is one frame."""
    if len(message) > LONGEST_MESSAGE:
        raise FormatError(f"a message of {len(message)} bytes is longer than {LONGEST_MESSAGE}")
    view, start = memoryview(message), 0
    while len(message) - start > PIECE_BYTES:
        yield b"".join((_HEAD.pack(_MORE, number), view[start : start + PIECE_BYTES]))
        start += PIECE_BYTES
    yield b"".join((_HEAD.pack(_LAST, number), view[start:]))


class Assembler:
    """Puts the pieces of one stream together again.

    Clear it when the stream ends: gRPC keeps the error of a stream that broke off in a circle with
    the frames that it went through, so that half a message would wait for Python's collector, which
    looks at how many objects there are and not at how large. Three parties whose streams broke off
    during messages of 10 MB took the coordinator from 250 to 400 MB.

    Parameters
    ----------
    wants : whether a message of this number is waited for; others are counted and not kept
    longest : bytes of the longest message that is taken
    """

    def __init__(
        self, wants: Callable[[int], bool] = lambda number: True, longest: int = LONGEST_MESSAGE
    ) -> None:
        self._wants, self._longest = wants, longest
        self._kept = True
        self.clear()

    def clear(self) -> None:
        """Forget the message under way."""
        self._number: int | None = None
        self._message = bytearray()  # grows in place: lists of pieces would leave holes in memory
        self._size = 0

    def add(self, frame: bytes) -> tuple[int, bytes] | None:
        """The number and the whole message once its last piece is here."""
        if len(frame) < _HEAD.size:
            raise FormatError("a piece is shorter than its head")
        flag, number = _HEAD.unpack_from(frame)
        part = memoryview(frame)[_HEAD.size :]
        if flag not in (_MORE, _LAST) or len(part) > PIECE_BYTES:
            raise FormatError("a piece is not readable")
        if flag == _MORE and len(part) != PIECE_BYTES:
            raise FormatError("a piece is shorter than those before the last have to be")
        if self._number is None:
            self._number, self._kept = number, self._wants(number)
        if number != self._number:
            raise FormatError("pieces of two messages are mixed")
        self._size += len(part)
        if self._size > self._longest:
            raise FormatError(f"a message is longer than the {self._longest} bytes allowed")
        if self._kept:
            self._message += part
        if flag == _MORE:
            return None
        message = bytes(self._message)
        self.clear()
        return (number, message) if self._kept else None
