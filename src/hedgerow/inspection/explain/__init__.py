"""Models explained from released values alone: shapes with bands, pairs, importances, rows.

explanation.py  everything about a model in one object
shapes.py       effects as people see them: a shape a column, a map a pair
hazards.py      models of times to an event, with one output
effects.py      a sum of trees as effects of columns and pairs, with their noise
coverage.py     how often bands held noise-free effects, as measured for each method
cells.py        the cells that a model tells apart
reference.py    weights of cells, from releases where there are some
rows.py         what every column adds to the score of a row
editing.py      shapes changed by hand, on record
edits.py        what the record says of such changes
notes.py        what a reader must know, in sentences
shape_chart.py  the picture of a shape
pair_map.py     the picture of a pair
"""

from hedgerow.inspection.explain.editing import edit
from hedgerow.inspection.explain.explanation import Explanation, explain
from hedgerow.inspection.explain.rows import Contributions
from hedgerow.inspection.explain.shapes import BAND, Pair, Shape

__all__ = ["BAND", "Contributions", "Explanation", "Pair", "Shape", "edit", "explain"]
