"""Rows that are kept out of training, to measure a model on: which ones, by a public rule.

A promise is about adding or removing one unit of the whole table, so that unit alone may change
sides with it. A split by position, or a shuffle of the whole table, moves other rows too. Here a
row's side follows from a hash of itself:

- *Persons*: of the person's id. All rows of a person are on one side, and nobody else's id matters.
- *Rows*: of its codes, fine ones too, and of a number j among the rows equal to it, label and
  weight included. A table with m equal rows has the numbers 0 to m - 1; one more of them adds the
  number m, and the sides of all others stay. So what is trained on changes by that row or not at
  all, and so does what is held out. The label is not in the hash: a row that equals no other is on
  its side whatever its label is.

Rows with equal codes are compared code by code, not by their hashes: rows made to collide would
otherwise swap sides when one is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.errors import TableError

if TYPE_CHECKING:  # the command line imports this module to show its help
    import numpy as np
    from numpy.typing import NDArray

    from hedgerow.data.schema import Schema
    from hedgerow.data.tables import Rows

MOST_HELD_OUT = 0.9
_SALT = 0x686F6C64_6F757421  # other draws by the same ids are independent of these


@dataclass(frozen=True)
class Part:
    """The part of every table that a command means: what is trained on, or what was held out."""

    share: float = 0.0  # of the units that are held out
    held_out: bool = False

    def mask(self, rows: Rows, schema: Schema) -> NDArray[np.bool_]:
        """Which rows belong to it: (row,)."""
        mask = held_out(rows, schema, self.share)
        return mask if self.held_out else ~mask

    def of(self, rows: Rows, schema: Schema, source: str) -> Rows:
        """Its rows."""
        if not self.share:
            return rows
        mask = self.mask(rows, schema)
        if not mask.any():
            what = "held out" if self.held_out else "left to train on"
            raise TableError(
                f"no row of {source} is {what} with a held-out share of {self.share:g}. Nothing "
                "was asked and nothing was spent. Take another share, or more rows."
            )
        return rows.take(mask.nonzero()[0])


WHOLE = Part()


def held_out(rows: Rows, schema: Schema, share: float) -> NDArray[np.bool_]:
    """Which rows are held out: (row,). The same whatever the order of the table."""
    import numpy as np

    from hedgerow.data.persons import scrambled

    if rows.persons is not None:
        draws = scrambled(rows.persons ^ _salt_of(schema))
    else:
        draws = scrambled(_hashes(rows, schema) ^ scrambled(_number_among_equals(rows)))
    return np.asarray(draws < np.uint64(round(share * 2**53) << 11))


def _salt_of(schema: Schema) -> np.uint64:
    import numpy as np

    return np.uint64(int(schema.hash[:16], 16) ^ _SALT)


def _hashes(rows: Rows, schema: Schema) -> NDArray[np.uint64]:
    """Of the codes of each row."""
    import numpy as np

    from hedgerow.data.persons import scrambled

    hashes = np.full(rows.n_rows, _salt_of(schema))
    for codes in (*rows.codes.columns(), *rows.codes.fine_levels()):
        hashes = scrambled(hashes ^ codes.astype(np.uint64))
    return hashes


def _number_among_equals(rows: Rows) -> NDArray[np.uint64]:
    """0, 1, 2 ... within rows that have the same codes, label and weight."""
    import numpy as np

    from hedgerow.data.persons import number_in_group

    n, weighted = rows.n_rows, rows.weights.size > 0
    codes = [*rows.codes.columns(), *rows.codes.fine_levels()]
    table = np.empty((n, len(codes) + 4 + weighted), np.uint16)
    if weighted:
        table[:, -5] = rows.weights
    for j, column in enumerate(codes):
        table[:, j] = column
    table[:, -4:] = rows.target.astype(np.float64).view(np.uint16).reshape(n, 4)
    whole: NDArray[Any] = table.view(np.dtype((np.void, 2 * table.shape[1]))).ravel()  # (row,)
    order = np.argsort(whole, kind="stable")
    numbers = np.empty(n, np.uint64)
    numbers[order] = number_in_group(whole[order])
    return numbers
