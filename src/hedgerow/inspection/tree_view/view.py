"""A tree as people see it: conditions in words, noisy counts with intervals, class shares.

Everything comes from the model, which holds released values only.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hedgerow.data.cards import Card, Shown, listed
from hedgerow.errors import FormatError, SettingsError
from hedgerow.inspection.tree_view.conditions import Side, side_of
from hedgerow.model.ensemble import Ensemble

INTERVAL = 1.6449  # deviations that hold 90 % of normal noise, and of one Laplace to a hundredth


@dataclass(frozen=True)
class ViewNode:
    """One node; numbers of rows are noisy and never below 0."""

    number: int
    parent: int  # -1 for the root
    left: int  # -1 for leaves
    right: int
    depth: int
    condition: str  # how it is reached from its parent; "all rows" for the root
    rows: float
    interval: tuple[float, float]  # 90 %, of the number of rows
    counts: tuple[float, ...]  # by class
    deviation: float  # of the noise in each class's count; -1 if nothing was released
    shares: tuple[float, ...]  # by class
    label: str  # the likeliest class
    spent: float  # epsilon at this node

    @property
    def is_leaf(self) -> bool:
        return self.left < 0


@dataclass(frozen=True, repr=False)
class TreeView(Shown):
    """All nodes, root first, and what was promised."""

    nodes: tuple[ViewNode, ...]
    sides: tuple[Side | None, ...]  # the last split above each node; None for the root
    shown: tuple[Side | None, ...]  # the same with earlier splits of its column drawn together
    classes: tuple[str, ...]
    label: str
    note: str

    def _card(self) -> Card:
        facts = (
            ("predicts", f"{self.label} ({listed(self.classes)})"),
            ("nodes", len(self.nodes)),
            ("leaves", sum(node.is_leaf for node in self.nodes)),
            ("depth", max(node.depth for node in self.nodes)),
        )
        rows = tuple(("· " * n.depth + n.condition, n.label, n.rows) for n in self.nodes)
        return Card(
            "Tree", facts, ("rows that are", "likeliest", "noisy number"), rows, (self.note,)
        )

    @staticmethod
    def of(model: Ensemble) -> TreeView:
        """The view of a model that is one readable tree."""
        record = model.record.get("tree")
        if len(model.trees) != 1 or not isinstance(record, dict):
            raise SettingsError(
                f"this model has {len(model.trees)} trees and no counts of its nodes, so it cannot "
                'be drawn as one readable tree; train with method "private-tree"'
            )
        try:
            return TreeView._read(model, record)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise FormatError("the model's record of its tree is not readable") from error

    @staticmethod
    def _read(model: Ensemble, record: dict[str, Any]) -> TreeView:
        classes = tuple(str(value) for value in model.schema.label.classes)
        structure = model.trees[0].structure
        parents = [-1] * structure.n_nodes
        sides: list[Side | None] = [None] * structure.n_nodes
        for node in np.flatnonzero(structure.feature >= 0).tolist():
            for goes, child in ((False, structure.left[node]), (True, structure.right[node])):
                parents[child] = node
                sides[child] = side_of(structure, node, model.schema, goes)
        shown = [_together(number, sides, parents) for number in range(structure.n_nodes)]
        nodes: list[ViewNode] = []
        for number, (parent, side) in enumerate(zip(parents, shown, strict=True)):
            depth = 0 if parent < 0 else nodes[parent].depth + 1
            pair = (int(structure.left[number]), int(structure.right[number]))
            words = "all rows" if side is None else side.words()
            nodes.append(_node(number, parent, pair, depth, words, record, classes))
        what = (classes, model.schema.label.name, _note(model))
        return TreeView(tuple(nodes), tuple(sides), tuple(shown), *what)

    def path(self, number: int) -> list[Side]:
        """The sides that lead from the root to a node, in order."""
        sides: list[Side] = []
        while (side := self.sides[number]) is not None:
            sides.append(side)
            number = self.nodes[number].parent
        return sides[::-1]

    @property
    def leaves(self) -> list[ViewNode]:
        """From left to right."""
        order: list[ViewNode] = []

        def walk(number: int) -> None:
            node = self.nodes[number]
            if node.is_leaf:
                order.append(node)
            else:
                walk(node.left)
                walk(node.right)

        walk(0)
        return order

    def to_dict(self) -> dict[str, Any]:
        """For programs; JSON holds all of it."""
        return {
            "label": self.label,
            "classes": list(self.classes),
            "note": self.note,
            "nodes": [asdict(node) for node in self.nodes],
        }


def _together(number: int, sides: list[Side | None], parents: list[int]) -> Side | None:
    """The condition on the last split's column, with what the splits above say of it."""
    together = sides[number]
    while together is not None and (number := parents[number]) >= 0:
        above = sides[number]
        if above is not None and above.column == together.column:
            together = above.meets(together)
    return together


def _node(
    number: int, parent: int, pair: tuple[int, int], depth: int, words: str,
    record: dict[str, Any], classes: tuple[str, ...],
) -> ViewNode:  # fmt: skip
    counts = tuple(max(0.0, float(n)) for n in record["counts"][number])
    shares = tuple(float(share) for share in record["shares"][number])
    noise, rows = float(record["deviations"][number]), sum(counts)
    spread = INTERVAL * math.sqrt(len(counts)) * noise if noise >= 0 else math.inf
    return ViewNode(
        number, parent, *pair, depth, words, rows, (max(0.0, rows - spread), rows + spread), counts,
        noise, shares, classes[int(np.argmax(shares))], float(record["spent"][number]),
    )  # fmt: skip


def _note(model: Ensemble) -> str:
    """What was spent, in a sentence that says nothing of single parties."""
    says = model.statement
    if says.guarantee != "pure":
        return "NOT PRIVATE. " + says.reason
    most = float(model.record["tree"]["dearest_path"])
    return (
        f"Pure epsilon = {says.epsilon:g} ({says.shown_neighbours}); the dearest path from the "
        f"root to a leaf spent {most:.3g}, repeated questions not counted. Numbers of rows "
        "carry noise: 90 % intervals from its known size."
    )
