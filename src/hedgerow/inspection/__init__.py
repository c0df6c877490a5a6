"""What people look at: from released values and public facts alone, so it costs no budget.

explain/    effects of columns and pairs with error bands, contributions of rows
report/     one self-contained page about a model
tree_view/  one tree as text, rules and picture
advice/     how much epsilon is needed
ledger_chart.py  epsilon of a ledger over its runs
audit_chart.py   what an audit found, beside the promise
drawing/    the pictures of all of them, as SVG
"""

from hedgerow.inspection.audit_chart import plot_audit
from hedgerow.inspection.drawing import Picture
from hedgerow.inspection.explain.editing import edit
from hedgerow.inspection.explain.explanation import Explanation
from hedgerow.inspection.explain.rows import Contributions
from hedgerow.inspection.explain.shapes import Pair, Shape
from hedgerow.inspection.ledger_chart import plot_ledger
from hedgerow.inspection.tree_view import TreeView, export_rules, export_text, plot_tree

__all__ = [
    "Contributions",
    "Explanation",
    "Pair",
    "Picture",
    "Shape",
    "TreeView",
    "edit",
    "export_rules",
    "export_text",
    "plot_audit",
    "plot_ledger",
    "plot_tree",
]
