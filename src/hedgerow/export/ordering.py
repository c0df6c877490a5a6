"""Category splits as ordered splits of the code, for formats that have no category sets.

A set of codes becomes its runs of neighbouring codes, found by a small search tree; what stands
below is repeated under every run. On a path only the codes that can still arrive count, so a tree
of one column has at most a leaf for every code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import ExportError
from hedgerow.export.forest import ExportTree, Floats, Forest, n_codes_of, up_the_tree

MAX_NODES = 1_000_000  # of all trees together


def ordered(forest: Forest) -> Iterator[ExportTree]:
    """The trees of a forest without category splits; predictions stay the same."""
    columns = enumerate(forest.schema.columns)
    n_codes = {j: n_codes_of(column) for j, column in columns if column.kind == "categorical"}
    room = MAX_NODES
    for tree in forest.trees:
        in_order = _Ordering(tree, n_codes, room).run() if tree.members else tree
        room -= in_order.n_nodes
        yield in_order


@dataclass(frozen=True)
class _Arriving:
    """The codes low .. high - 1 of a column that can still arrive, and whether missing ones can."""

    low: int
    high: int
    missing: bool = True


@dataclass(frozen=True)
class _Run:
    """Neighbouring codes that go the same way, and their part of all that go there."""

    low: int
    high: int
    right: bool
    part: float = 1.0


@dataclass(frozen=True)
class _Task:
    """A node of the old tree that is to be written below a node of the new one.

    `share` of its cover arrives there. While its codes are told apart, `runs` are those still
    together, and `home` is which of them missing values go with.
    """

    node: int
    arriving: dict[int, _Arriving]
    share: float
    parent: int
    is_left: bool
    runs: tuple[_Run, ...] = ()
    home: int | None = None


class _Ordering:
    """One tree being written down again."""

    def __init__(self, tree: ExportTree, n_codes: dict[int, int], room: int) -> None:
        self._tree, self._n_codes, self._room = tree, n_codes, room
        self._splits: list[tuple[int, float, bool]] = []  # feature, threshold, missing_left
        self._children: list[list[int]] = []  # left, right
        self._values: list[Floats] = []
        self._cover: list[float] = []
        self._left: list[_Task] = []

    def run(self) -> ExportTree:
        arriving = {j: _Arriving(0, n) for j, n in self._n_codes.items()}
        self._left.append(_Task(0, arriving, 1.0, -1, False))
        while self._left:
            self._step(self._left.pop())
        feature, threshold, missing_left = zip(*self._splits, strict=True)
        left, right = np.array(self._children, np.int32).T
        features = np.array(feature, np.int32)
        values, cover = up_the_tree(
            features, left, right, np.array(self._values), np.array(self._cover)
        )
        return ExportTree(
            features, np.array(threshold, np.float32), np.array(missing_left, np.bool_),
            left, right, {}, values, cover,
        )  # fmt: skip

    def _step(self, task: _Task) -> None:
        tree, node = self._tree, task.node
        column = int(tree.feature[node])
        if column < 0:
            self._add(task, -1, 0.0, False)
            self._values.append(tree.values[node])
            self._cover.append(task.share * float(tree.cover[node]))
            return
        if column in self._n_codes:
            self._tell_apart(task if task.runs else self._with_runs(task, column), column)
            return
        here = self._add(task, column, float(tree.threshold[node]), bool(tree.missing_left[node]))
        for is_left, side in ((False, tree.right), (True, tree.left)):
            child = int(side[node])
            self._left.append(_Task(child, task.arriving, task.share, here, is_left))

    def _tell_apart(self, task: _Task, column: int) -> None:
        """Cut the runs of a split in the middle; a single one leads to the old node's child."""
        runs, home = task.runs, task.home
        if len(runs) == 1:
            side = self._tree.right if runs[0].right else self._tree.left
            narrow = _Arriving(runs[0].low, runs[0].high, home is not None)
            self._left.append(
                _Task(
                    int(side[task.node]), {**task.arriving, column: narrow},
                    task.share * runs[0].part, task.parent, task.is_left,
                )
            )  # fmt: skip
            return
        middle = len(runs) // 2
        first = home is not None and home < middle
        here = self._add(task, column, float(runs[middle].low), first)
        right = home - middle if home is not None and not first else None
        below = replace(task, parent=here)
        self._left.append(replace(below, is_left=False, runs=runs[middle:], home=right))
        self._left.append(
            replace(below, is_left=True, runs=runs[:middle], home=home if first else None)
        )

    def _with_runs(self, task: _Task, column: int) -> _Task:
        """The runs of a split among the codes that can arrive, and where missing values go."""
        here, to_right = task.arriving[column], not self._tree.missing_left[task.node]
        goes = self._goes_right(task.node, column)[here.low : here.high]
        ends = [here.low, *(np.flatnonzero(np.diff(goes)) + 1 + here.low).tolist(), here.high]
        counts = (max(1, int((~goes).sum())), max(1, int(goes.sum())))
        runs = [
            _Run(low, high, right := bool(goes[low - here.low]), (high - low) / counts[right])
            for low, high in pairwise(ends)
            if low < high
        ]
        if here.missing and not any(run.right == to_right for run in runs):
            # Missing values alone go this way: an edge beyond every code tells them apart.
            edge = here.high if to_right else here.low
            runs.insert(len(runs) if to_right else 0, _Run(edge, edge, to_right))
        way = [run.right for run in runs]
        home = way.index(to_right) if here.missing else None
        return replace(task, runs=tuple(runs), home=home)

    def _goes_right(self, node: int, column: int) -> NDArray[np.bool_]:
        """Of every code of the column whether it goes right: (code,)."""
        codes = np.arange(self._n_codes[column])
        if (members := self._tree.members.get(node)) is None:  # none of them, or all
            return np.asarray(codes >= self._tree.threshold[node])
        return np.isin(codes, members)

    def _add(self, task: _Task, feature: int, threshold: float, missing_left: bool) -> int:
        number = len(self._splits)
        if number >= self._room:
            raise ExportError(
                f"without category splits this model has more than {MAX_NODES:,} nodes, and "
                "scikit-learn's trees have none; export it to xgboost, onnx or treelite instead. "
                "Nothing was written."
            )
        self._splits.append((feature, threshold, missing_left))
        self._children.append([-1, -1])
        if task.parent >= 0:
            self._children[task.parent][0 if task.is_left else 1] = number
        return number
