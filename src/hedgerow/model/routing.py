"""Trees translated to code space: where each code sends a row.

A tree of many columns is walked node by node. One of a few columns, such as the default method's
step functions and tables, becomes a table: each column's code adds to the number of a cell, and
the cell has its leaf. That takes a look-up a column, whatever the depth.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.binning import Codes, ColumnGrid, code_places
from hedgerow.errors import FormatError
from hedgerow.model.tree import Structure, Tree
from hedgerow.schema import Schema

MAX_TABLE_COLUMNS = 4
MAX_CELLS = 4096
MAX_KNOWN = 256  # trees of which the translation is kept
MAX_SHARED = 8
Bools = NDArray[np.bool_]
_NOTHING = np.zeros(0, np.uint8)
# The leaf of every row of a table in the tree that was asked about last, and that tree's key.
_KEPT: WeakKeyDictionary[Codes, tuple[bytes, NDArray[np.uint8]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Routes:
    """Several trees over one grid, ready for the kernels."""

    # (tree, 4): first node; columns of a table, or -depth or 0 to walk; nodes to blend; first leaf
    trees: NDArray[np.int32]
    place: NDArray[np.int32]  # (node,) where the node's column lies in the codes
    start: NDArray[np.int64]  # (node,) where its codes begin in `after`
    after: NDArray[np.int32]  # next node, -1 - k for leaf k; in tables what a code adds
    nodes: NDArray[np.int32]  # (node, 4): see `_Piece`
    n_leaves: int
    key: bytes  # names the tree and its grid if there is just one, else empty

    def leaf_sums(
        self,
        codes: Codes,
        scores: NDArray[np.float64],
        target: NDArray[np.float64],
        bits: int,
        loss: int,
        update: int,
        clip: int,
        width: int,
    ) -> NDArray[np.int64]:
        """(number, leaf) on the grid 2**-bits; codes of loss and update as in `kernels`.

        Where each row lies in a single tree is kept: its scores are mostly added next.
        """
        kept = np.empty(codes.n_rows if self.key and self.n_leaves <= 256 else 0, np.uint8)
        total = kernels.leaf_sums(
            codes.narrow, codes.wide, scores, target, bits, loss, update, clip, width, *self.arrays,
            self.n_leaves, kept,
        )  # fmt: skip
        if len(kept):
            _KEPT[codes] = (self.key, kept)
        return total

    def add_scores(
        self, codes: Codes, scores: NDArray[np.float64], values: NDArray[np.float32]
    ) -> None:
        key, kept = _KEPT.pop(codes, (b"", _NOTHING))
        if self.key and key == self.key:
            kernels.add_kept(scores, kept, values)
        else:
            kernels.add_scores(codes.narrow, codes.wide, scores, *self.arrays, values)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What the kernels take of it, in their order."""
        return self.trees, self.place, self.start, self.after, self.nodes


def routes_of(structures: Sequence[Structure], grid: Sequence[ColumnGrid]) -> Routes:
    """Translate structures to code space over a grid whose edges include their thresholds."""
    places = np.append(code_places(grid), np.int32(0))  # of column -1, the leaves of a table: any
    trees: list[tuple[int, int, int, int]] = []
    place, sizes, after = ([np.zeros(0, np.int32)] for _ in range(3))
    nodes = [np.zeros((0, 4), np.int32)]
    n_nodes = n_leaves = 0
    for structure in structures:
        piece = _translated(structure, grid)
        single = not len(piece.sizes)
        blended = len(piece.sizes) if piece.blends else 0
        trees.append((-1 - n_leaves if single else n_nodes, piece.n_columns, blended, n_leaves))
        nodes.append(piece.nodes)
        place.append(places[piece.column])
        sizes.append(piece.sizes)
        after.append(piece.shifted(n_nodes, n_leaves))
        n_nodes, n_leaves = n_nodes + len(piece.sizes), n_leaves + structure.n_leaves
    lengths = np.concatenate(sizes)
    return Routes(
        np.array(trees, np.int32).reshape(-1, 4),
        np.concatenate(place),
        np.cumsum(lengths, dtype=np.int64) - lengths,
        np.concatenate(after),
        np.concatenate(nodes),
        n_leaves,
        structures[0].key + b"%d" % id(grid) if len(structures) == 1 else b"",
    )


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
        if column.kind == "categorical":
            extra = 1 if getattr(column, "other", "") == "category" else 0
            n_cells = len(getattr(column, "categories", ())) + extra
            grids.append(ColumnGrid(column, np.zeros(0, np.float32), n_cells))
        elif column.kind == "ordinal":
            n_cells = len(getattr(column, "categories", ()))
            grids.append(ColumnGrid(column, np.arange(1, n_cells, dtype=np.float32), n_cells))
        else:
            edges = np.unique(threshold[feature == j])
            grids.append(ColumnGrid(column, edges, len(edges) + 1))
    return tuple(grids)


@dataclass(frozen=True, eq=False)
class _Piece:
    """One tree in code space, its nodes and leaves numbered from 0 on."""

    column: NDArray[np.int32]  # (node,); -1 behind the columns of a table
    sizes: NDArray[np.int32]  # (node,) how many codes it has in `after`
    after: NDArray[np.int32]
    # (node, 4): the codes that go right begin there and end so many later; left, right: a node,
    # or -1 - k for leaf k. Only where the tree blends.
    nodes: NDArray[np.int32]
    n_columns: int = 0  # of a table; to be walked: -depth if all leaves lie equally deep, or 0
    blends: bool = False

    def shifted(self, n_nodes: int, n_leaves: int) -> NDArray[np.int32]:
        """`after` with nodes and leaves numbered behind those of earlier trees."""
        if self.n_columns <= 0:
            return np.where(self.after >= 0, self.after + n_nodes, self.after - n_leaves).astype(
                np.int32
            )
        after = self.after.copy()
        after[len(after) - int(self.sizes[-1]) :] += n_leaves
        return after


_Known = tuple[Sequence[ColumnGrid], _Piece]
_KNOWN: OrderedDict[tuple[bytes, int], _Known] = OrderedDict()


def _translated(structure: Structure, grid: Sequence[ColumnGrid]) -> _Piece:
    """A structure in code space; the last ones are kept, because each is needed several times."""
    key = (structure.key, id(grid))
    if (known := _KNOWN.get(key)) is not None and known[0] is grid:
        return known[1]
    piece = _table(structure, grid) or _walk(structure, _Splits(structure, grid))
    while len(_KNOWN) >= MAX_KNOWN:
        with suppress(KeyError):  # another thread was quicker
            _KNOWN.popitem(last=False)
    _KNOWN[key] = (grid, piece)  # holds the grid, so that its id belongs to no other
    return piece


class _Splits:
    """The distinct splits of a tree: tables repeat their few splits in many nodes."""

    def __init__(self, structure: Structure, grid: Sequence[ColumnGrid]) -> None:
        s, known = structure, dict[tuple[int, float, int, bytes], int]()
        self.inner = np.flatnonzero(s.feature >= 0)
        self.split = np.full(s.n_nodes, -1, np.int64)  # (node,)
        self.right: list[Bools] = []  # of each split, the codes that go right
        self.column: list[int] = []
        features, thresholds = s.feature.tolist(), s.threshold.tolist()
        missing_left, begin = s.missing_left.tolist(), s.member_start.tolist()
        words, split = s.members.tobytes(), self.split.tolist()
        for node in self.inner.tolist():
            members = words[8 * begin[node] : 8 * begin[node + 1]]
            key = (features[node], thresholds[node], missing_left[node], members)
            if (number := known.get(key)) is None:
                number = known[key] = len(self.right)
                self.right.append(_right_codes(s, node, grid[features[node]]))
                self.column.append(features[node])
            split[node] = number
        self.split[:] = split


def _walk(structure: Structure, splits: _Splits) -> _Piece:
    is_inner = structure.feature >= 0
    number = np.where(is_inner, np.cumsum(is_inner) - 1, -1 - structure.leaf)  # (node,)
    left, right = number[structure.left], number[structure.right]
    after = [
        np.where(splits.right[splits.split[node]], right[node], left[node])
        for node in splits.inner.tolist()
    ]
    sizes = np.array([len(codes) for codes in after], np.int32)
    joined = np.concatenate([np.zeros(0, np.int32), *after]).astype(np.int32)
    nodes = _stretches(splits, left, right, structure)
    return _Piece(
        structure.feature[splits.inner],
        sizes,
        joined,
        np.zeros((len(sizes), 4), np.int32) if nodes is None else nodes,
        -_equal_depth(structure),
        nodes is not None,
    )


def _stretches(
    splits: _Splits, left: NDArray[Any], right: NDArray[Any], structure: Structure
) -> NDArray[np.int32] | None:
    """The nodes for blending, if the tree is small and each sends one stretch of codes aside."""
    inner = splits.inner.tolist()
    widest = max((len(r) for r in splits.right), default=0)
    if not 2 <= len(inner) <= kernels.MAX_BLENDED or widest > 256 or structure.n_leaves > 256:
        return None
    nodes = np.zeros((len(inner), 4), np.int32)
    for i, node in enumerate(inner):
        goes, sides = splits.right[splits.split[node]], (int(left[node]), int(right[node]))
        if goes.all() or not goes.any():
            nodes[i] = (0, 255, sides[int(goes.all())], sides[int(goes.all())])
            continue
        places = np.flatnonzero(goes)
        if places[-1] - places[0] >= len(places):  # not one stretch: those that stay may be one
            places, sides = np.flatnonzero(~goes), sides[::-1]
            if places[-1] - places[0] >= len(places):
                return None
        nodes[i] = (places[0], len(places) - 1, *sides)
    return nodes


def _equal_depth(structure: Structure) -> int:
    """How deep the leaves lie if all lie equally deep, else 0."""
    depth = np.zeros(structure.n_nodes, np.int64)
    for node in np.flatnonzero(structure.feature >= 0).tolist():  # parents come first
        depth[structure.left[node]] = depth[structure.right[node]] = depth[node] + 1
    leaves = depth[structure.feature < 0]
    return int(leaves[0]) if leaves.min() == leaves.max() else 0


def _table(structure: Structure, grid: Sequence[ColumnGrid]) -> _Piece | None:
    """The tree as a table of its columns, if these are few and their parts make few cells."""
    columns = np.unique(structure.feature[structure.feature >= 0]).tolist()
    if not 1 <= len(columns) <= MAX_TABLE_COLUMNS:
        return None
    splits = _Splits(structure, grid)
    # Of each column, its codes told apart as far as the tree does: (code,)
    parts = [
        _told_apart([r for c, r in zip(splits.column, splits.right, strict=True) if c == j])
        for j in columns
    ]
    sizes = [int(part.max()) + 1 for part in parts]
    n_cells = math.prod(sizes)
    if n_cells > MAX_CELLS:
        return None
    strides = np.cumprod([1, *sizes[:-1]])
    leaf = _leaf_of_cells(structure, splits, columns, parts, n_cells)
    adds = [(part * stride).astype(np.int32) for part, stride in zip(parts, strides, strict=True)]
    return _Piece(
        np.array([*columns, -1], np.int32),
        np.array([*(len(a) for a in adds), n_cells], np.int32),
        np.concatenate([*adds, leaf]),
        np.zeros((len(columns) + 1, 4), np.int32),
        len(columns),
    )


def _told_apart(rights: list[Bools]) -> NDArray[np.int64]:
    """Codes that every split (split, code) sends the same way get the same number: (code,)."""
    part = np.zeros(len(rights[0]), np.int64)
    for first in range(0, len(rights), 32):  # as digits of a number, as many as it holds
        some = np.array(rights[first : first + 32])
        digits = np.left_shift(1, np.arange(len(some))) @ some
        part = np.unique((part << 32) + digits, return_inverse=True)[1]
    return part


def _leaf_of_cells(
    structure: Structure, splits: _Splits, columns: list[int], parts: Sequence[Any], n_cells: int
) -> NDArray[np.int32]:
    """All cells walk down the tree at once: (cell,)."""
    codes = np.empty((len(columns), n_cells), np.int64)  # a code of the cell in every column
    cell = np.arange(n_cells)
    for i, part in enumerate(parts):
        one_of_each = np.unique(part, return_index=True)[1]
        codes[i] = one_of_each[cell % len(one_of_each)]
        cell //= len(one_of_each)
    right = np.zeros((len(splits.right), max(map(len, splits.right))), np.bool_)
    for i, goes_right in enumerate(splits.right):
        right[i, : len(goes_right)] = goes_right
    place = np.searchsorted(columns, splits.column)  # (split,)
    node = np.zeros(n_cells, np.int64)
    while len(on := np.flatnonzero(structure.feature[node] >= 0)):
        split = splits.split[node[on]]
        to_right = right[split, codes[place[split], on]]
        node[on] = np.where(to_right, structure.right[node[on]], structure.left[node[on]])
    return structure.leaf[node]


def _right_codes(structure: Structure, node: int, grid: ColumnGrid) -> Bools:
    right = np.zeros(grid.n_codes, np.bool_)
    if grid.column.kind == "categorical":
        words = structure.members[structure.member_start[node] : structure.member_start[node + 1]]
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        right[: grid.n_cells] = bits[: grid.n_cells].astype(np.bool_)
    else:
        threshold = structure.threshold[node]
        k = int(np.searchsorted(grid.edges, threshold))
        if k == len(grid.edges) or grid.edges[k] != threshold:
            raise FormatError(f"a split on {grid.column.name!r} is not an edge of the base grid")
        right[k + 1 : grid.n_cells] = True
    right[grid.missing_code] = not structure.missing_left[node]
    return right
