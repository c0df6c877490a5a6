"""One tree for people: as text, as plain rules, as SVG and as a matplotlib picture."""

from hedgerow.readable.plot import plot_tree
from hedgerow.readable.svg import tree_svg
from hedgerow.readable.text import export_rules, export_text
from hedgerow.readable.view import TreeView

__all__ = ["TreeView", "export_rules", "export_text", "plot_tree", "tree_svg"]
