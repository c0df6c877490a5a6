"""Trees translated to code space: each node becomes a set of codes that go right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.binning import Codes, ColumnGrid, code_places
from hedgerow.errors import FormatError
from hedgerow.model.tree import Structure, Tree
from hedgerow.schema import Schema


@dataclass(frozen=True, eq=False)
class Routes:
    """Several trees over one grid, ready for the kernels."""

    roots: NDArray[np.int32]  # (tree,)
    place: NDArray[np.int32]  # (node,) where the node's column lies in the codes
    child: NDArray[np.int32]  # (node, left|right), -1 at leaves
    start: NDArray[np.int64]  # (node,) first word of its code set
    words: NDArray[np.uint64]
    leaf: NDArray[np.int32]  # (node,) leaf number over all trees, -1 for inner nodes
    n_leaves: int

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
        """(number, leaf) on the grid 2**-bits; codes of loss and update as in `kernels`."""
        kernels.use_threads_for(codes.n_rows)
        total: NDArray[np.int64] = kernels.leaf_sums(
            codes.narrow, codes.wide, scores, target, bits, loss, update, clip, width, self.roots,
            self.place, self.child, self.start, self.words, self.leaf, self.n_leaves,
        )  # fmt: skip
        return total

    def add_scores(
        self, codes: Codes, scores: NDArray[np.float64], values: NDArray[np.float32]
    ) -> None:
        kernels.use_threads_for(codes.n_rows)
        kernels.add_scores(
            codes.narrow, codes.wide, scores, self.roots, self.place, self.child,
            self.start, self.words, self.leaf, values,
        )  # fmt: skip


def routes_of(structures: Sequence[Structure], grid: Sequence[ColumnGrid]) -> Routes:
    """Translate structures to code sets over a grid whose edges include their thresholds."""
    places = code_places(grid)
    sizes = [s.n_nodes for s in structures]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    child = np.full((int(first[-1]), 2), -1, np.int32)
    place = np.zeros(int(first[-1]), np.int32)
    start = np.zeros(int(first[-1]), np.int64)
    leaf = np.full(int(first[-1]), -1, np.int32)
    chunks: list[NDArray[np.uint64]] = []
    known: dict[tuple[int, float, int, bytes], int] = {}  # where a split's code set starts
    n_words = n_leaves = 0
    for offset, structure in zip(first, structures, strict=False):
        stop = offset + structure.n_nodes
        inner = structure.feature >= 0
        child[offset:stop, 0] = np.where(inner, structure.left + offset, -1)
        child[offset:stop, 1] = np.where(inner, structure.right + offset, -1)
        place[offset:stop] = np.where(inner, places[structure.feature], 0)
        leaf[offset:stop] = np.where(inner, -1, structure.leaf + n_leaves)
        n_leaves += structure.n_leaves
        splits = zip(
            structure.feature.tolist(), structure.threshold.tolist(),
            structure.missing_left.tolist(), structure.member_start.tolist(), strict=False,
        )  # fmt: skip
        for node, (feature, threshold, missing_left, first_word) in enumerate(splits):
            if feature < 0:
                continue
            members = structure.members[first_word : structure.member_start[node + 1]].tobytes()
            key = (feature, threshold, missing_left, members)
            if key not in known:  # tables repeat their few splits in every cell
                known[key] = n_words
                chunks.append(_right_codes(structure, node, grid))
                n_words += len(chunks[-1])
            start[offset + node] = known[key]
    words = np.concatenate(chunks) if chunks else np.zeros(1, np.uint64)
    return Routes(first[:-1], place, child, start, words, leaf, n_leaves)


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


def _right_codes(structure: Structure, node: int, grid: Sequence[ColumnGrid]) -> NDArray[np.uint64]:
    column = grid[structure.feature[node]]
    right = np.zeros(column.n_codes, np.bool_)
    if column.column.kind == "categorical":
        words = structure.members[structure.member_start[node] : structure.member_start[node + 1]]
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        right[: column.n_cells] = bits[: column.n_cells].astype(np.bool_)
    else:
        threshold = structure.threshold[node]
        k = int(np.searchsorted(column.edges, threshold))
        if k == len(column.edges) or column.edges[k] != threshold:
            raise FormatError(f"a split on {column.column.name!r} is not an edge of the base grid")
        right[k + 1 : column.n_cells] = True
    right[column.missing_code] = not structure.missing_left[node]
    padded = np.zeros((column.n_codes + 63) // 64 * 64, np.bool_)
    padded[: column.n_codes] = right
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)
