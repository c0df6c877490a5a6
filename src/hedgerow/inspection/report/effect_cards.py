"""What moves the prediction: importances, main effects, interactions and pictures of trees."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hedgerow.inspection.drawing import Picture
from hedgerow.inspection.drawing.words import number
from hedgerow.inspection.explain import Explanation, Pair, Shape
from hedgerow.inspection.explain.pair_map import pair_picture, reach_of_pairs, strongest_output
from hedgerow.inspection.explain.shape_chart import caveat_of, reach_of, shape_picture
from hedgerow.inspection.tree_view import TreeView, plot_boosted_tree, tree_picture

MOST_BARS, MOST_SHAPES, MOST_PAIRS, MOST_NAMES = 20, 30, 6, 20
MOST_LEAVES, MOST_TREES = 16, 2
DUST = 1e-9  # of the largest importance: less is the rounding of sums
LEAST_REACH = 0.2  # of the widest shape: smaller effects look small


@dataclass(frozen=True)
class ImportanceBar:
    """The importance of a column or a pair, and the noise in it; shares are of the longest bar."""

    name: str
    is_pair: bool
    importance: str
    share: float
    noise_share: float | None  # None where the noise is not known


@dataclass(frozen=True)
class ShapeCard:
    """The picture of a shape and its numbers."""

    column: str
    importance: str
    direction: int
    edited: bool
    picture: Picture
    caveat: str
    rows: tuple[tuple[str, str, str, str], ...]  # cell, weight, effect, band


@dataclass(frozen=True)
class PairCard:
    """The picture of an interaction."""

    name: str
    remark: str
    picture: Picture


@dataclass(frozen=True)
class ModelEffects:
    """Everything that the model adds up."""

    unit: str
    outputs: tuple[str, ...]
    bars: tuple[ImportanceBar, ...]
    n_more_bars: int
    shapes: tuple[ShapeCard, ...]
    has_bands: bool
    coverage: str  # of the bands, as measured; "" if nobody did
    has_counts: bool
    not_shown: str  # names of columns
    pairs: tuple[PairCard, ...]
    n_pairs: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ModelTrees:
    """The one readable tree, or some trees of many, with a sentence about them."""

    lead: str
    whole: Picture | None
    some: tuple[tuple[int, Picture], ...]  # number of the tree, picture


def effects_of_model(explanation: Explanation) -> ModelEffects:
    bars = importance_bars(explanation)
    order = sorted(explanation.shapes, key=lambda shape: -shape.importance)
    drawn = [shape for shape in order if np.any(shape.values[:, shape.shown])][:MOST_SHAPES]
    least = LEAST_REACH * max((reach_of(shape) for shape in drawn), default=0.0)
    pairs = _real_pairs(explanation)
    return ModelEffects(
        explanation.unit,
        explanation.outputs,
        bars[:MOST_BARS],
        max(0, len(bars) - MOST_BARS),
        tuple(_shape_card(shape, least, explanation) for shape in drawn),
        any(math.isfinite(shape.noise) for shape in drawn),
        "" if explanation.coverage is None else explanation.coverage.in_words,
        any(shape.released for shape in drawn),
        _names([shape.column for shape in order if shape not in drawn]),
        tuple(_pair_card(pair, explanation) for pair in pairs[:MOST_PAIRS]),
        len(pairs),
        tuple(explanation.notes),
    )


def importance_bars(explanation: Explanation) -> tuple[ImportanceBar, ...]:
    """Columns and pairs, the most important first, without those that rounding alone makes."""
    columns = {shape.column for shape in explanation.shapes}
    ranked = explanation.importances
    ranked = [entry for entry in ranked if entry[1] > DUST * ranked[0][1]]
    longest = max((max(i, n if math.isfinite(n) else 0.0) for _, i, n in ranked), default=1.0)
    return tuple(
        ImportanceBar(
            name if name in columns else name.replace(" x ", " × "),
            name not in columns,
            number(importance),
            max(importance / longest, 0.002),
            noise / longest if math.isfinite(noise) and noise > 0 else None,
        )
        for name, importance, noise in ranked
    )


def _names(columns: list[str]) -> str:
    more = len(columns) - MOST_NAMES
    return ", ".join(columns[:MOST_NAMES]) + (f" and {more} others" if more > 0 else "")


def _shape_card(shape: Shape, least: float, explanation: Explanation) -> ShapeCard:
    return ShapeCard(
        shape.column,
        number(shape.importance),
        shape.direction,
        shape.edited is not None and bool(shape.edited.any()),
        shape_picture(shape, explanation.outputs, explanation.unit, least),
        caveat_of(shape),
        tuple(
            _shape_row(shape, int(c), k, explanation.outputs)
            for c in shape.shown
            for k in range(len(explanation.outputs))
        ),
    )


def _shape_row(shape: Shape, c: int, k: int, outputs: tuple[str, ...]) -> tuple[str, str, str, str]:
    low, high = shape.low[k, c], shape.high[k, c]
    band = f"{low:+.3f} to {high:+.3f}" if np.isfinite(low) else "not known"
    if shape.edited is not None and shape.edited[k, c]:
        band = "set by hand"
    name = shape.cells.labels[c] + (f" ({outputs[k]})" if len(outputs) > 1 else "")
    return name, f"{100 * shape.weights[c]:.1f} %", f"{shape.values[k, c]:+.3f}", band


def _real_pairs(explanation: Explanation) -> list[Pair]:
    """The pairs that are more than rounding, the most important first."""
    least = DUST * explanation.importances[0][1] if explanation.importances else 0.0
    return [pair for pair in explanation.pairs if pair.importance > least]


def _pair_card(pair: Pair, explanation: Explanation) -> PairCard:
    """The map of the output on which the pair has the largest effect."""
    output = strongest_output(pair)
    largest = number(float(np.abs(pair.values[output]).max()))
    of_output = f"{explanation.outputs[output]}: " if len(explanation.outputs) > 1 else ""
    noise = f", noise {number(pair.noise)}" if math.isfinite(pair.noise) else ""
    most = reach_of_pairs(explanation.pairs)
    picture = pair_picture(pair, explanation.outputs, explanation.unit, [output], most)
    name = f"{pair.columns[0]} × {pair.columns[1]}"
    return PairCard(name, f"{of_output}up to ±{largest}{noise}", picture)


def trees_of_model(explanation: Explanation) -> ModelTrees:
    """The picture of the one readable tree, or of the trees that move scores most."""
    model = explanation.model
    if "tree" in model.record and len(model.trees) == 1:
        lead = "The whole model. A line is as wide as the share of rows that follow it."
        return ModelTrees(lead, tree_picture(TreeView.of(model)), ())
    is_auto = model.record.get("method") == "auto"
    some = () if is_auto else _some_trees(explanation)  # trees of `auto` are maps already
    if some:
        lead = (
            f"{len(some)} of {len(model.trees):,} trees, those with the largest leaf values. A "
            f"leaf shows what it adds to the {explanation.unit}; * includes missing values."
        )
    elif is_auto or explanation.additive:
        lead = (
            "The trees of this model are step functions of one column and tables of a few; the "
            "main effects and interactions above add them up."
        )
    else:
        lead = (
            "The trees of this model have too many leaves to draw; the main effects and "
            "interactions above add them up."
        )
    return ModelTrees(lead, None, some)


def _some_trees(explanation: Explanation) -> tuple[tuple[int, Picture], ...]:
    """Small trees of several columns, those with the largest leaf values."""
    sizes = [
        (float(np.abs(tree.values).mean()), number)
        for number, (tree, box) in enumerate(
            zip(explanation.model.trees, explanation._boxes, strict=True)
        )
        if len(box.columns) > 1 and tree.structure.n_leaves <= MOST_LEAVES
    ]
    chosen = sorted(number for _, number in sorted(sizes, reverse=True)[:MOST_TREES])
    schema, scale = explanation.model.schema, explanation.scale
    trees = explanation.model.trees
    return tuple((n + 1, plot_boosted_tree(trees[n], schema, scale)) for n in chosen)
