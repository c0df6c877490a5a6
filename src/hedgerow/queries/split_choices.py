"""Which cut each leaf of a growing tree gets: a noisy choice by gain, where exact sums are known.

The parties answer with gradient histograms. The gate turns their sum into the utility of every cut
and draws one cut a leaf; nothing else of the sums is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid, base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.model.stacking import stack, unstack
from hedgerow.model.tree import Structure
from hedgerow.privacy.accounting.paths import Priced
from hedgerow.privacy.accounting.pure import LEAST_PRICE, MOST_PRICE
from hedgerow.privacy.noise.mechanisms import SELECTORS
from hedgerow.queries.base import Block, Choice, EnsembleRef, QueryBase, Sensitivity
from hedgerow.queries.cuts import Cuts, pack_cuts, unpack_cuts
from hedgerow.queries.gradients import FINE_BITS, Gradients
from hedgerow.queries.node_histograms import NodeHistograms
from hedgerow.queries.tree_nodes import MOST_LEAVES, Asked, priced_tree

UTILITIES = ("separation", "gain")
_GAIN, _SEPARATION = 4.0, 4.0  # ranges, in units of b^2 and of b
UTILITY_BITS = 16  # utilities are whole numbers of steps of 2^-16
_ROUNDING = 4  # steps: two floors, and floats that are off by far less than two more
_MOST = 1 << 22  # bins of all leaves that are asked about
_WHAT = "split choices"


@dataclass(frozen=True, eq=False)
class SplitChoices(QueryBase):
    """One cut for each of `leaves`, by its utility: how well it parts gradients.

    A way to cut is a bin and a side for missing values: of an ordered column the bins above it go
    right, of a categorical one the bin alone does. `possible` says which bins can hold rows of each
    leaf, by the cuts above it; ways that leave a side without any such bin are not offered. So what
    is offered follows from the tree and the schema, never from the rows.
    """

    structure: Structure
    leaves: tuple[int, ...]
    possible: NDArray[np.bool_]  # (leaf asked, bin of all columns)
    columns: tuple[int, ...]
    cuts: Cuts
    n_bins: tuple[int, ...]
    gradients: Gradients
    price: float  # epsilon of every leaf
    reg_lambda: float
    selector: str
    utility: str = "separation"
    kind: ClassVar[str] = "split-choices"
    fine_bits: ClassVar[int | None] = FINE_BITS

    @cached_property
    def histograms(self) -> NodeHistograms:
        """What the parties add up."""
        g = self.gradients
        columns = (self.columns, self.cuts, self.n_bins)
        return NodeHistograms(self.structure, *columns, g.loss, g.ensemble, "gradient", g.clip)

    @property
    def ensemble(self) -> EnsembleRef:
        return self.gradients.ensemble

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.histograms.blocks

    @property
    def sensitivity(self) -> Sensitivity:
        return self.histograms.sensitivity

    @property
    def utility_range(self) -> int:
        """By how much more one row can move the utility of one cut than that of another, in steps.

        It is all that a choice needs: whoever draws in proportion to exp(epsilon u / range), or
        accepts cuts with these odds against the best, is epsilon-private, because adding a constant
        to all utilities changes nothing. On whole steps, two floors and rounding errors add a few.
        """
        b = float(self.gradients.l2)
        apart = float(_GAIN * b**2 if self.utility == "gain" else _SEPARATION * b)
        return math.ceil(apart * 2.0**UTILITY_BITS) + _ROUNDING

    @property
    def choice(self) -> Choice:
        return Choice(self.selector, self.utility_range, self.price)

    def _gain(
        self, goes: NDArray[np.float64], stays: NDArray[np.float64], whole: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """|G|^2 / (n + lambda) of both sides. One row moves two cuts apart by less than 4 b^2.

        A side of n rows has |G| <= n b, because each gradient is at most b long. A further row with
        gradient g comes to one of the two sides and moves the cut's utility by
        d = |G + g|^2 / (n + 1 + lambda) - |G|^2 / (n + lambda).

        Above: |G + g| <= |G| + b, and the bound grows with |G| up to n b (its slope in x = |G| is
        2 (x + b)/(n + 1 + lambda) - 2 x/(n + lambda), of the sign of b (n + lambda) - x >= 0).
        There d <= b^2 ((n + 1)^2/(n + 1 + lambda) - n^2/(n + lambda)) <= b^2, because
        n^2/(n + lambda) grows by less than 1 with n.

        Below: with x < b we have d >= -x^2/(n + lambda) > -b^2 (without rows x is 0, and d >= 0).
        With x >= b, |G + g| >= x - b, and (x - b)^2/(n + 1 + lambda) - x^2/(n + lambda) falls with
        x, so d >= b^2 ((n - 1)^2/(n + 1 + lambda) - n^2/(n + lambda)). That is above -3 b^2: with 3
        added and the denominators multiplied out it is 4 n + 4 lambda + 4 lambda n + 3 lambda^2.

        So d lies in (-3 b^2, b^2] for every cut.
        """
        return self._score(goes) + self._score(stays)

    def _separation(
        self, goes: NDArray[np.float64], stays: NDArray[np.float64], whole: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """|S|, S = G_right - (n_right / n) G. One row moves two cuts apart by at most 4 b.

        It is n_left n_right / n times the distance of the two mean gradients, where the gain (at
        lambda = 0) has its square. Differences of means are small beside b, so this grows further
        above what one row can do. A row with gradient g that goes right moves S by
        (n_left / (n + 1)) (g - G / n), one that goes left by -(n_right / (n + 1)) (g - G / n):
        no further than 2 b, because g and the mean G / n are each at most b long (the first row of
        a leaf leaves S at 0). So |S| moves by at most 2 b, up or down.
        """
        n = np.maximum(whole[-1], 1.0)
        apart = goes[:-1] - goes[-1] / n * whole[:-1]
        return np.asarray(np.sqrt(np.sort(apart**2, axis=0).sum(axis=0)))

    def priced(self) -> Priced:
        asked = [Asked(leaf, (0,), self.price) for leaf in self.leaves]
        return priced_tree(self.structure, asked)

    def check(self, schema: Schema) -> None:
        self.gradients.check(schema, _WHAT)
        self.histograms.check_shape(schema)
        leaves, n = self.leaves, self.structure.n_leaves
        if not leaves or len(set(leaves)) != len(leaves) or n > MOST_LEAVES:
            raise FormatError(f"{_WHAT} name a leaf twice, or none")
        if min(leaves) < 0 or max(leaves) >= n:
            raise FormatError(f"{_WHAT} name a leaf that the tree does not have")
        if self.possible.shape != (len(leaves), sum(self.n_bins)) or self.possible.size > _MOST:
            raise FormatError(f"{_WHAT} do not have the lengths they state")
        if not LEAST_PRICE <= self.price < MOST_PRICE:
            raise FormatError(f"{_WHAT} have a price that nobody can pay")
        if not (self.reg_lambda >= 0 and math.isfinite(self.reg_lambda)):
            raise FormatError(f"{_WHAT} divide by what is no number")
        if self.selector not in SELECTORS or self.utility not in UTILITIES:
            raise FormatError(f"{_WHAT} are drawn in a way that is not known")
        if not self._offered(schema).any(axis=(1, 2)).all():
            raise FormatError(f"{_WHAT} name a leaf that cannot be cut")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        return self.histograms.answer(*self.gradients.kept(rows, scores), schema, bits)

    def utilities(
        self, total: NDArray[np.int64], schema: Schema, bits: int
    ) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Of every leaf: utilities in steps, and the ways they belong to (2 bin + missing right).

        Every number here is below 2^53, so floats are exact but for the divisions.
        """
        width = self.histograms.bound.width
        asked = total.reshape(width, self.structure.n_leaves, -1)[:, list(self.leaves)]
        sums = asked.astype(np.float64) / 2.0**bits  # (number, leaf, bin)
        right, missing, whole = _sides(sums, self.columns, self.n_bins, base_grid(schema))
        utility = self._gain if self.utility == "gain" else self._separation
        values = np.empty((*right.shape[1:], 2))  # (leaf, bin, missing right)
        for side in (0, 1):
            goes = right + side * missing
            stays = whole - goes
            values[:, :, side] = utility(goes, stays, whole)
        steps = np.floor(values * 2.0**UTILITY_BITS).astype(np.int64)
        offered = self._offered(schema)
        parts = []
        for leaf in range(len(self.leaves)):
            ways = np.flatnonzero(offered[leaf].ravel())
            parts.append((steps[leaf].ravel()[ways], ways))
        return parts

    def _score(self, side: NDArray[np.float64]) -> NDArray[np.float64]:
        below = side[-1] + self.reg_lambda
        square = np.sort(side[:-1] ** 2, axis=0).sum(axis=0)  # whatever the order of the classes
        return np.asarray(np.divide(square, below, out=np.zeros_like(square), where=below > 0))

    def _offered(self, schema: Schema) -> NDArray[np.bool_]:
        if schema.hash not in self._known:  # whoever checks and whoever chooses need the same
            about = (self.possible, self.columns, self.n_bins, base_grid(schema))
            self._known[schema.hash] = offered_ways(*about)
        return self._known[schema.hash]

    @cached_property
    def _known(self) -> dict[str, NDArray[np.bool_]]:
        return {}

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {
            **pack_cuts(self.columns, self.cuts),
            "n_bins": np.array(self.n_bins, np.int32),
            "leaves": np.array(self.leaves, np.int32),
            "possible": self.possible.astype(np.uint8),
            **stack([self.structure]),
        }
        values = {
            **self.gradients.values(), "price": self.price, "reg_lambda": self.reg_lambda,
            "selector": self.selector, "utility": self.utility,
        }  # fmt: skip
        return values, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> SplitChoices:
        columns, cuts = unpack_cuts(arrays, _WHAT)
        structures = unstack(arrays)
        if len(structures) != 1 or arrays["possible"].ndim != 2:
            raise FormatError(f"{_WHAT} are not readable")
        return SplitChoices(
            structures[0],
            tuple(int(leaf) for leaf in arrays["leaves"]),
            arrays["possible"] > 0,
            columns,
            cuts,
            tuple(int(n) for n in arrays["n_bins"]),
            Gradients.from_values(values),
            float(values["price"]),
            float(values["reg_lambda"]),
            str(values["selector"]),
            str(values["utility"]),
        )


def offered_ways(
    possible: NDArray[np.bool_],
    columns: Sequence[int],
    n_bins: Sequence[int],
    grid: Sequence[ColumnGrid],
) -> NDArray[np.bool_]:
    """(leaf, bin, missing right): ways with a bin that can hold rows on either side, each once.

    A cut lies right above a bin that can hold rows. Where no value can be missing, the side of
    missing values makes no difference; and one of two categories against the other is the same cut
    as the other against it.
    """
    indicator = possible[None].astype(np.float64)
    right, missing, whole = (part[0] for part in _sides(indicator, columns, n_bins, grid))
    offered = np.zeros((*right.shape, 2), np.bool_)
    offered[:, :, 0] = possible & (right > 0) & (whole - right > 0)
    offered[:, :, 1] = possible & (missing > 0) & (whole - right - missing > 0)
    first = 0
    for j, n in zip(columns, n_bins, strict=True):
        last = first + n - 1  # the bin of missing values
        offered[:, last] = False
        inner = possible[:, first:last]
        if grid[j].ordered:
            offered[:, last - 1] = False  # there is no edge above the last bin
        else:
            second = (inner.sum(axis=1, keepdims=True) == 2) & (inner.cumsum(axis=1) == 2)
            offered[:, first:last] &= ~second[:, :, None]
        first += n
    return offered


def _sides(
    sums: NDArray[np.float64],
    columns: Sequence[int],
    n_bins: Sequence[int],
    grid: Sequence[ColumnGrid],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(number, leaf, bin) each: what goes right, missing values, and all of the leaf."""
    right, missing, whole = (np.zeros_like(sums) for _ in range(3))
    first = 0
    for j, n in zip(columns, n_bins, strict=True):
        last, stop = first + n - 1, first + n
        inner = sums[:, :, first:last]
        from_here = inner[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]
        right[:, :, first:last] = from_here - inner if grid[j].ordered else inner
        missing[:, :, first:stop] = sums[:, :, last:stop]
        whole[:, :, first:stop] = sums[:, :, first:stop].sum(axis=2, keepdims=True)
        first = stop
    return right, missing, whole
