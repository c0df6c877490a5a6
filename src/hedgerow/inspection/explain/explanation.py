"""A model explained: shapes, maps of pairs, importances, and the parts of single rows' scores.

Everything follows from the model, which holds released values only; it costs no budget.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.cards import Card, Shown, html_of
from hedgerow.data.rng import stream
from hedgerow.data.tables import encode_table
from hedgerow.data.values import text_of
from hedgerow.errors import FormatError, SettingsError
from hedgerow.inspection.drawing.canvas import ALONE, SMALL, Picture
from hedgerow.inspection.drawing.pyplot import offered
from hedgerow.inspection.drawing.words import number
from hedgerow.inspection.explain.cells import Boxes, Cells, boxes_of, cells_of, check_size
from hedgerow.inspection.explain.coverage import Coverage, coverage_of
from hedgerow.inspection.explain.edits import edits_of
from hedgerow.inspection.explain.effects import Effects, effects_of
from hedgerow.inspection.explain.hazards import explained_trees, outputs_of
from hedgerow.inspection.explain.notes import notes_of
from hedgerow.inspection.explain.pair_map import pair_picture, reach_of_pairs
from hedgerow.inspection.explain.reference import Reference, references
from hedgerow.inspection.explain.rows import Contributions, add_tree
from hedgerow.inspection.explain.shape_chart import shape_picture
from hedgerow.inspection.explain.shapes import Pair, Shape
from hedgerow.model.ensemble import Ensemble

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_PICTURES = 3  # in a notebook
SAMPLE = 1000  # made-up rows that tell how much three and more columns do together


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Shown):
    """What a model does, column by column.

    Attributes
    ----------
    shapes : the effect of every column, in the schema's order
    pairs : what pairs of columns do beyond that, the most important first
    intercept : the mean score under the weights (output,)
    outputs : what each output says something about, e.g. a class
    unit : what scores are counted in
    """

    model: Ensemble
    shapes: tuple[Shape, ...]
    pairs: tuple[Pair, ...]
    intercept: Floats
    intercept_deviation: Floats
    outputs: tuple[str, ...]
    unit: str
    scale: float  # of scores, to be in units of the label
    _cells: tuple[Cells, ...]
    _boxes: tuple[Boxes, ...]
    _kept: frozenset[int]  # trees added by hand

    @property
    def additive(self) -> bool:
        """Whether no tree has more than two columns, so that effects add up to the score."""
        return all(len(box.columns) <= 2 for box in self._boxes)

    @property
    def importances(self) -> list[tuple[str, float, float]]:
        """Columns and pairs with their importance and its noise, the largest first."""
        ranking = [(s.column, s.importance, s.noise) for s in self.shapes]
        ranking += [(" x ".join(p.columns), p.importance, p.noise) for p in self.pairs]
        return sorted(ranking, key=lambda entry: -entry[1])

    def shape(self, column: str) -> Shape:
        """The shape of a column by its name."""
        for shape in self.shapes:
            if shape.column == column:
                return shape
        known = ", ".join(shape.column for shape in self.shapes)
        raise SettingsError(f"the model has no column {column!r}; it has {known}")

    def pair(self, first: str, second: str) -> Pair:
        """The map of two columns, in either order."""
        for pair in self.pairs:
            if set(pair.columns) == {self.shape(first).column, self.shape(second).column}:
                return pair
        raise SettingsError(
            f"no tree of the model has both {first!r} and {second!r}, so they do nothing together"
        )

    def contributions(self, data: Any) -> Contributions:
        """What every column adds to the scores of rows; with the intercept, exactly the score.

        Parts that several columns have together are shared by Shapley values. The rows are yours,
        and so is what is computed from them: it is not covered by the model's promise.
        """
        grid = tuple(cells.grid for cells in self._cells)
        table = encode_table(data, grid, "table to explain", self.model.schema.csv)
        codes = [table.column(j).astype(np.int64) for j in range(table.n_columns)]
        return Contributions(
            tuple(shape.column for shape in self.shapes), self.intercept, self._parts(codes)
        )

    def plot(self, column: str, second: str = "") -> Picture:
        """The picture of a column's shape, or of the map of two; for multiclass, of all classes.

        A notebook shows it, `save("age.svg")` writes it, and after `import matplotlib.pyplot as
        plt` it is a figure of pyplot as well, for `plt.show()`.
        """
        if second:
            pair = self.pair(column, second)
            outputs, most = range(len(self.outputs)), reach_of_pairs(self.pairs)
            return offered(pair_picture(pair, self.outputs, self.unit, outputs, most, ALONE))
        return offered(shape_picture(self.shape(column), self.outputs, self.unit, form=ALONE))

    @property
    def coverage(self) -> Coverage | None:
        """How often bands of this method held noise-free effects; None if nobody measured it."""
        label = self.model.schema.label  # measured for classes and the usual loss of numbers alone
        if label.task == "survival" or label.loss is not None:
            return None
        return coverage_of(self.model.record)

    def _card(self) -> Card:
        facts = (
            ("explains", self.unit),
            ("columns", len(self.shapes)),
            ("pairs", len(self.pairs)),
            ("largest", ", ".join(name for name, _, _ in self.importances[:3])),
        )
        head = ("column or pair", "importance", "its noise")
        rows = tuple(
            (name, number(importance), number(noise) if np.isfinite(noise) else "")
            for name, importance, noise in self.importances
        )
        return Card("Explanation", facts, head, rows, tuple(self.notes))

    def _repr_html_(self) -> str:
        largest = sorted(self.shapes, key=lambda shape: -shape.importance)[:MOST_PICTURES]
        pictures = [shape_picture(s, self.outputs, self.unit, form=SMALL).svg for s in largest]
        return html_of(self._card(), pictures)

    def _parts(self, codes: Sequence[Ints]) -> Floats:
        out = np.zeros((len(codes[0]), len(self.outputs), len(codes)))
        weights = [shape.weights for shape in self.shapes]
        trees = explained_trees(self.model)
        for place, (tree, box) in enumerate(zip(trees, self._boxes, strict=True)):
            values = tree.values.astype(np.float64)
            add_tree(out, codes, box, values, weights, place not in self._kept)
        return self.scale * out

    @cached_property
    def remainder(self) -> float:
        """The part of the scores' variance that three and more columns make together.

        Measured on made-up rows, drawn from the weights column by column; 0 of additive models.
        """
        if self.additive:
            return 0.0
        rng = stream(0, "explain")
        codes = [rng.choice(len(s.weights), SAMPLE, p=s.weights) for s in self.shapes]
        whole = self._parts(codes).sum(axis=2)  # (row, output)
        rest = whole.copy()
        for shape, cells_of_rows in zip(self.shapes, codes, strict=True):
            rest -= shape.values[:, cells_of_rows].T
        places = {shape.column: codes[j] for j, shape in enumerate(self.shapes)}
        for pair in self.pairs:
            first, second = (places[name] for name in pair.columns)
            rest -= pair.values[:, first, second].T
        total = float(whole.var(axis=0).sum())
        return float(rest.var(axis=0).sum()) / total if total > 0 else 0.0

    @property
    def notes(self) -> list[str]:
        """What a reader must know, in sentences."""
        return notes_of(self)

    def to_dict(self) -> dict[str, Any]:
        """For programs; JSON holds all of it."""
        names = ("name", "importance", "noise")
        return {
            "unit": self.unit,
            "outputs": list(self.outputs),
            "intercept": self.intercept.tolist(),
            "additive": self.additive,
            "remainder": self.remainder,
            "importances": [
                dict(zip(names, (n, i, v if np.isfinite(v) else None), strict=True))
                for n, i, v in self.importances
            ],
            "shapes": [shape.to_dict() for shape in self.shapes],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "edits": edits_of(self.model),
            "notes": self.notes,
        }


def explain(model: Ensemble) -> Explanation:
    """Explain a model from its released values alone.

    >>> from hedgerow import Ensemble
    >>> shapes = explain(Ensemble.load("model.hedge")).shapes  # doctest: +SKIP
    """
    trees, schema = explained_trees(model), model.schema
    of_times = schema.label.task == "survival"
    n_outputs = len(outputs_of(schema.label)) if of_times else model.loss.n_outputs
    cells = cells_of(trees, schema)
    check_size(trees, cells, n_outputs)
    boxes = tuple(boxes_of(tree.structure, cells) for tree in trees)
    edits = edits_of(model)
    edited = frozenset(edit["tree"] for edit in edits)
    plain = [i for i in range(len(trees)) if i not in edited]
    column_references = references([trees[i] for i in plain], [boxes[i] for i in plain], cells)
    weights = [reference.weights for reference in column_references]
    effects = effects_of(trees, boxes, weights, n_outputs, edited)
    scale, shift = _label_units(model)
    return Explanation(
        model,
        _shapes(model, effects, cells, column_references, scale, edits),
        _pairs(effects, cells, weights, scale),
        shift + scale * effects.intercept,
        scale * np.sqrt(effects.intercept_variance),
        *_outputs(model),
        scale,
        cells,
        boxes,
        edited,
    )


def _label_units(model: Ensemble) -> tuple[float, float]:
    """Scores of a regression lie between 0 and 1: how they become values of the label."""
    label = model.schema.label
    if label.lower is None or label.upper is None:
        return 1.0, 0.0
    if label.task == "counts":  # scores are logarithms, of the count over its cap
        return 1.0, math.log(label.upper / (label.max_exposure or 1.0))
    return float(label.upper - label.lower), float(label.lower)


def _outputs(model: Ensemble) -> tuple[tuple[str, ...], str]:
    label = model.schema.label
    classes = tuple(text_of(value) for value in label.classes)
    if label.task == "regression":
        return (label.name,), label.name
    if label.task == "survival":
        return outputs_of(label), f"log hazard of {label.event}"
    if label.task == "counts":
        return (label.name,), f"log rate of {label.name}"
    if label.task == "binary":
        unit = "share" if model.averaged else "log-odds"
        return (classes[1],), f"{unit} of {label.name} = {classes[1]}"
    unit = "share" if model.averaged else "score"
    return classes, f"{unit} of each class of {label.name}"


def _shapes(
    model: Ensemble,
    effects: Effects,
    cells: Sequence[Cells],
    found: Sequence[Reference],
    scale: float,
    edits: Sequence[dict[str, Any]],
) -> tuple[Shape, ...]:
    directions = _directions(model)
    shapes = []
    for j, (column, reference) in enumerate(zip(cells, found, strict=True)):
        values = scale * effects.main_effects[j]
        deviation = scale * np.sqrt(effects.main_variances[j])
        edited = None
        mine = [edit for edit in edits if edit["column"] == column.name]
        if mine:  # what was set by hand has no noise
            edited = _edited(mine, column, values.shape)
            deviation = np.where(edited, 0.0, deviation)
        shapes.append(
            Shape(
                column, values, deviation, reference.weights, reference.released,
                _kept_direction(column, values, directions.get(column.name, 0)), edited,
            )
        )  # fmt: skip
    return tuple(shapes)


def _edited(
    edits: Sequence[dict[str, Any]], cells: Cells, shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Cells set by hand: (output, cell)."""
    out = np.zeros(shape, np.bool_)
    for edit in edits:
        chosen = [cells.labels.index(label) for label in edit["cells"] if label in cells.labels]
        out[edit["output"], chosen] = True
    return out


def _pairs(
    effects: Effects, cells: Sequence[Cells], weights: Sequence[Floats], scale: float
) -> tuple[Pair, ...]:
    pairs = [
        Pair(
            cells[i], cells[j], scale * values,
            scale * np.sqrt(effects.pair_variances[i, j]), (weights[i], weights[j]),
        )
        for (i, j), values in effects.pairs.items()
    ]  # fmt: skip
    return tuple(sorted(pairs, key=lambda pair: -pair.importance))


def _directions(model: Ensemble) -> dict[str, int]:
    settings = model.record.get("settings", {})
    text = settings.get("monotone", "") if isinstance(settings, dict) else ""
    try:
        told = json.loads(text) if text else {}
        directions = {str(name): max(-1, min(1, int(way))) for name, way in told.items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError("the model's record of directions is not readable") from error
    directions.update({e["column"]: e["direction"] for e in edits_of(model) if e["direction"]})
    return directions


def _kept_direction(cells: Cells, values: Floats, direction: int) -> int:
    """The direction, if the shape has it indeed."""
    steps = direction * np.diff(values[:, :-1], axis=1)
    monotone = cells.kind != "categorical" and bool((steps >= -1e-6 * np.abs(values).max()).all())
    return direction if monotone else 0
