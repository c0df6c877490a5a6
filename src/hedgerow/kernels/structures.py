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
    """What speaks against a tree over some columns with sets of so many `words`; and the node.

    All arrays have an entry a node, `member_start` one more.
    """
    n = feature.size
    if member_start[0] != 0 or member_start[n] != n_members:
        return LENGTHS, 0
    for node in range(n):
        if member_start[node + 1] < member_start[node]:
            return LENGTHS, node
    has_parent = np.zeros(n, np.bool_)
    for node in range(n):
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
        held = member_start[node + 1] - member_start[node]
        if feature[node] >= 0 and held != words[feature[node]]:
            return WRONG_SET, node
    return FINE, 0


@njit(cache=True, nogil=True)
def _is_among(value: int, values: Any, first: int, stop: int) -> Any:
    found = False
    for k in range(first, stop):
        found = found or values[k] == value
    return found


@njit(cache=True, nogil=True)
def _ordered_branch(part: Any, edges: Any, aside: float, nodes: Any, values: Any, ends: Any) -> Any:
    """One ordered column's parts as a tree of its own: how many nodes, and how many leaves.

    `part` has the part of each bin, missing values last; `edges` the edge behind each bin, `aside`
    one that may tell missing values apart, NaN if there is none. Written are `nodes` (left, right,
    whether missing values go left), -1 at leaves, the cuts' `values`, and `ends` (leaf, part).
    """
    n_bins, missing = part.size - 1, part[-1]
    owners, thresholds = np.empty(n_bins + 1, np.int64), np.empty(n_bins + 1, np.float32)
    n_cuts = 0
    for b in range(n_bins - 1):  # the last bin of every interval but the last
        if part[b] != part[b + 1]:
            owners[n_cuts], thresholds[n_cuts] = part[b], edges[b]
            n_cuts += 1
    owners[n_cuts] = part[n_bins - 1]
    if n_cuts == 0 and missing != owners[0] and aside == aside:
        owners[1], thresholds[0], n_cuts = owners[0], aside, 1
    stack, n_stack, n_nodes, n_ends = np.zeros((n_cuts + 2, 4), np.int64), 1, 1, 0
    stack[0, 2], stack[0, 3] = n_cuts + 1, 1
    nodes[0, 0] = -1
    while n_stack:
        n_stack -= 1
        # Intervals low .. high - 1 lie in this node, and missing values if it holds them.
        node, low, high = stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2]
        holds = stack[n_stack, 3]
        alone = high - low == 1
        if alone and (not holds or missing == owners[low] or n_cuts == 0):
            ends[n_ends, 0], ends[n_ends, 1] = node, owners[low]
            n_ends += 1
            continue
        nodes[n_nodes, 0], nodes[n_nodes + 1, 0] = -1, -1  # leaves as yet
        nodes[node, 0], nodes[node, 1] = n_nodes, n_nodes + 1
        if alone:
            # Every value of this node lies on one side of the edge; missing goes to the other.
            above = low < n_cuts
            values[node] = thresholds[low] if above else thresholds[low - 1]
            nodes[node, 2] = 0 if above else 1
            ends[n_ends, 0], ends[n_ends + 1, 0] = n_nodes, n_nodes + 1
            ends[n_ends, 1] = owners[low] if above else missing
            ends[n_ends + 1, 1] = missing if above else owners[low]
            n_ends += 2
        else:
            middle = (low + high) // 2
            goes_left = 0 if _is_among(missing, owners, middle, high) else 1
            values[node] = thresholds[middle - 1]
            nodes[node, 2] = goes_left
            stack[n_stack, 0], stack[n_stack + 1, 0] = n_nodes + 1, n_nodes
            stack[n_stack, 1], stack[n_stack, 2] = middle, high
            stack[n_stack + 1, 1], stack[n_stack + 1, 2] = low, middle
            stack[n_stack, 3], stack[n_stack + 1, 3] = holds * (1 - goes_left), holds * goes_left
            n_stack += 2
        n_nodes += 2
    return n_nodes, n_ends


@njit(cache=True, nogil=True)
def _set_branch(part: Any, nodes: Any, sets: Any, ends: Any) -> Any:
    """The same for categories: parts from one to another go right, in `sets` (node, word)."""
    n_cells, missing = part.size - 1, part[-1]
    chosen = np.unique(part)
    stack, n_stack, n_nodes, n_ends = np.zeros((chosen.size + 1, 3), np.int64), 1, 1, 0
    stack[0, 2], nodes[0, 0] = chosen.size, -1
    while n_stack:
        n_stack -= 1
        node, low, high = stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2]
        if high - low == 1:
            ends[n_ends, 0], ends[n_ends, 1] = node, chosen[low]
            n_ends += 1
            continue
        middle = low + (high - low) // 2
        least, most = chosen[middle], chosen[high - 1]
        for cell in range(n_cells):
            if least <= part[cell] <= most:
                sets[node, cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
        nodes[n_nodes, 0], nodes[n_nodes + 1, 0] = -1, -1  # leaves as yet
        nodes[node, 0], nodes[node, 1] = n_nodes, n_nodes + 1
        nodes[node, 2] = 0 if least <= missing <= most else 1
        stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2] = n_nodes + 1, middle, high
        stack[n_stack + 1, 0], stack[n_stack + 1, 1], stack[n_stack + 1, 2] = n_nodes, low, middle
        n_stack += 2
        n_nodes += 2
    return n_nodes, n_ends


@njit(cache=True, nogil=True)
def table_tree(
    columns: Any, words: Any, starts: Any, part: Any, edges: Any, aside: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """A tree whose leaves are the cells of several columns' parts: its arrays, and leaves' cells.

    Bins of the columns lie one after another from `starts` on, missing values last: `part` and, of
    columns without `words` of sets, `edges`. See `_ordered_branch`. Every leaf of what is there
    gets a branch of the next column: its root in the leaf's place, the others behind all nodes.
    """
    feature, value = np.full(1, -1, np.int32), np.zeros(1, np.float32)
    node_of, leaf_cell = np.full((1, 3), -1, np.int64), np.zeros((1, 2), np.int64)
    width = max(np.max(words), 1)
    sets = np.zeros((1, width), np.uint64)
    for k in range(columns.size):
        own = part[starts[k] : starts[k + 1]]
        room = 2 * own.size + 4
        nodes, ends = np.empty((room, 3), np.int64), np.empty((room, 2), np.int64)
        values, members = np.zeros(room, np.float32), np.zeros((room, width), np.uint64)
        if words[k] > 0:
            size, n_ends = _set_branch(own, nodes, members, ends)
        else:
            of_column = edges[starts[k] : starts[k + 1]]
            size, n_ends = _ordered_branch(own, of_column, aside[k], nodes, values, ends)
        before, n_parts = feature.size, np.max(own) + 1
        whole = before + len(leaf_cell) * (size - 1)
        features, cuts = np.full(whole, -1, np.int32), np.zeros(whole, np.float32)
        places, words_of = np.full((whole, 3), -1, np.int64), np.zeros((whole, width), np.uint64)
        features[:before], cuts[:before] = feature, value
        places[:before], words_of[:before] = node_of, sets
        below = np.empty((len(leaf_cell) * n_ends, 2), np.int64)
        for i in range(len(leaf_cell)):
            root, cell = leaf_cell[i, 0], leaf_cell[i, 1]
            behind = before + i * (size - 1) - 1  # of the branch's node 0, were it not the root
            for node in range(size):
                at = root if node == 0 else behind + node
                if nodes[node, 0] >= 0:
                    features[at], cuts[at] = columns[k], values[node]
                    places[at, 0], places[at, 1] = behind + nodes[node, 0], behind + nodes[node, 1]
                    places[at, 2] = nodes[node, 2]
                    words_of[at] = members[node]
            for e in range(n_ends):
                below[i * n_ends + e, 0] = root if ends[e, 0] == 0 else behind + ends[e, 0]
                below[i * n_ends + e, 1] = cell * n_parts + ends[e, 1]
        feature, value, node_of, sets = features, cuts, places, words_of
        leaf_cell = below
    return _assembled(feature, value, node_of, sets, leaf_cell, columns, words)


@njit(cache=True, nogil=True)
def _assembled(
    feature: Any, value: Any, node_of: Any, sets: Any, leaf_cell: Any, columns: Any, words: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    n = feature.size
    left, right = node_of[:, 0].astype(np.int32), node_of[:, 1].astype(np.int32)
    missing_left, start = np.zeros(n, np.uint8), np.zeros(n + 1, np.int32)
    for node in range(n):
        held = 0
        if feature[node] >= 0:
            missing_left[node] = node_of[node, 2]
            for k in range(columns.size):
                if columns[k] == feature[node]:
                    held = words[k]
        start[node + 1] = start[node] + held
    members = np.empty(start[n], np.uint64)
    for node in range(n):
        for k in range(start[node + 1] - start[node]):
            members[start[node] + k] = sets[node, k]
    of_node = np.full(n, -1, np.int64)
    for i in range(len(leaf_cell)):
        of_node[leaf_cell[i, 0]] = leaf_cell[i, 1]
    cells, done = np.empty(len(leaf_cell), np.int64), 0
    for node in range(n):
        if of_node[node] >= 0:
            cells[done] = of_node[node]
            done += 1
    return feature, value, missing_left, left, right, start, members, cells
