"""Where the boxes of a tree stand: levels from left to right, leaves from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BoxSize:
    """How large boxes are, and how far apart."""

    width: float
    height: float
    across: float
    down: float


@dataclass(frozen=True)
class Box:
    """The upper left corner of a node's box."""

    x: float
    y: float


@dataclass(frozen=True)
class Layout:
    """Boxes and parents by node, beginning at (0, 0)."""

    size: BoxSize
    boxes: tuple[Box, ...]
    parents: tuple[int, ...]  # -1 for the root
    width: float
    height: float


def layout_of(left: Sequence[int], right: Sequence[int], size: BoxSize) -> Layout:
    """Leaves one below the other; every other node in the middle of its children.

    Nodes are numbered so that children come after their parent; a leaf has children below 0.
    """
    n_nodes = len(left)
    depths, parents = [0] * n_nodes, [-1] * n_nodes
    for node in range(n_nodes):
        for child in (int(left[node]), int(right[node])):
            if child >= 0:
                depths[child], parents[child] = depths[node] + 1, node
    rows = [0.0] * n_nodes
    for row, leaf in enumerate(_leaves(left, right)):
        rows[leaf] = float(row)
    for node in reversed(range(n_nodes)):
        if left[node] >= 0:
            rows[node] = (rows[int(left[node])] + rows[int(right[node])]) / 2
    step = size.width + size.across, size.height + size.down
    boxes = tuple(Box(d * step[0], r * step[1]) for d, r in zip(depths, rows, strict=True))
    width = (max(depths) + 1) * step[0] - size.across
    return Layout(size, boxes, tuple(parents), width, (max(rows) + 1) * step[1] - size.down)


def _leaves(left: Sequence[int], right: Sequence[int]) -> list[int]:
    """Leaves from top to bottom, that is from left to right in the tree."""
    leaves, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        if left[node] < 0:
            leaves.append(node)
        else:
            waiting += [int(right[node]), int(left[node])]
    return leaves
