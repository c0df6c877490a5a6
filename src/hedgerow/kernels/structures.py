"""Compiled loops that check trees, and build those of the default method.

A tree is its arrays (see `model.tree.Structure`). All of it lives in this one file, because Numba's
cache on disk notices changes of a function's own file only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

FINE, LENGTHS, NO_TREE, NO_COLUMN, NO_NODE, NOT_FINITE, WRONG_SET = range(7)


@njit(cache=True, nogil=True)
def objection(
    feature: Any, threshold: Any, missing_left: Any, left: Any, right: Any, member_start: Any,
    n_members: int, words: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Return what is wrong with a tree, or FINE, and the node where it is.

    All arrays have an entry a node, `member_start` one more; `words` (column,) says how many words
    a set of the column has. A child has a larger number than its parent and only one parent, so
    whatever passes is one tree, and walking it ends.
    """
    n = feature.size
    if member_start[0] != 0 or member_start[n] != n_members:
        return LENGTHS, 0
    for node in range(n):
        if member_start[node + 1] < member_start[node]:
            return LENGTHS, node
    has_parent = np.zeros(n, np.bool_)
    for node in range(n):  # before anything walks the tree: a cycle would never end
        if feature[node] < 0:
            if left[node] != -1 or right[node] != -1:
                return NO_TREE, node
            continue
        for child in (np.int64(left[node]), np.int64(right[node])):
            if child <= node or child >= n or has_parent[child]:
                return NO_TREE, node
            has_parent[child] = True
    for node in range(1, n):
        if not has_parent[node]:
            return NO_TREE, node
    for node in range(n):
        if feature[node] >= words.size:
            return NO_COLUMN, node
    for node in range(n):
        if feature[node] < -1 or missing_left[node] > 1:
            return NO_NODE, node
    for node in range(n):
        if not np.isfinite(threshold[node]):
            return NOT_FINITE, node
    for node in range(n):
        n_words = member_start[node + 1] - member_start[node]
        if feature[node] >= 0 and n_words != words[feature[node]]:
            return WRONG_SET, node
    return FINE, 0


@njit(cache=True, nogil=True)
def _is_among(value: int, values: Any, first: int, stop: int) -> Any:
    """Say whether a value is among values[first:stop]; there are few of them."""
    among = False
    for k in range(first, stop):
        among = among or values[k] == value
    return among


@njit(cache=True, nogil=True)
def _ordered_branch(
    part: Any, edges: Any, first: int, stop: int, aside: float, k: int, nodes: Any, values: Any,
    ends: Any,
) -> Any:  # fmt: skip
    """Write one ordered column's parts as a tree of its own; return its nodes and leaves, counted.

    `part` has from `first` on the part of each bin, missing values last; `edges` the edge behind
    each bin, `aside` one that may tell missing values apart, NaN if there is none. For this column,
    number k, it writes `nodes` (left, right, whether missing values go left), -1 at leaves, the
    cuts' `values`, and `ends` (leaf, part). Intervals are halved, so the tree is balanced.
    """
    n_bins, missing = stop - first - 1, part[stop - 1]
    owners, thresholds = np.empty(n_bins + 1, np.int64), np.empty(n_bins + 1, np.float32)
    n_cuts = 0
    for b in range(first, first + n_bins - 1):  # the last bin of every interval but the last
        if part[b] != part[b + 1]:
            owners[n_cuts], thresholds[n_cuts] = part[b], edges[b]
            n_cuts += 1
    owners[n_cuts] = part[stop - 2]
    # A column that is one part in all its bins can still set missing values apart, by the edge
    # `aside`, on whose two sides the part is the same.
    if n_cuts == 0 and missing != owners[0] and aside == aside:
        owners[1], thresholds[0], n_cuts = owners[0], aside, 1
    stack, n_stack, n_nodes, n_ends = np.zeros((n_cuts + 2, 4), np.int64), 1, 1, 0
    stack[0, 2], stack[0, 3] = n_cuts + 1, 1
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
            # Missing values follow the half that has their part. If neither has it they go left,
            # until the node of one interval above sets them apart.
            middle = (low + high) // 2
            goes_left = 0 if _is_among(missing, owners, middle, high) else 1
            values[k, node] = thresholds[middle - 1]
            nodes[k, node, 2] = goes_left
            stack[n_stack, 0], stack[n_stack + 1, 0] = n_nodes + 1, n_nodes
            stack[n_stack, 1], stack[n_stack, 2] = middle, high
            stack[n_stack + 1, 1], stack[n_stack + 1, 2] = low, middle
            stack[n_stack, 3], stack[n_stack + 1, 3] = holds * (1 - goes_left), holds * goes_left
            n_stack += 2
        n_nodes += 2
    return n_nodes, n_ends


@njit(cache=True, nogil=True)
def _set_branch(part: Any, first: int, stop: int, k: int, nodes: Any, sets: Any, ends: Any) -> Any:
    """Do the same for categories: a half of the parts goes right, as `sets` (node, word)."""
    n_cells, missing = stop - first - 1, part[stop - 1]
    chosen, n_chosen = np.empty(stop - first, np.int64), 0
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
    stack, n_stack, n_nodes, n_ends = np.zeros((n_chosen + 1, 3), np.int64), 1, 1, 0
    stack[0, 2], nodes[k, 0, 0] = n_chosen, -1
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
            if least <= part[first + cell] <= most:
                sets[k, node, cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
        nodes[k, n_nodes, 0], nodes[k, n_nodes + 1, 0] = -1, -1  # leaves as yet
        nodes[k, node, 0], nodes[k, node, 1] = n_nodes, n_nodes + 1
        nodes[k, node, 2] = 0 if least <= missing <= most else 1
        stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2] = n_nodes + 1, middle, high
        stack[n_stack + 1, 0], stack[n_stack + 1, 1], stack[n_stack + 1, 2] = n_nodes, low, middle
        n_stack += 2
        n_nodes += 2
    return n_nodes, n_ends


@njit(cache=True, nogil=True)
def table_tree(
    columns: Any, words: Any, starts: Any, part: Any, edges: Any, aside: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return a tree whose leaves are the cells of several columns' parts: arrays, and cells.

    Bins of the columns lie one after another from `starts` on, missing values last: `part` and, of
    columns without `words` of sets, `edges`. See `_ordered_branch`. Every leaf of what is there
    gets a branch of the next column: its root in the leaf's place, the others behind all nodes.

    Single elements are read and written here, and no slices: those take seconds to compile.
    """
    n_columns, width, room = columns.size, np.int64(1), np.int64(4)
    for k in range(n_columns):
        width = max(width, words[k])
        room = max(room, 2 * (starts[k + 1] - starts[k]) + 4)
    nodes = np.empty((n_columns, room, 3), np.int64)  # of each column's branch
    ends = np.empty((n_columns, room, 2), np.int64)
    values = np.zeros((n_columns, room), np.float32)
    sets = np.zeros((n_columns, room, width), np.uint64)
    sizes = np.empty((n_columns, 3), np.int64)  # nodes, leaves, parts
    n: Any = np.int64(1)
    n_leaves: Any = np.int64(1)
    for k in range(n_columns):
        first, stop = starts[k], starts[k + 1]
        if words[k] > 0:
            size, n_ends = _set_branch(part, first, stop, k, nodes, sets, ends)
        else:
            size, n_ends = _ordered_branch(
                part, edges, first, stop, aside[k], k, nodes, values, ends
            )
        sizes[k, 0], sizes[k, 1], sizes[k, 2] = size, n_ends, 1
        for b in range(first, stop):
            sizes[k, 2] = max(sizes[k, 2], part[b] + 1)
        n, n_leaves = n + n_leaves * (size - 1), n_leaves * n_ends
    # (node, 5): which column, or -1; which node of its branch; left, right; the cell of a leaf
    tree = np.empty((n, 5), np.int64)
    _grow(sizes, nodes, ends, n_leaves, tree)
    return _assembled(columns, words, nodes, values, sets, n_leaves, tree)


@njit(cache=True, nogil=True)
def _grow(sizes: Any, nodes: Any, ends: Any, most: int, tree: Any) -> None:
    """Put a branch of every column in the place of each leaf of those before it."""
    leaves, below = np.zeros((most, 2), np.int64), np.zeros((most, 2), np.int64)  # (node, cell)
    before, n_leaves = np.int64(1), np.int64(1)
    tree[0, 0] = -1
    for k in range(len(sizes)):
        size, n_ends, n_parts = sizes[k, 0], sizes[k, 1], sizes[k, 2]
        for i in range(n_leaves):
            root, cell = leaves[i, 0], leaves[i, 1]
            behind = before + i * (size - 1) - 1  # of the branch's node 0, were it not the root
            for node in range(size):
                at = root if node == 0 else behind + node
                tree[at, 0] = -1
                if nodes[k, node, 0] >= 0:
                    tree[at, 0], tree[at, 1] = k, node
                    tree[at, 2] = behind + nodes[k, node, 0]
                    tree[at, 3] = behind + nodes[k, node, 1]
            for e in range(n_ends):
                end = ends[k, e, 0]
                below[i * n_ends + e, 0] = root if end == 0 else behind + end
                below[i * n_ends + e, 1] = cell * n_parts + ends[k, e, 1]
        before, n_leaves = before + n_leaves * (size - 1), n_leaves * n_ends
        leaves, below = below, leaves
    for i in range(n_leaves):
        tree[leaves[i, 0], 4] = leaves[i, 1]


@njit(cache=True, nogil=True)
def _assembled(
    columns: Any, words: Any, nodes: Any, values: Any, sets: Any, n_leaves: int, tree: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return the arrays of `model.tree.Structure`, and the cell of every leaf, in node order."""
    n, n_words, done = len(tree), np.int64(0), 0
    feature, value = np.empty(n, np.int32), np.zeros(n, np.float32)
    left, right = np.empty(n, np.int32), np.empty(n, np.int32)
    missing_left, start = np.zeros(n, np.uint8), np.zeros(n + 1, np.int32)
    cells = np.empty(n_leaves, np.int64)
    for node in range(n):
        feature[node], left[node], right[node] = -1, -1, -1
        k, branch_node = tree[node, 0], tree[node, 1]
        if k < 0:
            cells[done] = tree[node, 4]
            done += 1
        else:
            feature[node], value[node] = columns[k], values[k, branch_node]
            left[node], right[node] = tree[node, 2], tree[node, 3]
            missing_left[node] = nodes[k, branch_node, 2]
            n_words += words[k]
        start[node + 1] = n_words
    members = np.empty(n_words, np.uint64)
    for node in range(n):
        for w in range(start[node + 1] - start[node]):
            members[start[node] + w] = sets[tree[node, 0], tree[node, 1], w]
    return feature, value, missing_left, left, right, start, members, cells
