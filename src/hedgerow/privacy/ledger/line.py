"""One line of a ledger, and the hash that chains it to the line before."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from numpy.typing import NDArray

from hedgerow.errors import LedgerError
from hedgerow.packing import digest, unpack

GENESIS = digest("hedgerow ledger 1")  # what the first line follows
_SHORT, _PLANS = 1024, 32_768  # bytes of bodies that are kept after they were read


@lru_cache(maxsize=8192)  # charges are read again with every later one
def _values(body: bytes) -> dict[str, Any]:
    return unpack(body)[0]


@lru_cache(maxsize=64)  # so is a reserved plan, with every message about its run
def _values_of_plan(body: bytes) -> dict[str, Any]:
    return unpack(body)[0]


class Line(NamedTuple):  # many of them are made
    """One line of the ledger."""

    seq: int
    time: str
    owner: str
    kind: str
    run: str
    slot: int
    attempt: int
    body: bytes
    previous: str
    hash: str

    @property
    def values(self) -> dict[str, Any]:
        """Not to be written to."""
        if len(self.body) <= _SHORT:
            return _values(self.body)
        return _values_of_plan(self.body) if len(self.body) <= _PLANS else unpack(self.body)[0]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return unpack(self.body)[1]


def line_hash(
    seq: int, time: str, owner: str, kind: str, run: str, slot: int, attempt: int,
    body: bytes, previous: str,
) -> str:  # fmt: skip
    """The hash of a line binds every field and the line before it."""
    return digest(previous, str(seq), time, owner, kind, run, str(slot), str(attempt), body)


def check_chain(lines: Iterable[Line]) -> int:
    """Walk all lines of a ledger: how many there are, or LedgerError at the first break."""
    previous, count = GENESIS, 0
    for line in lines:
        count += 1
        expected = line_hash(
            line.seq, line.time, line.owner, line.kind, line.run,
            line.slot, line.attempt, line.body, previous,
        )  # fmt: skip
        if line.seq != count or line.previous != previous or line.hash != expected:
            raise LedgerError(
                f"line {line.seq} of the ledger was changed, removed or inserted afterwards. "
                "Do not train on these rows until the last good copy is found."
            )
        previous = line.hash
    return count
