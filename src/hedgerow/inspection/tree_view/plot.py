"""Pictures of trees: a readable tree with its noisy counts, or one tree of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from hedgerow.data.cards import short
from hedgerow.data.schema import Schema
from hedgerow.inspection.drawing import Canvas, Picture
from hedgerow.inspection.drawing.pyplot import offered
from hedgerow.inspection.tree_view.conditions import side_of
from hedgerow.inspection.tree_view.text import outcome, rows_in_words
from hedgerow.inspection.tree_view.view import TreeView, ViewNode
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree


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


READABLE = BoxSize(264.0, 74.0, 46.0, 12.0)
ONE_OF_MANY = BoxSize(174.0, 42.0, 22.0, 6.0)
MARGIN, HEAD, FOOT = 16.0, 56.0, 46.0
LETTERS = 33  # that fit into a line of a readable tree's box, whatever font there is


@dataclass(frozen=True)
class NodeBox:
    """What stands in the box of a node."""

    title: str  # shown by a browser above it
    lines: tuple[str, ...]  # the condition
    detail: str = ""
    shares: tuple[float, ...] = ()  # by class, as a bar
    outcome: str = ""  # beside the bar
    series: int | None = None  # the class of a leaf
    is_leaf: bool = False
    part: float = 0.0  # of the rows


def plot_tree(model: Ensemble | TreeView) -> Picture:
    """The picture of a readable tree: a notebook shows it, `save("tree.svg")` writes it.

    After `import matplotlib.pyplot as plt` it is a figure of pyplot as well, for `plt.show()`.
    """
    return offered(tree_picture(model if isinstance(model, TreeView) else TreeView.of(model)))


def tree_picture(view: TreeView) -> Picture:
    """The picture of a readable tree, for a page."""
    left, right = ([getattr(node, side) for node in view.nodes] for side in ("left", "right"))
    layout = layout_of(left, right, READABLE)
    width = max(layout.width + 2 * MARGIN, 640.0)
    canvas = Canvas(width, HEAD + layout.height + FOOT, f"Decision tree for {view.label}")
    canvas.text(MARGIN, 26, short(f"Decision tree for {view.label}", 60), kind="heading")
    canvas.legend(MARGIN, 45, [short(name, 24) for name in view.classes])
    _draw(canvas, layout, [_readable_box(view, node) for node in view.nodes], (MARGIN, HEAD))
    letters = max(60, int((width - 2 * MARGIN) / 6.0))
    canvas.lines(MARGIN, canvas.height - FOOT + 22, view.note, letters)
    return canvas.picture()


def plot_boosted_tree(tree: Tree, schema: Schema, scale: float) -> Picture:
    """The picture of one tree of many: conditions, and what leaves add to the score."""
    nodes = tree.structure
    layout = layout_of(nodes.left.tolist(), nodes.right.tolist(), ONE_OF_MANY)
    canvas = Canvas(layout.width + 4, layout.height + 4, "A tree")
    boxes = [_boosted_box(tree, schema, scale, node, p) for node, p in enumerate(layout.parents)]
    _draw(canvas, layout, boxes, (2.0, 2.0))
    return canvas.picture()


def _readable_box(view: TreeView, node: ViewNode) -> NodeBox:
    side = view.shown[node.number]
    words = node.condition if side is None else side.words(2 * LETTERS - len(side.column) - 30)
    return NodeBox(
        f"{node.condition}: {outcome(node, view)}",
        two_lines(words),
        short(rows_in_words(node), 42),
        node.shares,
        short(f"{node.label}: {100 * max(node.shares):.0f} %", 15),
        view.classes.index(node.label),
        node.is_leaf,
        min(1.0, node.rows / max(view.nodes[0].rows, 1.0)),
    )


def _boosted_box(tree: Tree, schema: Schema, scale: float, node: int, parent: int) -> NodeBox:
    words, leaf = "all rows", int(tree.structure.leaf[node])
    if parent >= 0:
        goes_right = bool(tree.structure.right[parent] == node)
        words = side_of(tree.structure, parent, schema, goes_right).words(24)
    values = tree.values[leaf][:3].tolist() if leaf >= 0 else []
    detail = " / ".join(f"{scale * value:+.3f}" for value in values)
    brief = short(words.replace(" (or missing)", " *"), 24)
    return NodeBox(words, (brief,), detail, is_leaf=leaf >= 0)


def _draw(
    canvas: Canvas, layout: Layout, nodes: Sequence[NodeBox], corner: tuple[float, float]
) -> None:
    """Boxes, and lines from parents to children as wide as their part of the rows."""
    size = layout.size
    boxes = [Box(corner[0] + box.x, corner[1] + box.y) for box in layout.boxes]
    for box, node, parent in zip(boxes, nodes, layout.parents, strict=True):
        if parent >= 0:
            start = boxes[parent].x + size.width, boxes[parent].y + size.height / 2
            canvas.link(start, (box.x, box.y + size.height / 2), 1 + 7 * node.part)
    for box, node in zip(boxes, nodes, strict=True):
        _draw_box(canvas.group(node.title), box, size, node)


def _draw_box(canvas: Canvas, box: Box, size: BoxSize, node: NodeBox) -> None:
    kind = "box leaf" if node.is_leaf else "box"
    canvas.rect(box.x, box.y, size.width, size.height, kind, node.series, radius=6)
    has_bar = bool(node.shares)
    middle = 16 if has_bar else 18 if node.detail else 25
    for i, line in enumerate(node.lines):
        canvas.text(box.x + 9, box.y + middle + 15 * i, line, kind="bold" if has_bar else "strong")
    canvas.text(box.x + 9, box.y + (47 if has_bar else 34), node.detail, kind="small")
    if not has_bar:
        return
    x, whole = box.x + 9, size.width - 18 - 92
    for number, share in enumerate(node.shares):
        width = max(0.0, share) * whole
        canvas.rect(x, box.y + 55, width, 11, "fill", number)
        x += width
    canvas.text(box.x + size.width - 9, box.y + 65, node.outcome, "end", "strong small")


def two_lines(words: str) -> tuple[str, ...]:
    """A condition in at most two lines of a box."""
    lines = wrap(words, LETTERS, break_long_words=True) or [""]
    if len(lines) > 2:
        lines = [lines[0], short(" ".join(lines[1:]), LETTERS - 1)]
    return tuple(lines)


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
