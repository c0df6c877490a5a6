"""Averages of gradients in the leaves of one tree: three ways to keep one row's part small.

"sum-and-count" releases both, noisy, and the ratio is taken afterwards. "least-rows" and "plain"
release the ratio itself, which takes a coordinator that is trusted with exact sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.model.stacking import stack, unstack
from hedgerow.model.tree import Structure
from hedgerow.privacy.accounting.paths import Priced
from hedgerow.privacy.accounting.pure import LEAST_PRICE, MOST_PRICE
from hedgerow.queries.base import Block, EnsembleRef, QueryBase, Sensitivity
from hedgerow.queries.gradients import FINE_BITS, Gradients
from hedgerow.queries.leaf_sums import LeafSums
from hedgerow.queries.tree_nodes import MOST_LEAVES, Asked, priced_tree

LEAF_RULES = ("sum-and-count", "least-rows", "plain")
_STEP = 2.0**-FINE_BITS
_WHAT = "leaf averages"


@dataclass(frozen=True, eq=False)
class LeafAverages(QueryBase):
    """(number, leaf): gradients and count of every leaf; or -G / (max(n, least_rows) + lambda)."""

    structure: Structure
    gradients: Gradients
    price: float  # epsilon of every leaf
    rule: str = "sum-and-count"
    least_rows: int = 0
    reg_lambda: float = 0.0
    kind: ClassVar[str] = "leaf-averages"
    fine_bits: ClassVar[int | None] = FINE_BITS

    @cached_property
    def sums(self) -> LeafSums:
        """What the parties add up."""
        g = self.gradients
        return LeafSums((self.structure,), g.loss, g.ensemble, "gradient", g.clip)

    @property
    def ensemble(self) -> EnsembleRef:
        return self.gradients.ensemble

    @property
    def blocks(self) -> tuple[Block, ...]:
        # Noise of l1 / price for gradients, and as much over the second scale for the count.
        unit = self.gradients.row.l1 / self.price
        return tuple(Block(block.size, unit * block.weight) for block in self.sums.blocks)

    @property
    def sensitivity(self) -> Sensitivity:
        # A row adds its gradients and 1 to one leaf. In units of the blocks that is price / l1
        # times (|g|_1 + second scale), and l1 bounds the bracket.
        return Sensitivity(l1=self.price, l2=self.price)

    @property
    def finishes(self) -> bool:
        """Whether the ratio is taken before the noise."""
        return self.rule != "sum-and-count"

    @property
    def released_blocks(self) -> tuple[Block, ...]:
        """The ratios and their noise unit: what one row can move them by, over the price.

        With N = max(n, least) rows and |G|_1 <= n b: a further row moves G / (N + lambda) to
        (G + g) / (N' + lambda). While n < least the denominator stays, and the change is at most
        b / (least + lambda). From there on it is ((n + lambda) g - G) / ((n + lambda)(n + 1 +
        lambda)), at most b (2 n + lambda) / ((n + lambda)(n + 1 + lambda)), which falls with n from
        n = 1 on and so is largest at n = least; it exceeds the former, since 2 n + lambda >=
        n + 1 + lambda. The plain rule has least = 1, where it is b / (1 + lambda). An empty leaf is
        0. Two floors and rounding errors add two steps of the grid to each number.
        """
        if not self.finishes:
            return self.blocks
        n, b = self.least, self.gradients.l1
        below = (n + self.reg_lambda) * (n + 1 + self.reg_lambda)
        outputs = self.sums.bound.first
        most = b * (2 * n + self.reg_lambda) / below + 2 * outputs * _STEP
        return (Block(outputs * self.structure.n_leaves, most / self.price),)

    @property
    def least(self) -> int:
        return 1 if self.rule == "plain" else max(1, self.least_rows)

    def finish(self, total: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
        """The ratios (output, leaf) on the same grid, from exact sums."""
        sums = total.reshape(self.sums.bound.width, -1).astype(np.float64) / 2.0**bits
        below = np.maximum(sums[-1], self.least) + self.reg_lambda
        values = np.floor(-sums[:-1] / below * 2.0**bits)
        return np.asarray(values.astype(np.int64).ravel())

    def priced(self) -> Priced:
        leaves = range(self.structure.n_leaves)
        return priced_tree(self.structure, [Asked(leaf, (0,), self.price) for leaf in leaves])

    def check(self, schema: Schema) -> None:
        self.gradients.check(schema, _WHAT)
        self.structure.check(schema)
        self.sums.routes(schema)  # every threshold is a public edge
        if self.structure.n_leaves > MOST_LEAVES:
            raise FormatError(f"{_WHAT} ask about too many leaves")
        if not LEAST_PRICE <= self.price < MOST_PRICE:
            raise FormatError(f"{_WHAT} have a price that nobody can pay")
        if self.rule not in LEAF_RULES or not 0 <= self.least_rows <= 2**40:
            raise FormatError(f"{_WHAT} are taken in a way that is not known")
        if not (self.reg_lambda >= 0 and math.isfinite(self.reg_lambda)):
            raise FormatError(f"{_WHAT} divide by what is no number")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        return self.sums.answer(*self.gradients.kept(rows, scores), schema, bits)

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values = {
            **self.gradients.values(), "price": self.price, "rule": self.rule,
            "least_rows": self.least_rows, "reg_lambda": self.reg_lambda,
        }  # fmt: skip
        return values, stack([self.structure])

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> LeafAverages:
        structures = unstack(arrays)
        if len(structures) != 1:
            raise FormatError(f"{_WHAT} are not readable")
        rule, least = str(values["rule"]), int(values["least_rows"])
        price, reg_lambda = float(values["price"]), float(values["reg_lambda"])
        gradients = Gradients.from_values(values)
        return LeafAverages(structures[0], gradients, price, rule, least, reg_lambda)
