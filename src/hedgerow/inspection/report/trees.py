"""Pictures of trees: the one readable tree, or some of several that people can take in."""

from __future__ import annotations

from base64 import b64encode

import numpy as np

from hedgerow.data.schema import Schema
from hedgerow.inspection.explain import Explanation
from hedgerow.inspection.report.frame import label, short
from hedgerow.inspection.report.marks import tag, text
from hedgerow.inspection.tree_view import TreeView, tree_svg
from hedgerow.inspection.tree_view.conditions import side_of
from hedgerow.model.tree import Tree

MOST_LEAVES, MOST_TREES = 16, 2
WIDE, HIGH, ACROSS, DOWN = 174.0, 42.0, 22.0, 6.0


def one_tree(explanation: Explanation) -> str:
    """The picture of a model that is one readable tree; nothing for others."""
    if "tree" not in explanation.model.record or len(explanation.model.trees) != 1:
        return ""
    drawn = tree_svg(TreeView.of(explanation.model))
    # As an image, so that its style is its own.
    data = b64encode(drawn.encode()).decode()
    return tag(
        "div",
        f'<img class="picture" alt="The tree" src="data:image/svg+xml;base64,{data}">',
        class_="scroll",
    )


def some_trees(explanation: Explanation) -> list[tuple[int, str]]:
    """The trees of several columns that move scores most, if they are small: (number, picture)."""
    sizes: list[tuple[float, int]] = []
    if explanation.model.record.get("method") == "auto":
        return []  # its trees are tables, which maps show better
    for number, (tree, box) in enumerate(
        zip(explanation.model.trees, explanation._boxes, strict=True)
    ):
        if len(box.columns) > 1 and tree.structure.n_leaves <= MOST_LEAVES:
            sizes.append((float(np.abs(tree.values).mean()), number))
    chosen = sorted(sizes, reverse=True)[:MOST_TREES]
    schema = explanation.model.schema
    return [
        (number, _picture(explanation.model.trees[number], schema, explanation.scale))
        for _, number in sorted(chosen, key=lambda one: one[1])
    ]


def _picture(tree: Tree, schema: Schema, scale: float) -> str:
    """Boxes from left to right: conditions, and what leaves add."""
    s = tree.structure
    depth, rows, parent = _layout(tree)
    width = (max(depth) + 1) * WIDE + max(depth) * ACROSS + 4
    height = s.n_leaves * (HIGH + DOWN)
    parts = []
    leaf = s.leaf
    for node in range(s.n_nodes):
        x, y = 2 + depth[node] * (WIDE + ACROSS), rows[node] * (HIGH + DOWN) + 2
        above = parent[node]
        if above >= 0:
            x0, y0 = 2 + depth[above] * (WIDE + ACROSS) + WIDE, rows[above] * (HIGH + DOWN) + 2
            middle = (x0 + x) / 2
            a, b = y0 + HIGH / 2, y + HIGH / 2
            curve = f"M{x0:.1f} {a:.1f}C{middle:.1f} {a:.1f} {middle:.1f} {b:.1f} {x:.1f} {b:.1f}"
            parts.append(f'<path d="{curve}" fill="none" stroke="var(--rule)" stroke-width="1.5"/>')
            right = bool(s.right[above] == node)
            words = side_of(s, above, schema, right).words(24)
        else:
            words = "all rows"
        value = ""
        if leaf[node] >= 0:
            value = " / ".join(f"{scale * v:+.3f}" for v in tree.values[leaf[node]][:3])
        parts.append(_box(x, y, words, value))
    return tag(
        "svg", tag("title", "A tree"), *parts, role="img", width=f"{width:.0f}",
        height=f"{height:.0f}", viewBox=f"0 0 {width:.0f} {height:.0f}",
    )  # fmt: skip


def _layout(tree: Tree) -> tuple[list[int], list[float], list[int]]:
    """Depth, row and parent of every node."""
    s = tree.structure
    depth, parent = [0] * s.n_nodes, [-1] * s.n_nodes
    rows, order = [0.0] * s.n_nodes, []
    stack = [0]
    while stack:
        node = stack.pop()
        if s.feature[node] < 0:
            order.append(node)
            continue
        for child in (int(s.right[node]), int(s.left[node])):
            depth[child], parent[child] = depth[node] + 1, node
            stack.append(child)
    for row, node in enumerate(order):
        rows[node] = float(row)
    for node in range(s.n_nodes - 1, -1, -1):  # children come after their parent
        if s.feature[node] >= 0:
            rows[node] = (rows[int(s.left[node])] + rows[int(s.right[node])]) / 2
    return depth, rows, parent


def _box(x: float, y: float, words: str, value: str) -> str:
    edge = "var(--accent)" if value else "var(--rule)"
    frame = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{WIDE:g}" height="{HIGH:g}" rx="6" '
        f'fill="var(--card)" stroke="{edge}"/>'
    )
    brief = words.replace(" (or missing)", " *")
    shown = label(x + 10, y + (18 if value else 25), short(brief, 24), "start", "strong")
    told = label(x + 10, y + 33, value, "start") if value else ""
    return tag("g", tag("title", text(words)), frame, shown, told)
