"""Compiled loops that check trees, and build those of the default method.

A tree is its arrays (see `model.tree.Structure`). Loops here allocate nothing and read single
elements, no slices: both take long to compile. All of it lives in this one file, because Numba's
cache on disk notices changes of a function's own file only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Bools, Int, Int32s, Ints, Words
from hedgerow.kernels.compiling import compiled

FINE, LENGTHS, NO_TREE, NO_COLUMN, NO_NODE, NOT_FINITE, WRONG_SET = range(7)
_KINDS = 7
_MANY = 1 << 32  # nodes; a tree has fewer
Float32s = NDArray[np.float32]


@compiled(error_model="numpy")
def _objection(
    feature: Int32s, threshold: Float32s, missing_left: NDArray[np.uint8], left: Int32s,
    right: Int32s, member_start: Int32s, n_members: int, words: Ints, has_parent: Bools,
) -> Int:  # fmt: skip
    """Do as `objection`: return what is wrong times _MANY, and the node, in one number."""
    n = feature.size
    if member_start[0] != 0 or member_start[n] != n_members:
        return LENGTHS * _MANY
    for node in range(n):
        if member_start[node + 1] < member_start[node]:
            return LENGTHS * _MANY + node
    for node in range(n):  # before anything walks the tree: a cycle would never end
        a, b = np.int64(left[node]), np.int64(right[node])
        if feature[node] < 0:
            if a != -1 or b != -1:
                return NO_TREE * _MANY + node
            continue
        if a <= node or a >= n or has_parent[a] or b <= node or b >= n or has_parent[b] or a == b:
            return NO_TREE * _MANY + node
        has_parent[a] = has_parent[b] = True
    has_parent[0] = True
    what, where = np.int64(_KINDS), np.int64(0)  # of all objections the first kind
    for node in range(n):
        column, n_words = feature[node], member_start[node + 1] - member_start[node]
        kind = np.int64(_KINDS)
        if not has_parent[node]:
            kind = np.int64(NO_TREE)
        elif column >= words.size:
            kind = np.int64(NO_COLUMN)
        elif column < -1 or missing_left[node] > 1:
            kind = np.int64(NO_NODE)
        elif not abs(threshold[node]) < np.inf:
            kind = np.int64(NOT_FINITE)
        elif column >= 0 and n_words != words[column]:
            kind = np.int64(WRONG_SET)
        if kind < what:
            what, where = kind, np.int64(node)
    return what * _MANY + where if what < _KINDS else np.int64(0)


def objection(
    feature: Int32s, threshold: Float32s, missing_left: NDArray[np.uint8], left: Int32s,
    right: Int32s, member_start: Int32s, n_members: int, words: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Return what is wrong with a tree, or FINE, and the node where it is.

    All arrays have an entry a node, `member_start` one more; `words` (column,) says how many words
    a set of the column has. A child has a larger number than its parent and only one parent, so
    whatever passes is one tree, and walking it ends.
    """
    has_parent = np.zeros(feature.size, np.bool_)
    found = _objection(
        feature, threshold, missing_left, left, right, member_start, n_members, words, has_parent
    )
    return divmod(int(found), _MANY)


@compiled(error_model="numpy")
def _ordered_branches(
    part: Ints, edges: Float32s, starts: Ints, words: Ints, aside: Float32s, nodes: Ints,
    values: Float32s, ends: Ints, sizes: Ints, owners: Ints, thresholds: Float32s, stack: Ints,
) -> None:  # fmt: skip
    """Write the parts of each ordered column as a tree of its own, and how many nodes: (column,).

    `part` has from starts[k] on the part of each bin, missing values last; `edges` the edge behind
    each bin, `aside` one that may tell missing values apart, NaN if there is none. For column
    number k it writes `nodes` (left, right, whether missing values go left), -1 at leaves, the
    cuts' `values`, and `ends` (leaf, part). Intervals are halved, so the tree is balanced; it has
    one leaf more than half its nodes. The last three arguments are memory.
    """
    for k in range(words.size):
        if words[k] > 0:
            continue
        first, stop = starts[k], starts[k + 1]
        n_bins, missing = stop - first - 1, part[stop - 1]
        n_cuts = 0
        for b in range(first, first + n_bins - 1):  # the last bin of every interval but the last
            if part[b] != part[b + 1]:
                owners[n_cuts], thresholds[n_cuts] = part[b], edges[b]
                n_cuts += 1
        owners[n_cuts] = part[stop - 2]
        # A column that is one part in all its bins can still set missing values apart, by the edge
        # `aside`, on whose two sides the part is the same.
        if n_cuts == 0 and missing != owners[0] and aside[k] == aside[k]:
            owners[1], thresholds[0], n_cuts = owners[0], aside[k], 1
        n_stack, n_nodes, n_ends = 1, 1, 0
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, 0, n_cuts + 1, 1
        nodes[k, 0, 0] = -1
        while n_stack:
            n_stack -= 1
            # Intervals low .. high - 1 lie in this node, and missing values if it holds them.
            node, low, high = stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2]
            holds = stack[n_stack, 3]
            alone = high - low == 1
            if alone and (not holds or missing == owners[low] or n_cuts == 0):
                ends[k, n_ends, 0], ends[k, n_ends, 1] = node, owners[low]
                n_ends += 1
                continue
            nodes[k, n_nodes, 0], nodes[k, n_nodes + 1, 0] = -1, -1  # leaves as yet
            nodes[k, node, 0], nodes[k, node, 1] = n_nodes, n_nodes + 1
            if alone:
                # Every value of this node lies on one side of the edge; missing goes to the other.
                above = low < n_cuts
                values[k, node] = thresholds[low] if above else thresholds[low - 1]
                nodes[k, node, 2] = 0 if above else 1
                ends[k, n_ends, 0], ends[k, n_ends + 1, 0] = n_nodes, n_nodes + 1
                ends[k, n_ends, 1] = owners[low] if above else missing
                ends[k, n_ends + 1, 1] = missing if above else owners[low]
                n_ends += 2
            else:
                # Missing values follow the half that has their part. If neither has it they go
                # left, until the node of one interval above sets them apart.
                middle, goes_left = (low + high) // 2, 1
                for interval in range(middle, high):
                    if owners[interval] == missing:
                        goes_left = 0
                values[k, node] = thresholds[middle - 1]
                nodes[k, node, 2] = goes_left
                stack[n_stack, 0], stack[n_stack + 1, 0] = n_nodes + 1, n_nodes
                stack[n_stack, 1], stack[n_stack, 2] = middle, high
                stack[n_stack + 1, 1], stack[n_stack + 1, 2] = low, middle
                stack[n_stack, 3], stack[n_stack + 1, 3] = (
                    holds * (1 - goes_left),
                    holds * goes_left,
                )
                n_stack += 2
            n_nodes += 2
        sizes[k] = n_nodes


@compiled(error_model="numpy")
def _set_branch(
    part: Ints, first: int, stop: int, k: int, nodes: Ints, sets: Words, ends: Ints, chosen: Ints,
    stack: Ints,
) -> int:  # fmt: skip
    """Do as `_ordered_branches` for categories: a half of the parts goes right, as `sets` (word,).

    `chosen` and `stack` are memory.
    """
    n_cells, missing, n_chosen = stop - first - 1, part[stop - 1], 0
    for b in range(first, stop):  # distinct parts, in order
        at = 0
        while at < n_chosen and chosen[at] < part[b]:
            at += 1
        if at < n_chosen and chosen[at] == part[b]:
            continue
        for later in range(n_chosen, at, -1):
            chosen[later] = chosen[later - 1]
        chosen[at] = part[b]
        n_chosen += 1
    n_stack, n_nodes, n_ends = 1, 1, 0
    stack[0, 0], stack[0, 1], stack[0, 2], nodes[k, 0, 0] = 0, 0, n_chosen, -1
    while n_stack:
        n_stack -= 1
        node, low, high = stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2]
        if high - low == 1:
            ends[k, n_ends, 0], ends[k, n_ends, 1] = node, chosen[low]
            n_ends += 1
            continue
        middle = low + (high - low) // 2
        least, most = chosen[middle], chosen[high - 1]
        for cell in range(n_cells):
            if part[first + cell] >= least and part[first + cell] <= most:
                sets[k, node, cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
        nodes[k, n_nodes, 0], nodes[k, n_nodes + 1, 0] = -1, -1  # leaves as yet
        nodes[k, node, 0], nodes[k, node, 1] = n_nodes, n_nodes + 1
        nodes[k, node, 2] = 0 if missing >= least and missing <= most else 1
        stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2] = n_nodes + 1, middle, high
        stack[n_stack + 1, 0], stack[n_stack + 1, 1], stack[n_stack + 1, 2] = n_nodes, low, middle
        n_stack += 2
        n_nodes += 2
    return n_nodes


@compiled(error_model="numpy")
def _assemble(
    columns: Int32s, words: Ints, sizes: Ints, n_parts: Ints, nodes: Ints, values: Float32s,
    ends: Ints, leaves: Ints, feature: Int32s, value: Float32s, missing_left: NDArray[np.uint8],
    left: Int32s, right: Int32s, start: Int32s, branch: Int32s, cells: Ints,
) -> None:  # fmt: skip
    """Put a branch of every column in the place of each leaf of those before it.

    Written are the arrays of `model.tree.Structure` but for the sets, for which `branch` has every
    node's number in the branch of its column; and the cell of every leaf, in node order. `leaves`,
    (2, leaf, node | cell), is memory.
    """
    before, n_leaves, now = np.int64(1), np.int64(1), 0
    leaves[0, 0, 0] = leaves[0, 0, 1] = 0
    for node in range(feature.size):
        feature[node] = left[node] = right[node] = -1
    for k in range(columns.size):
        size, then = sizes[k], 1 - now
        n_ends = (size + 1) // 2
        for i in range(n_leaves):
            root, cell = leaves[now, i, 0], leaves[now, i, 1]
            behind = before + i * (size - 1) - 1  # of the branch's node 0, were it not the root
            for node in range(size):
                at = root if node == 0 else behind + node
                if nodes[k, node, 0] >= 0:
                    feature[at], branch[at], value[at] = columns[k], node, values[k, node]
                    left[at] = behind + nodes[k, node, 0]
                    right[at] = behind + nodes[k, node, 1]
                    missing_left[at] = nodes[k, node, 2]
                    start[at + 1] = words[k]
            for e in range(n_ends):
                end = ends[k, e, 0]
                leaves[then, i * n_ends + e, 0] = root if end == 0 else behind + end
                leaves[then, i * n_ends + e, 1] = cell * n_parts[k] + ends[k, e, 1]
        before, n_leaves, now = before + n_leaves * (size - 1), n_leaves * n_ends, then
    for i in range(n_leaves):
        branch[leaves[now, i, 0]] = leaves[now, i, 1]
    done = 0
    for node in range(feature.size):
        if feature[node] < 0:
            cells[done] = branch[node]
            done += 1
        start[node + 1] += start[node]


def table_tree(
    columns: Int32s, words: Ints, starts: Ints, part: Ints, edges: Float32s, aside: Float32s
) -> tuple[NDArray[Any], ...]:
    """Return a tree whose leaves are the cells of several columns' parts: arrays, and cells.

    Bins of the columns lie one after another from `starts` on, missing values last: `part` and, of
    columns without `words` of sets, `edges`. See `_ordered_branches`. Every leaf of what is there
    gets a branch of the next column: its root in the leaf's place, the others behind all nodes.
    """
    n_columns, n_words = len(columns), int(words.max())
    room = 2 * int(np.diff(starts).max()) + 4
    nodes = np.empty((n_columns, room, 3), np.int64)  # of each column's branch
    ends, values = np.empty((n_columns, room, 2), np.int64), np.zeros((n_columns, room), np.float32)
    sets = np.zeros((n_columns, room if n_words else 0, max(n_words, 1)), np.uint64)
    sizes, owners = np.zeros(n_columns, np.int64), np.empty(room, np.int64)
    stack = np.empty((room, 4), np.int64)
    _ordered_branches(
        part, edges, starts, words, aside, nodes, values, ends, sizes, owners,
        np.empty(room, np.float32), stack,
    )  # fmt: skip
    for k in np.flatnonzero(words) if n_words else ():
        first, stop = int(starts[k]), int(starts[k + 1])
        sizes[k] = _set_branch(part, first, stop, int(k), nodes, sets, ends, owners, stack)
    n = n_leaves = 1
    for size in sizes.tolist():
        n, n_leaves = n + n_leaves * (size - 1), n_leaves * ((size + 1) // 2)
    return _assembled(
        columns, words, sizes, np.maximum.reduceat(part, starts[:-1]) + 1, nodes, values, ends,
        sets, n, n_leaves,
    )  # fmt: skip


def _assembled(
    columns: Int32s, words: Ints, sizes: Ints, n_parts: Ints, nodes: Ints, values: Float32s,
    ends: Ints, sets: Words, n: int, n_leaves: int,
) -> tuple[NDArray[Any], ...]:  # fmt: skip
    """Return the arrays of a tree of so many nodes and leaves; see `_assemble`."""
    feature, value = np.empty(n, np.int32), np.zeros(n, np.float32)
    left, right, branch = np.empty(n, np.int32), np.empty(n, np.int32), np.zeros(n, np.int32)
    missing_left, start = np.zeros(n, np.uint8), np.zeros(n + 1, np.int32)
    cells = np.empty(n_leaves, np.int64)
    _assemble(
        columns, words, sizes, n_parts, nodes, values, ends, np.empty((2, n_leaves, 2), np.int64),
        feature, value, missing_left, left, right, start, branch, cells,
    )  # fmt: skip
    members = np.empty(int(start[-1]), np.uint64)
    for k in np.flatnonzero(words) if members.size else ():
        of_column = np.flatnonzero(feature == columns[k])
        word = np.arange(words[k])
        members[start[of_column][:, None] + word] = sets[k, branch[of_column], : words[k]]
    return feature, value, missing_left, left, right, start, members, cells
