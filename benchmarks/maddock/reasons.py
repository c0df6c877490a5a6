"""Why cells are outside: what was measured, and what is only likely, printed beside the cell."""

from __future__ import annotations

from maddock.cells import Cell

_LEAVES = (
    "nearly empty leaves step too far: Hessians have 3.3 times less noise here, so they seldom "
    "hold a noisy gradient back, and the authors give a leaf without a positive Hessian no step. "
    "Measured on two splits: floor_deviations = 3.33 brings the cell within two deviations"
)
_COUNTS = (
    "nearly empty leaves step too far: the authors give a leaf whose noisy count is not positive "
    "no step. Measured on two splits: floor_deviations = 3.33 brings the cell within two deviations"
)
_LIKELY = "likely the nearly empty leaves of the other Newton rows; not measured for this cell"
_DRAWS = (
    "random cuts may fall outside what is left of a node, and no candidate separates the lower "
    "bound from the rest; the authors have neither. Measured with bounds of the data only"
)
# (table or 0 for any, row or its beginning, dataset, reason)
REASONS: tuple[tuple[int, str, str, str], ...] = (
    (12, "totally_random_newton", "bank", _LEAVES),
    (12, "totally_random_newton", "adult", _LEAVES),
    (3, "totally_random_gradient", "bank", _COUNTS),
    (5, "newton_b1", "nomao6", _LIKELY),
    (4, "iterative_hessian", "credit1", _DRAWS),
)


def reason_for(cell: Cell) -> str:
    """The reason on record, or that none is known."""
    for table, row, dataset, reason in REASONS:
        if table in (0, cell.table) and cell.row.startswith(row) and dataset == cell.dataset:
            return reason
    return "not known"
