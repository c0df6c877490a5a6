"""The ledger: an append-only, hash-chained list of charges and releases in one SQLite file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Self

from hedgerow.errors import LedgerError
from hedgerow.privacy.ledger.store import LineStore


class Ledger(LineStore):
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


def _reopened(path: str) -> Ledger:
    return Ledger.open(path, create=False)
