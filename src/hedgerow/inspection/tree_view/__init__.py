"""One tree for people: as text, as plain rules, as SVG and as a matplotlib picture."""

from hedgerow.inspection.tree_view.plot import plot_tree
from hedgerow.inspection.tree_view.svg import tree_svg
from hedgerow.inspection.tree_view.text import export_rules, export_text
from hedgerow.inspection.tree_view.view import TreeView

__all__ = ["TreeView", "export_rules", "export_text", "plot_tree", "tree_svg"]
