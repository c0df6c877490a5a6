"""The ledger that people open: its budget, what was spent, the block that charges fits to it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Self

from hedgerow.data.cards import Card, Shown
from hedgerow.errors import LedgerError, SettingsError
from hedgerow.privacy.ledger.disk import mark_of
from hedgerow.privacy.ledger.in_force import enter_block, leave_block
from hedgerow.privacy.ledger.spending import (
    Budget,
    LedgerRun,
    budget_of,
    counts_as_gaussians,
    history_of,
    set_budget,
    spending,
)
from hedgerow.privacy.ledger.store import COORDINATOR, LineStore

USUAL_DELTA = 1e-6  # at which a ledger counts that has neither a budget nor a run


class Ledger(Shown, LineStore):
    """What was ever reserved, charged and released about some rows, in one file.

    Open it with `Ledger.open(path)`; `Ledger.in_memory()` ends with the process. Inside of a `with`
    block every fit and every private evaluation is charged to it that names no other ledger:
    those of the block itself, of threads that have no block of their own, and of joblib's
    processes, which get an estimator with the ledger's path. The end of the block closes it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hedgerow import Ledger, PrivateBoostingClassifier
    >>> X = np.linspace(-1, 1, 2000).reshape(-1, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Ledger.open(f"{folder.name}/trial.ledger", epsilon=4, delta=1e-6) as ledger:
    ...     for n_trees in (10, 20):
    ...         model = PrivateBoostingClassifier(
    ...             bounds=(-1, 1), classes=[0, 1], method="random-trees", n_trees=n_trees
    ...         ).fit(X, y)
    ...     print(f"{len(ledger.history())} fits: epsilon = {ledger.spent:.2f}")
    2 fits: epsilon = 1.45
    """

    @classmethod
    def in_memory(
        cls,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        pure: float | None = None,
    ) -> Self:
        """A ledger of this process alone, gone with it; the others set its budget, as in `open`."""
        ledger = cls._in_memory()
        ledger._limit(epsilon, delta, pure)
        return ledger

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        pure: float | None = None,
        create: bool = True,
    ) -> Self:
        """Open a ledger file; create it if it does not exist.

        Several processes and threads may use one file at the same time.

        Parameters
        ----------
        path : the file; the same one for everything that is asked about the same rows
        epsilon, delta : the budget over all runs. It is set once: a later opening may leave it out
            or say the same again. Without a delta it is 1e-6.
        pure : the share of the budget for runs of pure epsilon, see `Budget`; without it they count
            as Gaussians beside Gaussian runs, which is dear. It is set with the budget
        create : whether a missing file is made; otherwise it is an error
        """
        file = Path(path)
        if mark_of(file) is None and not create:
            raise LedgerError(f"no ledger at {file}; check the path")
        ledger = cls._opened(file)
        try:
            ledger._limit(epsilon, delta, pure)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def _limit(self, epsilon: float | None, delta: float | None, pure: float | None) -> None:
        if epsilon is None:
            if delta is not None or pure is not None:
                what = "delta" if delta is not None else "share for pure runs"
                raise SettingsError(
                    f"a budget's {what} needs an epsilon; give both, or none. Nothing was spent."
                )
            return
        delta = USUAL_DELTA if delta is None else delta
        if not 0 < epsilon < float("inf") or not 0 <= delta < 1:
            raise SettingsError(
                f"a budget of epsilon = {epsilon:g} at delta = {delta:g} is none: epsilon is above "
                "0, and delta at least 0 and below 1. Nothing was spent."
            )
        share = None if pure is None else float(pure)
        set_budget(self, Budget(float(epsilon), float(delta), share))

    @property
    def budget(self) -> Budget | None:
        """The ceiling over all runs, if one was set."""
        return budget_of(self)

    @property
    def delta(self) -> float:
        """The delta at which `spent` counts: the budget's, else the largest of its runs."""
        if (budget := self.budget) is not None:
            return budget.delta
        deltas = [float(line.values["delta"]) for line in self.lines(COORDINATOR, "reserve")]
        largest = max(deltas, default=USUAL_DELTA)
        return largest or (USUAL_DELTA if spending(self).gaussian else 0.0)

    @property
    def spent(self) -> float:
        """Epsilon of everything that was reserved so far, at `delta`.

        Runs compose by the squares of their noise, so it is less than the sum of their epsilons.
        """
        by_mu = counts_as_gaussians(self.budget)
        return spending(self).epsilon(self.delta, as_gaussians=by_mu)

    @property
    def left(self) -> float | None:
        """What the budget has above `spent`; None without a budget.

        A further run may cost more than that: see `next_run`.
        """
        budget = self.budget
        return None if budget is None else max(0.0, budget.epsilon - self.spent)

    @property
    def next_run(self) -> float | None:
        """Epsilon of the dearest run that still fits, at the budget's delta; None without one."""
        budget = self.budget
        return None if budget is None else spending(self).room(budget)

    def history(self) -> list[LedgerRun]:
        """Every run in order: when, by which method, at what epsilon, and the total after it."""
        return history_of(self, self.delta)

    def __copy__(self) -> Ledger:
        return self  # one ledger, one budget: a cloned estimator spends from the same one

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Processes that a ledger is sent to open the same file for themselves."""
        if self.path is None:
            raise LedgerError(
                "a ledger in memory cannot be shared with other processes: each would count for "
                "itself. Nothing was asked. Open one in a file with Ledger.open(path), or use "
                "threads."
            )
        return _reopened, (str(self.path.resolve()),)

    def __enter__(self) -> Self:
        enter_block(self)
        return self

    def __exit__(self, *_: object) -> None:
        leave_block(self)
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger: {self.path or 'in memory'}>"  # reads nothing, so it always answers

    def _card(self) -> Card:
        kept = self.path or "in memory"
        if self.closed:
            return Card("Ledger", (("kept", kept), ("closed", "open it again to read it")))
        reserved, budget, delta = self.lines(COORDINATOR, "reserve"), self.budget, self.delta
        at = f" at delta = {delta:g}" if delta else ""
        facts = (
            ("kept", kept),
            ("runs", len(reserved)),
            ("reserved", f"epsilon = {self.spent:.4g}{at}" if reserved else ""),
            ("budget", budget.words if budget else ""),
            ("dearest run that fits", f"epsilon = {self.next_run:.4g}" if budget else ""),
        )
        rows = tuple(
            (line.run, float(values["epsilon"]), float(values["delta"]), values["unit"], line.time)
            for line, values in ((line, line.values) for line in reversed(reserved))
        )
        return Card("Ledger", facts, ("run", "epsilon", "delta", "what is counted", "time"), rows)


def _reopened(path: str) -> Ledger:
    return Ledger.open(path, create=False)
