"""The tree drawn with matplotlib (extra `plots`); the same boxes as the SVG."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from hedgerow.errors import SettingsError
from hedgerow.inspection.tree_view.layout import (
    FOOT,
    HEIGHT,
    LETTERS,
    MARGIN,
    WIDTH,
    Box,
    colour_of,
    layout_of,
    short,
    two_lines,
)
from hedgerow.inspection.tree_view.text import rows_in_words
from hedgerow.inspection.tree_view.view import TreeView, ViewNode
from hedgerow.model.ensemble import Ensemble

_INCH = 96.0  # units of the layout an inch


def plot_tree(model: Ensemble | TreeView, ax: Any = None) -> Any:
    """Draw a readable tree and return the axes; a figure of the right size is made without `ax`."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SettingsError(
            "matplotlib is not installed; pip install 'hedgerow[plots]', or use the SVG picture"
        ) from error
    view = model if isinstance(model, TreeView) else TreeView.of(model)
    layout = layout_of(view)
    if ax is None:
        figure = Figure(figsize=(layout.width / _INCH, layout.height / _INCH))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set_xlim(0, layout.width)
    ax.set_ylim(layout.height, 0)
    ax.set_axis_off()
    _heading(ax, view)
    for node in view.nodes:
        if node.parent >= 0:
            start, end = layout.boxes[node.parent], layout.boxes[node.number]
            x = (start.x + WIDTH, end.x)
            y = (start.y + HEIGHT / 2, end.y + HEIGHT / 2)
            part = min(1.0, node.rows / max(view.nodes[0].rows, 1.0))
            ax.plot(x, y, color="#999999", linewidth=0.8 + 4 * part, zorder=1)
    for node in view.nodes:
        _box(ax, view, node, layout.boxes[node.number])
    for i, line in enumerate(wrap(view.note, max(60, int(layout.width / 6.0)))):
        ax.text(MARGIN, layout.height - FOOT + 20 + 15 * i, line, fontsize=7.5, color="#333333")
    return ax


def _heading(ax: Any, view: TreeView) -> None:
    from matplotlib.patches import Rectangle

    title = short(f"{view.label}: what the tree says", 60)
    ax.text(MARGIN, 24, title, fontsize=11, weight="bold")
    x = MARGIN
    for number, name in enumerate(view.classes[:12]):
        text = short(name, 24)
        ax.add_patch(Rectangle((x, 33), 10, 10, color=colour_of(number)))
        ax.text(x + 14, 42, text, fontsize=8)
        x += 14 + 7 * len(text) + 22


def _box(ax: Any, view: TreeView, node: ViewNode, box: Box) -> None:
    from matplotlib.patches import Rectangle

    side = view.shown[node.number]
    words = node.condition if side is None else side.words(2 * LETTERS - len(side.column) - 30)
    colour = colour_of(view.classes.index(node.label)) if node.is_leaf else "#888888"
    frame = Rectangle(
        (box.x, box.y), WIDTH, HEIGHT, facecolor="white", edgecolor=colour,
        linewidth=1.8 if node.is_leaf else 0.8, zorder=2,
    )  # fmt: skip
    ax.add_patch(frame)
    for i, line in enumerate(two_lines(words)):
        ax.text(box.x + 8, box.y + 16 + 15 * i, line, fontsize=7.8, weight="bold", zorder=3)
    ax.text(
        box.x + 8, box.y + 47, short(rows_in_words(node), 42), fontsize=7.2, color="#333333",
        zorder=3,
    )  # fmt: skip
    x, whole = box.x + 8, WIDTH - 16 - 92
    for number, share in enumerate(node.shares):
        width = max(0.0, share) * whole
        bar = Rectangle((x, box.y + 55), width, 11, color=colour_of(number), linewidth=0, zorder=3)
        ax.add_patch(bar)
        x += width
    says = short(f"{node.label}: {100 * max(node.shares):.0f} %", 15)
    ax.text(box.x + WIDTH - 8, box.y + 65, says, fontsize=7.2, ha="right", zorder=3)
