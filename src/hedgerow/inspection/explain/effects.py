"""A sum of trees as effects of single columns and of pairs, and how noisy each effect is.

A leaf's value counts where every column of its path lies inside of its box. Under weights that
treat columns as independent, 1[x in box] = prod (p_j + (1_j - p_j)), with p_j the weight of the
box's cells of column j; multiplied out, that is a mean, effects of single columns, of pairs, and
of more (the functional ANOVA). Trees of one or two columns have nothing beyond pairs, so there
the effects add up to the model's score exactly. All of it is linear in the leaf values: so are
the variances, given the weights.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.inspection.explain.cells import Boxes
from hedgerow.model.tree import Tree

Floats = NDArray[np.float64]


@dataclass
class Effects:
    """Means, effects of columns and of pairs, with the variances of their noise."""

    intercept: Floats  # (output,)
    intercept_variance: Floats
    main_effects: list[Floats]  # of every column, (output, cell)
    main_variances: list[Floats]
    pairs: dict[tuple[int, int], Floats] = field(default_factory=dict)  # (output, cell, cell)
    pair_variances: dict[tuple[int, int], Floats] = field(default_factory=dict)

    @staticmethod
    def nothing(n_outputs: int, n_cells: Sequence[int]) -> Effects:
        zeros = [np.zeros((n_outputs, n)) for n in n_cells]
        return Effects(
            np.zeros(n_outputs), np.zeros(n_outputs), zeros, [np.zeros_like(z) for z in zeros]
        )


def effects_of(
    trees: Sequence[Tree],
    boxes: Sequence[Boxes],
    weights: Sequence[Floats],
    n_outputs: int,
    kept: Collection[int] = (),
) -> Effects:
    """The effects of all trees. Those numbered in `kept` count as they are, around 0."""
    effects = Effects.nothing(n_outputs, [len(w) for w in weights])
    for number, (tree, box) in enumerate(zip(trees, boxes, strict=True)):
        values = tree.values.T.astype(np.float64)  # (output, leaf)
        variance = _variance(tree)
        centred = number not in kept
        parts = [
            (inside.astype(np.float64), inside @ weights[j] if centred else np.zeros(len(inside)))
            for j, inside in zip(box.columns, box.inside, strict=True)
        ]
        _add(effects, box.columns, parts, values, variance, tree.independent or not centred)
    return effects


def _variance(tree: Tree) -> Floats:
    """Variances (output, leaf) of the noise in leaf values; NaN where it is not known."""
    if tree.deviation is None:
        return np.full(tree.values.T.shape, np.nan)
    return tree.deviation.T.astype(np.float64) ** 2


def _add(
    effects: Effects,
    columns: tuple[int, ...],
    parts: list[tuple[Floats, Floats]],
    values: Floats,
    variance: Floats,
    independent: bool,
) -> None:
    chances = np.array([p for _, p in parts]).reshape(len(parts), values.shape[1])  # (place, leaf)
    effects.intercept += values @ chances.prod(axis=0)
    effects.intercept_variance += variance @ chances.prod(axis=0) ** 2
    for a, j in enumerate(columns):
        others = np.delete(chances, a, axis=0).prod(axis=0)
        inside, chance = parts[a]
        off = inside - chance[:, None]  # (leaf, cell)
        effects.main_effects[j] += (values * others) @ off
        # Leaves made from each other's sums have deviations around their common level already.
        spread = off if independent or len(columns) > 1 else inside
        effects.main_variances[j] += (variance * others**2) @ spread**2
        for b in range(a + 1, len(columns)):
            pair, rest = (j, columns[b]), np.delete(chances, (a, b), axis=0).prod(axis=0)
            across = parts[b][0] - parts[b][1][:, None]
            _add_pair(effects, pair, values * rest, variance * rest**2, off, across)


def _add_pair(
    found: Effects,
    pair: tuple[int, int],
    values: Floats,
    variance: Floats,
    down: Floats,
    across: Floats,
) -> None:
    if pair not in found.pairs:
        shape = (len(values), down.shape[1], across.shape[1])
        found.pairs[pair], found.pair_variances[pair] = np.zeros(shape), np.zeros(shape)
    for k in range(len(values)):
        found.pairs[pair][k] += (down * values[k][:, None]).T @ across
        found.pair_variances[pair][k] += (down**2 * variance[k][:, None]).T @ across**2
