"""How low the impurity of a leaf could fall by one split of a column: bounds, summed over parties.

Theorem 7 of Gubler (2023), here for any number of classes. Let half the Gini impurity of a set of n
rows, times n, be I = (n - sum_k n_k^2 / n) / 2. It is the smallest value over a of half the summed
squared distances |e_y - a|^2, so for any split of the rows of all parties the two sides have at
least the sum over parties of what the same split leaves in each, and that is at least the sum of
each party's own smallest value. A party's part is thus a statistic of its own rows alone.

Sensitivity (the report states 5/4; it is 1). Let a side hold n rows, n_k of class k, s = sum n_k^2.
One more row of class c changes its I by

    half of 1 - (s + 2 n_c + 1) / (n + 1) + s / n  =  half of 1 - (2 n n_c + n - s) / (n (n + 1)).

It is at least 0: s >= n_c^2 and 2 n n_c - n_c^2 <= n^2, so the fraction is at most 1. It is below
1: n_c >= 0 and s <= n^2, so the fraction is at least -(n - 1) / (n + 1). A first row changes 0 to
0. So a row moves the I of its side by at least 0 and by less than 1, that of the other side not at
all. It moves every split by that much, and so the smallest over a set of splits *that does not
depend on the rows*: all cuts of an ordered column with missing values on either side, empty sides
included, or all sets of categories. A rule about counts, such as min_samples_leaf, would make the
set depend on the rows, and one row could then move the smallest by far more: there is none here.

On the grid: each side is rounded down to a multiple of 2**-bits. Rounding down keeps order and
commutes with adding 1, so a row still moves a side by at least 0 and at most 1; and the sum stays
a lower bound. Of all sets of categories only those in the order of shares are looked at, and that
order depends on the rows: there the smallest is found exactly, and rounded down once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.model.stacking import stack, unstack
from hedgerow.model.tree import Structure
from hedgerow.privacy.accounting.paths import Priced
from hedgerow.queries.base import NO_TREES, Block, EnsembleRef, QueryBase, Sensitivity
from hedgerow.queries.cuts import Cuts, bin_of_codes, check_cuts, n_bins_of, pack_cuts, unpack_cuts
from hedgerow.queries.tree_nodes import (
    Asked,
    check_asked,
    pack_asked,
    priced_tree,
    rows_of_leaves,
    sensitivity_of,
    unpack_asked,
)

_WHAT = "impurity bounds"
_EXACT_ROWS = 1 << 26  # below it shares of two counts are told apart by float64
_SQUARED_ROWS = 1 << 31  # below it squares of counts fit into 64 bits
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ImpurityBounds(QueryBase):
    """For each leaf that is asked about: one number a column, each at the leaf's price."""

    structure: Structure
    asked: tuple[Asked, ...]
    columns: tuple[int, ...]
    cuts: Cuts
    n_classes: int
    subsets: bool  # binary only: any set of categories may go right, else one of them
    kind: ClassVar[str] = "impurity-bounds"
    of_a_party: ClassVar[bool] = True  # answers add up over parties, not over rows

    @property
    def ensemble(self) -> EnsembleRef:
        return NO_TREES

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(Block(len(node.columns), 1 / node.price) for node in self.asked)

    @property
    def sensitivity(self) -> Sensitivity:
        # A row lies in one leaf and moves the bound of each of its columns by at most 1 (above).
        return sensitivity_of(self.asked)

    def priced(self) -> Priced:
        return priced_tree(self.structure, self.asked)

    def check(self, schema: Schema) -> None:
        check_asked(self.structure, self.asked, schema, 0, _WHAT)
        if self.n_classes < 2 or self.n_classes != len(schema.label.classes):
            raise FormatError(f"{_WHAT} ask for classes that the label does not have")
        if self.subsets and self.n_classes != 2:
            raise FormatError(f"{_WHAT} of a multiclass label know no best set of categories")
        if list(self.columns) != sorted({j for node in self.asked for j in node.columns}):
            raise FormatError(f"{_WHAT} cut other columns than they ask about")
        check_cuts(base_grid(schema), self.columns, self.cuts, _WHAT)

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        return self.from_tally(self.tally(rows, schema), schema, bits)

    def tally(self, rows: Rows, schema: Schema) -> NDArray[np.int64]:
        """Class counts by bin of every leaf and column: these do add up over rows, so that a party
        whose rows lie in several places can add them before it answers."""
        grid, target = base_grid(schema), rows.target.astype(np.int64)
        inside, k = rows_of_leaves(self.structure, rows, schema), self.n_classes
        bins = {
            j: bin_of_codes(grid, (j,), (cuts,))[0][0]
            for j, cuts in zip(self.columns, self.cuts, strict=True)
        }
        widths, counts = self._widths(schema), []
        for node in self.asked:
            here = inside[node.leaf]
            classes = target[here]
            for j in node.columns:
                cell = classes * widths[j] + bins[j][rows.codes.column(j)[here]]
                counts.append(np.bincount(cell, minlength=k * widths[j]))
        return np.concatenate(counts).astype(np.int64)

    def from_tally(self, tally: Ints, schema: Schema, bits: int) -> NDArray[np.int64]:
        """The answer of a party with these class counts."""
        grid, k, widths = base_grid(schema), self.n_classes, self._widths(schema)
        columns = [j for node in self.asked for j in node.columns]
        parts = np.split(tally, np.cumsum([k * widths[j] for j in columns])[:-1])
        values = [
            lowest_impurity(part.reshape(k, -1), grid[j].ordered, self.subsets, bits)
            for j, part in zip(columns, parts, strict=True)
        ]
        return np.array(values, np.int64)

    def _widths(self, schema: Schema) -> dict[int, int]:
        grid = base_grid(schema)
        pairs = zip(self.columns, self.cuts, strict=True)
        return {j: n_bins_of(grid[j], cuts) for j, cuts in pairs}

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {
            **pack_cuts(self.columns, self.cuts),
            **pack_asked(self.asked),
            **stack([self.structure]),
        }
        return {"n_classes": self.n_classes, "subsets": self.subsets}, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ImpurityBounds:
        columns, cuts = unpack_cuts(arrays, _WHAT)
        structures = unstack(arrays)
        if len(structures) != 1 or type(values["subsets"]) is not bool:
            raise FormatError(f"{_WHAT} are not readable")
        asked, n_classes = unpack_asked(arrays, _WHAT), int(values["n_classes"])
        return ImpurityBounds(
            structures[0], asked, columns, cuts, n_classes, values["subsets"]
        )  # fmt: skip


def lowest_impurity(counts: NDArray[Any], ordered: bool, subsets: bool, bits: int) -> int:
    """The smallest impurity that one split of a column leaves, in steps of 2**-bits.

    `counts` are (class, bin), the last bin missing. An ordered column is cut anywhere, missing
    values on either side; one category goes right, with missing values or without; or, for two
    classes, any set of bins does, of which the best is found by the share of the second class.
    """
    counts = counts.astype(np.int64)
    whole = counts.sum(axis=1, keepdims=True)
    if ordered:
        right = whole - counts[:, -1:] - np.cumsum(counts[:, :-1], axis=1)  # (class, cut)
    elif subsets:
        sorted_ = counts[:, _by_share(counts)]
        right = np.cumsum(sorted_, axis=1)
    else:
        right = counts[:, :-1]
    if not (subsets and not ordered):
        right = np.concatenate([right, right + counts[:, -1:]], axis=1)
    if subsets and not ordered:
        return _lowest_of_all(right, whole - right, bits)
    both = impurity_steps(right, bits) + impurity_steps(whole - right, bits)
    return int(both.min())


def _lowest_of_all(right: Ints, left: Ints, bits: int) -> int:
    """The smallest over all sets of bins, from the sides (class, set) in the order of shares.

    Which sets those are depends on the rows. Their exact smallest value is that over all sets; the
    smallest of rounded values is not, and one row could move it by 2. So it is found exactly and
    rounded down once.
    """
    sides = (right, left)
    rough = sum(s[0] * (s[1] / np.maximum(s.sum(axis=0), 1)) for s in sides)  # a b / n, in floats
    near = np.flatnonzero(rough <= rough.min() * (1 + 1e-9) + 1e-9)
    least = min(_exact(right[:, i]) + _exact(left[:, i]) for i in near)
    return (least.numerator << bits) // least.denominator


def _exact(side: Ints) -> Fraction:
    a, b = (int(n) for n in side)  # (n - (a^2 + b^2) / n) / 2 = a b / n
    return Fraction(a * b, max(1, a + b))


def impurity_steps(side: Ints, bits: int) -> Ints:
    """(n - sum n_k^2 / n) / 2 of sides (class, side), rounded down to multiples of 2**-bits."""
    n = side.sum(axis=0)
    if n.size and int(n.max()) >= _SQUARED_ROWS:  # their squares wrap, and one row would move much
        exact: Any = side.astype(object)  # Python's integers
        return np.asarray(_impurity_of(exact, exact.sum(axis=0), bits), np.int64)
    return np.asarray(_impurity_of(side, n, bits))


def _impurity_of(side: Any, n: Any, bits: int) -> Any:
    twice = n * n - (side * side).sum(axis=0)
    below = np.maximum(2 * n, 1)
    return (twice // below << bits) + ((twice % below) << bits) // below


def _by_share(counts: Ints) -> NDArray[np.intp]:
    """Bins by the share of the second class, without a rounding error."""
    total = counts.sum(axis=0)
    if int(total.sum()) < _EXACT_ROWS:
        return np.argsort(counts[1] / np.maximum(total, 1), kind="stable")
    shares = [Fraction(int(a), max(1, int(n))) for a, n in zip(counts[1], total, strict=True)]
    return np.array(sorted(range(len(shares)), key=lambda i: shares[i]), np.intp)
