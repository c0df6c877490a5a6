"""A few of many lines, and all of them with few in memory."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hedgerow.errors import LedgerError
from hedgerow.privacy.ledger import store
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.paging import Wanted, count_of, page_after, page_of
from hedgerow.testing.clock import manual_clock
from tests.privacy.ledger.test_ledger import tampered

N = 57


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.open(tmp_path / "ledger.db")
    with manual_clock(datetime(2026, 1, 1, tzinfo=UTC)) as clock:
        for number in range(N):
            kind = "refuse" if number % 3 == 0 else "answer"
            body = {"word": "failed", "number": number}
            made.append("a" if number % 2 else "b", kind, f"run-{number % 5}", values=body)
            clock.move(days=1)
    return made


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(), Wanted("a"), Wanted(kind="refuse"), Wanted("b", "refuse", "run-0"),
        Wanted(since="2026-01-20"), Wanted(until="2026-01-20"), Wanted(run="'; DROP TABLE line"),
    ],
)  # fmt: skip
def test_pages_from_both_ends_have_every_wanted_line_once(ledger: Ledger, wanted: Wanted) -> None:
    expected = [
        line.seq
        for line in ledger.lines()
        if (not wanted.owner or line.owner == wanted.owner)
        and (not wanted.kind or line.kind == wanted.kind)
        and (not wanted.run or line.run == wanted.run)
        and line.time >= wanted.since
        and (not wanted.until or line.time < wanted.until)
    ]
    assert count_of(ledger, wanted) == len(expected)
    back, before = list[int](), 0
    while lines := page_of(ledger, wanted, before, 7):
        back += [line.seq for line in lines]
        before = back[-1]
    assert back == expected[::-1]
    forth = list[int]()
    while lines := page_after(ledger, wanted, forth[-1] if forth else 0, 7):
        forth += [line.seq for line in lines]
    assert forth == expected


def test_bodies_of_answers_are_left_out_of_pages(ledger: Ledger) -> None:
    bodies = {line.kind: line.body for line in page_of(ledger, Wanted())}
    assert bodies["answer"] == b""
    assert bodies["refuse"]


def test_a_walk_has_all_lines_and_finds_a_change(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_AT_ONCE", 10)
    assert list(ledger.walk()) == ledger.lines()
    assert ledger.verify() == N
    path = ledger.path
    assert path is not None
    ledger.close()
    tampered(path, "UPDATE line SET run = 'other' WHERE seq = 41")
    with pytest.raises(LedgerError, match="line 41"):
        Ledger.open(path)
