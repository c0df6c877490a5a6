"""What a reader of shapes and bands must know, in sentences that fit the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hedgerow.model.statement import PRIVATE

if TYPE_CHECKING:
    from hedgerow.inspection.explain.explanation import Explanation


def notes_of(explanation: Explanation) -> list[str]:
    """From the most important on."""
    from hedgerow.inspection.explain.explanation import edits_of

    model = explanation.model
    notes = []
    if model.statement.guarantee not in PRIVATE:
        notes.append(f"NOT PRIVATE. {model.statement.reason}".strip())
    notes += [_bands(explanation), _weights(explanation)]
    if not explanation.additive:
        notes.append(
            "Some trees have more than two columns. What three and more columns do together is in "
            f"no shape and no map: {100 * explanation.remainder:.1f} % of the scores' variance. "
            "Contributions of rows share it out."
        )
    if edits := edits_of(model):
        told = "; ".join(f"{edit['column']} ({edit['reason']})" for edit in edits)
        notes.append(
            f"Changed by hand after training: {told}. What was set by hand has no noise and no "
            "band."
        )
    return notes


def _bands(explanation: Explanation) -> str:
    known = [np.isfinite(shape.deviation[:, shape.shown]).all() for shape in explanation.shapes]
    if not any(known):
        return "How noisy the leaves are is not known, so there are no bands."
    text = (
        "Bands hold 95 % of the noise that was added on purpose, point by point, from its known "
        "size. They do not count the chance in the rows themselves, nor what shrinking and "
        "clipping leave out."
    )
    if explanation.model.record.get("method") == "auto":
        text += (
            " Noise of one column reaches others in later rounds, by how much no release says; to "
            "allow for it, bands are half as wide again as a column's own noise makes them."
        )
    elif explanation.model.statement.releases > 1:
        text += (
            " Variances of trees are added; that earlier noise moves the questions and cuts of "
            "later rounds is not counted."
        )
    return text


def _weights(explanation: Explanation) -> str:
    released = [shape.column for shape in explanation.shapes if shape.released]
    public = [shape.column for shape in explanation.shapes if not shape.released]
    text = "Effects are around their mean, and importances their mean size, over "
    if not public:
        return text + "the noisy counts that the model holds, column by column."
    if not released:
        return text + "the ranges and lists of the schema, because the model holds no counts."
    return (
        text + "the noisy counts that the model holds; of "
        f"{', '.join(public[:6])}{' and others' if len(public) > 6 else ''} it holds none, and the "
        "range or list of the schema stands in."
    )
