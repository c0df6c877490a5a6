"""Trees translated to code space: where each code sends a row.

A tree of many columns is walked node by node. One of a few columns, such as the default method's
step functions and tables, becomes a table: each column's code adds to the number of a cell, and
the cell has its leaf. That takes a look-up a column, whatever the depth.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import Codes, ColumnGrid, code_places, finer
from hedgerow.data.schema import Categorical, Ordinal, Schema
from hedgerow.errors import FormatError
from hedgerow.model.code_trees import Piece, translated
from hedgerow.model.tree import Structure, Tree

MAX_SHARED = 8
_NOTHING = np.zeros((0, 0), np.uint16)
# Leaves of rows that are kept of several trees, two bytes each: of one table, and of as many tables
# as there are, were they all as long.
MAX_KEPT, MAX_KEPT_IN_ALL = 1 << 22, 1 << 24
# The leaf of every row of a table in the trees that were asked about last (tree, row), counted in
# each tree, and the key of these trees; none once they were added.
_KEPT: WeakKeyDictionary[Codes, tuple[bytes, NDArray[np.uint16]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Routes:
    """Several trees over one grid, ready for the kernels."""

    # (tree, 5): first node; columns of a table, or -depth or 0 to walk; nodes to blend; first leaf;
    # first node to blend
    trees: NDArray[np.int32]
    place: NDArray[np.int32]  # (node,) where the node's column lies in the codes
    start: NDArray[np.int64]  # (node,) where its codes begin in `after`
    after: NDArray[np.int32]  # next node, -1 - k for leaf k; in tables what a code adds
    nodes: NDArray[np.int32]  # (node to blend, 5): see `Piece`, with places instead of columns
    n_leaves: int
    key: bytes  # names the trees and their grid

    def leaf_sums(
        self,
        codes: Codes,
        gradients: kernels.Gradients,
        spare: int = 0,
    ) -> NDArray[np.int64]:
        """Return sums of (statistic, leaf), in one row, with `spare` elements behind them.

        Where each row lies is kept if that is not much: mostly its scores are added next.
        """
        kept = self._memory_for(codes)
        total = kernels.leaf_sums(codes.arrays, gradients, self.arrays, kept, self.n_leaves, spare)
        if len(kept):
            _KEPT[codes] = (self.key, kept)
        return total

    def laid_out(self, values: NDArray[np.float32]) -> kernels.LeafValues:
        """What the trees' leaves add, for `add_scores` over several tables."""
        return kernels.LeafValues(self.arrays, values)

    def leaves(self, codes: Codes) -> NDArray[Any]:
        """Return the leaf of every row in every tree, counted in the tree: (tree, row)."""
        return kernels.leaves(codes.arrays, self.arrays, codes.n_rows, self.n_leaves)

    def add_scores(
        self,
        codes: Codes,
        scores: NDArray[np.float64],
        values: NDArray[np.float32] | kernels.LeafValues,
    ) -> None:
        added = values if isinstance(values, kernels.LeafValues) else self.laid_out(values)
        # Taken out first: whoever else asks about the same rows at the same time gets its own.
        key, kept = _KEPT.pop(codes, (b"", _NOTHING))
        if key == self.key:
            kernels.add_kept(scores, kept, added)
        else:
            kernels.add_scores(codes.arrays, scores, added)
        if len(kept):
            _KEPT[codes] = (b"", kept)  # used once; the memory serves the next trees

    def _memory_for(self, codes: Codes) -> NDArray[np.uint16]:
        """Memory for every row's leaf in every tree, two bytes each; none if they do not fit."""
        shape = (len(self.trees), codes.n_rows)
        size, several = shape[0] * shape[1], shape[0] > 1
        if not self._small or (several and size > MAX_KEPT):
            return _NOTHING
        used_before = _KEPT.pop(codes, (b"", _NOTHING))[1]
        if used_before.shape == shape:
            return used_before
        if several and size * (len(_KEPT) + 1) > MAX_KEPT_IN_ALL:
            return _NOTHING  # some of many parties of one process keep none
        return np.empty(shape, np.uint16)

    @cached_property
    def _small(self) -> bool:
        ends = np.append(self.trees[1:, 3], self.n_leaves)
        return int((ends - self.trees[:, 3]).max(initial=0)) <= 1 << 16

    @cached_property
    def arrays(self) -> kernels.RouteArrays:
        """The trees as compiled loops take them."""
        runs = kernels.loops_for(self.trees)
        return kernels.RouteArrays(self.trees, self.place, self.start, self.after, self.nodes, runs)


def routes_of(structures: Sequence[Structure], grid: Sequence[ColumnGrid]) -> Routes:
    """Translate structures to code space over a grid whose edges include their thresholds.

    Those that are cut between its edges are translated over its fine levels.
    """
    # Of column -1, the leaves of a table, any place will do.
    levels = [(g, np.append(code_places(g), np.int32(0))) for g in (grid, finer(grid))]
    trees: list[tuple[int, int, int, int, int]] = []
    place, sizes, after = ([np.zeros(0, np.int32)] for _ in range(3))
    nodes = [np.zeros((0, 5), np.int32)]
    n_nodes = n_leaves = n_blended = 0
    for structure in structures:
        piece, places = _at_a_level(structure, levels)
        single = not len(piece.sizes)
        blended, root = len(piece.nodes), -1 - n_leaves if single else n_nodes
        trees.append((root, piece.n_columns, blended, n_leaves, n_blended))
        blends = piece.nodes.copy()
        blends[:, 0] = places[blends[:, 0]]
        nodes.append(blends)
        n_blended += blended
        place.append(places[piece.column])
        sizes.append(piece.sizes)
        after.append(piece.shifted(n_nodes, n_leaves))
        n_nodes, n_leaves = n_nodes + len(piece.sizes), n_leaves + structure.n_leaves
    lengths, blends = np.concatenate(sizes), np.concatenate(nodes)
    return Routes(
        np.array(trees, np.int32).reshape(-1, 5),
        np.concatenate(place),
        np.cumsum(lengths, dtype=np.int64) - lengths,
        np.concatenate(after),
        blends,
        n_leaves,
        b"".join(structure.key for structure in structures) + b"%d" % id(grid),
    )


def _at_a_level(
    structure: Structure, levels: Sequence[tuple[Sequence[ColumnGrid], NDArray[np.int32]]]
) -> tuple[Piece, NDArray[np.int32]]:
    """A structure at the first level whose edges include its thresholds, and the places there."""
    (grid, places), (fine, fine_places) = levels
    try:
        return translated(structure, grid), places
    except FormatError:
        if len(fine) == len(grid) and all(a is b for a, b in zip(fine, grid, strict=True)):
            raise  # there is no other
        return translated(structure, fine), fine_places


_ROUTES: OrderedDict[tuple[tuple[bytes, ...], int], tuple[Sequence[ColumnGrid], Routes]]
_ROUTES = OrderedDict()


def shared_routes(structures: Sequence[Structure], grid: Sequence[ColumnGrid]) -> Routes:
    """`routes_of`, of which the last are kept: a question's trees are mostly added next."""
    key = (tuple(structure.key for structure in structures), id(grid))
    if (known := _ROUTES.get(key)) is not None and known[0] is grid:
        return known[1]
    routes = routes_of(structures, grid)
    while len(_ROUTES) >= MAX_SHARED:
        with suppress(KeyError):
            _ROUTES.popitem(last=False)
    _ROUTES[key] = (grid, routes)
    return routes


def prediction_grid(trees: Sequence[Tree], schema: Schema) -> tuple[ColumnGrid, ...]:
    """The smallest grid that answers every split of a model: its own thresholds."""
    features = [t.structure.feature for t in trees]
    feature = np.concatenate(features) if features else np.zeros(0, np.int32)
    thresholds = [t.structure.threshold for t in trees]
    threshold = np.concatenate(thresholds) if thresholds else np.zeros(0, np.float32)
    grids = []
    for j, column in enumerate(schema.columns):
        if isinstance(column, Categorical):
            n_cells = len(column.categories) + (column.other == "category")
            grids.append(ColumnGrid(column, np.zeros(0, np.float32), n_cells))
        elif isinstance(column, Ordinal):
            n_cells = len(column.categories)
            grids.append(ColumnGrid(column, np.arange(1, n_cells, dtype=np.float32), n_cells))
        else:
            edges = np.unique(threshold[feature == j])
            grids.append(ColumnGrid(column, edges, len(edges) + 1))
    return tuple(grids)
