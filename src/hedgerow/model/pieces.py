"""One tree in code space: walked node by node, blended, or looked up as a table.

Used by `routing`, which puts the pieces of several trees together.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.binning import ColumnGrid
from hedgerow.errors import FormatError
from hedgerow.model.tree import Structure

MAX_TABLE_COLUMNS = 4
MAX_CELLS = 4096
MAX_KNOWN = 256  # trees of which the translation is kept
Bools = NDArray[np.bool_]
_NO_NODES = np.zeros((0, 5), np.int32)


@dataclass(frozen=True, eq=False)
class Piece:
    """One tree in code space, its nodes and leaves numbered from 0 on."""

    column: NDArray[np.int32]  # (node,); -1 behind the columns of a table
    sizes: NDArray[np.int32]  # (node,) how many codes it has in `after`
    after: NDArray[np.int32]
    # (node for blending, 5): column; the codes that go right begin there and end so many later;
    # left, right: a node, or -1 - k for leaf k. Empty where the tree does not blend.
    nodes: NDArray[np.int32]
    n_columns: int = 0  # of a table; to be walked: -depth if all leaves lie equally deep, or 0

    def shifted(self, n_nodes: int, n_leaves: int) -> NDArray[np.int32]:
        """`after` with nodes and leaves numbered behind those of earlier trees."""
        if self.n_columns <= 0:
            return np.where(self.after >= 0, self.after + n_nodes, self.after - n_leaves).astype(
                np.int32
            )
        after = self.after.copy()
        after[len(after) - int(self.sizes[-1]) :] += n_leaves
        return after


_Known = tuple[Sequence[ColumnGrid], Piece]
_KNOWN: OrderedDict[tuple[bytes, int], _Known] = OrderedDict()


def translated(structure: Structure, grid: Sequence[ColumnGrid]) -> Piece:
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
        self.inner = np.flatnonzero(structure.feature >= 0)
        self.split = np.full(structure.n_nodes, -1, np.int64)  # (node,)
        group = _same_splits(structure, self.inner)
        _, first, self.split[self.inner] = np.unique(group, return_index=True, return_inverse=True)
        nodes = self.inner[first].tolist()
        self.column: list[int] = structure.feature[nodes].tolist()
        # of each split, the codes that go right
        self.right = [
            right_codes(structure, node, grid[j])
            for node, j in zip(nodes, self.column, strict=True)
        ]


def _same_splits(structure: Structure, inner: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for every inner node; nodes with the same one split alike."""
    s = structure
    group = s.feature[inner].astype(np.int64) << 33
    group |= np.ascontiguousarray(s.threshold[inner]).view(np.uint32).astype(np.int64) << 1
    group |= s.missing_left[inner]
    begin, length = s.member_start[inner], np.diff(s.member_start)[inner]
    for k in range(int(length.max(initial=0))):  # word by word of the category sets
        word = np.zeros(len(inner), np.uint64)
        word[length > k] = s.members[begin[length > k] + k]
        group, word = (np.unique(part, return_inverse=True)[1] for part in (group, word))
        group = group * len(inner) + word
    return group


def _walk(structure: Structure, splits: _Splits) -> Piece:
    is_inner = structure.feature >= 0
    number = np.where(is_inner, np.cumsum(is_inner) - 1, -1 - structure.leaf)  # (node,)
    left, right = number[structure.left], number[structure.right]
    after = [
        np.where(splits.right[splits.split[node]], right[node], left[node])
        for node in splits.inner.tolist()
    ]
    sizes = np.array([len(codes) for codes in after], np.int32)
    joined = np.concatenate([np.zeros(0, np.int32), *after]).astype(np.int32)
    return Piece(
        structure.feature[splits.inner],
        sizes,
        joined,
        _stretches(splits, left, right, structure),
        -_equal_depth(structure),
    )


def _stretches(
    splits: _Splits, left: NDArray[Any], right: NDArray[Any], structure: Structure
) -> NDArray[np.int32]:
    """The nodes for blending, if the tree is small; a split of several stretches takes several."""
    inner, of_node = splits.inner.tolist(), splits.split[splits.inner].tolist()
    widest = max((len(r) for r in splits.right), default=0)
    if not 2 <= len(inner) <= kernels.MAX_BLENDED or widest > 256 or structure.n_leaves > 256:
        return _NO_NODES
    found = [_runs(goes) for goes in splits.right]
    begin = np.cumsum([0, *(len(found[split][0]) for split in of_node)]).tolist()
    if begin[-1] > kernels.MAX_BLENDED:
        return _NO_NODES
    nodes = np.zeros((begin[-1], 5), np.int32)
    for i, (node, split) in enumerate(zip(inner, of_node, strict=True)):
        runs, go_right = found[split]
        sides = [int(side[node]) for side in (left, right)]
        other, there = (
            side if side < 0 else begin[side] for side in sides[:: 1 if go_right else -1]
        )
        for at, (low, more) in enumerate(runs, begin[i]):
            aside = other if at == begin[i + 1] - 1 else at + 1  # none of this split's stretches
            nodes[at] = (splits.column[split], low, more, aside, there)
    return nodes


def _runs(goes: Bools) -> tuple[list[tuple[int, int]], bool]:
    """Stretches of codes that go right, or, if these are fewer, of those that stay; and which.

    Each as its first code and how many more there are.
    """
    if goes.all() or not goes.any():
        return [(0, 255)], bool(goes.all())
    ends = np.flatnonzero(np.diff(goes)) + 1
    edges = [0, *ends.tolist(), len(goes)]
    runs = [(low, high - low - 1) for low, high in pairwise(edges)]
    right, stay = runs[int(not goes[0]) :: 2], runs[int(goes[0]) :: 2]
    return (right, True) if len(right) <= len(stay) else (stay, False)


def _equal_depth(structure: Structure) -> int:
    """How deep the leaves lie if all lie equally deep, else 0."""
    depth = np.zeros(structure.n_nodes, np.int64)
    for node in np.flatnonzero(structure.feature >= 0).tolist():  # parents come first
        depth[structure.left[node]] = depth[structure.right[node]] = depth[node] + 1
    leaves = depth[structure.feature < 0]
    return int(leaves[0]) if leaves.min() == leaves.max() else 0


def _table(structure: Structure, grid: Sequence[ColumnGrid]) -> Piece | None:
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
    return Piece(
        np.array([*columns, -1], np.int32),
        np.array([*(len(a) for a in adds), n_cells], np.int32),
        np.concatenate([*adds, leaf]),
        _NO_NODES,
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


def right_codes(structure: Structure, node: int, grid: ColumnGrid) -> Bools:
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
