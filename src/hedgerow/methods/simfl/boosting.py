"""One exact histogram grower over base-grid codes: the trees of SimFL, TFL, SOLO and ALL-IN alike.

Second order, any number of outputs, missing values and categories. Numbers of rows are integers on
the grid 2**-BITS, so a tree does not depend on the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.model.exact import BITS, Ints, leaf_values, member_bits
from hedgerow.model.tree import Structure, Tree


@dataclass(frozen=True)
class TreeRule:
    """How large a tree grows and how far it steps."""

    max_depth: int
    learning_rate: float
    reg_lambda: float
    min_child_weight: float  # Hessians, over the outputs, that either side of a split must have


def to_wire(sums: Ints) -> NDArray[np.float32]:
    """Sums on the grid as they travel."""
    return np.asarray(sums * 2.0**-BITS, np.float32)


def from_wire(sums: NDArray[np.float32], weight: float = 1.0) -> Ints:
    return np.rint(sums.astype(np.float64) * (weight * 2.0**BITS)).astype(np.int64)


class Grower:
    """Grows trees on one party's rows, from whatever numbers each row is given."""

    def __init__(self, rows: Rows, schema: Schema) -> None:
        self._codes, self._schema = rows.codes, schema
        self._grid = base_grid(schema)
        self._starts = np.cumsum([0, *(g.n_codes for g in self._grid)]).astype(np.int64)
        self._categorical = np.array([not g.ordered for g in self._grid])
        widest = [g.n_codes for g in self._grid if not g.ordered]
        self._n_members = max(widest, default=0)

    def tree(self, numbers: Ints, rule: TreeRule) -> tuple[Tree, NDArray[np.int32]]:
        """The tree that lowers the second-order loss of these numbers, and every row's leaf."""
        n_rows, width = numbers.shape
        most = min(2 ** (rule.max_depth + 1), 2 * max(n_rows, 1)) + 1
        grown = kernels.GrownTree(
            np.empty((most, 5), np.int64), np.zeros((most, self._n_members), np.bool_),
            np.empty((most, width), np.int64), np.empty(n_rows, np.int32),
        )  # fmt: skip
        layout = kernels.BinLayout(self._starts, self._categorical)
        split = kernels.SplitRule.of(BITS, width, rule.reg_lambda, rule.min_child_weight)
        n = kernels.grow(self._codes.arrays, layout, numbers, split, rule.max_depth, grown)
        structure = self._structure(grown.nodes[:n], grown.rights[:n])
        is_leaf = structure.feature < 0
        return Tree(
            structure, leaf_values(grown.sums[:n][is_leaf], rule.learning_rate, rule.reg_lambda)
        ), structure.leaf[grown.leaf]

    def _structure(self, nodes: Ints, rights: NDArray[np.bool_]) -> Structure:
        feature = nodes[:, 0].astype(np.int32)
        members, starts = [np.zeros(0, np.uint64)], np.zeros(len(nodes) + 1, np.int64)
        threshold = np.zeros(len(nodes), np.float32)
        for node in np.flatnonzero(feature >= 0).tolist():
            grid = self._grid[feature[node]]
            if grid.ordered:
                threshold[node] = grid.edges[nodes[node, 1]]
            else:
                members.append(member_bits(grid, rights[node]))
                starts[node + 1] = len(members[-1])
        return Structure(
            feature,
            threshold,
            nodes[:, 2].astype(np.uint8),
            nodes[:, 3].astype(np.int32),
            nodes[:, 4].astype(np.int32),
            np.cumsum(starts).astype(np.int32),
            np.concatenate(members),
        )
