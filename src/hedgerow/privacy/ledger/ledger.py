"""The ledger: an append-only, hash-chained list of charges and releases in one SQLite file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Self

from hedgerow.data.cards import Card, Shown
from hedgerow.errors import LedgerError
from hedgerow.privacy.ledger.spending import budget_of, spending
from hedgerow.privacy.ledger.store import COORDINATOR, LineStore


class Ledger(Shown, LineStore):
    """Open with `Ledger.open(path)`, or `Ledger.in_memory()` for one fit alone."""

    @classmethod
    def open(cls, path: str | PathLike[str], *, create: bool = True) -> Self:
        """Open a ledger file; create it if it does not exist.

        Several processes and threads may use one file at the same time.
        """
        file = Path(path)
        if not file.exists() and not create:
            raise LedgerError(f"no ledger at {file}; check the path")
        return cls._opened(file)

    def __copy__(self) -> Ledger:
        return self  # one ledger, one budget: a cloned estimator spends from the same one

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Processes that an estimator is sent to (joblib) open the same file for themselves."""
        if self.path is None:
            raise LedgerError(
                "a ledger in memory cannot be shared with other processes: each would count for "
                "itself. Nothing was asked. Open one in a file with Ledger.open(path), or use "
                "threads."
            )
        return _reopened, (str(self.path.resolve()),)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger: {self.path or 'in memory'}>"  # reads nothing, so it always answers

    def _card(self) -> Card:
        reserved = self.lines(COORDINATOR, "reserve")
        spent, budget = spending(self), budget_of(self)
        deltas = [float(line.values["delta"]) for line in reserved]
        delta = budget.delta if budget else max(deltas, default=0.0)
        at = f" at delta = {delta:g}" if delta else ""
        facts = (
            ("kept", self.path or "in memory"),
            ("runs", len(reserved)),
            ("reserved", f"epsilon = {spent.epsilon(delta):.4g}{at}" if reserved else ""),
            ("budget", f"epsilon = {budget.epsilon:g}{at}" if budget else ""),
            ("dearest run that fits", f"epsilon = {spent.room(budget):.4g}" if budget else ""),
        )
        rows = tuple(
            (line.run, float(line.values["epsilon"]), given, line.values["unit"], line.time)
            for line, given in zip(reversed(reserved), reversed(deltas), strict=True)
        )
        return Card("Ledger", facts, ("run", "epsilon", "delta", "what is counted", "time"), rows)


def _reopened(path: str) -> Ledger:
    return Ledger.open(path, create=False)
