"""Compiled loops over the nodes of trees: what becomes of them in code space.

A tree is its arrays (see `model.tree.Structure`); a grid is `edges` of all columns one after
another with where each column's begin, `n_cells` and whether it is `categorical`: (column,). Loops
here allocate nothing: that takes long to compile. All of it lives in this one file, because
Numba's cache on disk notices changes of a function's own file only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Bools, Int, Int32s, Ints, Words
from hedgerow.kernels.compiling import compiled

MOST_NODES = 4096  # of a tree that is tried as a table: its splits are compared with each other
NO_TABLE, NO_EDGE = -1, -2
MOST_CODES = 256  # of columns whose trees are blended, and leaves of these
Bytes = NDArray[np.uint8]
Float32s = NDArray[np.float32]
_NOTHING = np.zeros(0, np.int32)


@compiled(error_model="numpy", helper=True)
def _goes_right(
    node: Int, code: Int, low: Int, is_set: bool | np.bool_, missing: Int, missing_left: Bytes,
    member_start: Int32s, members: Words,
) -> bool:  # fmt: skip
    """Say whether a code goes right at a node: by its set of 64-bit words, or from `low` on."""
    if code == missing:
        return bool(missing_left[node] == 0)
    if not is_set:
        return bool(code >= low)
    word = np.int64(member_start[node]) + (code >> 6)
    if word >= member_start[node + 1]:
        return False
    return bool((members[word] >> np.uint64(code & 63)) & np.uint64(1) != np.uint64(0))


@compiled(error_model="numpy", helper=True)
def _first_rights(
    feature: Int32s, threshold: Float32s, edges: Float32s, edge_start: Ints, categorical: Bools,
    low: Ints,
) -> Int:  # fmt: skip
    """Write the first code that goes right at each ordered split, 0 at a set: low[0, node].

    A threshold that is no edge of the grid has no form in code space: then the column is returned,
    else -1.
    """
    for node in range(feature.size):
        column = np.int64(feature[node])
        low[0, node] = 0
        if column < 0 or categorical[column]:
            continue
        first, end, wanted = np.int64(edge_start[column]), edge_start[column + 1], threshold[node]
        at, high = first, end
        while at < high:
            middle = (at + high) >> 1
            if edges[middle] < wanted:
                at = middle + 1
            else:
                high = middle
        if at == end or edges[at] != wanted:
            return column
        low[0, node] = at - first + 1
    return -1


@compiled(error_model="numpy", helper=True)
def _told_apart_in_order(
    column: Int, feature: Int32s, missing_left: Bytes, low: Ints, missing: Int, adds: Int32s,
    begin: Int,
) -> int:  # fmt: skip
    """Do as `_told_apart` for an ordered column: stretches between its splits, and missing values.

    Missing values go with the codes of one stretch if they go right at all splits before it, and
    left at all splits behind it, as its codes do; else they are told apart from all codes.
    """
    for code in range(missing + 1):
        adds[begin + code] = 0  # by first code that goes right: 1 missing left, 2 right
    for node in range(feature.size):
        if feature[node] == column:
            adds[begin + low[0, node]] |= 1 if missing_left[node] else 2
    here = of_missing = 0  # the stretch of a code, and the one that missing values may belong to
    alike, went_left = True, False
    for code in range(missing):
        ways = adds[begin + code]
        if ways:
            here += 1
            if ways == 1:
                went_left = True
            elif ways == 2:
                alike, of_missing = alike and not went_left, here
            else:
                alike = False
        adds[begin + code] = here
    adds[begin + missing] = of_missing if alike else here + 1
    return here + 1 if alike else here + 2


@compiled(error_model="numpy")
def _told_apart(
    column: Int, feature: Int32s, missing_left: Bytes, member_start: Int32s, members: Words,
    missing: Int, most: Int, adds: Int32s, begin: Int, known: Ints, number: Int32s,
) -> int:  # fmt: skip
    """Write the part of every code; return how many parts there are, 0 if above `most`.

    Codes that every split of the column sends the same way are one part. Each split that is unlike
    the earlier ones divides the parts once more, so a pair of part and side is a new part. `known`
    (node,) and `number` (part and side,) are memory.
    """
    # No literals for the helper: Numba would compile it for each of them once more.
    n_parts, n_known, no_cut, is_set = 1, 0, np.int64(0), np.bool_(True)
    for code in range(missing + 1):
        adds[begin + code] = 0
    for node in range(feature.size):
        if feature[node] != column:
            continue
        new, k = True, 0
        while new and k < n_known:  # whether two nodes say the same of every code
            first, second = member_start[node], member_start[known[k]]
            new = missing_left[node] != missing_left[known[k]]
            for word in range(member_start[node + 1] - first):
                new = new or members[first + word] != members[second + word]
            k += 1
        if not new:
            continue
        known[n_known] = node
        n_known += 1
        n_fresh = 0
        for key in range(2 * n_parts):
            number[key] = -1
        for code in range(missing + 1):
            right = _goes_right(
                node, code, no_cut, is_set, missing, missing_left, member_start, members
            )
            key = 2 * adds[begin + code] + (1 if right else 0)
            if number[key] < 0:
                number[key] = n_fresh
                n_fresh += 1
            adds[begin + code] = number[key]
        n_parts = n_fresh
        if n_parts > most:
            return 0
    return n_parts


@compiled(error_model="numpy")
def _table(
    feature: Int32s, threshold: Float32s, missing_left: Bytes, left: Int32s, right: Int32s,
    member_start: Int32s, members: Words, edges: Float32s, edge_start: Ints, n_cells: Ints,
    categorical: Bools, most_cells: int, by_node: Ints, columns: Int32s, sizes: Int32s,
    after: Int32s, by_code: Ints, by_column: Ints,
) -> Int:  # fmt: skip
    """Do as `as_table`, of columns (column,); return how long `after` is, 0 if too long.

    Where a threshold is no edge, -1 - its column is returned.

    by_node[0] is what `_first_rights` writes; its other two lines, `by_code` (code of all columns,)
    and `by_column` (4, column) are memory. Of columns with categories `after` has every code's part
    already, and by_column[1] how many there are.
    """
    n_columns, total, n_table_cells = columns.size - 1, np.int64(0), np.int64(1)
    wrong = _first_rights(feature, threshold, edges, edge_start, categorical, by_node)
    if wrong >= 0:
        return -1 - wrong
    for k in range(n_columns):
        column, begin = np.int64(columns[k]), total
        missing, most = n_cells[column], most_cells // n_table_cells
        sizes[k] = missing + 1
        if categorical[column]:
            n_parts = by_column[1, k]
        else:
            n_parts = _told_apart_in_order(
                column, feature, missing_left, by_node, missing, after, begin
            )
        if n_parts == 0 or n_parts > most:
            return 0
        for code in range(missing + 1):
            by_code[begin + after[begin + code]] = code  # a code of each part
            after[begin + code] *= n_table_cells
        by_column[0, k], by_column[1, k], by_column[2, k] = begin, n_parts, 0
        by_column[3, k] = by_code[begin]
        n_table_cells *= n_parts
        total += missing + 1
    sizes[n_columns] = n_table_cells
    n_leaves = 0
    for node in range(feature.size):
        by_node[1, node] = n_leaves
        n_leaves += feature[node] < 0
        for k in range(n_columns):
            if columns[k] == feature[node]:
                by_node[2, node] = k
    # Walk the tree once for each cell, with one code of each of its parts.
    for cell in range(n_table_cells):
        here = np.int64(0)
        while feature[here] >= 0:
            column = np.int64(feature[here])
            code = by_column[3, by_node[2, here]]
            goes_right = _goes_right(
                here, code, by_node[0, here], categorical[column], n_cells[column], missing_left,
                member_start, members,
            )  # fmt: skip
            here = np.int64(right[here] if goes_right else left[here])
        after[total + cell] = by_node[1, here]
        k = 0
        while k < n_columns:  # the next cell: the first column turns fastest
            part = by_column[2, k] + 1 if by_column[2, k] + 1 < by_column[1, k] else 0
            by_column[2, k], by_column[3, k] = part, by_code[by_column[0, k] + part]
            k = k + 1 if part == 0 else n_columns
    return total + n_table_cells


def as_table(
    feature: Int32s, threshold: Float32s, missing_left: Bytes, left: Int32s, right: Int32s,
    member_start: Int32s, members: Words, edges: Float32s, edge_start: Ints, n_cells: Ints,
    categorical: Bools, most_columns: int, most_cells: int,
) -> tuple[int, Int32s, Int32s, Int32s]:  # fmt: skip
    """Return a tree of few columns as a table: their number; columns, and -1; sizes; addends.

    A row's cell is the sum of what its codes add, one for each column. Behind these addends stands
    the leaf of every cell. In place of the number of columns comes NO_TABLE where there would be
    too many columns or cells, or NO_EDGE with the column of a split that is no edge.

    The table is exact: a cell is one part of each column, and all codes of a part take the same way
    at every split, so walking the tree once for each cell with any codes of its parts will do.
    """
    n, used = len(feature), sorted({*feature.tolist()} - {-1})
    if not 0 < len(used) <= most_columns or n > MOST_NODES:
        return NO_TABLE, _NOTHING, _NOTHING, _NOTHING
    by_node = np.empty((3, n), np.int64)
    columns, sizes = np.array([*used, -1], np.int32), np.empty(len(used) + 1, np.int32)
    missing_codes = [n_cells.item(column) for column in used]
    n_codes = sum(missing_codes) + len(used)
    after, by_code = np.empty(n_codes + most_cells, np.int32), np.empty(n_codes, np.int64)
    by_column, begin = np.empty((4, len(used)), np.int64), 0
    for k, (column, missing) in enumerate(zip(used, missing_codes, strict=True)):
        if categorical.item(column):
            by_column[1, k] = _told_apart(
                column, feature, missing_left, member_start, members, missing, most_cells, after,
                begin, by_node[1], np.empty(2 * most_cells + 2, np.int32),
            )  # fmt: skip
        begin += missing + 1
    length = _table(
        feature, threshold, missing_left, left, right, member_start, members, edges, edge_start,
        n_cells, categorical, most_cells, by_node, columns, sizes, after, by_code, by_column,
    )  # fmt: skip
    if length < 0:
        return NO_EDGE, np.array([-1 - length], np.int32), _NOTHING, _NOTHING
    if length == 0:
        return NO_TABLE, _NOTHING, _NOTHING, _NOTHING
    return len(used), columns, sizes, after[:length].copy()


@compiled(error_model="numpy")
def _walk(
    feature: Int32s, threshold: Float32s, missing_left: Bytes, left: Int32s, right: Int32s,
    member_start: Int32s, members: Words, edges: Float32s, edge_start: Ints, n_cells: Ints,
    categorical: Bools, by_node: Ints, after: Int32s, nodes: Int32s,
) -> Int:  # fmt: skip
    """Write where each code of a split leads, and nodes for blending; return how many of these.

    Where a threshold is no edge, -1 - its column is returned.

    by_node[0] is what `_first_rights` writes; its other lines are memory: every node's number among
    inner nodes, or -1 - k for leaf k; its depth, where the root's becomes how deep the leaves lie
    if all lie equally deep, else 0; and of inner nodes, by number, the first node for blending. If
    nodes for blending do not fit, they are not written behind the room.

    A node for blending says of one stretch of codes where it leads, and where all others do.
    Stretches are those that go right or, if these are fewer, those that stay.
    """
    begin, at, room, n_inner, common = np.int64(0), 0, nodes.shape[0], 0, -1
    wrong = _first_rights(feature, threshold, edges, edge_start, categorical, by_node)
    if wrong >= 0:
        return -1 - wrong
    by_node[2, 0] = 0
    for node in range(feature.size):  # parents come first
        if feature[node] >= 0:
            by_node[1, node] = n_inner  # inner nodes among themselves
            n_inner += 1
            by_node[2, left[node]] = by_node[2, right[node]] = by_node[2, node] + 1
        else:
            by_node[1, node] = n_inner - node - 1  # -1 - k for leaf k
            common = by_node[2, node] if common < 0 or common == by_node[2, node] else 0
    by_node[2, 0] = common
    for node in range(feature.size):
        column = np.int64(feature[node])
        if column < 0:
            continue
        size, to_left, to_right = (
            n_cells[column] + 1,
            by_node[1, left[node]],
            by_node[1, right[node]],
        )
        changes, before, starts_right = 0, False, False
        for code in range(size):
            goes = _goes_right(
                node, code, by_node[0, node], categorical[column], n_cells[column], missing_left,
                member_start, members,
            )  # fmt: skip
            after[begin + code] = to_right if goes else to_left
            changes += code > 0 and goes != before
            starts_right = starts_right or (code == 0 and goes)
            before = goes
        by_node[3, by_node[1, node]] = at
        n_right = (changes + 1 + starts_right) // 2
        take_right = n_right <= changes + 1 - n_right if changes else starts_right
        there, other = (to_right, to_left) if take_right else (to_left, to_right)
        # An inner node is named by its number plus the room, until all of them have their first.
        there, other = (there if there < 0 else there + room, other if other < 0 else other + room)
        wanted, from_code = to_right if take_right else to_left, np.int64(0)
        while from_code < size:
            end = from_code
            while end + 1 < size and after[begin + end + 1] == after[begin + from_code]:
                end += 1
            if after[begin + from_code] == wanted:
                if at < room:
                    nodes[at, 0], nodes[at, 1], nodes[at, 4] = column, from_code, there
                    # A split that sends all codes one way covers every byte there is.
                    nodes[at, 2] = end - from_code if changes else 255
                    nodes[at, 3] = at + 1  # none of this stretch: try the next
                at += 1
            from_code = end + 1
        if at <= room and room > 0:
            nodes[at - 1, 3] = other
        begin += size
    for k in range(2 * min(at, room)):
        to = nodes[k >> 1, 3 + (k & 1)]
        if to >= room:
            nodes[k >> 1, 3 + (k & 1)] = by_node[3, to - room]
    return at


def as_walk(
    feature: Int32s, threshold: Float32s, missing_left: Bytes, left: Int32s, right: Int32s,
    member_start: Int32s, members: Words, edges: Float32s, edge_start: Ints, n_cells: Ints,
    categorical: Bools, most_blended: int,
) -> tuple[int, Int32s, Int32s, Int32s]:  # fmt: skip
    """Return a tree to be walked: its depth, sizes, where each code leads, and nodes for blending.

    Inner nodes are numbered in their order; a code leads to one, or to -1 - k for leaf k. The depth
    is 0 unless all leaves lie equally deep, or NO_EDGE, with the column of a split that is no edge.
    """
    n, no_nodes = len(feature), np.zeros((0, 5), np.int32)
    by_node = np.empty((4, n), np.int64)
    sizes = n_cells[feature[feature >= 0]].astype(np.int32)
    sizes += 1
    n_inner, each = len(sizes), sizes.tolist()
    blends = 2 <= n_inner <= most_blended and max(each) <= MOST_CODES and n - n_inner <= MOST_CODES
    nodes = np.empty((most_blended if blends else 0, 5), np.int32)
    after = np.empty(sum(each), np.int32)
    n_nodes = _walk(
        feature, threshold, missing_left, left, right, member_start, members, edges, edge_start,
        n_cells, categorical, by_node, after, nodes,
    )  # fmt: skip
    if n_nodes < 0:
        return NO_EDGE, np.array([-1 - n_nodes], np.int32), after, no_nodes
    nodes = nodes[:n_nodes].copy() if blends and n_nodes <= most_blended else no_nodes
    return by_node.item(2, 0), sizes, after, nodes
