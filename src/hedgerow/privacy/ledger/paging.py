"""A few of very many lines: those that somebody wants to see, page by page, the newest first."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.ledger.store import COLUMNS, LineStore

# What was answered and released may be large, and nobody reads it on a page.
_SHORT = COLUMNS.replace("body", "CASE WHEN kind IN ('answer', 'release') THEN x'' ELSE body END")
_TESTS = {
    "owner": "owner = ?",
    "kind": "kind = ?",
    "run": "run = ?",
    "since": "time >= ?",
    "until": "time < ?",
}


@dataclass(frozen=True)
class Wanted:
    """Which lines somebody wants to see; what is empty is not asked for."""

    owner: str = ""
    kind: str = ""
    run: str = ""
    since: str = ""  # UTC, as lines have it
    until: str = ""

    def condition(self) -> tuple[str, tuple[str, ...]]:
        """As SQL, and the values in it."""
        given = {name: str(getattr(self, name)) for name in _TESTS if getattr(self, name)}
        return " AND ".join(["1", *(_TESTS[name] for name in given)]), tuple(given.values())


def page_of(ledger: LineStore, wanted: Wanted, before: int = 0, most: int = 100) -> list[Line]:
    """The newest wanted lines in front of number `before` (0: of all), the newest first.

    Bodies of answers and releases are left empty.
    """
    where, values = wanted.condition()
    older = f" AND seq < {int(before)}" if before else ""
    return _lines(ledger, f"{where}{older} ORDER BY seq DESC LIMIT {int(most)}", values)


def page_after(ledger: LineStore, wanted: Wanted, after: int, most: int) -> list[Line]:
    """The same from the other end: the oldest wanted lines behind number `after`, in order."""
    where, values = wanted.condition()
    return _lines(ledger, f"{where} AND seq > {int(after)} ORDER BY seq LIMIT {int(most)}", values)


def _lines(ledger: LineStore, where: str, values: tuple[str, ...]) -> list[Line]:
    return [Line(*row) for row in ledger.select(_SHORT, where, values)]


def count_of(ledger: LineStore, wanted: Wanted) -> int:
    """How many lines are wanted."""
    ((count,),) = ledger.select("count(*)", *wanted.condition())
    return int(count)
