"""Where the boxes of a tree stand: levels from left to right, leaves from top to bottom."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap

from hedgerow.inspection.tree_view.view import TreeView

WIDTH, HEIGHT = 264.0, 74.0  # of a box
ACROSS, DOWN = 46.0, 12.0  # between boxes
MARGIN, HEAD, FOOT = 16.0, 52.0, 46.0
LETTERS = 31  # that fit into a line of a box, whatever font stands in for Helvetica
# Eight colours that people with colour-blindness tell apart (Okabe and Ito).
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D1F", "#666666",
)  # fmt: skip


@dataclass(frozen=True)
class Box:
    """The upper left corner of a node's box."""

    x: float
    y: float


@dataclass(frozen=True)
class Layout:
    boxes: dict[int, Box]
    width: float
    height: float


def layout_of(view: TreeView) -> Layout:
    """Leaves one below the other; every other node in the middle of its children."""
    rows = {leaf.number: float(i) for i, leaf in enumerate(view.leaves)}
    for node in reversed(view.nodes):  # children come after their parent
        if not node.is_leaf:
            rows[node.number] = (rows[node.left] + rows[node.right]) / 2
    boxes = {
        node.number: Box(
            MARGIN + node.depth * (WIDTH + ACROSS), HEAD + rows[node.number] * (HEIGHT + DOWN)
        )
        for node in view.nodes
    }
    deepest = max(node.depth for node in view.nodes)
    width = 2 * MARGIN + (deepest + 1) * WIDTH + deepest * ACROSS
    height = HEAD + len(view.leaves) * (HEIGHT + DOWN) - DOWN + FOOT
    return Layout(boxes, max(width, 640.0), height)


def colour_of(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def two_lines(text: str) -> list[str]:
    """A condition in at most two lines of a box."""
    lines = wrap(text, LETTERS, break_long_words=True) or [""]
    if len(lines) > 2:
        lines = [lines[0], short(" ".join(lines[1:]), LETTERS - 1)]
    return lines


def short(text: str, longest: int = LETTERS) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
