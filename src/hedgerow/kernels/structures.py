"""Compiled loops that check trees, and build those of the default method.

A tree is its arrays (see `model.tree.Structure`). Loops here allocate nothing and read single
elements, no slices: both take long to compile. All of it lives in this one file, because Numba's
cache on disk notices changes of a function's own file only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
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
    values: Float32s, sizes: Ints, memory: Ints,
) -> None:  # fmt: skip
    """Write the parts of each ordered column as a tree of its own.

    `part` has from starts[k] on the part of each bin, missing values last; `edges` the edge behind
    each bin, `aside` one that may tell missing values apart, NaN if there is none. For column
    number k it writes `nodes` (left, right, whether missing values go left), -1 at leaves, and the
    cuts' `values`; in the last two of `nodes` the leaves one after another, and their parts.
    Intervals are halved, so the tree is balanced; it has one leaf more than half its nodes. `sizes`
    are (nodes | parts, column), the second also of columns that have no order. In `memory` stand
    open nodes, and for each interval its part and the bin before its end, -1 for `aside`.
    """
    for k in range(words.size):
        first, stop = starts[k], starts[k + 1]
        sizes[1, k] = 0
        for b in range(first, stop):
            sizes[1, k] = part[b] + 1 if part[b] >= sizes[1, k] else sizes[1, k]
        if words[k] > 0:
            continue
        n_bins, missing = stop - first - 1, part[stop - 1]
        n_cuts = 0
        for b in range(first, first + n_bins - 1):  # the last bin of every interval but the last
            if part[b] != part[b + 1]:
                memory[n_cuts, 4], memory[n_cuts, 5] = part[b], b
                n_cuts += 1
        memory[n_cuts, 4] = part[stop - 2]
        # A column that is one part in all its bins can still set missing values apart, by the edge
        # `aside`, on whose two sides the part is the same.
        if n_cuts == 0 and missing != memory[0, 4] and aside[k] == aside[k]:
            memory[1, 4], memory[0, 5], n_cuts = memory[0, 4], -1, 1
        n_stack, n_nodes, n_ends = 1, 1, 0
        memory[0, 0], memory[0, 1], memory[0, 2], memory[0, 3] = 0, 0, n_cuts + 1, 1
        nodes[k, 0, 0] = -1
        while n_stack:
            n_stack -= 1
            # Intervals low .. high - 1 lie in this node, and missing values if it holds them.
            node, low, high = memory[n_stack, 0], memory[n_stack, 1], memory[n_stack, 2]
            holds, owner = memory[n_stack, 3], memory[low, 4]
            alone = high - low == 1
            if alone and (not holds or missing == owner or n_cuts == 0):
                nodes[k, n_ends, 3], nodes[k, n_ends, 4] = node, owner
                n_ends += 1
                continue
            nodes[k, n_nodes, 0], nodes[k, n_nodes + 1, 0] = -1, -1  # leaves as yet
            nodes[k, node, 0], nodes[k, node, 1] = n_nodes, n_nodes + 1
            if alone:
                # Every value of this node lies on one side of the edge; missing goes to the other.
                above = low < n_cuts
                cut = memory[low if above else low - 1, 5]
                nodes[k, node, 2] = 0 if above else 1
                nodes[k, n_ends, 3], nodes[k, n_ends + 1, 3] = n_nodes, n_nodes + 1
                nodes[k, n_ends, 4] = owner if above else missing
                nodes[k, n_ends + 1, 4] = missing if above else owner
                n_ends += 2
            else:
                # Missing values follow the half that has their part. If neither has it they go
                # left, until the node of one interval above sets them apart.
                middle, goes_left = (low + high) // 2, 1
                for interval in range(middle, high):
                    if memory[interval, 4] == missing:
                        goes_left = 0
                cut = memory[middle - 1, 5]
                nodes[k, node, 2] = goes_left
                memory[n_stack, 0], memory[n_stack + 1, 0] = n_nodes + 1, n_nodes
                memory[n_stack, 1], memory[n_stack, 2] = middle, high
                memory[n_stack + 1, 1], memory[n_stack + 1, 2] = low, middle
                memory[n_stack, 3] = holds * (1 - goes_left)
                memory[n_stack + 1, 3] = holds * goes_left
                n_stack += 2
            values[k, node] = edges[cut] if cut >= 0 else aside[k]
            n_nodes += 2
        sizes[0, k] = n_nodes


@compiled(error_model="numpy")
def _set_branch(
    part: Ints, first: int, stop: int, k: int, nodes: Ints, sets: Words, memory: Ints
) -> int:
    """Do as `_ordered_branches` for categories: a half of the parts goes right, as `sets` (word,).

    Returned is how many nodes there are.
    """
    n_cells, missing, n_chosen = stop - first - 1, part[stop - 1], 0
    for b in range(first, stop):  # distinct parts, in order
        at = 0
        while at < n_chosen and memory[at, 4] < part[b]:
            at += 1
        if at < n_chosen and memory[at, 4] == part[b]:
            continue
        for later in range(n_chosen, at, -1):
            memory[later, 4] = memory[later - 1, 4]
        memory[at, 4] = part[b]
        n_chosen += 1
    n_stack, n_nodes, n_ends = 1, 1, 0
    memory[0, 0], memory[0, 1], memory[0, 2], nodes[k, 0, 0] = 0, 0, n_chosen, -1
    while n_stack:
        n_stack -= 1
        node, low, high = memory[n_stack, 0], memory[n_stack, 1], memory[n_stack, 2]
        if high - low == 1:
            nodes[k, n_ends, 3], nodes[k, n_ends, 4] = node, memory[low, 4]
            n_ends += 1
            continue
        middle = low + (high - low) // 2
        least, most = memory[middle, 4], memory[high - 1, 4]
        for cell in range(n_cells):
            if part[first + cell] >= least and part[first + cell] <= most:
                sets[k, node, cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
        nodes[k, n_nodes, 0], nodes[k, n_nodes + 1, 0] = -1, -1  # leaves as yet
        nodes[k, node, 0], nodes[k, node, 1] = n_nodes, n_nodes + 1
        nodes[k, node, 2] = 0 if missing >= least and missing <= most else 1
        memory[n_stack, 0], memory[n_stack, 1], memory[n_stack, 2] = n_nodes + 1, middle, high
        memory[n_stack + 1, 0], memory[n_stack + 1, 1] = n_nodes, low
        memory[n_stack + 1, 2] = middle
        n_stack += 2
        n_nodes += 2
    return n_nodes


@compiled(error_model="numpy")
def _assemble(
    columns: Int32s, words: Ints, sizes: Ints, nodes: Ints, values: Float32s, leaves: Ints,
    tree: Int32s, value: Float32s, missing_left: NDArray[np.uint8], start: Int32s, cells: Ints,
) -> None:  # fmt: skip
    """Put a branch of every column in the place of each leaf of those before it.

    Written are the arrays of `model.tree.Structure` but for the sets, and the cell of every leaf,
    in node order. `tree` has `feature`, `left` and `right`, and for the sets every node's number in
    the branch of its column. `leaves`, (2, leaf, node | cell), is memory.
    """
    before, n_leaves, now, n = np.int64(1), np.int64(1), 0, tree.shape[1]
    leaves[0, 0, 0] = leaves[0, 0, 1] = 0
    for node in range(n):
        tree[0, node] = tree[1, node] = tree[2, node] = -1
    for k in range(columns.size):
        size, then = sizes[0, k], 1 - now
        n_ends = (size + 1) // 2
        for i in range(n_leaves):
            root, cell = leaves[now, i, 0], leaves[now, i, 1]
            behind = before + i * (size - 1) - 1  # of the branch's node 0, were it not the root
            for node in range(size):
                at = root if node == 0 else behind + node
                if nodes[k, node, 0] >= 0:
                    tree[0, at], tree[3, at], value[at] = columns[k], node, values[k, node]
                    tree[1, at] = behind + nodes[k, node, 0]
                    tree[2, at] = behind + nodes[k, node, 1]
                    missing_left[at] = nodes[k, node, 2]
                    start[at + 1] = words[k]
            for e in range(n_ends):
                end = nodes[k, e, 3]
                leaves[then, i * n_ends + e, 0] = root if end == 0 else behind + end
                leaves[then, i * n_ends + e, 1] = cell * sizes[1, k] + nodes[k, e, 4]
        before, n_leaves, now = before + n_leaves * (size - 1), n_leaves * n_ends, then
    for i in range(n_leaves):
        tree[3, leaves[now, i, 0]] = leaves[now, i, 1]
    done = 0
    for node in range(n):
        if tree[0, node] < 0:
            cells[done] = tree[3, node]
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
    return table_trees([len(columns)], columns, words, starts, part, edges, aside)[0]


def table_trees(
    n_columns: Sequence[int], columns: Int32s, words: Ints, starts: Ints, part: Ints,
    edges: Float32s, aside: Float32s,
) -> list[tuple[NDArray[Any], ...]]:  # fmt: skip
    """Do as `table_tree` for several tables of so many columns each, one table after another."""
    n_words, bins = max(words.tolist()), starts.tolist()
    room = 2 * max(stop - begin for begin, stop in pairwise(bins)) + 4
    nodes = np.empty((len(columns), room, 5), np.int64)  # of each column's branch
    values, sizes = (
        np.empty((len(columns), room), np.float32),
        np.empty((2, len(columns)), np.int64),
    )
    sets = np.zeros((len(columns), room if n_words else 0, max(n_words, 1)), np.uint64)
    memory = np.empty((room, 6), np.int64)
    _ordered_branches(part, edges, starts, words, aside, nodes, values, sizes, memory)
    for k in np.flatnonzero(words).tolist() if n_words else ():
        values[k] = 0.0
        sizes[0, k] = _set_branch(part, bins[k], bins[k + 1], k, nodes, sets, memory)
    n_nodes, trees, first = sizes[0].tolist(), list[tuple[NDArray[Any], ...]](), 0
    for size in n_columns:
        of, n, n_leaves = slice(first, first + size), 1, 1
        for branch in n_nodes[of]:
            n, n_leaves = n + n_leaves * (branch - 1), n_leaves * ((branch + 1) // 2)
        trees.append(
            _assembled(
                columns[of], words[of], sizes[:, of], nodes[of], values[of], sets[of], n, n_leaves
            )
        )
        first += size
    return trees


def _assembled(
    columns: Int32s, words: Ints, sizes: Ints, nodes: Ints, values: Float32s, sets: Words, n: int,
    n_leaves: int,
) -> tuple[NDArray[Any], ...]:  # fmt: skip
    """Return the tree of one table, of so many nodes and leaves, from its columns' branches."""
    tree, value = np.empty((4, n), np.int32), np.zeros(n, np.float32)
    missing_left, start = np.zeros(n, np.uint8), np.zeros(n + 1, np.int32)
    cells = np.empty(n_leaves, np.int64)
    _assemble(
        columns, words, np.ascontiguousarray(sizes), nodes, values,
        np.empty((2, n_leaves, 2), np.int64), tree, value, missing_left, start, cells,
    )  # fmt: skip
    feature, left, right, branch = tree
    members = np.empty(start.item(n), np.uint64)
    for k in np.flatnonzero(words).tolist() if members.size else ():
        of_column = np.flatnonzero(feature == columns[k])
        word = np.arange(words[k])
        members[start[of_column][:, None] + word] = sets[k, branch[of_column], : words[k]]
    return feature, value, missing_left, left, right, start, members, cells
