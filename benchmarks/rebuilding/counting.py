"""Rows that fit the noisy class counts of one tree best: an integer programme, solved by HiGHS.

Unknown are how many rows of each class lie in each leaf, and in each bin of each column there.
They are whole, agree with each other, and come as near to everything that was released as they can:
the sum of differences in units of the noise, which for Laplace noise is the likeliest table. Which
of a leaf's cells belong to one row no count says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from hedgerow.audit.recorder import Record
from hedgerow.data.rng import Generator
from hedgerow.model.code_trees import right_codes
from hedgerow.model.tree import Structure
from hedgerow.queries.cuts import bin_of_codes
from hedgerow.queries.tree_nodes import NO_COLUMN
from rebuilding.cells import Space

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Box = list[NDArray[np.bool_]]  # of each column which codes
SECONDS = 20.0


def boxes_of(structure: Structure, space: Space) -> list[Box]:
    """The codes that lead to each leaf, by column."""
    boxes: dict[int, Box] = {}

    def walk(node: int, box: Box) -> None:
        j = int(structure.feature[node])
        if j < 0:
            boxes[int(structure.leaf[node])] = box
            return
        right = right_codes(structure, node, space.grid[j])
        for side, child in ((~right, structure.left), (right, structure.right)):
            walk(int(child[node]), [*box[:j], box[j] & side, *box[j + 1 :]])

    walk(0, [np.ones(column.n_codes, np.bool_) for column in space.grid])
    return [boxes[leaf] for leaf in range(structure.n_leaves)]


def _lies_in(inner: Box, outer: Box) -> bool:
    return all(not (a & ~b).any() for a, b in zip(inner, outer, strict=True))


class _Programme:
    """Variables with names, constraints on their sums, and what it costs to miss a value."""

    def __init__(self) -> None:
        self._places: dict[tuple[Any, ...], int] = {}
        self._costs: list[float] = []
        self._whole: list[int] = []
        self._rows: list[tuple[list[int], list[float], float, float]] = []

    def place(self, name: tuple[Any, ...]) -> int:
        if name not in self._places:
            self._places[name] = self._new(0.0, 1)
        return self._places[name]

    def _new(self, cost: float, whole: int) -> int:
        self._costs.append(cost)
        self._whole.append(whole)
        return len(self._costs) - 1

    def bound(self, places: list[int], signs: list[float], low: float, high: float) -> None:
        self._rows.append((places, signs, low, high))

    def near(self, places: list[int], value: float, weight: float) -> None:
        """Their sum shall be near a value: what it differs by costs its weight."""
        apart, ones = self._new(weight, 0), [1.0] * len(places)
        self.bound([*places, apart], [*ones, 1.0], value, np.inf)
        self.bound([*places, apart], [*ones, -1.0], -np.inf, value)

    def solved(self) -> dict[tuple[Any, ...], int]:
        entries = [(i, p, s) for i, (ps, ss, _, _) in enumerate(self._rows)
                   for p, s in zip(ps, ss, strict=True)]  # fmt: skip
        rows, columns, signs = zip(*entries, strict=True)
        matrix = sparse.csr_array((signs, (rows, columns)), (len(self._rows), len(self._costs)))
        limits = optimize.LinearConstraint(
            matrix, [low for *_, low, _ in self._rows], [high for *_, high in self._rows]
        )
        found = optimize.milp(
            self._costs, integrality=self._whole, constraints=limits,
            bounds=optimize.Bounds(0, np.inf),
            options={"time_limit": SECONDS, "mip_rel_gap": 0.01},
        )  # fmt: skip
        if found.x is None:
            raise RuntimeError(f"no table was found in {SECONDS:g} seconds: {found.message}")
        return {name: round(found.x[place]) for name, place in self._places.items()}


def rebuilt(
    records: list[Record], space: Space, marginals: Floats, labels: Ints, rng: Generator
) -> Ints:
    """Rows (row, column) that fit what was released, as many of each label as there are."""
    asked = [record for record in records if record.query.kind == "class-histograms"]
    boxes = boxes_of(asked[-1].query.structure, space)
    programme, bins = _Programme(), _bins_of(asked, space)
    _put_together(programme, boxes, bins, labels)
    for record in asked:
        _add_release(programme, record, boxes, space)
    counts = programme.solved()
    made = [_rows_of_leaf(counts, box, leaf, bins, space, marginals, labels, rng)
            for leaf, box in enumerate(boxes)]  # fmt: skip
    return np.concatenate(made)


def _bins_of(asked: list[Record], space: Space) -> dict[int, Ints]:
    """The bin of each code of every column that was asked about."""
    found = {}
    for record in asked:
        for j, cuts in zip(record.query.columns, record.query.cuts, strict=True):
            found[j] = bin_of_codes(space.grid, (j,), (cuts,))[0][0]
    return found


def _put_together(
    programme: _Programme, boxes: list[Box], bins: dict[int, Ints], labels: Ints
) -> None:
    """Bins of a leaf add up to its rows, and leaves to all of them."""
    for label in (0, 1):
        all_ = [programme.place((leaf, label)) for leaf in range(len(boxes))]
        n = float((labels == label).sum())
        programme.bound(all_, [1.0] * len(all_), n, n)
        for leaf, box in enumerate(boxes):
            for j, of_code in bins.items():
                there = np.unique(of_code[box[j]]).tolist()
                places = [programme.place((leaf, label, j, b)) for b in there]
                both = [*places, programme.place((leaf, label))]
                programme.bound(both, [*[1.0] * len(places), -1.0], 0.0, 0.0)


def _add_release(programme: _Programme, record: Record, boxes: list[Box], space: Space) -> None:
    query, first = record.query, 0
    weights = [1 / sigma if sigma else 1.0 for sigma in record.release.sigmas]
    outer = boxes_of(query.structure, space)
    known = programme._places
    for node, weight in zip(query.asked, weights, strict=True):
        leaves = [i for i, box in enumerate(boxes) if _lies_in(box, outer[node.leaf])]
        for j in node.columns:
            for label in (0, 1):
                for b in range(query.width(j)):
                    names = [(i, label) if j == NO_COLUMN else (i, label, j, b) for i in leaves]
                    places = [known[name] for name in names if name in known]
                    if places:
                        programme.near(places, float(record.release.values[first]), weight)
                    first += 1


def _rows_of_leaf(
    counts: dict[tuple[Any, ...], int], box: Box, leaf: int, bins: dict[int, Ints],
    space: Space, marginals: Floats, labels: Ints, rng: Generator,
) -> Ints:  # fmt: skip
    """Cells dealt to rows at random within a leaf and label; codes within a bin by marginals."""
    made = []
    for label in (0, 1):
        n = counts[leaf, label]
        columns = []
        for j, at in enumerate(space.slices()):
            shares = np.where(box[j], marginals[at] + 1e-9, 0.0)
            if j not in bins:
                columns.append(rng.choice(len(shares), n, p=shares / shares.sum()))
                continue
            cells = []
            for b in np.unique(bins[j][box[j]]).tolist():
                inside = np.where(bins[j] == b, shares, 0.0)
                many = counts[leaf, label, j, b]
                cells.append(rng.choice(len(shares), many, p=inside / inside.sum()))
            columns.append(rng.permutation(np.concatenate(cells)))
        made.append(np.stack(columns, axis=1).astype(np.int64))
    return np.concatenate(made)
