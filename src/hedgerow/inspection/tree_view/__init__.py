"""One tree for people: as text, as plain rules, as SVG and as a matplotlib picture.

view.py        its nodes, with conditions in words and intervals of counts
conditions.py  splits in words
text.py        indented text, and leaves as sentences
layout.py      where boxes stand
svg.py         SVG
plot.py        matplotlib
"""

from hedgerow.inspection.tree_view.plot import plot_tree
from hedgerow.inspection.tree_view.svg import tree_svg
from hedgerow.inspection.tree_view.text import export_rules, export_text
from hedgerow.inspection.tree_view.view import TreeView

__all__ = ["TreeView", "export_rules", "export_text", "plot_tree", "tree_svg"]
