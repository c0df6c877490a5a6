"""What a reader of shapes and bands must know, in sentences that fit the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hedgerow.inspection.explain.edits import edits_of
from hedgerow.model.changes import PRIVATE

if TYPE_CHECKING:
    from hedgerow.inspection.explain.explanation import Explanation


def notes_of(explanation: Explanation) -> list[str]:
    """Sentences, the most important first."""
    model = explanation.model
    notes = []
    if model.statement.guarantee not in PRIVATE:
        notes.append(f"NOT PRIVATE. {model.statement.reason}".strip())
    notes += [_bands(explanation), _weights(explanation)]
    if not explanation.additive:
        notes.append(
            "Some trees use more than two columns. Interactions of three and more columns are in "
            f"no shape and no map; they make up {100 * explanation.remainder:.1f} % of the "
            "variance of the scores. The contributions of a row include them."
        )
    if edits := edits_of(model):
        told = "; ".join(f"{edit['column']} ({edit['reason']})" for edit in edits)
        notes.append(
            f"Edited by hand after training: {told}. Cells set by hand have no noise and no band."
        )
    return notes


def _bands(explanation: Explanation) -> str:
    known = [np.isfinite(shape.deviation[:, shape.shown]).all() for shape in explanation.shapes]
    if not any(known):
        return "The noise of the leaves is not known, so there are no bands."
    measured = explanation.coverage
    text = (
        "Bands follow from the known size of the noise, point by point; they cover neither the "
        "sampling error of the rows nor the bias of shrinkage and clipping. "
    )
    if measured is None:
        text += (
            "They are 95 % bands by name: how often they hold the effect of training without noise "
            "was not measured for this method."
        )
    else:
        text += measured.sentence
    if explanation.model.record.get("method") == "auto":
        text += (
            " In later rounds the noise of one column reaches other columns too, by an amount that "
            "no release tells; to allow for it, bands are half as wide again as the noise of the "
            "column alone would make them."
        )
    elif explanation.model.statement.releases > 1:
        text += (
            " The variances of trees are added up; that earlier noise moves the queries and cuts "
            "of later rounds is not counted."
        )
    return text


def _weights(explanation: Explanation) -> str:
    released = [shape.column for shape in explanation.shapes if shape.released]
    public = [shape.column for shape in explanation.shapes if not shape.released]
    text = "Effects are centred on their weighted mean; an importance is the weighted mean size. "
    if not public:
        return text + "The weights are the noisy row counts that the model holds for each column."
    if not released:
        return (
            text + "The weights follow from the ranges and categories of the schema, because the "
            "model holds no row counts."
        )
    names = ", ".join(public[:6]) + (" and others" if len(public) > 6 else "")
    return (
        text + "The weights are the noisy row counts that the model holds; it holds none for "
        f"{names}, whose range or categories in the schema stand in."
    )
