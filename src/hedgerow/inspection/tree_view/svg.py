"""The tree as SVG text; nothing to install."""

from __future__ import annotations

from html import escape
from textwrap import wrap

from hedgerow.inspection.tree_view.layout import (
    FOOT,
    HEIGHT,
    LETTERS,
    MARGIN,
    WIDTH,
    Box,
    Layout,
    colour_of,
    layout_of,
    short,
    two_lines,
)
from hedgerow.inspection.tree_view.text import outcome, rows_in_words
from hedgerow.inspection.tree_view.view import TreeView, ViewNode
from hedgerow.model.ensemble import Ensemble

_STYLE = (
    "text{font-family:Helvetica,Arial,sans-serif;fill:#111}"
    ".c{font-size:11.5px;font-weight:bold}.n{font-size:11px}.s{font-size:11px;fill:#333}"
    ".t{font-size:17px;font-weight:bold}"
)


def tree_svg(model: Ensemble | TreeView) -> str:
    """A picture of a readable tree: one box a node, levels from left to right."""
    view = model if isinstance(model, TreeView) else TreeView.of(model)
    layout = layout_of(view)
    size = f'width="{layout.width:.0f}" height="{layout.height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" role="img">',
        f"<title>{escape(f'Decision tree for {view.label}')}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{layout.width:.0f}" height="{layout.height:.0f}" fill="white"/>',
        *_heading(view),
    ]
    parts += [_line(view, node, layout) for node in view.nodes if node.parent >= 0]
    parts += [_box(view, node, layout.boxes[node.number]) for node in view.nodes]
    return "\n".join([*parts, *_note(view, layout), "</svg>", ""])


def _heading(view: TreeView) -> list[str]:
    title = short(f"{view.label}: what the tree says", 60)
    parts = [f'<text x="{MARGIN}" y="24" class="t">{escape(title)}</text>']
    x = MARGIN
    for number, name in enumerate(view.classes[:12]):
        text = short(name, 24)
        parts.append(f'<rect x="{x}" y="33" width="10" height="10" fill="{colour_of(number)}"/>')
        parts.append(f'<text x="{x + 14}" y="42" class="n">{escape(text)}</text>')
        x += 14 + 7 * len(text) + 22
    return parts


def _line(view: TreeView, node: ViewNode, layout: Layout) -> str:
    """From the parent's right side to the node's left; as wide as its part of the rows."""
    start, end = layout.boxes[node.parent], layout.boxes[node.number]
    x0, y0 = start.x + WIDTH, start.y + HEIGHT / 2
    x1, y1 = end.x, end.y + HEIGHT / 2
    part = node.rows / max(view.nodes[0].rows, 1.0)
    middle = (x0 + x1) / 2
    path = f"M{x0:.1f} {y0:.1f}C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
    return (
        f'<path d="{path}" fill="none" stroke="#999" stroke-width="{1 + 7 * min(1.0, part):.1f}"/>'
    )


def _box(view: TreeView, node: ViewNode, box: Box) -> str:
    side = view.shown[node.number]
    words = node.condition if side is None else side.words(2 * LETTERS - len(side.column) - 30)
    colour = colour_of(view.classes.index(node.label))
    edge = f'stroke="{colour}" stroke-width="2.5"' if node.is_leaf else 'stroke="#888"'
    full = f"{node.condition}: {outcome(node, view)}"
    parts = [
        "<g>",
        f"<title>{escape(full)}</title>",
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{WIDTH}" height="{HEIGHT}" rx="5" '
        f'fill="white" {edge}/>',
        *(
            f'<text x="{box.x + 8:.1f}" y="{box.y + 16 + 15 * i:.1f}" class="c">'
            f"{escape(line)}</text>"
            for i, line in enumerate(two_lines(words))
        ),
        f'<text x="{box.x + 8:.1f}" y="{box.y + 47:.1f}" class="s">'
        f"{escape(short(rows_in_words(node), 42))}</text>",
    ]
    x, full_width = box.x + 8, WIDTH - 16 - 92
    for number, share in enumerate(node.shares):
        width = max(0.0, share) * full_width
        parts.append(
            f'<rect x="{x:.1f}" y="{box.y + 55:.1f}" width="{width:.1f}" height="11" '
            f'fill="{colour_of(number)}"/>'
        )
        x += width
    says = short(f"{node.label}: {100 * max(node.shares):.0f} %", 15)
    parts.append(
        f'<text x="{box.x + WIDTH - 8:.1f}" y="{box.y + 65:.1f}" class="n" text-anchor="end">'
        f"{escape(says)}</text>"
    )
    return "".join([*parts, "</g>"])


def _note(view: TreeView, layout: Layout) -> list[str]:
    lines = wrap(view.note, max(60, int((layout.width - 2 * MARGIN) / 6.0)))
    first = layout.height - FOOT + 20
    return [
        f'<text x="{MARGIN}" y="{first + 15 * i:.1f}" class="s">{escape(line)}</text>'
        for i, line in enumerate(lines)
    ]
