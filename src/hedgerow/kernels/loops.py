"""Compiled loops over column-major codes: leaves of rows, integer sums by leaf and bin, scores.

`sweeps.py` calls them for some thousand rows at a time. They are small and stand by themselves, so
that a method compiles only what it needs, and each has one form of arguments.

How the loops are written, and why:

- Whatever is added up over rows is an integer on the grid 2**-bits. Integer sums are exact modulo
  2**64, so they do not depend on the order of rows, on blocks, threads or parties.
- Indices are unsigned where a loop is hot. For a signed one Numba also compiles the case of a
  negative index, which counts from the end: a comparison and a branch for every element.
- Loops read arrays by plain indices, allocate nothing and take arrays one by one. Slices, new
  arrays and NamedTuples are objects with bounds and reference counts: inside of a loop they cost
  time, and their code takes several times as long to compile as the loop itself.
- A loop that calls another is compiled with it once more, so few do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Floats, Int32s, Ints
from hedgerow.kernels.compiling import compiled
from hedgerow.kernels.threads import BLOCK

MAX_BLENDED = 31  # nodes of a tree that is blended; larger ones are walked faster
Narrow = NDArray[np.uint8]  # (narrow column, row)
Wide = NDArray[np.uint16]  # (wide column, row)
Leaves = NDArray[np.unsignedinteger]  # (tree, row): leaves, counted in their tree
LeafValues = NDArray[np.float32]  # (leaf of all trees, output)


@compiled(error_model="numpy")
def blended_leaves(
    narrow: Narrow, trees: Int32s, nodes: Int32s, first_tree: int, stop_tree: int, first: int,
    size: int, ends: Narrow, out: Leaves, at: int,
) -> None:  # fmt: skip
    """Write the leaves of rows first .. first + size in small trees, from column `at` of `out` on.

    The leaf of the first of these trees stands in the first row of `out`. A tree is gone through
    from its last node up: every node says for every row where the row would end if it came by,
    (node, row) in `ends`, the root's first. That is more work than walking, but has no branch and
    no look-up, so that the processor does 32 rows at once.
    """
    for tree in range(first_tree, stop_tree):
        line, root = np.uint64(tree - first_tree), np.int64(trees[tree, 4])
        for begin in range(0, size, BLOCK):
            row, behind = np.uint64(first + begin), np.uint64(at + begin)
            n = np.uint64(BLOCK if size - begin > BLOCK else size - begin)
            for k in range(trees[tree, 2] - 1, -1, -1):
                node, here = np.uint64(root + k), np.uint64(k)
                column, left, right = np.uint64(nodes[node, 0]), nodes[node, 3], nodes[node, 4]
                # One comparison tests both ends: a byte below `low` wraps around to a large one.
                low, span = np.uint8(nodes[node, 1]), np.uint8(nodes[node, 2])
                if left < 0 and right < 0:
                    a, b = np.uint8(-1 - left), np.uint8(-1 - right)
                    for i in range(n):
                        ends[here, i] = b if np.uint8(narrow[column, row + i] - low) <= span else a
                    continue
                to_left, to_right = np.uint64(left), np.uint64(right)
                if left < 0 or right < 0:  # a leaf beside an inner node is written out first
                    leaf = np.uint8(-1 - (left if left < 0 else right))
                    for i in range(n):
                        ends[np.uint64(MAX_BLENDED), i] = leaf
                    to_left = np.uint64(MAX_BLENDED) if left < 0 else to_left
                    to_right = np.uint64(MAX_BLENDED) if right < 0 else to_right
                for i in range(n):
                    # Both are loaded, so that several rows are done at once.
                    one, other = ends[to_left, i], ends[to_right, i]
                    is_there = np.uint8(narrow[column, row + i] - low) <= span
                    ends[here, i] = other if is_there else one
            for i in range(n):
                out[line, behind + i] = ends[np.uint64(0), i]


@compiled(error_model="numpy")
def table_leaves(
    narrow: Narrow, wide: Wide, trees: Int32s, place: Int32s, start: Ints, after: Int32s,
    first_tree: int, stop_tree: int, first: int, size: int, out: Leaves, at: int,
) -> None:  # fmt: skip
    """Do as `blended_leaves` for trees that are tables of few columns.

    Nodes root, root + 1, ... are its columns: `after` has what a code adds to the number of the
    cell. The node behind them has the leaf of every cell.
    """
    row, to, n, only_narrow = np.uint64(first), np.uint64(at), np.uint64(size), wide.shape[0] == 0
    for tree in range(first_tree, stop_tree):
        line, before = np.uint64(tree - first_tree), np.int64(trees[tree, 3])
        root, kind = np.int64(trees[tree, 0]), np.int64(trees[tree, 1])
        cells = np.int64(start[root + kind])
        if kind > 1 and kind <= 4 and only_narrow:
            # With fewer than four columns c and d repeat earlier ones, and are not added.
            last, next_last = root + kind - 1, root + kind - 2
            a, b = np.uint64(place[root]), np.uint64(place[root + 1])
            c, d = np.uint64(place[last]), np.uint64(place[next_last])
            of_a, of_b = np.uint64(start[root]), np.uint64(start[root + 1])
            of_c, of_d = np.uint64(start[last]), np.uint64(start[next_last])
            for i in range(n):
                cell = cells + after[of_a + narrow[a, row + i]] + after[of_b + narrow[b, row + i]]
                if kind > 2:
                    cell += after[of_c + narrow[c, row + i]]
                if kind > 3:
                    cell += after[of_d + narrow[d, row + i]]
                out[line, to + i] = after[np.uint64(cell)] - before
            continue
        for i in range(n):  # of one column, or with wide codes
            cell = cells
            for node in range(root, root + kind):
                of = np.int64(place[node])
                if of >= 0:
                    code = np.uint64(narrow[np.uint64(of), row + i])
                else:
                    code = np.uint64(wide[np.uint64(-1 - of), row + i])
                cell += after[np.uint64(start[node]) + code]
            out[line, to + i] = after[np.uint64(cell)] - before


@compiled(error_model="numpy")
def walked_leaves(
    narrow: Narrow, wide: Wide, trees: Int32s, place: Int32s, start: Ints, after: Int32s,
    first_tree: int, stop_tree: int, first: int, size: int, out: Leaves, at: int,
) -> None:  # fmt: skip
    """Do as `blended_leaves` for trees that are walked node by node.

    `after` says for a node and a code which node comes next, -1 - k for leaf k. With a depth all
    leaves lie so deep: no row has to look whether it has arrived.
    """
    row, to, n, only_narrow = np.uint64(first), np.uint64(at), np.uint64(size), wide.shape[0] == 0
    for tree in range(first_tree, stop_tree):
        line, before = np.uint64(tree - first_tree), np.int64(trees[tree, 3])
        root, depth = np.int64(trees[tree, 0]), -np.int64(trees[tree, 1])
        if depth > 0 and only_narrow:
            for i in range(n):
                below = np.uint64(root)
                for _ in range(depth):
                    code = np.uint64(narrow[np.uint64(place[below]), row + i])
                    below = np.uint64(after[np.uint64(start[below]) + code])
                out[line, to + i] = -1 - np.int64(below) - before  # -1 - k wrapped, and back
            continue
        for i in range(n):
            node = root
            while node >= 0:
                of = np.int64(place[node])
                if of >= 0:
                    code = np.uint64(narrow[np.uint64(of), row + i])
                else:
                    code = np.uint64(wide[np.uint64(-1 - of), row + i])
                node = np.int64(after[np.uint64(start[node]) + code])
            out[line, to + i] = -1 - node - before


@compiled(error_model="numpy")
def add_to_leaves(
    leaf: Leaves, at: int, trees: Int32s, first_tree: int, stop_tree: int, rows: Ints, size: int,
    width: int, total: Ints,
) -> None:  # fmt: skip
    """Add rows' statistics to their leaves in some trees: (leaf of all trees, statistic)."""
    of = np.uint64(at)
    for begin in range(0, size, BLOCK):
        some, stop = np.uint64(begin), np.uint64(size if size - begin < BLOCK else begin + BLOCK)
        for tree in range(first_tree, stop_tree):
            line, before = np.uint64(tree - first_tree), np.uint64(trees[tree, 3])
            if width == 2:  # one gradient and one Hessian, by far the most frequent
                for i in range(some, stop):
                    here = before + np.uint64(leaf[line, of + i])
                    total[here, 0] += rows[i, 0]
                    total[here, 1] += rows[i, 1]
                continue
            for i in range(some, stop):
                here = before + np.uint64(leaf[line, of + i])
                for w in range(width):
                    total[here, w] += rows[i, w]


@compiled(error_model="numpy")
def add_one_to_bins(
    narrow: Narrow, wide: Wide, place: Int32s, bins: Int32s, first: int, values: Ints, total: Ints
) -> None:
    """Add one value a row to the bin of its code in every column: (2, bin of all columns).

    Rows are added in turn to one of the two sums. Neighbours are often in the same bin, and its sum
    would have to be written before the next row could be added to it.
    """
    for begin in range(0, values.size, BLOCK):
        left, of = values.size - begin, np.uint64(begin)
        size = BLOCK if left > BLOCK else left
        row = np.uint64(first + begin)
        for j in range(place.shape[0]):
            column, at = np.uint64(j), np.int64(place[j])
            if at >= 0:
                line = np.uint64(at)
                for k in range(np.uint64(size // 2)):
                    one = np.uint64(k + k)
                    other = one + np.uint64(1)
                    here = np.uint64(bins[column, np.uint64(narrow[line, row + one])])
                    there = np.uint64(bins[column, np.uint64(narrow[line, row + other])])
                    total[0, here] += values[of + one]
                    total[1, there] += values[of + other]
                if size % 2:
                    last = np.uint64(size - 1)
                    here = np.uint64(bins[column, np.uint64(narrow[line, row + last])])
                    total[0, here] += values[of + last]
                continue
            line = np.uint64(-1 - at)
            for i in range(np.uint64(size)):
                here = np.uint64(bins[column, np.uint64(wide[line, row + i])])
                total[i & np.uint64(1), here] += values[of + i]


@compiled(error_model="numpy")
def add_to_bins(
    narrow: Narrow, wide: Wide, place: Int32s, bins: Int32s, n_bins: int, chosen: Ints, leaf: Ints,
    rows: Ints, size: int, width: int, total: Ints,
) -> None:  # fmt: skip
    """Add statistics of chosen rows by leaf and bin of every column: (leaf and bin, statistic).

    `chosen` has the number of a row among all codes, `leaf` and `rows` have its leaf and its
    statistics: (chosen row,). It goes column by column over a block of rows, so that codes are read
    in the order they lie in.
    """
    for begin in range(0, size, BLOCK):
        stop = np.uint64(size if size - begin < BLOCK else begin + BLOCK)
        for j in range(place.shape[0]):
            column, at = np.uint64(j), np.int64(place[j])
            for i in range(np.uint64(begin), stop):
                row = np.uint64(chosen[i])
                if at >= 0:
                    code = np.uint64(narrow[np.uint64(at), row])
                else:
                    code = np.uint64(wide[np.uint64(-1 - at), row])
                here = np.uint64(leaf[i] * n_bins + bins[column, code])
                for w in range(width):
                    total[here, w] += rows[i, w]


@compiled(error_model="numpy")
def step_sums(
    now: Floats, before: Floats, scale: float, rows: Ints, steps: Int32s, total: Ints
) -> None:
    """Add g u and h u^2 over some rows of a loss with one output: (2,).

    u is the step from `before` in units of `scale`, clamped to +-1 and truncated toward zero onto
    a grid of 2**-20, and so are the products, on the grid 2**-bits: no row's product exceeds its
    own g or h. A step that is no number counts as 0. `steps` is memory for these rows.
    """
    n, slope, curve = np.uint64(now.size), np.int64(0), np.int64(0)
    for i in range(n):
        step = (now[i] - before[i]) / scale
        step = 1.0 if step > 1.0 else step
        step = -1.0 if step < -1.0 else step
        step = step if step == step else 0.0
        steps[i] = np.int32(step * 1048576.0)
    for i in range(n):
        u, g = np.int64(steps[i]), rows[i, 0]
        # A shift floors, so it is applied to magnitudes: the sign comes back afterwards.
        product = (abs(g) * abs(u)) >> 20
        slope += product if (g < 0) == (u < 0) else -product
        curve += (rows[i, 1] * ((u * u) >> 20)) >> 20
    total[0] += slope
    total[1] += curve


@compiled(error_model="numpy")
def softmax_step_sums(
    now: Floats, before: Floats, scale: float, target: Floats, bits: int, rows: Ints,
    weights: Wide, weight_bits: int, step: Ints, total: Ints,
) -> None:  # fmt: skip
    """Add slope and curvature of the softmax loss along a step over some rows: (2,).

    The slope is the mean of the steps u_k under the row's probabilities less that of its own class,
    the curvature their variance. Probabilities are those of `softmax`, on its grid a distribution;
    the slope is truncated toward zero and the curvature held below the exact one. Both are then
    multiplied by the row's weight, in steps of 2**-weight_bits, and truncated toward zero: the
    variance is that of the row. `weights` is empty where rows have none.

    Steps are taken less the middle of the row's, in units of `scale` and clamped to +-1/2, so that
    no two outputs are more than 1 apart, on a grid of 2**-20. A step that is no number counts as 0.
    """
    n = now.shape[1]
    for i in range(now.shape[0]):
        low, high = np.inf, -np.inf
        for k in range(n):
            u = (now[i, k] - before[i, k]) / scale
            u = min(max(u, -1e9), 1e9) if u == u else 0.0
            low, high = min(low, u), max(high, u)
        for k in range(n):
            u = (now[i, k] - before[i, k]) / scale
            u = min(max(u, -1e9), 1e9) if u == u else 0.0
            step[k] = np.int64(min(max(u - (low + high) / 2, -0.5), 0.5) * 1048576.0)
        label = np.int64(target[i])
        mean, square = np.int64(0), np.int64(0)
        for k in range(n):
            if k != label:
                apart = step[k] - step[label]
                mean += rows[i, k] * apart
                square += rows[i, k] * ((apart * apart) >> 20)
        slope = abs(mean) >> 20
        # Both truncations go one way: this is above the exact square of the mean step, so the
        # variance that is left is below the exact one.
        above = (((slope + 1) * (slope + 1)) >> bits) + 1
        curve = max((square >> 20) - above, np.int64(0))
        if weights.size > 0:
            slope = (slope * np.int64(weights[i])) >> weight_bits
            curve = (curve * np.int64(weights[i])) >> weight_bits
        total[0] += slope if mean > 0 else -slope
        total[1] += curve


@compiled(error_model="numpy")
def add_by_code(
    scores: Floats, first: int, size: int, codes: Leaves, at: int, values: Floats,
    n_trees: int,
) -> None:  # fmt: skip
    """Add trees in their order to scores (row,), by what a row's code has in `values` (tree, code).

    The codes of the trees are the lines of `codes`, from column `at` on. Four trees at a time take
    one look at each score.
    """
    last = np.uint64(n_trees)
    for begin in range(0, size, BLOCK):
        n = np.uint64(BLOCK if size - begin > BLOCK else size - begin)
        of, row, tree = np.uint64(at + begin), np.uint64(first + begin), np.uint64(0)
        while tree + np.uint64(4) <= last:
            a, b = tree, tree + np.uint64(1)
            c, d = tree + np.uint64(2), tree + np.uint64(3)
            for i in range(n):
                # One addition after another, in tree order: added in pairs they round otherwise.
                score = scores[row + i] + values[a, np.uint64(codes[a, of + i])]
                score += values[b, np.uint64(codes[b, of + i])]
                score += values[c, np.uint64(codes[c, of + i])]
                scores[row + i] = score + values[d, np.uint64(codes[d, of + i])]
            tree += np.uint64(4)
        while tree < last:
            for i in range(n):
                scores[row + i] += values[tree, np.uint64(codes[tree, of + i])]
            tree += np.uint64(1)


@compiled(error_model="numpy")
def add_by_leaf(
    scores: Floats, first: int, size: int, leaf: Leaves, at: int, trees: Int32s, first_tree: int,
    stop_tree: int, values: LeafValues,
) -> None:  # fmt: skip
    """Add trees in their order to the scores of several outputs, or of few rows: (row, output)."""
    of, row = np.uint64(at), np.uint64(first)
    for tree in range(first_tree, stop_tree):
        line, before = np.uint64(tree - first_tree), np.uint64(trees[tree, 3])
        for i in range(np.uint64(size)):
            here = before + np.uint64(leaf[line, of + i])
            for k in range(np.uint64(scores.shape[1])):
                scores[row + i, k] += np.float64(values[here, k])
