"""What every export says of itself: the statement, what the inputs are, what the covers mean."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from hedgerow.data.schema import Categorical, Column, Numeric
from hedgerow.data.values import Value
from hedgerow.export.forest import Forest, Link
from hedgerow.model.changes import PRIVATE
from hedgerow.model.ensemble import Ensemble

FORMAT = 1
RELEASED = "released"
EQUAL = "equal shares"
MIXED = "partly released"
NONE = "none"  # of a format that has no covers
_THEN: dict[Link, str] = {
    "logit": "the sigmoid is the probability of the second class",
    "softmax": "the softmax are the probabilities of the classes",
    "share": "clipped to 0 .. 1 it is the probability of the second class",
    "shares": "clipped at 0 and divided by their sum they are the probabilities of the classes",
    "number": "clipped to the bounds it is the prediction",
    "hazards": "the exponential is the hazard of an interval; survival at a cut is the exponential "
    "of minus the hazards of the intervals up to it together",
}


@dataclass(frozen=True)
class Exported:
    """What was written where. `notes` are what whoever uses the file must know."""

    path: Path
    format: str
    trees: int
    nodes: int
    covers: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        plain = {"out": str(self.path), "format": self.format, "trees": self.trees}
        return {**plain, "nodes": self.nodes, "covers": self.covers, "notes": list(self.notes)}


def model_of(model: Any) -> Ensemble:
    """A model, a fitted estimator's model, or the model in a `.hedge` file."""
    if isinstance(model, (str, PathLike)):
        return Ensemble.load(model)
    ensemble = getattr(model, "model_", model)
    if not isinstance(ensemble, Ensemble):
        raise TypeError(f"{type(model).__name__} is no model; give an Ensemble or a .hedge file")
    return ensemble


def metadata_of(model: Ensemble, forest: Forest, covers: str = "") -> dict[str, str]:
    """Texts by key, the same in every format. Public facts and released values only."""
    return {
        "hedgerow_format": str(FORMAT),
        "hedgerow_model": model.hash,
        "hedgerow_promise": model.statement.words(),
        "hedgerow_statement": _json(model.statement.to_dict()),
        "hedgerow_schema": _json(model.schema.to_dict()),
        "hedgerow_inputs": _json([input_of(column) for column in forest.schema.columns]),
        "hedgerow_output": _json(output_of(forest)),
        "hedgerow_covers": covers or covers_of(forest),
    }


def input_of(column: Column) -> dict[str, Any]:
    """What an export expects of one column: a number, or the code of a listed value.

    >>> input_of(Categorical("site", ("north", "south"), other="category"))["other"]
    2
    """
    facts: dict[str, Any] = {"name": column.name, "kind": column.kind, "missing": "NaN"}
    if isinstance(column, Numeric):
        return facts
    facts["codes"] = list(column.categories)  # a value's code is its place here
    if column.other == "error":
        facts["other"] = "error"  # hedgerow refuses such a row; no other library does
    else:
        facts["other"] = len(column.categories) if isinstance(column, Categorical) else "NaN"
    return facts


def output_of(forest: Forest) -> dict[str, Any]:
    """What the sum of leaf values means; `exact`: that it needs no clipping and no dividing."""
    label = forest.schema.label
    facts: dict[str, Any] = {"label": label.name, "link": forest.link, "then": _THEN[forest.link]}
    facts["exact"] = forest.exact
    if label.classes:
        facts["classes"] = list(label.classes)
    elif label.cuts:
        facts["cuts"] = list(label.cuts)
    else:
        facts["bounds"] = [label.lower, label.upper]
    return facts


def covers_of(forest: Forest) -> str:
    """Whether covers are released values, in a word or two."""
    if not forest.n_released:
        return EQUAL
    return RELEASED if forest.n_released == forest.n_split else MIXED


def notes_of(
    model: Ensemble, forest: Forest, finished: bool = False, covers: bool = True
) -> tuple[str, ...]:
    """What a user must do or know.

    `finished` formats clip and divide by themselves; `covers`: whether the format has them.
    """
    notes = []
    if model.statement.guarantee not in PRIVATE:
        notes.append("This model is NOT PRIVATE, and the file says so.")
    label = forest.schema.label
    if not finished and forest.link == "number" and not forest.exact:
        notes.append(
            f"Clip predictions to {label.lower:g} .. {label.upper:g}, as hedgerow does; this "
            "format only adds up."
        )
    if not finished and forest.link == "share":
        second = _quoted(label.classes[1])
        clip = "" if forest.exact else " after clipping to 0 .. 1"
        notes.append(f"A prediction is the probability of class {second}{clip}.")
    if not finished and forest.link == "shares":
        clip = "" if forest.exact else " after clipping at 0 and dividing by their sum"
        notes.append(f"Predictions are the probabilities of the classes in their order{clip}.")
    if not finished and forest.link == "hazards":
        notes.append(
            f"Give every row once for each interval, its number from 0 to {len(label.cuts) - 1} as "
            f"the column {forest.schema.names[-1]!r}: hedgerow.export.interval_rows makes them. A "
            "prediction is the hazard of that interval, and survival at a cut the exponential of "
            "minus the hazards up to it together."
        )
    if listed := [c.name for c in forest.schema.columns if not isinstance(c, Numeric)]:
        notes.append(
            f"Columns {', '.join(map(_quoted, listed))} are given as codes, see hedgerow_inputs in "
            "the file; hedgerow.export.to_matrix makes them."
        )
    if covers and forest.n_released < forest.n_split:
        notes.append(
            f"Covers of {forest.n_split - forest.n_released} of {forest.n_split} trees are equal "
            "shares of the leaves: nothing was released about how many rows they hold."
        )
    return tuple(notes)


def _quoted(value: Value) -> str:
    return repr(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
