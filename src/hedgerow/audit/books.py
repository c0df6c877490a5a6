"""Ledgers of the coordinator and of parties, side by side: do they tell one story?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hedgerow.errors import HedgerowError, VerificationFailed
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.ledger.witnesses import has_head, kept_heads, open_gaps
from hedgerow.protocol.masks import add_modulo
from hedgerow.protocol.replies import Answer


@dataclass(frozen=True)
class Book:
    """One owner's lines, and the file that has them."""

    owner: str
    path: Path
    ledger: Ledger

    def wrong(self, what: str) -> VerificationFailed:
        return VerificationFailed(f"{self.path} ({self.owner}): {what}")

    def reserved(self, run: str) -> Plan | None:
        """The plan of a run that this owner took part in."""
        lines = self.ledger.lines(self.owner, "reserve", run)
        return Plan.from_dict(lines[0].values["plan"], str(self.path)) if lines else None

    def attended(self, run: str) -> tuple[tuple[str, ...], bool]:
        """The parties of a run and whether trust was simulated, as a coordinator reserved it."""
        values = self.ledger.lines(self.owner, "reserve", run)[0].values
        names, simulated = values.get("parties"), values.get("simulated")
        if not names or not isinstance(names, list) or not isinstance(simulated, bool):
            raise self.wrong(
                f"the reservation of run {run} does not say who took part; hedgerow 0.1.0 writes "
                "it, and a model of an earlier one cannot be verified"
            )
        return tuple(map(str, names)), simulated


@dataclass
class Books:
    """Ledgers by the names of those who wrote in them."""

    of: dict[str, Book] = field(default_factory=dict)
    n_lines: int = 0

    def coordinator(self, run: str) -> Book:
        """The book that reserved a run for everybody."""
        book = self.of.get(COORDINATOR)
        if book is None:
            raise VerificationFailed(
                "none of the ledgers is a coordinator's; give the one that `hedgerow train` kept"
            )
        if book.reserved(run) is None:
            raise book.wrong(f"it has no run {run!r}, which the model names")
        return book


@contextmanager
def opened(files: Sequence[str | PathLike[str]]) -> Iterator[Books]:
    """Copies of ledgers, verified line by line: what is given is never written to."""
    books = Books()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hedgerow-")))
        for number, file in enumerate(files):
            path, copy = Path(file), folder / f"{number}.ledger"
            try:
                _copy(path, copy)
                ledger = Ledger.open(copy, create=False)
                stack.callback(ledger.close)
                owners = [one.owner for one in verify(ledger)]
            except (OSError, sqlite3.Error, HedgerowError) as error:
                said = str(error).replace(str(copy), str(path))
                raise VerificationFailed(f"{path} is no ledger that holds: {said}") from error
            books.n_lines += ledger.last()[0]
            for owner in owners:
                if owner in books.of:
                    raise VerificationFailed(
                        f"{books.of[owner].path} and {path} both have lines of {owner}; give one "
                        "ledger of each"
                    )
                books.of[owner] = Book(owner, path, ledger)
        yield books


def _copy(path: Path, copy: Path) -> None:
    """As the ledger is between two transactions; its owner may go on writing."""
    source = path.resolve(strict=True).as_uri()
    with (
        closing(sqlite3.connect(f"{source}?mode=ro", uri=True)) as old,
        closing(sqlite3.connect(copy)) as new,
    ):
        old.backup(new)


def check_party(book: Book, plan: Plan, coordinator: Book) -> int:
    """A party reserved the same plan and charged nothing of which the coordinator knows nothing.

    Returns how many charges there are.
    """
    own = book.reserved(plan.run)
    if own is None:
        raise book.wrong(f"it has not reserved run {plan.run}, in which {book.owner} took part")
    if own.hash != plan.hash:
        raise book.wrong(f"it reserved another plan for run {plan.run} than the coordinator did")
    lines = coordinator.ledger.lines(COORDINATOR, "charge", plan.run)
    prices = {(line.slot, line.attempt): _price(line) for line in lines}
    charges = book.ledger.lines(book.owner, "charge", plan.run)
    for line in charges:
        known = prices.get((line.slot, line.attempt))
        if known is None:
            raise book.wrong(f"it charged {_place(line)}, which the coordinator never did")
        if known != _price(line):
            raise book.wrong(f"it charged another price for {_place(line)} than the coordinator")
    return len(charges)


def check_sums(
    books: Books, plan: Plan, names: Sequence[str], missing: Sequence[str]
) -> tuple[int, int]:
    """Every party in a release charged it; and it is the sum of their answers, number by number.

    Answers are kept where they are masked or noisy, and then each has a receipt. Returns how many
    releases there are and how many of them could be added up.
    """
    coordinator, trust = books.of[COORDINATOR], plan.privacy.trusted
    added = 0
    releases = coordinator.ledger.lines(COORDINATOR, "release", plan.run)
    for release in releases:
        took_part = _took_part(coordinator, release, plan, names)
        there = [name for name in took_part if name not in missing]
        for name in there:
            _check_charged(books.of[name], release)
        if trust.exact_sums:
            continue
        if sorted(release.values.get("receipts", {})) != took_part:
            raise coordinator.wrong(
                f"{_place(release)} lacks the receipt of a party that was in it"
            )
        answers = [_answer(books.of[name], release) for name in there]
        if len(there) < len(took_part):
            continue
        if sum(answer.check for answer in answers) % 2**64:
            raise coordinator.wrong(f"the masks of {_place(release)} do not cancel")
        total = add_modulo(answer.total for answer in answers)
        if not np.array_equal(total, release.arrays["total"].view(np.uint64)):
            raise coordinator.wrong(f"{_place(release)} is not the sum of what its parties sent")
        added += 1
    return len(releases), added


def _took_part(book: Book, release: Line, plan: Plan, names: Sequence[str]) -> list[str]:
    """Who was in a sum, by the coordinator's own line: not fewer than the plan allows."""
    absent = release.values.get("absent")
    if not isinstance(absent, list) or not {*absent} <= {*names}:
        raise book.wrong(f"{_place(release)} does not say which of the parties was in it")
    took_part = sorted({*names} - {*absent})
    least = plan.privacy.minimum_parties if plan.privacy.trusted.masked else 1
    if len(took_part) < least:
        raise book.wrong(f"{_place(release)} is over {len(took_part)} parties, fewer than {least}")
    return took_part


def _check_charged(book: Book, release: Line) -> None:
    charges = book.ledger.lines(book.owner, "charge", release.run, release.slot)
    if all(line.attempt != release.attempt for line in charges):
        raise book.wrong(f"it has not charged {_place(release)}, which was released")


def check_witnesses(books: Books) -> int:
    """Every head that one party keeps of another is in that one's chain; nobody has open gaps."""
    kept = 0
    for book in books.of.values():
        if gaps := open_gaps(book.ledger, book.owner):
            raise book.wrong(
                f"it lacks lines that {gaps[0].shown_by} has seen, and nobody has settled it"
            )
        for head in kept_heads(book.ledger, book.owner):
            other = books.of.get(head.party)
            if other is None:
                continue
            if not has_head(other.ledger, other.owner, head.commitment):
                raise other.wrong(
                    f"it lacks a line that {book.owner} keeps as a witness ({book.path}): it was "
                    "rolled back, or another ledger stands in for it"
                )
            kept += 1
    return kept


def _answer(book: Book, release: Line) -> Answer:
    for line in book.ledger.lines(book.owner, "answer", release.run, release.slot):
        if line.attempt == release.attempt:
            return Answer.from_body(line.arrays["body"].tobytes())
    raise book.wrong(f"it has no answer to {_place(release)}, which was released")


def _price(line: Line) -> dict[str, Any]:
    """What a charge costs, by whichever accounting; not what it was for."""
    return {k: v for k, v in line.values.items() if k not in ("kind", "request")}


def _place(line: Line) -> str:
    return f"slot {line.slot}, attempt {line.attempt} of run {line.run}"
