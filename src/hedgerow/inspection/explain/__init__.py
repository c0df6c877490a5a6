"""Models explained from released values alone: shapes with bands, pairs, importances, rows."""

from hedgerow.inspection.explain.editing import edit
from hedgerow.inspection.explain.explanation import Explanation, explain
from hedgerow.inspection.explain.rows import Contributions
from hedgerow.inspection.explain.shapes import BAND, Pair, Shape

__all__ = ["BAND", "Contributions", "Explanation", "Pair", "Shape", "edit", "explain"]
