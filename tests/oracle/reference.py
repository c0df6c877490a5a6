"""An independent implementation of random trees with noisy leaves, on raw values, in plain Python.

It takes the structures and the edges of the base grid (the questions) as given and finds every
leaf value and every candidate by itself: routing on raw values with ``x < edge`` in float32, whole
numbers on the grid, sums, steps. Nothing here comes from hedgerow's routing, kernels, losses,
binning or growing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.oracle.parts import (
    Cuts,
    averages,
    base_rate,
    equal_mass_cuts,
    first_cuts,
    grid_bits,
    numbers_of,
    refined,
    steps,
)

Row = dict[str, Any]
# By (loss, update): the norm of one row, and how much finer the second part is than the first.
BOUNDS = {
    ("logistic", "newton"): (1.0, 3.33),
    ("logistic", "gradient"): (math.sqrt(1.25), 0.5),
    ("logistic", "averaging"): (1.0, None),
    ("softmax", "newton"): (math.sqrt(2.0), 2.0),
    ("softmax", "gradient"): (math.sqrt(2.5), math.sqrt(0.5)),
    ("softmax", "averaging"): (1.0, None),
    **{("squared", u): (math.hypot(1.0, 0.5), 0.5) for u in ("newton", "gradient", "averaging")},
}
HESSIAN_BOUND = {"logistic": 0.25, "softmax": 1.0, "squared": 1.0}


def rows_of_table(table: dict[str, list[Any]]) -> list[Row]:
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def loss_of(schema: Any) -> str:
    return {0: "squared", 2: "logistic"}.get(len(schema.label.classes), "softmax")


def goes_right(row: Row, column: Any, structure: Any, node: int) -> bool:
    value = place_of(row, column)
    if value is None:
        return not structure.missing_left[node]
    if column.kind == "categorical":
        first = int(structure.member_start[node])
        return bool(int(structure.members[first + value // 64]) >> (value % 64) & 1)
    return not np.float32(value) < structure.threshold[node]


def place_of(row: Row, column: Any) -> Any:
    """The number of a row in a column, its position in a list, or None where it is missing."""
    value = row[column.name]
    if value is None or value != value:
        return None
    if column.kind == "numeric":
        return value
    listed = list(column.categories)
    if value in listed:
        return listed.index(value)
    return len(listed) if column.kind == "categorical" else None


def leaf_of(row: Row, schema: Any, structure: Any) -> int:
    """Number of the leaf, leaves counted in node order."""
    node = 0
    while structure.feature[node] >= 0:
        column = schema.columns[structure.feature[node]]
        right = goes_right(row, column, structure, node)
        node = int((structure.right if right else structure.left)[node])
    return sum(1 for f in structure.feature[:node] if f < 0)


# The loop.


@dataclass
class Expected:
    """What the reference finds: values of every tree, cuts of every batch, Hessian releases."""

    values: list[np.ndarray] = field(default_factory=list)
    cuts: list[Cuts] = field(default_factory=list)
    hessians: list[tuple[Cuts, list[float]]] = field(default_factory=list)


class Reference:
    """One run of a plan over raw rows."""

    def __init__(self, rows: Sequence[Row], schema: Any, plan: Any, edges: Sequence[Any]) -> None:
        self.rows, self.schema, self.plan, self.edges = rows, schema, plan, edges
        self.settings, self.loss, self.k = plan.settings, loss_of(schema), schema.unit.at_most
        label, self.n_classes = schema.label, len(schema.label.classes)
        values = [row[label.name] for row in rows]
        if self.n_classes:
            self.targets = [float(label.classes.index(v)) for v in values]
        else:
            width = label.upper - label.lower
            clipped = [min(max(v, label.lower), label.upper) for v in values]
            self.targets = [(v - label.lower) / width for v in clipped]
        self.n_outputs = self.n_classes if self.n_classes > 2 else 1
        self.scores = [[0.0] * self.n_outputs for _ in rows]
        self.found = Expected()

    def run(self, structures: Sequence[Any]) -> Expected:
        settings, slots, left = self.settings, list(self.plan.slots), list(structures)
        averaged = settings.update == "averaging"
        if slots[0].kind == "label-sums":
            self._start(slots.pop(0).mu)
            left.pop(0)
        elif self.loss == "squared" and not averaged:  # nothing bought: the middle of the bounds
            self.found.values.append(np.array([[0.5]], np.float32))
            self._add(self.found.values[-1], [0] * len(self.rows))
            left.pop(0)
        cuts = first_cuts(self.schema, self.edges, settings.candidates, settings.n_bins)
        size = settings.trees_per_round
        for slot in slots:
            if slot.kind in ("column-hessians", "column-counts"):
                counted = slot.kind == "column-counts"
                cuts = (self._count if counted else self._refine)(cuts, slot.mu)
                continue
            batch, left = left[:size], left[size:]
            self.found.cuts.append(cuts)
            self._batch(batch, slot.mu)
        assert not left
        if averaged:
            scale = np.float32(1 / len(self.found.values))
            self.found.values = [values * scale for values in self.found.values]
        return self.found

    def _start(self, mu: float) -> None:
        unit = (math.sqrt(2.0) if self.loss == "squared" else 1.0) * self.k / mu
        floor, bits = max(1.0, 2 * unit), grid_bits(unit)
        values = base_rate(self.targets, self.loss, self.n_classes, bits, floor)
        self.found.values.append(np.array([values], np.float32))
        self._add(self.found.values[-1], [0] * len(self.rows))

    def _add(self, values: np.ndarray, place: Sequence[int]) -> None:
        for score, leaf in zip(self.scores, place, strict=True):
            for k in range(self.n_outputs):
                score[k] += float(values[leaf, k])

    def _batch(self, batch: Sequence[Any], mu: float) -> None:
        settings, update = self.settings, self.settings.update
        l2, scale = BOUNDS[self.loss, update]
        unit = math.sqrt(len(batch)) * l2 * self.k / mu
        bits = grid_bits(unit if scale is None else unit * min(1.0, 1 / scale))
        numbers = [
            numbers_of(self.loss, update, score, target, bits, self.n_classes)
            for score, target in zip(self.scores, self.targets, strict=True)
        ]
        fresh = []
        for structure in batch:
            place = [leaf_of(row, self.schema, structure) for row in self.rows]
            n_leaves = sum(1 for f in structure.feature if f < 0)
            sums = [[0] * len(numbers[0]) for _ in range(n_leaves)]
            for leaf, row in zip(place, numbers, strict=True):
                sums[leaf] = [a + b for a, b in zip(sums[leaf], row, strict=True)]
            if scale is None or update == "averaging":
                values = np.array(averages(sums, bits, self.loss, max(1.0, 2 * unit)))
            else:
                values = np.array(steps(sums, bits, self.n_outputs, unit, scale, settings))
                values = settings.learning_rate / len(batch) * values
            fresh.append((values.astype(np.float32), place))
        for values, place in fresh:
            self.found.values.append(values)
            if update != "averaging":  # a forest asks nothing about its own trees
                self._add(values, place)

    def _count(self, cuts: Cuts, mu: float) -> Cuts:
        n_bins, fresh = self.settings.n_bins, dict(cuts)
        columns = [j for j in cuts if len(self.edges[j]) >= n_bins]
        for j in columns:
            counts = [0] * (len(self.edges[j]) + 1)
            for row in self.rows:
                value = place_of(row, self.schema.columns[j])
                if value is not None:
                    counts[sum(np.float32(value) >= edge for edge in self.edges[j])] += 1
            deviation = math.sqrt(len(columns)) * self.k / mu
            fresh[j] = equal_mass_cuts(counts, deviation, n_bins) or cuts[j]
        return fresh

    def _refine(self, cuts: Cuts, mu: float) -> Cuts:
        columns = [
            j
            for j, c in enumerate(self.schema.columns)
            if c.kind == "numeric" and len(self.edges[j])
        ]
        bits = grid_bits(math.sqrt(len(columns)) * HESSIAN_BOUND[self.loss] * self.k / mu)
        n = self.n_outputs
        weights = [
            sum(numbers_of(self.loss, "newton", s, t, bits, self.n_classes)[n:])
            for s, t in zip(self.scores, self.targets, strict=True)
        ]
        fresh, flat = dict(cuts), []
        for j in columns:
            edges, sums = self.edges[j], [0] * (len(cuts[j]) + 1)
            for row, weight in zip(self.rows, weights, strict=True):
                value = place_of(row, self.schema.columns[j])
                if value is not None:
                    sums[sum(np.float32(value) >= edges[c] for c in cuts[j])] += weight
            exact = [s / 2**bits for s in sums]
            flat += exact
            fresh[j] = refined(self.schema.columns[j], edges, cuts[j], exact, self.settings.n_bins)
        self.found.hessians.append(({j: cuts[j] for j in columns}, flat))
        return fresh
