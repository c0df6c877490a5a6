"""One tree for people: as text, as plain rules and as a picture.

view.py        its nodes, with conditions in words and intervals of counts
conditions.py  splits in words
text.py        indented text, and leaves as sentences
plot.py        pictures of readable trees and of trees of an ensemble
"""

from hedgerow.inspection.tree_view.plot import plot_boosted_tree, plot_tree, tree_picture
from hedgerow.inspection.tree_view.text import export_rules, export_text
from hedgerow.inspection.tree_view.view import TreeView

__all__ = [
    "TreeView",
    "export_rules",
    "export_text",
    "plot_boosted_tree",
    "plot_tree",
    "tree_picture",
]
