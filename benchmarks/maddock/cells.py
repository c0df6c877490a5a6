"""What each published table and figure trains, in the terms of this package's methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from maddock.fits import Fit, fit

EPSILON_OF = {3: 0.5, 9: 0.1, 10: 0.25, 11: 0.75, 12: 1.0}
FIVE = ("bank", "credit1", "credit2", "adult", "nomao6")
SIX = ("bank", "credit1", "credit2", "adult", "higgs", "nomao6")
UPDATES = ("gradient", "averaging", "newton")
SPLITS = {"hist": "histogram", "partially_random": "partially-random"}
RANK_EPSILONS = (0.1, 0.5, 1.0)
EPSILONS = (0.1, 0.25, 0.5, 0.75, 1.0)
Make = Callable[..., Fit]


def update_row(row: str, dataset: str, epsilon: float, **further: Any) -> Fit:
    """A row of the weight update tables, such as `hist_newton`: 25 trees learned, 300 drawn."""
    split, _, update = row.rpartition("_")
    trees = further.pop("n_trees", 300 if split == "totally_random" else 25)
    if split == "totally_random":
        method = "dp-rf" if update == "averaging" else "dp-tr-newton-literal"
        given = {} if update != "gradient" else {"update": "gradient"}
        return fit(dataset, method, epsilon, n_trees=trees, **given, **further)
    given = {"split": SPLITS[split], "update": update}
    return fit(dataset, "feverless", epsilon, n_trees=trees, **given, **further)


UPDATE_ROWS = tuple(
    f"{split}_{update}"
    for split in ("hist", "partially_random", "totally_random")
    for update in UPDATES
)


def candidates_row(row: str, dataset: str, epsilon: float = 1.0, **further: Any) -> Fit:
    """A column of the split candidate table."""
    further.setdefault("n_trees", 100)
    if row.startswith("iterative_hessian_s"):
        rounds = int(row.removeprefix("iterative_hessian_s"))
        return fit(dataset, "dp-tr-newton-ih", epsilon, candidate_rounds=rounds, **further)
    name = {"quantiles_nonprivate": "quantiles-not-private", "quantiles_private": "quantiles"}
    return fit(dataset, "dp-tr-newton-literal", epsilon, candidates=name.get(row, row), **further)


CANDIDATE_ROWS = (
    "iterative_hessian_s5", "quantiles_nonprivate", "log", "uniform", "quantiles_private",
)  # fmt: skip


def batch_row(row: str, dataset: str, epsilon: float = 0.1, n_trees: int = 200) -> Fit:
    """A row of the table of batches."""
    if row == "dp_rf_b200":
        return fit(dataset, "dp-rf", epsilon, n_trees=n_trees)
    size = 1 if row == "newton_b1" else int(row.removeprefix("b"))
    given = {} if size == 1 else {"batch_size": size}
    return fit(dataset, "dp-tr-newton-literal", epsilon, n_trees=n_trees, **given)


BATCH_ROWS = ("b10", "b20", "b50", "b100", "b200", "dp_rf_b200", "newton_b1")


def ranked_method(row: str, dataset: str, epsilon: float, n_trees: int = 100) -> Fit:
    """A method of the ranking, with T trees (`dp-ebm`: T trees for each column)."""
    if row == "dp_ebm":
        return fit(dataset, "dp-ebm", epsilon, cycles=n_trees)
    name, _, fraction = row.removesuffix("_uniform").replace("_", "-").partition("-p")
    given = {"batch_fraction": float(fraction) / 100} if fraction else {}
    return fit(dataset, name, epsilon, n_trees=n_trees, **given)


RANKED = (
    "dp_ebm", "dp_ebm_newton", "dp_gbm", "dp_rf", "dp_tr_batch_newton_ih_ebm_p25",
    "dp_tr_batch_newton_ih_ebm_p100", "dp_tr_newton_ih", "dp_tr_newton_ih_ebm",
    "feverless_uniform",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One published number: where it stands and the fit that answers it."""

    table: int
    row: str
    dataset: str
    epsilon: float
    fit: Fit


def table_cells(number: int) -> Iterator[Cell]:
    """All cells of a table; table 6 has no published number a cell, only ranks."""
    if number in EPSILON_OF:
        epsilon = EPSILON_OF[number]
        for row in UPDATE_ROWS:
            for name in FIVE:
                yield Cell(number, row, name, epsilon, update_row(row, name, epsilon))
    elif number == 4:
        for row in CANDIDATE_ROWS:
            for name in SIX:
                yield Cell(4, row, name, 1.0, candidates_row(row, name))
    elif number == 5:
        for row in BATCH_ROWS:
            for name in FIVE:
                yield Cell(5, row, name, 0.1, batch_row(row, name))
    elif number == 6:
        for epsilon in RANK_EPSILONS:
            for row in RANKED:
                for name in SIX:
                    yield Cell(6, row, name, epsilon, ranked_method(row, name, epsilon))


TABLES = (3, 4, 5, 6, 9, 10, 11, 12)
