"""Compiled loops over column-major codes: route rows, add integer gradients, update scores.

Each loop takes a range of rows and keeps what it computes of one block of rows in cache. All of
them live in this one file, longer than any other, because Numba's cache on disk notices changes of
a function's own file only: a loop whose callee changed elsewhere would go on as it was compiled.

How the loops are written, and why:

- Whatever is added up over rows is an integer on the grid 2**-bits. Integer sums are exact modulo
  2**64, so they do not depend on the order of rows, on blocks, threads or parties.
- Indices are unsigned where a loop is hot. For a signed one Numba also compiles the case of a
  negative index, which counts from the end: a comparison and a branch for every element.
- Loops that run for every row read arrays by plain indices. A slice is a new array with its own
  bounds and reference count; inside of a loop it costs time, and its code takes long to compile.
- A field of a NamedTuple is taken out before a hot loop, because every access counts a reference.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import CodeArrays, Floats, Int32s, Ints
from hedgerow.kernels.compiling import compiled
from hedgerow.kernels.threads import BLOCK

LOGISTIC, SOFTMAX, SQUARED = 0, 1, 2
NEWTON, GRADIENT, AVERAGING, SLOPE, COUNT = 0, 1, 2, 3, 4
NO_CLIP = 1 << 62
MOST_NARROW = 256  # codes or leaves that a byte tells apart
MAX_BLENDED = 31  # nodes of a tree that is blended; larger ones are walked faster
Narrow = NDArray[np.uint8]  # (narrow column, row)
Wide = NDArray[np.uint16]  # (wide column, row)
Kept = NDArray[np.uint16]  # (tree, row): leaves, counted in their tree
Bytes = NDArray[np.uint8]
LeafValues = NDArray[np.float32]  # (leaf of all trees, output)


class Gradients(NamedTuple):
    """What every row adds to a sum: its score and label, and how statistics follow from them.

    `model.losses` says which statistics those are, and bounds them.
    """

    scores: Floats  # (row, output)
    target: Floats  # (row,): a class, or a label scaled to [0, 1]
    bits: int  # statistics are integers on the grid 2**-bits
    loss: int  # LOGISTIC, SOFTMAX or SQUARED
    update: int  # NEWTON, GRADIENT, AVERAGING, SLOPE or COUNT
    clip: int  # gradients are clamped to +- so many steps of the grid
    width: int  # how many statistics a row adds


class RouteArrays(NamedTuple):
    """Several trees in code space, one after another; see `model.routing.Routes`."""

    # (tree, 5): first node; columns of a table, or -depth or 0 to walk; nodes to blend; first leaf;
    # first node to blend
    trees: Int32s
    place: Int32s  # (node,): where the node's column lies in the codes
    start: Ints  # (node,): where its codes begin in `after`
    after: Int32s  # (code of all nodes,): next node, -1 - k for leaf k; in tables what a code adds
    nodes: Int32s  # (node to blend, 5): place, first code, how many more, elsewhere, there


class ColumnBins(NamedTuple):
    """Columns whose codes are added up in bins, counted over all of these columns."""

    place: Int32s  # (column,): where its codes lie, as in `CodeArrays`
    bins: Int32s  # (column, code): the bin of every code
    n_bins: int  # of all columns


@compiled(inline="always")
def _fixed(value: float, one: float) -> np.int64:
    """Truncate toward zero onto the grid; NaN becomes 0, so no row can exceed its bound."""
    if value != value:
        return np.int64(0)
    return np.int64(value * one)


@compiled()
def _exp_parts(scores: Floats, target: Floats, power: Floats, rest: Floats) -> None:
    """Write exp of the score for y = 1, and of its negative for y = 0, as power * rest.

    exp x = 2**k exp r, with k the whole number nearest to x / log 2 and r the remainder, of which
    exp is a polynomial of degree 12. The loop has no call and no branch, so that the processor
    computes several rows at once; `power` is left as the float from which `_powers` makes 2**k.
    """
    for i in range(scores.size):
        x = scores[i] if target[i] > 0.5 else -scores[i]
        x = 700.0 if x > 700.0 else x  # NaN ends at -700 and is left out in the end
        x = x if x > -700.0 else -700.0
        # A float of 1.5 * 2**52 has no bits behind the point: adding it rounds to a whole number,
        # which then stands in the lowest bits of the sum.
        k = x * 1.4426950408889634 + 6755399441055744.0
        power[i] = k
        k = k - 6755399441055744.0
        # log 2 in two parts: k times the first is exact, so r keeps all its bits.
        r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10
        p = 1.0 / 479001600
        p = p * r + 1.0 / 39916800
        p = p * r + 1.0 / 3628800
        p = p * r + 1.0 / 362880
        p = p * r + 1.0 / 40320
        p = p * r + 1.0 / 5040
        p = p * r + 1.0 / 720
        p = p * r + 1.0 / 120
        p = p * r + 1.0 / 24
        p = p * r + 1.0 / 6
        p = p * r + 0.5
        p = p * r + 1.0
        rest[i] = p * r + 1.0


@compiled()
def _powers(bits: Ints) -> None:
    """Turn the bits of the float k + 1.5 * 2**52 into those of the float 2**k, in place."""
    # The exponent of a float has 11 bits above 52 of the fraction, and 1023 stands for 2**0.
    for i in range(bits.size):
        bits[i] = (bits[i] << 52) + (np.int64(1023) << 52)


@compiled(error_model="numpy")
def _sigmoids(rest: Floats, power: Floats, one: float) -> None:
    """Write `one` times the sigmoid of the negative exponent to `rest`; it is at most `one`."""
    for i in range(rest.size):
        rest[i] = one / (1.0 + rest[i] * power[i])


@compiled()
def logistic(scores: Floats, target: Floats, bits: int, out: Ints) -> None:
    """Write g and h of some rows on the grid 2**-bits: (row, 2).

    q = |p - y| is truncated, then h = q (1 - q) is computed in integers from that q and floored,
    so the pair is a point on or below the curve (q, q - q^2) for a q that is on the grid, however
    exact the exponential is. A score that is no number adds nothing.
    """
    power, rest = np.empty(scores.size), np.empty(scores.size)
    _exp_parts(scores, target, power, rest)
    _powers(power.view(np.int64))
    one = np.int64(1) << bits
    _sigmoids(rest, power, float(one))
    for i in range(scores.size):
        steps = min(max(np.int64(rest[i]), np.int64(0)), one)
        steps = steps if scores[i] == scores[i] else np.int64(0)
        out[i, 0] = -steps if target[i] > 0.5 else steps
        out[i, 1] = (steps * (one - steps)) >> bits


@compiled()
def softmax(scores: Floats, target: float, bits: int, out: Ints) -> None:
    """Write g and h of every class of one row: out[k] and out[K + k].

    Everything after exp is integer: weights of 31 bits, their exact sum, floored quotients. So the
    probabilities of the other classes add up to at most 1 on the grid, |g| of the row's own class
    is exactly their sum, and the order of the classes does not matter. Scores that are not
    finite weigh nothing; where no class weighs anything the row adds nothing.
    """
    n = scores.shape[0]
    top = -math.inf
    for k in range(n):
        if scores[k] > top:
            top = scores[k]
    total = np.int64(0)
    for k in range(n):
        # Below 2**31, so that the shift by up to 32 bits further down stays within 63.
        out[k] = _fixed(math.exp(scores[k] - top), 2147483647.0)
        out[n + k] = 0
        total += out[k]
    if total == 0:
        return
    label = np.int64(target)
    one = np.int64(1) << bits
    rest = np.int64(0)
    for k in range(n):
        if k != label:
            out[k] = (out[k] << bits) // total
            rest += out[k]
            out[n + k] = (out[k] * (one - out[k])) >> bits
    out[label] = -rest
    out[n + label] = (rest * (one - rest)) >> bits


@compiled()
def squared(score: float, target: float, bits: int) -> tuple[np.int64, np.int64]:
    """Return g = score - target, both between 0 and 1, and the row itself as h = 1."""
    one = np.int64(1) << bits
    clipped = min(max(score, 0.0), 1.0) if score == score else 0.5
    return _fixed(clipped - target, float(one)), one


@compiled()
def _label_statistics(gradients: Gradients, row: int, out: Ints) -> None:
    """Write what a row adds whatever its score: a count, or its class, or its label and a count."""
    one, target = np.int64(1) << gradients.bits, gradients.target[row]
    if gradients.update == COUNT:
        out[0] = one
    elif gradients.loss == SQUARED:
        out[0] = _fixed(min(max(target, 0.0), 1.0), float(one))
        out[1] = one
    else:
        for k in range(gradients.width):
            out[k] = 0
        out[np.int64(target)] = one


@compiled()
def row_statistics(gradients: Gradients, first: int, size: int, out: Ints) -> None:
    """Write what rows first .. first + size add to their leaf or bin: (row, statistic).

    `hedgerow.model.losses` has the widths and bounds. Gradients are clamped to +-clip steps of the
    grid, Hessians are those of the row itself.
    """
    scores, target, bits = gradients.scores, gradients.target, gradients.bits
    loss, update, n_outputs = gradients.loss, gradients.update, gradients.scores.shape[1]
    one = np.int64(1) << bits
    most = max(np.int64(gradients.clip), np.int64(0))  # a clip that wrapped lets nothing through
    if update in (COUNT, AVERAGING):
        for i in range(size):
            _label_statistics(gradients, first + i, out[i])
    elif loss == SOFTMAX:
        for i in range(size):
            softmax(scores[first + i], target[first + i], bits, out[i])
            if update == GRADIENT:
                out[i, n_outputs] = one
    elif loss == LOGISTIC:
        rows = slice(first, first + size)
        logistic(scores.reshape(-1)[rows], target[rows], bits, out)
        if update == GRADIENT:
            out[:size, 1] = one
    else:
        for i in range(size):
            out[i, 0], out[i, 1] = squared(scores[first + i, 0], target[first + i], bits)
    if update != COUNT and update != AVERAGING and most < one:  # no gradient is longer than one
        for i in range(size):
            for k in range(n_outputs):
                out[i, k] = min(max(out[i, k], -most), most)


@compiled(inline="always")
def _code(narrow: Narrow, wide: Wide, place: int | np.int64, row: int) -> np.uint64:
    """Return the code of a row in the column at a place."""
    return np.uint64(narrow[place, row]) if place >= 0 else np.uint64(wide[-1 - place, row])


@compiled()
def route(
    codes: CodeArrays, routes: RouteArrays, root: int, depth: int, first: int, size: int,
    leaf: Int32s,
) -> None:  # fmt: skip
    """Write the leaves of rows first .. first + size in one tree that is walked node by node.

    `after` says for a node and a code which node comes next, -1 - k for leaf k. With `depth` above
    0 all leaves lie so deep: no row has to look whether it has arrived.
    """
    narrow, wide = codes.narrow, codes.wide
    place, start, after = routes.place, routes.start, routes.after
    if depth > 0 and wide.shape[0] == 0:
        for i in range(size):
            at, row = np.uint64(root), np.uint64(first + i)
            for _ in range(depth):
                code = np.uint64(narrow[np.uint64(place[at]), row])
                at = np.uint64(after[np.uint64(start[at]) + code])
            leaf[i] = -1 - np.int64(at)  # the last step was to -1 - k, which wrapped
        return
    for i in range(size):
        node = np.int64(root)
        while node >= 0:
            at = np.uint64(node)
            node = np.int64(after[np.uint64(start[at]) + _code(narrow, wide, place[at], first + i)])
        leaf[i] = -1 - node


@compiled()
def _look_up_few(
    narrow: Narrow, routes: RouteArrays, root: int, n_columns: int, first: int, size: int,
    leaf: Int32s,
) -> None:  # fmt: skip
    """Do as `look_up` for two to four columns at once, and store nothing between them."""
    place, start, after = routes.place, routes.start, routes.after
    # With fewer than four columns c and d repeat earlier ones, and are not added.
    a, b = narrow[place[root]], narrow[place[root + 1]]
    c, d = narrow[place[root + n_columns - 1]], narrow[place[root + n_columns - 2]]
    of_a, of_b = np.uint64(start[root]), np.uint64(start[root + 1])
    of_c, of_d = np.uint64(start[root + n_columns - 1]), np.uint64(start[root + n_columns - 2])
    begin = np.int64(start[root + n_columns])
    for i in range(size):
        row = np.uint64(first + i)
        cell = begin + after[of_a + np.uint64(a[row])] + after[of_b + np.uint64(b[row])]
        if n_columns > 2:
            cell += after[of_c + np.uint64(c[row])]
        if n_columns > 3:
            cell += after[of_d + np.uint64(d[row])]
        leaf[i] = after[np.uint64(cell)]


@compiled()
def look_up(
    codes: CodeArrays, routes: RouteArrays, root: int, n_columns: int, first: int, size: int,
    leaf: Int32s,
) -> None:  # fmt: skip
    """Write the leaves of rows first .. first + size in one tree that is a table of few columns.

    Nodes root, root + 1, ... are its columns: `after` has what a code adds to the number of the
    cell. The node behind them has the leaf of every cell.
    """
    narrow, wide = codes.narrow, codes.wide
    place, start, after = routes.place, routes.start, routes.after
    if wide.shape[0] == 0 and 2 <= n_columns <= 4:
        _look_up_few(narrow, routes, root, n_columns, first, size, leaf)
        return
    for i in range(size):
        leaf[i] = 0
    for j in range(root, root + n_columns):
        here = np.int64(place[j])
        begin = np.uint64(start[j])
        for i in range(size):
            leaf[i] += after[begin + _code(narrow, wide, here, first + i)]
    begin = np.uint64(start[root + n_columns])
    for i in range(size):
        leaf[i] = after[begin + np.uint64(leaf[i])]


@compiled()
def _one_of_two(codes: Bytes, low: int, span: int, left: int, right: int, out: Bytes) -> None:
    """Write `right` for codes from `low` to `low` + `span`, else `left`."""
    # One comparison tests both ends: a byte below `first` wraps around to a large one.
    first, most, a, b = np.uint8(low), np.uint8(span), np.uint8(left), np.uint8(right)
    for i in range(out.size):
        out[i] = b if np.uint8(codes[i] - first) <= most else a


@compiled()
def _one_of_each(codes: Bytes, low: int, span: int, left: Bytes, right: Bytes, out: Bytes) -> None:
    """Do as `_one_of_two` with a left and a right of each row's own."""
    first, most = np.uint8(low), np.uint8(span)
    for i in range(out.size):
        a, b = left[i], right[i]  # both are loaded, so that several rows are done at once
        out[i] = b if np.uint8(codes[i] - first) <= most else a


@compiled()
def blend(
    narrow: Narrow, root: int, n_nodes: int, nodes: Int32s, first: int, size: int, ends: Bytes
) -> None:
    """Write the leaves of rows first .. first + size in a small tree, from its last node up.

    Every node says for every row where the row would end if it came by: (node, row) in `ends`,
    the root's first. That is more work than walking, but has no branch and no look-up, so that the
    processor does 32 rows at once.
    """
    for k in range(n_nodes - 1, -1, -1):
        node = nodes[root + k]
        codes = narrow[node[0], first : first + size]
        low, span, left, right = node[1], node[2], node[3], node[4]
        out = ends[k, :size]
        if left < 0 and right < 0:
            _one_of_two(codes, low, span, -1 - left, -1 - right, out)
        elif left < 0:  # a leaf beside an inner node is written out first
            out[:] = np.uint8(-1 - left)
            _one_of_each(codes, low, span, out, ends[right, :size], out)
        elif right < 0:
            out[:] = np.uint8(-1 - right)
            _one_of_each(codes, low, span, ends[left, :size], out, out)
        else:
            _one_of_each(codes, low, span, ends[left, :size], ends[right, :size], out)


@compiled()
def _leaves(
    codes: CodeArrays, routes: RouteArrays, tree: int, first: int, size: int, ends: Bytes,
    leaf: Int32s,
) -> None:  # fmt: skip
    """Write the leaves of rows first .. first + size in one tree, counted over all trees."""
    trees = routes.trees
    root, kind, n_nodes = trees[tree, 0], trees[tree, 1], trees[tree, 2]
    if n_nodes > 0 and codes.wide.shape[0] == 0:
        blend(codes.narrow, trees[tree, 4], n_nodes, routes.nodes, first, size, ends)
        for i in range(size):
            leaf[i] = trees[tree, 3] + np.int32(ends[0, i])
    elif kind > 0:
        look_up(codes, routes, root, kind, first, size, leaf)
    else:
        route(codes, routes, root, -kind, first, size, leaf)


@compiled()
def _add(total: Ints, place: Ints | Int32s, rows: Ints, size: int, width: int) -> None:
    """Add the statistics of every row of a block to its place: (place, statistic)."""
    if width == 2:  # one gradient and one Hessian, by far the most frequent
        for i in range(size):
            here = np.uint64(place[i])
            total[here, 0] += rows[i, 0]
            total[here, 1] += rows[i, 1]
        return
    for i in range(size):
        here = np.uint64(place[i])
        for w in range(width):
            total[here, w] += rows[i, w]


@compiled()
def _keep(leaf: Int32s, before: int, out: Kept) -> None:
    """Write leaves counted in their tree, in plain steps: several are done at once."""
    for i in range(out.size):
        out[i] = np.uint16(leaf[i] - before)


@compiled()
def leaf_sums(
    codes: CodeArrays, gradients: Gradients, routes: RouteArrays, kept: Kept, first: int,
    stop: int, total: Ints,
) -> None:  # fmt: skip
    """Add every row's statistics in every leaf of every tree to the total: (leaf, statistic).

    If there is room in `kept` (tree, row), every row's leaf, counted in its tree, is left there.
    """
    width, trees = gradients.width, routes.trees
    # A loss writes g and h of every output, whether or not all of them are added.
    rows = np.empty((BLOCK, max(width, 2 * gradients.scores.shape[1])), np.int64)
    leaf, ends = np.empty(BLOCK, np.int32), np.empty((MAX_BLENDED, BLOCK), np.uint8)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        row_statistics(gradients, begin, size, rows)
        for tree in range(trees.shape[0]):
            _leaves(codes, routes, tree, begin, size, ends, leaf)
            _add(total, leaf, rows, size, width)
            if kept.shape[0] > 0:
                _keep(leaf[:size], trees[tree, 3], kept[tree, begin : begin + size])


@compiled()
def leaf_counts(
    codes: CodeArrays, routes: RouteArrays, n_leaves: int, first: int, stop: int
) -> Ints:
    """Count the rows in every leaf of one tree: (leaf,)."""
    total = np.zeros(n_leaves, np.int64)
    leaf, ends = np.empty(BLOCK, np.int32), np.empty((MAX_BLENDED, BLOCK), np.uint8)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        _leaves(codes, routes, 0, begin, size, ends, leaf)
        for i in range(size):
            total[np.uint64(leaf[i])] += 1
    return total


@compiled()
def node_histograms(
    codes: CodeArrays, gradients: Gradients, routes: RouteArrays, columns: ColumnBins,
    wanted: Ints, first: int, stop: int,
) -> Ints:  # fmt: skip
    """Add every row's statistics by leaf of one tree and bin: (leaf and bin, statistic).

    `wanted` (leaf,) is 1 or 0: rows in leaves that are not wanted are left out.
    """
    narrow, wide = codes.narrow, codes.wide
    place, bins, n_bins, width = columns.place, columns.bins, columns.n_bins, gradients.width
    total = np.zeros((wanted.shape[0] * n_bins, width), np.int64)
    rows = np.empty((BLOCK, max(width, 2 * gradients.scores.shape[1])), np.int64)
    leaf, ends = np.empty(BLOCK, np.int32), np.empty((MAX_BLENDED, BLOCK), np.uint8)
    here = np.empty(BLOCK, np.int64)
    chosen = np.empty(BLOCK, np.int64)
    for begin in range(first, stop, BLOCK):
        size, n_chosen = min(BLOCK, stop - begin), 0
        row_statistics(gradients, begin, size, rows)
        _leaves(codes, routes, 0, begin, size, ends, leaf)
        # Chosen rows move to the front of the block. Every row is written there, and the next one
        # overwrites it unless it was wanted: no branch that the processor could guess wrong.
        for i in range(size):
            chosen[n_chosen] = begin + i
            leaf[n_chosen] = leaf[i]
            rows[n_chosen] = rows[i]
            n_chosen += wanted[np.uint64(leaf[i])]
        for j in range(place.shape[0]):
            for i in range(n_chosen):
                bin_ = bins[j, _code(narrow, wide, place[j], chosen[i])]
                here[i] = leaf[i] * n_bins + bin_
            _add(total, here, rows, n_chosen, width)
    return total


@compiled()
def _add_in_turns(
    codes: Narrow | Wide, line: int | np.int64, begin: int, size: int, bins: Int32s, j: int,
    values: Ints, every_other: Ints,
) -> None:  # fmt: skip
    """Add one value a row to the bin of its code: rows in turn to one of two sums, (2, bin).

    Neighbours are often in the same bin, and its sum would have to be written before the next row
    could be added to it. Single elements are read here, and no slices: those take long to compile.
    """
    at, of, first = np.uint64(line), np.uint64(j), np.uint64(begin)
    for k in range(size // 2):
        i = np.uint64(2 * k)
        here = np.uint64(bins[of, np.uint64(codes[at, first + i])])
        there = np.uint64(bins[of, np.uint64(codes[at, first + i + np.uint64(1)])])
        every_other[0, here] += values[i]
        every_other[1, there] += values[i + np.uint64(1)]
    if size % 2:
        i = np.uint64(size - 1)
        here = np.uint64(bins[of, np.uint64(codes[at, first + i])])
        every_other[0, here] += values[i]


@compiled()
def column_sums(
    codes: CodeArrays, gradients: Gradients, columns: ColumnBins, first: int, stop: int
) -> Ints:
    """Add every row's statistics by bin of every column: (bin of all columns, statistic).

    It goes column by column over a block of rows, so that codes are read in the order they lie in.
    """
    narrow, wide, target = codes.narrow, codes.wide, gradients.target
    places, bins, n_bins = columns.place, columns.bins, columns.n_bins
    bits, width = gradients.bits, gradients.width
    total = np.zeros((n_bins, width), np.int64)
    rows = np.empty((BLOCK, max(width, 2 * gradients.scores.shape[1])), np.int64)
    # Of the statistics of a class all but one are 0: that one's number is kept instead of them.
    one_hot = gradients.update == AVERAGING and gradients.loss != SQUARED
    single = width == 1  # the most frequent by far
    alone = np.empty(BLOCK, np.int64)
    every_other = np.zeros((2 if single else 0, n_bins), np.int64)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        if one_hot:
            for i in range(size):
                rows[i, 0] = np.int64(target[begin + i])
        else:
            row_statistics(gradients, begin, size, rows)
        if single:
            for i in range(size):
                alone[i] = rows[i, 0]
        for j in range(places.shape[0]):
            place = np.int64(places[j])
            if single and place >= 0:
                _add_in_turns(narrow, place, begin, size, bins, j, alone, every_other)
                continue
            if single:
                _add_in_turns(wide, -1 - place, begin, size, bins, j, alone, every_other)
                continue
            for i in range(size):
                here = np.uint64(bins[j, _code(narrow, wide, place, begin + i)])
                if one_hot:
                    total[here, rows[i, 0]] += np.int64(1) << bits
                else:
                    for w in range(width):
                        total[here, w] += rows[i, w]
    for bin_ in range(n_bins if single else 0):
        total[bin_, 0] = every_other[0, bin_] + every_other[1, bin_]
    return total


@compiled()
def column_hessians(
    codes: CodeArrays, gradients: Gradients, columns: ColumnBins, first: int, stop: int
) -> Ints:
    """Add every row's Hessians, those of all outputs together, by bin of every column: (bin, 1)."""
    narrow, wide, places, bins = codes.narrow, codes.wide, columns.place, columns.bins
    n_outputs = gradients.scores.shape[1]
    total = np.zeros((columns.n_bins, 1), np.int64)
    rows = np.empty((BLOCK, 2 * n_outputs), np.int64)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        row_statistics(gradients, begin, size, rows)
        for i in range(size):
            rows[i, 0] = 0
            for k in range(n_outputs, 2 * n_outputs):
                rows[i, 0] += rows[i, k]
        for j in range(places.shape[0]):
            for i in range(size):
                here = bins[j, _code(narrow, wide, places[j], begin + i)]
                total[np.uint64(here), 0] += rows[i, 0]
    return total


@compiled(error_model="numpy")
def _steps(now: Floats, before: Floats, scale: float, out: Int32s) -> None:
    """Write steps in units of `scale`, clamped to +-1, on a grid of 2**-20: several at once."""
    for i in range(now.size):
        step = (now[i] - before[i]) / scale
        step = 1.0 if step > 1.0 else step
        step = -1.0 if step < -1.0 else step
        step = step if step == step else 0.0
        out[i] = np.int32(step * 1048576.0)


@compiled()
def step_sums(gradients: Gradients, before: Floats, scale: float, first: int, stop: int) -> Ints:
    """Add g u and h u^2 over the rows of a loss with one output: (2,).

    u is the step from `before` in units of `scale`, clamped to +-1 and truncated toward zero onto
    a grid of 2**-20, and so are the products, on the grid 2**-bits: no row's product exceeds its
    own g or h. A step that is no number counts as 0.
    """
    scores = gradients.scores
    total = np.zeros(2, np.int64)
    rows, steps = np.empty((BLOCK, 2), np.int64), np.empty(BLOCK, np.int32)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        row_statistics(gradients, begin, size, rows)
        block = slice(begin, begin + size)
        _steps(scores.reshape(-1)[block], before.reshape(-1)[block], scale, steps)
        slope, curve = np.int64(0), np.int64(0)
        for i in range(size):
            u, g = np.int64(steps[i]), rows[i, 0]
            # A shift floors, so it is applied to magnitudes: the sign comes back afterwards.
            product = (abs(g) * abs(u)) >> 20
            slope += product if (g < 0) == (u < 0) else -product
            curve += (rows[i, 1] * ((u * u) >> 20)) >> 20
        total[0] += slope
        total[1] += curve
    return total


@compiled()
def _centred_step(now: Floats, before: Floats, scale: float, out: Ints) -> None:
    """Write a row's step of every output, less the middle of them, on a grid of 2**-20: (output,).

    Steps are in units of `scale` and clamped to +-1/2, so that no two outputs are more than 1
    apart. A step that is no number counts as 0.
    """
    low, high = math.inf, -math.inf
    for k in range(now.shape[0]):
        step = (now[k] - before[k]) / scale
        step = min(max(step, -1e9), 1e9) if step == step else 0.0
        low, high = min(low, step), max(high, step)
    for k in range(now.shape[0]):
        step = (now[k] - before[k]) / scale
        step = min(max(step, -1e9), 1e9) if step == step else 0.0
        out[k] = _fixed(min(max(step - (low + high) / 2, -0.5), 0.5), 1048576.0)


@compiled()
def softmax_step_sums(
    gradients: Gradients, before: Floats, scale: float, first: int, stop: int
) -> Ints:
    """Add slope and curvature of the softmax loss along a step over the rows: (2,).

    The slope is the mean of the steps u_k under the row's probabilities less that of its own class,
    the curvature their variance. Probabilities are those of `softmax`, on its grid a distribution;
    the slope is truncated toward zero and the curvature held below the exact one.
    """
    scores, target, bits = gradients.scores, gradients.target, gradients.bits
    n = scores.shape[1]
    total = np.zeros(2, np.int64)
    rows, step = np.empty((BLOCK, 2 * n), np.int64), np.empty(n, np.int64)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        row_statistics(gradients, begin, size, rows)
        for i in range(size):
            _centred_step(scores[begin + i], before[begin + i], scale, step)
            label = np.int64(target[begin + i])
            mean, square = np.int64(0), np.int64(0)
            for k in range(n):
                if k != label:
                    apart = step[k] - step[label]
                    mean += rows[i, k] * apart
                    square += rows[i, k] * ((apart * apart) >> 20)
            slope = abs(mean) >> 20
            total[0] += slope if mean > 0 else -slope
            # Both truncations go one way: this is above the exact square of the mean step, so the
            # variance that is left is below the exact one.
            above = (((slope + 1) * (slope + 1)) >> bits) + 1
            total[1] += max((square >> 20) - above, np.int64(0))
    return total


@compiled()
def _add_values(
    scores: Floats, codes: Narrow | Kept, of: Ints, values: Floats, tree: int, begin: int, end: int
) -> None:
    """Add what each row's code has in a tree's `values`, (tree, code); see `_add_by_code`."""
    at, line = np.uint64(tree), np.uint64(of[tree])
    for row in range(np.uint64(begin), np.uint64(end)):
        scores[row, 0] += values[at, np.uint64(codes[line, row])]


@compiled()
def _add_four_values(
    scores: Floats, codes: Narrow | Kept, of: Ints, values: Floats, tree: int, begin: int, end: int
) -> None:
    """Do the same for four trees in their order, with one look at each score."""
    a, b = np.uint64(tree), np.uint64(tree + 1)
    c, d = np.uint64(tree + 2), np.uint64(tree + 3)
    of_a, of_b = np.uint64(of[tree]), np.uint64(of[tree + 1])
    of_c, of_d = np.uint64(of[tree + 2]), np.uint64(of[tree + 3])
    for row in range(np.uint64(begin), np.uint64(end)):
        # One addition after another, in tree order: floats added in pairs would round otherwise.
        score = scores[row, 0] + values[a, np.uint64(codes[of_a, row])]
        score += values[b, np.uint64(codes[of_b, row])]
        score += values[c, np.uint64(codes[of_c, row])]
        scores[row, 0] = score + values[d, np.uint64(codes[of_d, row])]


@compiled()
def _values_by_code(routes: RouteArrays, values: LeafValues, lines: Ints) -> Floats:
    """Return what each code of a narrow column adds in trees that are tables of one: (tree, code).

    Where these codes lie is written to `lines`: (tree,).
    """
    trees, place, start, after = routes.trees, routes.place, routes.start, routes.after
    by_code = np.zeros((trees.shape[0], MOST_NARROW))
    for tree in range(trees.shape[0]):
        root = trees[tree, 0]
        if trees[tree, 1] != 1 or place[root] < 0:
            continue
        lines[tree] = place[root]
        begin, end = start[root], start[root + 1]  # behind the codes lie the leaves of cells
        for code in range(end - begin):
            by_code[tree, code] = np.float64(values[after[end + after[begin + code]], 0])
    return by_code


@compiled()
def _add_by_code(
    scores: Floats, codes: Narrow | Kept, of: Ints, values: Floats, tree: int, begin: int, end: int
) -> int:
    """Add trees from `tree` on to a block of rows, by values (tree, code) of line `of[tree]`.

    It ends at the first tree whose codes stand in no line of `codes`, (line, row), and says where.
    """
    at = tree
    while at < of.size and of[at] >= 0:
        if at + 4 <= of.size and min(of[at + 1], of[at + 2], of[at + 3]) >= 0:
            _add_four_values(scores, codes, of, values, at, begin, end)
            at += 4
        else:
            _add_values(scores, codes, of, values, at, begin, end)
            at += 1
    return at


@compiled()
def add_scores(
    codes: CodeArrays, scores: Floats, routes: RouteArrays, values: LeafValues, first: int,
    stop: int,
) -> None:  # fmt: skip
    """Add each tree's leaf value to the running scores, in tree order, in float64."""
    n, lines = routes.trees.shape[0], np.full(routes.trees.shape[0], -1, np.int64)
    by_code = np.zeros((0, 0))
    if scores.shape[1] == 1 and stop - first >= MOST_NARROW:  # else it is not worth it
        by_code = _values_by_code(routes, values, lines)
    leaf, ends = np.empty(BLOCK, np.int32), np.empty((MAX_BLENDED, BLOCK), np.uint8)
    for begin in range(first, stop, BLOCK):
        size, tree = min(BLOCK, stop - begin), 0
        while tree < n:
            if lines[tree] >= 0:
                tree = _add_by_code(scores, codes.narrow, lines, by_code, tree, begin, begin + size)
                continue
            _leaves(codes, routes, tree, begin, size, ends, leaf)
            tree += 1
            if scores.shape[1] == 1:  # by far the most frequent, and without a loop inside
                for i in range(size):
                    scores[begin + i, 0] += np.float64(values[np.uint64(leaf[i]), 0])
                continue
            for i in range(size):
                here = np.uint64(leaf[i])
                for k in range(scores.shape[1]):
                    scores[begin + i, k] += np.float64(values[here, k])


@compiled()
def _end_of(tree: int, first_leaf: Int32s, values: LeafValues) -> np.int64:
    """Return the number behind the last leaf of a tree, counted over all trees."""
    return np.int64(first_leaf[tree + 1] if tree + 1 < first_leaf.size else values.shape[0])


@compiled()
def add_kept(
    scores: Floats, kept: Kept, values: LeafValues, first_leaf: Int32s, first: int, stop: int
) -> None:
    """Add trees' leaf values, in their order, where every row's leaf is known: (tree, row)."""
    n = kept.shape[0]
    if scores.shape[1] == 1 and n * (stop - first) >= values.shape[0]:
        most = np.int64(0)
        for tree in range(n):
            most = max(most, _end_of(tree, first_leaf, values) - first_leaf[tree])
        of_leaf, every = np.zeros((n, most)), np.arange(n)
        for tree in range(n):
            for leaf in range(_end_of(tree, first_leaf, values) - first_leaf[tree]):
                of_leaf[tree, leaf] = np.float64(values[first_leaf[tree] + leaf, 0])
        for begin in range(first, stop, BLOCK):
            _add_by_code(scores, kept, every, of_leaf, 0, begin, min(stop, begin + BLOCK))
        return
    for begin in range(first, stop, BLOCK):
        end = min(stop, begin + BLOCK)
        for tree in range(n):
            table, leaves = values[first_leaf[tree] :], kept[tree]
            for row in range(begin, end):
                here = np.uint64(leaves[row])
                for k in range(scores.shape[1]):
                    scores[row, k] += np.float64(table[here, k])
