"""Models explained from released values alone: shapes with bands, pairs, importances, rows."""

from hedgerow.explain.editing import edit
from hedgerow.explain.explanation import Explanation, explain
from hedgerow.explain.rows import Contributions
from hedgerow.explain.shapes import BAND, Pair, Shape

__all__ = ["BAND", "Contributions", "Explanation", "Pair", "Shape", "edit", "explain"]
