"""The tree as indented text, and its leaves as plain sentences."""

from __future__ import annotations

from hedgerow.inspection.tree_view.conditions import merged
from hedgerow.inspection.tree_view.view import TreeView, ViewNode
from hedgerow.model.ensemble import Ensemble


def export_text(model: Ensemble | TreeView) -> str:
    """The tree as indented text: conditions, noisy counts with 90 % intervals, class shares."""
    view = model if isinstance(model, TreeView) else TreeView.of(model)
    lines = [f"Predicts {view.label}.", ""]

    def walk(number: int, above: str, last: bool) -> None:
        node = view.nodes[number]
        stem = "" if number == 0 else above + ("`-- " if last else "|-- ")
        lines.append(f"{stem}{node.condition}: {outcome(node, view)}")
        below = "" if number == 0 else above + ("    " if last else "|   ")
        if not node.is_leaf:
            walk(node.left, below, False)
            walk(node.right, below, True)

    walk(0, "", True)
    return "\n".join([*lines, "", view.note])


def export_rules(model: Ensemble | TreeView) -> list[str]:
    """One sentence a leaf, from left to right, with the conditions of its path drawn together."""
    view = model if isinstance(model, TreeView) else TreeView.of(model)
    rules = [view.note] if view.note.startswith("NOT PRIVATE") else []
    for leaf in view.leaves:
        sides = merged(view.path(leaf.number))
        conditions = " AND ".join(side.words() for side in sides)
        start = f"IF {conditions} THEN" if conditions else "ALWAYS"
        rules.append(f"{start} {view.label} is {outcome(leaf, view)}.")
    return rules


def outcome(node: ViewNode, view: TreeView) -> str:
    """The likeliest class, its share, and how many rows there are."""
    share = max(node.shares)
    return f"{node.label} ({100 * share:.0f} %), {rows_in_words(node)}"


def rows_in_words(node: ViewNode) -> str:
    if node.deviation < 0:
        return "number of rows not known"
    low, high = node.interval
    if node.deviation == 0:
        return f"{node.rows:,.0f} rows"
    return f"about {node.rows:,.0f} rows ({low:,.0f} to {high:,.0f})"
