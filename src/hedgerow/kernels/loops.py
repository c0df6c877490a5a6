"""Compiled loops over column-major codes: route rows, add integer gradients, update scores.

Each loop takes a range of rows and keeps its numbers of one block of rows in cache. All of them
live in this one file, because Numba's cache on disk notices changes of a function's own file only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hedgerow.kernels.threads import BLOCK

LOGISTIC, SOFTMAX, SQUARED = 0, 1, 2
NEWTON, GRADIENT, AVERAGING, SLOPE, COUNT = 0, 1, 2, 3, 4
NO_CLIP = 1 << 62
MOST_NARROW = 256  # codes or leaves that a byte tells apart
MAX_BLENDED = 31  # nodes of a tree that is blended; larger ones are walked faster
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@njit(cache=True, nogil=True, inline="always")
def _fixed(value: float, one: float) -> Any:
    """Truncate toward zero onto the grid; NaN becomes 0, so no row can exceed its bound."""
    if value != value:
        return 0
    return np.int64(value * one)


@njit(cache=True, nogil=True)
def _exp_parts(scores: Any, target: Any, power: Any, rest: Any) -> None:
    """exp of the score for y = 1 and of its negative for y = 0, as power * rest, in two arrays.

    A polynomial of degree 12 around the nearest power of 2, which adding 1.5 * 2**52 rounds to. In
    plain steps over arrays, so that several rows are computed at once; `power` is still the number
    with which `_powers` goes on.
    """
    for i in range(scores.size):
        x = scores[i] if target[i] > 0.5 else -scores[i]
        x = 700.0 if x > 700.0 else x  # NaN ends at -700 and is left out in the end
        x = x if x > -700.0 else -700.0
        k = x * 1.4426950408889634 + 6755399441055744.0
        power[i] = k
        k = k - 6755399441055744.0
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


@njit(cache=True, nogil=True)
def _powers(bits: Any) -> None:
    """From the bits of k + 1.5 * 2**52 to those of 2**k."""
    for i in range(bits.size):
        bits[i] = (bits[i] << 52) + (np.int64(1023) << 52)


@njit(cache=True, nogil=True, error_model="numpy")
def _sigmoids(rest: Any, power: Any, one: float) -> None:
    """`one` times the sigmoid of the negative exponent, left in `rest`; at most `one`."""
    for i in range(rest.size):
        rest[i] = one / (1.0 + rest[i] * power[i])


@njit(cache=True, nogil=True)
def logistic(scores: Any, target: Any, bits: int, out: Any) -> None:
    """g and h of some rows on the grid 2**-bits: (row, 2).

    q = |p - y| is truncated, then h = q (1 - q) is computed in integers from that q and floored,
    so the pair is a point on or below the curve (q, q - q^2) for a q that is on the grid, however
    exact the exponential is. A score that is no number adds nothing.
    """
    power, rest = np.empty(scores.size), np.empty(scores.size)
    _exp_parts(scores, target, power, rest)
    _powers(power.view(np.int64))
    one: Any = np.int64(1) << bits
    _sigmoids(rest, power, float(one))
    for i in range(scores.size):
        steps: Any = min(max(np.int64(rest[i]), np.int64(0)), one)
        steps = steps if scores[i] == scores[i] else np.int64(0)
        out[i, 0] = -steps if target[i] > 0.5 else steps
        out[i, 1] = (steps * (one - steps)) >> bits


@njit(cache=True, nogil=True)
def softmax(scores: Any, target: float, bits: int, out: Any) -> None:
    """g and h of every class: out[k] and out[K + k].

    Everything after exp is integer: weights of 31 bits, their exact sum, floored quotients. So the
    probabilities of the other classes add up to at most 1 on the grid, |g| of the row's own class
    is exactly their sum, and the order of the classes does not matter. Scores that are no finite
    numbers weigh nothing; where no class weighs anything the row adds nothing.
    """
    n = scores.shape[0]
    top = -math.inf
    for k in range(n):
        if scores[k] > top:
            top = scores[k]
    total: Any = np.int64(0)
    for k in range(n):
        out[k] = _fixed(math.exp(scores[k] - top), 2147483647.0)
        out[n + k] = 0
        total += out[k]
    if total == 0:
        return
    own = np.int64(target)
    one: Any = np.int64(1) << bits
    rest: Any = np.int64(0)
    for k in range(n):
        if k != own:
            out[k] = (out[k] << bits) // total
            rest += out[k]
            out[n + k] = (out[k] * (one - out[k])) >> bits
    out[own] = -rest
    out[n + own] = (rest * (one - rest)) >> bits


@njit(cache=True, nogil=True)
def squared(score: float, target: float, bits: int) -> tuple[Any, Any]:
    """g = score - target, both between 0 and 1, and the row itself as h = 1."""
    one: Any = np.int64(1) << bits
    clipped = min(max(score, 0.0), 1.0) if score == score else 0.5
    return _fixed(clipped - target, float(one)), one


@njit(cache=True, nogil=True)
def _plain_numbers(loss: int, update: int, target: float, bits: int, width: int, out: Any) -> None:
    """What one row adds whatever its score: itself, or its class, or its number and itself."""
    one: Any = np.int64(1) << bits
    if update == COUNT:
        out[0] = one
    elif loss == SQUARED:
        out[0] = _fixed(min(max(target, 0.0), 1.0), float(one))
        out[1] = one
    else:
        for k in range(width):
            out[k] = 0
        out[np.int64(target)] = one


@njit(cache=True, nogil=True)
def row_numbers(
    loss: int, update: int, clip: int, scores: Any, target: Any, bits: int, width: int,
    first: int, size: int, out: Any,
) -> None:  # fmt: skip
    """What rows first .. first + size add to their leaf or bin: (row, number).

    `hedgerow.model.losses` has the widths and bounds. Gradients are clamped to +-clip steps of the
    grid, Hessians are those of the row itself.
    """
    n_outputs = scores.shape[1]
    one: Any = np.int64(1) << bits
    most: Any = max(np.int64(clip), np.int64(0))  # a clip that wrapped lets nothing through
    if update in (COUNT, AVERAGING):
        for i in range(size):
            _plain_numbers(loss, update, target[first + i], bits, width, out[i])
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


@njit(cache=True, nogil=True, inline="always")
def _code(narrow: Any, wide: Any, place: int, row: int) -> Any:
    return np.uint64(narrow[place, row]) if place >= 0 else np.uint64(wide[-1 - place, row])


@njit(cache=True, nogil=True)
def route(
    narrow: Any, wide: Any, root: int, depth: int, place: Any, start: Any, after: Any, first: int,
    size: int, leaf: Any,
) -> None:  # fmt: skip
    """The leaves of rows first .. first + size in one tree that is walked node by node.

    `after` says for a node and a code which node comes next, -1 - k for leaf k. With `depth` above
    0 all leaves lie so deep: no row has to look whether it has arrived.
    """
    if depth > 0 and wide.shape[0] == 0:
        for i in range(size):
            at, row = np.uint64(root), np.uint64(first + i)
            for _ in range(depth):
                code = np.uint64(narrow[np.uint64(place[at]), row])
                at = np.uint64(after[np.uint64(start[at]) + code])
            leaf[i] = -1 - np.int64(at)
        return
    for i in range(size):
        node = np.int64(root)
        while node >= 0:
            at = np.uint64(node)
            node = np.int64(after[np.uint64(start[at]) + _code(narrow, wide, place[at], first + i)])
        leaf[i] = -1 - node


@njit(cache=True, nogil=True)
def _look_up_few(
    narrow: Any, root: int, n_columns: int, place: Any, start: Any, after: Any, first: int,
    size: int, leaf: Any,
) -> None:  # fmt: skip
    """`look_up` for two to four columns at once, without a number left behind between them."""
    a, b = narrow[place[root]], narrow[place[root + 1]]
    c, d = narrow[place[root + n_columns - 1]], narrow[place[root + n_columns - 2]]
    of_a, of_b = np.uint64(start[root]), np.uint64(start[root + 1])
    of_c, of_d = np.uint64(start[root + n_columns - 1]), np.uint64(start[root + n_columns - 2])
    begin = np.int64(start[root + n_columns])
    for i in range(size):
        row = np.uint64(first + i)
        cell: Any = begin + after[of_a + np.uint64(a[row])] + after[of_b + np.uint64(b[row])]
        if n_columns > 2:
            cell += after[of_c + np.uint64(c[row])]
        if n_columns > 3:
            cell += after[of_d + np.uint64(d[row])]
        leaf[i] = after[np.uint64(cell)]


@njit(cache=True, nogil=True)
def look_up(
    narrow: Any, wide: Any, root: int, n_columns: int, place: Any, start: Any, after: Any,
    first: int, size: int, leaf: Any,
) -> None:  # fmt: skip
    """The leaves of rows first .. first + size in one tree that is a table of a few columns.

    Nodes root, root + 1, ... are its columns: `after` has what a code adds to the number of the
    cell. The node behind them has the leaf of every cell.
    """
    if wide.shape[0] == 0 and 2 <= n_columns <= 4:
        _look_up_few(narrow, root, n_columns, place, start, after, first, size, leaf)
        return
    for i in range(size):
        leaf[i] = 0
    for j in range(root, root + n_columns):
        here: Any = np.int64(place[j])
        begin = np.uint64(start[j])
        for i in range(size):
            leaf[i] += after[begin + _code(narrow, wide, here, first + i)]
    begin = np.uint64(start[root + n_columns])
    for i in range(size):
        leaf[i] = after[begin + np.uint64(leaf[i])]


@njit(cache=True, nogil=True)
def _one_of_two(codes: Any, low: int, span: int, left: int, right: int, out: Any) -> None:
    """`right` for codes from `low` to `low` + `span`, else `left`."""
    first, most, a, b = np.uint8(low), np.uint8(span), np.uint8(left), np.uint8(right)
    for i in range(out.size):
        out[i] = b if np.uint8(codes[i] - first) <= most else a


@njit(cache=True, nogil=True)
def _one_of_each(codes: Any, low: int, span: int, left: Any, right: Any, out: Any) -> None:
    first, most = np.uint8(low), np.uint8(span)
    for i in range(out.size):
        a, b = left[i], right[i]  # both are loaded, so that several rows are done at once
        out[i] = b if np.uint8(codes[i] - first) <= most else a


@njit(cache=True, nogil=True)
def blend(
    narrow: Any, root: int, n_nodes: int, nodes: Any, first: int, size: int, found: Any
) -> None:
    """The leaves of rows first .. first + size in a small tree, from its last node to the root.

    Every node says for every row where the row would end if it came by. That is more work than
    walking, but without a branch or a look-up: many rows at once. `found` are (node, row).
    """
    for k in range(n_nodes - 1, -1, -1):
        node = nodes[root + k]
        codes = narrow[node[0], first : first + size]
        low, span, left, right = node[1], node[2], node[3], node[4]
        out = found[k, :size]
        if left < 0 and right < 0:
            _one_of_two(codes, low, span, -1 - left, -1 - right, out)
        elif left < 0:  # a leaf beside an inner node is written out first
            out[:] = np.uint8(-1 - left)
            _one_of_each(codes, low, span, out, found[right, :size], out)
        elif right < 0:
            out[:] = np.uint8(-1 - right)
            _one_of_each(codes, low, span, found[left, :size], out, out)
        else:
            _one_of_each(codes, low, span, found[left, :size], found[right, :size], out)


@njit(cache=True, nogil=True)
def _leaves(
    narrow: Any, wide: Any, trees: Any, tree: int, place: Any, start: Any, after: Any, nodes: Any,
    first: int, size: int, found: Any, leaf: Any,
) -> None:  # fmt: skip
    """The leaves of rows first .. first + size, counted over all trees."""
    root, kind, n_nodes = trees[tree, 0], trees[tree, 1], trees[tree, 2]
    if n_nodes > 0 and wide.shape[0] == 0:
        blend(narrow, trees[tree, 4], n_nodes, nodes, first, size, found)
        for i in range(size):
            leaf[i] = trees[tree, 3] + np.int32(found[0, i])
    elif kind > 0:
        look_up(narrow, wide, root, kind, place, start, after, first, size, leaf)
    else:
        route(narrow, wide, root, -kind, place, start, after, first, size, leaf)


@njit(cache=True, nogil=True)
def _add(total: Any, place: Any, rows: Any, size: int, width: int) -> None:
    """Add the numbers of every row of a block to its place."""
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


@njit(cache=True, nogil=True)
def _keep(leaf: Any, before: int, out: Any) -> None:
    """Leaves counted in their tree: in plain steps, so that several are done at once."""
    for i in range(out.size):
        out[i] = np.uint16(leaf[i] - before)


@njit(cache=True, nogil=True)
def leaf_sums(
    narrow: Any, wide: Any, scores: Floats, target: Any, bits: int, loss: int, update: int,
    clip: int, width: int, trees: Any, place: Any, start: Any, after: Any, nodes: Any,
    kept: Any, first: int, stop: int, total: Any,
) -> None:  # fmt: skip
    """Add every row's numbers in every leaf of every tree to the total: (leaf, number).

    If there is room in `kept` (tree, row), every row's leaf, counted in its tree, is left there.
    """
    rows = np.empty((BLOCK, max(width, 2 * scores.shape[1])), np.int64)
    leaf, found = np.empty(BLOCK, np.int32), np.empty((MAX_BLENDED, BLOCK), np.uint8)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        row_numbers(loss, update, clip, scores, target, bits, width, begin, size, rows)
        for tree in range(trees.shape[0]):
            _leaves(narrow, wide, trees, tree, place, start, after, nodes, begin, size, found, leaf)
            _add(total, leaf, rows, size, width)
            if kept.shape[0] > 0:
                _keep(leaf[:size], trees[tree, 3], kept[tree, begin : begin + size])


@njit(cache=True, nogil=True)
def leaf_counts(
    narrow: Any, wide: Any, trees: Any, place: Any, start: Any, after: Any, nodes: Any,
    n_leaves: int, first: int, stop: int,
) -> Ints:  # fmt: skip
    """How many rows lie in every leaf of one tree: (leaf,)."""
    total = np.zeros(n_leaves, np.int64)
    leaf, found = np.empty(BLOCK, np.int32), np.empty((MAX_BLENDED, BLOCK), np.uint8)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        _leaves(narrow, wide, trees, 0, place, start, after, nodes, begin, size, found, leaf)
        for i in range(size):
            total[np.uint64(leaf[i])] += 1
    return total


@njit(cache=True, nogil=True)
def node_histograms(
    narrow: Any, wide: Any, scores: Floats, target: Any, bits: int, loss: int, update: int,
    clip: int, width: int, trees: Any, place: Any, start: Any, after: Any, nodes: Any,
    n_leaves: int, columns: Any, bins: Any, n_bins: int, wanted: Any, first: int, stop: int,
) -> Ints:  # fmt: skip
    """Sums of every row's numbers by leaf of one tree and bin of every column: (leaf, bin, number).

    `columns` are places of the columns in the codes, `bins` maps (column, code) to its bin. Rows
    in leaves that are not `wanted` are left out.
    """
    total = np.zeros((n_leaves * n_bins, width), np.int64)
    rows = np.empty((BLOCK, max(width, 2 * scores.shape[1])), np.int64)
    leaf, found = np.empty(BLOCK, np.int32), np.empty((MAX_BLENDED, BLOCK), np.uint8)
    here = np.empty(BLOCK, np.int64)
    chosen = np.empty(BLOCK, np.int64)
    for begin in range(first, stop, BLOCK):
        size, n_chosen = min(BLOCK, stop - begin), 0
        row_numbers(loss, update, clip, scores, target, bits, width, begin, size, rows)
        _leaves(narrow, wide, trees, 0, place, start, after, nodes, begin, size, found, leaf)
        for i in range(size):  # the chosen rows move to the front of the block
            chosen[n_chosen] = begin + i
            leaf[n_chosen] = leaf[i]
            rows[n_chosen] = rows[i]
            n_chosen += wanted[np.uint64(leaf[i])]
        for j in range(columns.shape[0]):
            for i in range(n_chosen):
                bin_ = bins[j, _code(narrow, wide, columns[j], chosen[i])]
                here[i] = leaf[i] * n_bins + bin_
            _add(total, here, rows, n_chosen, width)
    return total


@njit(cache=True, nogil=True)
def _add_in_turns(
    codes: Any, line: int, begin: int, size: int, bins: Any, j: int, numbers: Any, every_other: Any
) -> None:
    """Add one number a row to the bin of its code: rows in turn to one of two sums, (2, bin).

    Neighbours are often in the same bin, and its sum would have to be written before the next row
    could be added to it. Single numbers are read here, and no slices: those take long to compile.
    """
    own, of, first = np.uint64(line), np.uint64(j), np.uint64(begin)
    for k in range(size // 2):
        i = np.uint64(2 * k)
        here = np.uint64(bins[of, np.uint64(codes[own, first + i])])
        there = np.uint64(bins[of, np.uint64(codes[own, first + i + np.uint64(1)])])
        every_other[0, here] += numbers[i]
        every_other[1, there] += numbers[i + np.uint64(1)]
    if size % 2:
        i = np.uint64(size - 1)
        here = np.uint64(bins[of, np.uint64(codes[own, first + i])])
        every_other[0, here] += numbers[i]


@njit(cache=True, nogil=True)
def column_sums(
    narrow: Any, wide: Any, scores: Floats, target: Any, bits: int, loss: int, update: int,
    clip: int, width: int, columns: Any, bins: Any, n_bins: int, first: int, stop: int,
) -> Ints:  # fmt: skip
    """Sums of every row's numbers by bin of every column: (bin of all columns, number).

    Column by column over a block of rows, so that codes are read in the order they lie in.
    """
    total = np.zeros((n_bins, width), np.int64)
    rows = np.empty((BLOCK, max(width, 2 * scores.shape[1])), np.int64)
    one_of_many = update == AVERAGING and loss != SQUARED  # a class is one number that is not 0
    single = width == 1  # the most frequent by far
    alone = np.empty(BLOCK, np.int64)
    every_other = np.zeros((2 if single else 0, n_bins), np.int64)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        if one_of_many:
            for i in range(size):
                rows[i, 0] = np.int64(target[begin + i])
        else:
            row_numbers(loss, update, clip, scores, target, bits, width, begin, size, rows)
        if single:
            for i in range(size):
                alone[i] = rows[i, 0]
        for j in range(columns.shape[0]):
            place: Any = np.int64(columns[j])
            if single and place >= 0:
                _add_in_turns(narrow, place, begin, size, bins, j, alone, every_other)
                continue
            if single:
                _add_in_turns(wide, -1 - place, begin, size, bins, j, alone, every_other)
                continue
            for i in range(size):
                here = np.uint64(bins[j, _code(narrow, wide, place, begin + i)])
                if one_of_many:
                    total[here, rows[i, 0]] += np.int64(1) << bits
                else:
                    for w in range(width):
                        total[here, w] += rows[i, w]
    for bin_ in range(n_bins if single else 0):
        total[bin_, 0] = every_other[0, bin_] + every_other[1, bin_]
    return total


@njit(cache=True, nogil=True)
def column_hessians(
    narrow: Any, wide: Any, scores: Floats, target: Any, bits: int, loss: int, columns: Any,
    bins: Any, n_bins: int, first: int, stop: int,
) -> Ints:  # fmt: skip
    """Hessians of every row, added over its outputs, by bin of every column: (bin, 1)."""
    n_outputs = scores.shape[1]
    total = np.zeros((n_bins, 1), np.int64)
    rows = np.empty((BLOCK, 2 * n_outputs), np.int64)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        row_numbers(loss, NEWTON, NO_CLIP, scores, target, bits, n_outputs, begin, size, rows)
        for i in range(size):
            rows[i, 0] = 0
            for k in range(n_outputs, 2 * n_outputs):
                rows[i, 0] += rows[i, k]
        for j in range(columns.shape[0]):
            for i in range(size):
                here = bins[j, _code(narrow, wide, columns[j], begin + i)]
                total[np.uint64(here), 0] += rows[i, 0]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _steps(now: Any, before: Any, scale: float, out: Any) -> None:
    """Steps in units of `scale`, clamped to +-1, on a grid of 2**-20; several rows at once."""
    for i in range(now.size):
        step = (now[i] - before[i]) / scale
        step = 1.0 if step > 1.0 else step
        step = -1.0 if step < -1.0 else step
        step = step if step == step else 0.0
        out[i] = np.int32(step * 1048576.0)


@njit(cache=True, nogil=True)
def step_sums(
    scores: Floats, before: Floats, scale: float, target: Any, bits: int, loss: int, update: int,
    clip: int, first: int, stop: int,
) -> Ints:  # fmt: skip
    """Sums of g u and h u^2 over the rows of a loss with one output: (2,).

    u is the step from `before` in units of `scale`, clamped to +-1 and truncated toward zero onto
    a grid of 2**-20, and so are the products, on the grid 2**-bits: no row's product exceeds its
    own g or h. A step that is no number counts as 0.
    """
    total = np.zeros(2, np.int64)
    rows, steps = np.empty((BLOCK, 2), np.int64), np.empty(BLOCK, np.int32)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        row_numbers(loss, update, clip, scores, target, bits, 2, begin, size, rows)
        block = slice(begin, begin + size)
        _steps(scores.reshape(-1)[block], before.reshape(-1)[block], scale, steps)
        slope, curve = np.int64(0), np.int64(0)
        for i in range(size):
            u: Any = np.int64(steps[i])
            g: Any = rows[i, 0]
            product: Any = (abs(g) * abs(u)) >> 20
            slope += product if (g < 0) == (u < 0) else -product
            curve += (rows[i, 1] * ((u * u) >> 20)) >> 20
        total[0] += slope
        total[1] += curve
    return total


@njit(cache=True, nogil=True)
def _centred_step(now: Any, before: Any, scale: float, out: Any) -> None:
    """A row's step of every output, less the middle of them, on a grid of 2**-20: (output,).

    In units of `scale` and clamped to +-1/2, so that no two outputs are more than 1 apart. A step
    that is no number counts as 0.
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


@njit(cache=True, nogil=True)
def softmax_step_sums(
    scores: Floats, before: Floats, scale: float, target: Any, bits: int, first: int, stop: int
) -> Ints:
    """Sums over the rows of slope and curvature of the softmax loss along a step: (2,).

    The slope is the mean of the steps u_k under the row's probabilities less that of its own class,
    the curvature their variance. Probabilities are those of `softmax`, on its grid a distribution;
    the slope is truncated toward zero and the curvature held below the exact one.
    """
    n = scores.shape[1]
    total = np.zeros(2, np.int64)
    rows, step = np.empty((BLOCK, 2 * n), np.int64), np.empty(n, np.int64)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        row_numbers(SOFTMAX, NEWTON, NO_CLIP, scores, target, bits, 2 * n, begin, size, rows)
        for i in range(size):
            _centred_step(scores[begin + i], before[begin + i], scale, step)
            own = np.int64(target[begin + i])
            mean: Any = np.int64(0)
            square: Any = np.int64(0)
            for k in range(n):
                if k != own:
                    apart: Any = step[k] - step[own]
                    mean += rows[i, k] * apart
                    square += rows[i, k] * ((apart * apart) >> 20)
            slope: Any = abs(mean) >> 20
            total[0] += slope if mean > 0 else -slope
            above: Any = (((slope + 1) * (slope + 1)) >> bits) + 1  # of the slope's exact square
            total[1] += max((square >> 20) - above, np.int64(0))
    return total


@njit(cache=True, nogil=True)
def _add_values(
    scores: Any, codes: Any, of: Any, values: Any, tree: int, begin: int, end: int
) -> None:
    """Add what each row's code has in a tree's `values`, (tree, code); see `_add_by_code`."""
    own, line = np.uint64(tree), np.uint64(of[tree])
    for row in range(np.uint64(begin), np.uint64(end)):
        scores[row, 0] += values[own, np.uint64(codes[line, row])]


@njit(cache=True, nogil=True)
def _add_four_values(
    scores: Any, codes: Any, of: Any, values: Any, tree: int, begin: int, end: int
) -> None:
    """The same for four trees in their order, with one look at each score."""
    a, b = np.uint64(tree), np.uint64(tree + 1)
    c, d = np.uint64(tree + 2), np.uint64(tree + 3)
    of_a, of_b = np.uint64(of[tree]), np.uint64(of[tree + 1])
    of_c, of_d = np.uint64(of[tree + 2]), np.uint64(of[tree + 3])
    for row in range(np.uint64(begin), np.uint64(end)):
        found = scores[row, 0] + values[a, np.uint64(codes[of_a, row])]
        found += values[b, np.uint64(codes[of_b, row])]
        found += values[c, np.uint64(codes[of_c, row])]
        scores[row, 0] = found + values[d, np.uint64(codes[of_d, row])]


@njit(cache=True, nogil=True)
def _values_by_code(trees: Any, place: Any, start: Any, after: Any, values: Any, lines: Any) -> Any:
    """What each code of a narrow column adds in trees that are tables of one: (tree, code).

    Where these codes lie is written to `lines`: (tree,).
    """
    found = np.zeros((trees.shape[0], MOST_NARROW))
    for tree in range(trees.shape[0]):
        root = trees[tree, 0]
        if trees[tree, 1] != 1 or place[root] < 0:
            continue
        lines[tree] = place[root]
        begin, end = start[root], start[root + 1]  # behind the codes lie the leaves of cells
        for code in range(end - begin):
            found[tree, code] = np.float64(values[after[end + after[begin + code]], 0])
    return found


@njit(cache=True, nogil=True)
def _add_by_code(
    scores: Any, codes: Any, of: Any, values: Any, tree: Any, begin: int, end: int
) -> Any:
    """Add trees from `tree` on to a block of rows, by values (tree, code) of line `of[tree]`.

    Ends at the first tree whose codes stand in no line of `codes`, (line, row), and says where.
    """
    at: Any = np.int64(tree)
    while at < of.size and of[at] >= 0:
        if at + 4 <= of.size and min(of[at + 1], of[at + 2], of[at + 3]) >= 0:
            _add_four_values(scores, codes, of, values, at, begin, end)
            at += 4
        else:
            _add_values(scores, codes, of, values, at, begin, end)
            at += 1
    return at


@njit(cache=True, nogil=True)
def add_scores(
    narrow: Any, wide: Any, scores: Floats, trees: Any, place: Any, start: Any, after: Any,
    nodes: Any, values: Any, first: int, stop: int,
) -> None:  # fmt: skip
    """Add each tree's leaf value to the running scores, in tree order, in float64."""
    n, lines = trees.shape[0], np.full(trees.shape[0], -1, np.int64)
    by_code = np.zeros((0, 0))
    if scores.shape[1] == 1 and stop - first >= MOST_NARROW:  # else it is not worth it
        by_code = _values_by_code(trees, place, start, after, values, lines)
    leaf, found = np.empty(BLOCK, np.int32), np.empty((MAX_BLENDED, BLOCK), np.uint8)
    for begin in range(first, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        tree: Any = np.int64(0)
        while tree < n:
            if lines[tree] >= 0:
                tree = _add_by_code(scores, narrow, lines, by_code, tree, begin, begin + size)
                continue
            _leaves(narrow, wide, trees, tree, place, start, after, nodes, begin, size, found, leaf)
            tree += 1
            if scores.shape[1] == 1:  # by far the most frequent, and without a loop inside
                for i in range(size):
                    scores[begin + i, 0] += np.float64(values[np.uint64(leaf[i]), 0])
                continue
            for i in range(size):
                here = np.uint64(leaf[i])
                for k in range(scores.shape[1]):
                    scores[begin + i, k] += np.float64(values[here, k])


@njit(cache=True, nogil=True)
def _end_of(tree: int, first_leaf: Any, values: Any) -> Any:
    """Behind the last leaf of a tree."""
    return np.int64(first_leaf[tree + 1] if tree + 1 < first_leaf.size else values.shape[0])


@njit(cache=True, nogil=True)
def add_kept(
    scores: Floats, kept: Any, values: Any, first_leaf: Any, first: int, stop: int
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
            _add_by_code(scores, kept, every, of_leaf, np.int64(0), begin, min(stop, begin + BLOCK))
        return
    for begin in range(first, stop, BLOCK):
        end = min(stop, begin + BLOCK)
        for tree in range(n):
            table, leaves = values[first_leaf[tree] :], kept[tree]
            for row in range(begin, end):
                here = np.uint64(leaves[row])
                for k in range(scores.shape[1]):
                    scores[row, k] += np.float64(table[here, k])
