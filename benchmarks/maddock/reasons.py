"""Why cells are outside: what was measured, and what is only likely, printed beside the cell."""

from __future__ import annotations

from maddock.cells import Cell

_LEAVES = (
    "nearly empty leaves step too far: Hessians have 3.3 times less noise here, so they seldom "
    "hold a noisy gradient back. Measured on two splits: floor_deviations = 3.33 brings the cell "
    "within two deviations (bank 0.8778, adult 0.8861)"
)
_LEAVES_MORE = (
    "nearly empty leaves, as at epsilon 1. Measured on two splits with floor_deviations = 3.33: "
    "adult 0.846 at epsilon 0.1 and 0.886 at 0.75, nomao6 0.878 at 0.25 and 0.899 at 0.75, bank "
    "0.868 at 0.75, all within two deviations"
)
_COUNTS = (
    "nearly empty leaves step too far, by a noisy gradient over a noisy count near 0, and single "
    "fits differ widely. Measured on three splits at epsilon 1: 0.525, 0.535, 0.681, and with "
    "floor_deviations = 1 0.717, 0.713, 0.716; at epsilon 1000 0.768, so nothing but noise is wrong"
)
_LIKELY = "likely the nearly empty leaves of the other Newton rows; not measured for this cell"
_BOUNDS = (
    "bounds: with those of the schema uniform cuts are as good as refined ones. With those of the "
    "data, as published, uniform comes out as published (0.787, published 0.782) and refined cuts "
    "beat it (0.819), on two splits"
)
_SEARCHED = (
    "nearly empty sides and leaves, as in the drawn Newton trees. Measured on one split: 0.7745, "
    "and with floor_deviations = 3.33 0.8375"
)
# (table or 0 for any, row or its beginning, dataset, reason)
REASONS: tuple[tuple[int, str, str, str], ...] = (
    (12, "totally_random_newton", "bank", _LEAVES),
    (12, "totally_random_newton", "adult", _LEAVES),
    (9, "totally_random_newton", "adult", _LEAVES_MORE),
    (10, "totally_random_newton", "nomao6", _LEAVES_MORE),
    (11, "totally_random_newton", "bank", _LEAVES_MORE),
    (11, "totally_random_newton", "adult", _LEAVES_MORE),
    (11, "totally_random_newton", "nomao6", _LEAVES_MORE),
    (12, "hist_newton", "adult", _SEARCHED),
    (0, "partially_random_gradient", "credit2", _COUNTS),
    (5, "newton_b1", "nomao6", _LIKELY),
    (4, "iterative_hessian", "credit1", _BOUNDS),
)


def reason_for(cell: Cell) -> str:
    """The reason on record, or that none is known."""
    for table, row, dataset, reason in REASONS:
        if table in (0, cell.table) and cell.row.startswith(row) and dataset == cell.dataset:
            return reason
    return "not known"
