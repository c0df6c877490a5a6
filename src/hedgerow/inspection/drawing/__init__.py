"""Pictures as SVG, drawn by explanations, trees, advice and reports alike.

style.py    colours for light and dark pages, and the style sheet of every picture
words.py    numbers in few letters
scales.py   where values lie on an axis, and the round numbers beside it
canvas.py   lines, bands, boxes and texts, escaped by the XML writer; a finished `Picture`
pyplot.py   the same pictures as figures of matplotlib, where a program uses its pyplot
axes.py     two scales on a canvas: grid, ticks, steps, bands and dots
"""

from hedgerow.inspection.drawing.axes import Axes, Region
from hedgerow.inspection.drawing.canvas import Canvas, Picture
from hedgerow.inspection.drawing.scales import Scale

__all__ = ["Axes", "Canvas", "Picture", "Region", "Scale"]
