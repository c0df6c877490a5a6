"""An independent implementation of random Newton trees on raw values, in plain Python.

It takes the structures (the questions) as given and finds every leaf value by itself: routing on
raw values with ``x < edge`` in float32, gradients truncated onto the grid, integer sums, Newton
steps. Nothing here comes from hedgerow's routing, kernels, losses or binning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

GOLDEN = (1 + math.sqrt(5)) / 2
SCALE = 3.33  # how much finer Hessians are than gradients, at most GOLDEN**2.5
Row = dict[str, Any]


def rows_of_table(table: dict[str, list[Any]]) -> list[Row]:
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def goes_right(row: Row, column: Any, structure: Any, node: int) -> bool:
    value = row[column.name]
    missing_right = not structure.missing_left[node]
    if value is None:
        return missing_right
    if column.kind == "numeric":
        if math.isnan(value):
            return missing_right
        return not np.float32(value) < structure.threshold[node]
    listed = list(column.categories)
    if column.kind == "ordinal":
        if value not in listed:
            return missing_right
        return not np.float32(listed.index(value)) < structure.threshold[node]
    place = listed.index(value) if value in listed else len(listed)
    first = int(structure.member_start[node])
    return bool(int(structure.members[first + place // 64]) >> (place % 64) & 1)


def leaf_of(row: Row, schema: Any, structure: Any) -> int:
    """Number of the leaf, leaves counted in node order."""
    node = 0
    while structure.feature[node] >= 0:
        column = schema.columns[structure.feature[node]]
        right = goes_right(row, column, structure, node)
        node = int((structure.right if right else structure.left)[node])
    return sum(1 for f in structure.feature[:node] if f < 0)


def gradient(score: float, positive: bool, bits: int) -> tuple[int, int]:
    """(g, h) of one row in steps of 2**-bits: q truncated first, h floored from that q."""
    margin = score if positive else -score
    tail = math.exp(-abs(margin))
    q = tail / (1 + tail) if margin >= 0 else 1 / (1 + tail)
    one = 2**bits
    steps = math.floor(q * one)
    return (-steps if positive else steps), steps * (one - steps) // one


def grid_bits(mu: float, batch: int) -> int:
    """Fineness of the grid: the narrower block's noise has 2**26 to 2**27 steps."""
    narrow = math.sqrt(batch) / mu * (1 / SCALE)
    return min(31, max(16, 26 - math.floor(math.log2(narrow))))


def leaf_values(
    rows: Sequence[Row], schema: Any, plan: Any, structures: Sequence[Any]
) -> list[np.ndarray]:
    """Values (leaf, 1) of every tree, in order, as float32; the first is the base rate if asked."""
    settings, slots = plan.settings, list(plan.slots)
    label, positive = schema.label.name, schema.label.classes[1]
    targets = [row[label] == positive for row in rows]
    scores = [0.0] * len(rows)
    found: list[np.ndarray] = []
    left = list(structures)
    if settings.start_share > 0:
        floor = max(1.0, 2 / slots.pop(0).mu)
        yes = max(float(sum(targets)), floor)
        no = max(float(len(rows) - sum(targets)), floor)
        found.append(np.array([[math.log(yes / no)]], np.float32))
        scores = [s + float(found[0][0, 0]) for s in scores]
        left.pop(0)
    for slot in slots:
        batch, left = left[: settings.batch_size], left[settings.batch_size :]
        bits = grid_bits(slot.mu, len(batch))
        pairs = [gradient(s, t, bits) for s, t in zip(scores, targets, strict=True)]
        places = [[leaf_of(row, schema, s) for row in rows] for s in batch]
        for structure, place in zip(batch, places, strict=True):
            n_leaves = sum(1 for f in structure.feature if f < 0)
            sums = [[0, 0] for _ in range(n_leaves)]
            for leaf, (g, h) in zip(place, pairs, strict=True):
                sums[leaf][0] += g
                sums[leaf][1] += h
            found.append(_newton(sums, bits, settings, len(batch)))
        for values, place in zip(found[-len(batch) :], places, strict=True):
            scores = [s + float(values[leaf, 0]) for s, leaf in zip(scores, place, strict=True)]
    return found


def _newton(sums: list[list[int]], bits: int, settings: Any, batch: int) -> np.ndarray:
    """Clipped Newton weights; a batch adds the learning rate times the mean of its trees."""
    values = []
    for g, h in sums:
        denominator = max(h / 2**bits, 0.0) + settings.reg_lambda
        weight = -(g / 2**bits) / denominator if denominator > 0 else 0.0
        weight = min(max(weight, -settings.leaf_clip), settings.leaf_clip)
        values.append([settings.learning_rate / batch * weight])
    return np.array(values, np.float32)
