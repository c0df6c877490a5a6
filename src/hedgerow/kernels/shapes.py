"""Compiled loops over the nodes of trees: what becomes of them in code space.

A tree is its arrays (see `model.tree.Structure`); a grid is `edges` of all columns one after
another with where each column's begin, `n_cells` and whether it is `categorical`: (column,). All
of it lives in this one file, because Numba's cache on disk notices changes of a function's own file
only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

MOST_NODES = 4096  # of a tree that is tried as a table: its splits are compared with each other
NO_TABLE, NO_EDGE = -1, -2
MOST_CODES = 256  # of columns whose trees are blended, and leaves of these


@njit(cache=True, nogil=True)
def _first_right(
    node: int, feature: Any, threshold: Any, edges: Any, edge_start: Any, categorical: Any
) -> Any:
    """Return the first code that goes right at an ordered split, 0 at a set.

    A threshold that is no edge of the grid gives NO_EDGE: such a tree has no form in code space.
    """
    column = feature[node]
    if categorical[column]:
        return np.int64(0)
    low, high = np.int64(edge_start[column]), np.int64(edge_start[column + 1])
    end, wanted = high, threshold[node]
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low == end or edges[low] != wanted:
        return np.int64(NO_EDGE)
    return low - np.int64(edge_start[column]) + 1


@njit(cache=True, nogil=True)
def _goes_right(
    node: int, code: int, low: int, is_set: bool, missing: int, missing_left: Any,
    member_start: Any, members: Any,
) -> Any:  # fmt: skip
    """Say whether a code goes right at a node: by its set of 64-bit words, or from `low` on."""
    if code == missing:
        return missing_left[node] == 0
    if not is_set:
        return code >= low
    word = np.int64(member_start[node]) + (code >> 6)
    if word >= member_start[node + 1]:
        return False
    return (members[word] >> np.uint64(code & 63)) & np.uint64(1) != np.uint64(0)


@njit(cache=True, nogil=True)
def _splits_alike(
    node: int, other: int, low: Any, missing_left: Any, member_start: Any, members: Any
) -> Any:
    """Say whether two nodes of one column send every code the same way, by what they say."""
    if low[node] != low[other] or missing_left[node] != missing_left[other]:
        return False
    first, second = member_start[node], member_start[other]
    for k in range(member_start[node + 1] - first):
        if members[first + k] != members[second + k]:
            return False
    return True


@njit(cache=True, nogil=True)
def _leaves_of(feature: Any) -> Any:
    """Return the number of every leaf, in node order: (node,); inner nodes mean nothing there."""
    leaf, n_leaves = np.empty(feature.size, np.int32), 0
    for node in range(feature.size):
        leaf[node] = n_leaves
        n_leaves += feature[node] < 0
    return leaf


@njit(cache=True, nogil=True)
def _columns_of(feature: Any, most: int) -> Any:
    """Return the distinct columns of a tree, sorted, and how many: 0 if more than `most`."""
    columns, n = np.empty(most, np.int32), 0
    for node in range(feature.size):
        column = feature[node]
        at = 0
        while at < n and columns[at] < column:
            at += 1
        if column < 0 or (at < n and columns[at] == column):
            continue
        if n == most:
            return columns, 0
        for k in range(n, at, -1):
            columns[k] = columns[k - 1]
        columns[at] = column
        n += 1
    return columns, n


@njit(cache=True, nogil=True)
def _told_apart_in_order(
    column: int, feature: Any, missing_left: Any, low: Any, missing: int
) -> tuple[Any, Any]:
    """Do as `_told_apart` for an ordered column: stretches between its splits, and missing values.

    Missing values go with the codes of one stretch if they go right at all splits before it, and
    left at all splits behind it, as its codes do; else they are told apart from all codes.
    """
    part = np.empty(missing + 1, np.int32)
    ways = np.zeros(missing + 1, np.uint8)  # by first code that goes right: 1 missing left, 2 right
    for node in range(feature.size):
        if feature[node] == column:
            ways[low[node]] |= 1 if missing_left[node] else 2
    here = of_missing = 0  # the stretch of a code, and the one that missing values may belong to
    alike, went_left = True, False
    for code in range(missing):
        if ways[code]:
            here += 1
            if ways[code] == 1:
                went_left = True
            elif ways[code] == 2:
                alike, of_missing = alike and not went_left, here
            else:
                alike = False
        part[code] = here
    part[missing] = of_missing if alike else here + 1
    return part, here + 1 if alike else here + 2


@njit(cache=True, nogil=True)
def _told_apart(
    column: int, feature: Any, missing_left: Any, member_start: Any, members: Any, low: Any,
    missing: int, most: int,
) -> tuple[Any, Any]:  # fmt: skip
    """Return the part of every code, (code,), and how many parts there are, 0 if above `most`.

    Codes that every split of the column sends the same way are one part. Each split that is unlike
    the earlier ones divides the parts once more, so a pair of part and side is a new part.
    """
    part, n_parts = np.zeros(missing + 1, np.int32), 1
    known, n_known = np.empty(feature.size, np.int64), 0
    for node in range(feature.size):
        if feature[node] != column:
            continue
        new = True
        for k in range(n_known):
            if _splits_alike(node, known[k], low, missing_left, member_start, members):
                new = False
                break
        if not new:
            continue
        known[n_known] = node
        n_known += 1
        number, n_fresh = np.full(2 * n_parts, -1, np.int32), 0  # (part, side): its new number
        for code in range(missing + 1):
            right = _goes_right(
                node, code, low[node], True, missing, missing_left, member_start, members
            )
            key = 2 * part[code] + (1 if right else 0)
            if number[key] < 0:
                number[key] = n_fresh
                n_fresh += 1
            part[code] = number[key]
        n_parts = n_fresh
        if n_parts > most:
            return part, 0
    return part, n_parts


@njit(cache=True, nogil=True)
def as_table(
    feature: Any, threshold: Any, missing_left: Any, left: Any, right: Any, member_start: Any,
    members: Any, edges: Any, edge_start: Any, n_cells: Any, categorical: Any, most_columns: int,
    most_cells: int,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return a tree of few columns as a table: their number; columns, and -1; sizes; addends.

    A row's cell is the sum of what its codes add, one for each column. Behind these addends stands
    the leaf of every cell. In place of the number of columns comes NO_TABLE where there would be
    too many columns or cells, or NO_EDGE with the column of a split that is no edge.

    The table is exact: a cell is one part of each column, and all codes of a part take the same way
    at every split, so walking the tree once for each cell with any codes of its parts will do.
    """
    n, empty = feature.size, np.zeros(0, np.int32)
    columns_used, n_columns = _columns_of(feature, most_columns)
    if n_columns == 0 or n > MOST_NODES:
        return NO_TABLE, empty, empty, empty
    place, low = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for node in range(n):
        if feature[node] >= 0:
            while columns_used[place[node]] != feature[node]:
                place[node] += 1
            low[node] = _first_right(node, feature, threshold, edges, edge_start, categorical)
            if low[node] == NO_EDGE:
                return NO_EDGE, _alone(feature[node]), empty, empty
    columns = np.empty(n_columns + 1, np.int32)
    for k in range(n_columns):
        columns[k] = columns_used[k]
    columns[n_columns] = -1
    sizes, counts = np.empty(n_columns + 1, np.int32), np.empty(n_columns, np.int64)
    total: Any = np.int64(0)
    n_table_cells: Any = np.int64(1)
    for k in range(n_columns):
        sizes[k] = n_cells[columns[k]] + 1
        total += sizes[k]
    adds, of_part = np.empty(total, np.int32), np.empty(total, np.int64)  # of_part: a code of it
    starts = np.empty(n_columns, np.int64)
    total = np.int64(0)
    for k in range(n_columns):
        column, starts[k] = columns[k], total
        if categorical[column]:
            part, counts[k] = _told_apart(
                column, feature, missing_left, member_start, members, low, n_cells[column],
                most_cells // n_table_cells,
            )  # fmt: skip
        else:
            part, counts[k] = _told_apart_in_order(
                column, feature, missing_left, low, n_cells[column]
            )
        if counts[k] == 0 or counts[k] > most_cells // n_table_cells:
            return NO_TABLE, empty, empty, empty
        for code in range(part.size):
            of_part[total + part[code]] = code
            adds[total + code] = part[code] * n_table_cells
        n_table_cells *= counts[k]
        total += part.size
    sizes[n_columns] = n_table_cells
    after = np.empty(total + n_table_cells, np.int32)
    for at in range(total):
        after[at] = adds[at]
    # Walk the tree once for each cell, with one code of each of its parts.
    leaf = _leaves_of(feature)
    parts, codes = np.zeros(n_columns, np.int64), np.empty(n_columns, np.int64)  # of a cell
    for k in range(n_columns):
        codes[k] = of_part[starts[k]]
    for cell in range(n_table_cells):
        here: Any = np.int64(0)
        while feature[here] >= 0:
            column = feature[here]
            goes_right = _goes_right(
                here, codes[place[here]], low[here], categorical[column], n_cells[column],
                missing_left, member_start, members,
            )  # fmt: skip
            here = np.int64(right[here] if goes_right else left[here])
        after[total + cell] = leaf[here]
        k = 0
        while k < n_columns:  # the next cell: the first column turns fastest
            parts[k] = parts[k] + 1 if parts[k] + 1 < counts[k] else 0
            codes[k] = of_part[starts[k] + parts[k]]
            k = k + 1 if parts[k] == 0 else n_columns
    return n_columns, columns, sizes, after


@njit(cache=True, nogil=True)
def _alone(number: int) -> Any:
    """Return an array of one number."""
    single = np.empty(1, np.int32)
    single[0] = number
    return single


@njit(cache=True, nogil=True)
def as_walk(
    feature: Any, threshold: Any, missing_left: Any, left: Any, right: Any, member_start: Any,
    members: Any, edges: Any, edge_start: Any, n_cells: Any, categorical: Any, most_blended: int,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return a tree to be walked: its depth, sizes, where each code leads, and nodes for blending.

    Inner nodes are numbered in their order; a code leads to one, or to -1 - k for leaf k. The depth
    is 0 unless all leaves lie equally deep, or NO_EDGE, with the column of a split that is no edge.
    """
    n, nothing = feature.size, np.zeros((0, 5), np.int32)
    leaf, number, low = _leaves_of(feature), np.empty(n, np.int32), np.zeros(n, np.int64)
    n_inner, total, widest = 0, np.int64(0), 0
    for node in range(n):
        number[node] = -1 - leaf[node]
        if feature[node] < 0:
            continue
        number[node] = n_inner
        n_inner += 1
        total += n_cells[feature[node]] + 1
        widest = max(widest, n_cells[feature[node]] + 1)
        low[node] = _first_right(node, feature, threshold, edges, edge_start, categorical)
        if low[node] == NO_EDGE:
            return NO_EDGE, _alone(feature[node]), np.zeros(0, np.int32), nothing
    sizes, after, begin = np.empty(n_inner, np.int32), np.empty(total, np.int32), np.int64(0)
    blends = 2 <= n_inner <= most_blended and widest <= MOST_CODES and n - n_inner <= MOST_CODES
    nodes = np.empty((most_blended if blends else 0, 5), np.int32)
    first = np.zeros(n_inner, np.int32)  # of each inner node, its first one for blending
    goes, n_nodes = np.empty(widest, np.bool_), 0
    for node in range(n):
        if feature[node] < 0:
            continue
        column = feature[node]
        size, sizes[number[node]] = n_cells[column] + 1, n_cells[column] + 1
        to_left, to_right = number[left[node]], number[right[node]]
        for code in range(size):
            goes[code] = _goes_right(
                node, code, low[node], categorical[column], n_cells[column], missing_left,
                member_start, members,
            )  # fmt: skip
            after[begin + code] = to_right if goes[code] else to_left
        begin += size
        if blends:
            first[number[node]] = n_nodes
            n_nodes = _add_stretches(goes, size, column, to_left, to_right, nodes, n_nodes)
            blends = n_nodes <= most_blended
    if not blends:
        return _equal_depth(feature, left, right), sizes, after, nothing
    blended = np.empty((n_nodes, 5), np.int32)
    for at in range(n_nodes):
        for side in range(5):
            to = nodes[at, side]
            # An inner node is named by its number.
            blended[at, side] = first[to - most_blended] if side > 2 and to >= most_blended else to
    return _equal_depth(feature, left, right), sizes, after, blended


@njit(cache=True, nogil=True)
def _add_stretches(
    goes: Any, size: int, column: int, to_left: int, to_right: int, nodes: Any, at: int
) -> Any:
    """Write one split as nodes for blending from `at` on; return where the next ones begin.

    A node says of one stretch of codes where it leads, and where all others do. Stretches are those
    that go right or, if these are fewer, those that stay. Inner nodes are named by their number
    plus the room in `nodes`. If there is too little room, nothing is written behind it.
    """
    room, last = len(nodes), size - 1
    changes = 0
    for code in range(last):
        changes += goes[code] != goes[code + 1]
    n_right = (changes + 1 + goes[0]) // 2
    take_right = n_right <= changes + 1 - n_right if changes else goes[0]
    there, other = (to_right, to_left) if take_right else (to_left, to_right)
    there, other = (there if there < 0 else there + room), (other if other < 0 else other + room)
    code = 0
    while code <= last:
        end = code
        while end < last and goes[end + 1] == goes[code]:
            end += 1
        if goes[code] == take_right:
            if at < room:
                nodes[at, 0], nodes[at, 1], nodes[at, 4] = column, code, there
                # A split that sends all codes one way covers every byte there is.
                nodes[at, 2] = end - code if changes else 255
                nodes[at, 3] = at + 1  # none of this stretch: try the next
            at += 1
        code = end + 1
    if at <= room:
        nodes[at - 1, 3] = other
    return at


@njit(cache=True, nogil=True)
def _equal_depth(feature: Any, left: Any, right: Any) -> Any:
    """Return how deep the leaves lie if all lie equally deep, else 0."""
    depth, common = np.zeros(feature.size, np.int64), np.int64(-1)
    for node in range(feature.size):
        if feature[node] >= 0:  # parents come first
            depth[left[node]] = depth[right[node]] = depth[node] + 1
        elif common < 0:
            common = depth[node]
        elif common != depth[node]:
            return np.int64(0)
    return common
