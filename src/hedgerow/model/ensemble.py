"""A trained model: trees, schema and statement. Holds released values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid
from hedgerow.data.cards import Card, Shown
from hedgerow.data.schema import Schema
from hedgerow.data.tables import encode_table
from hedgerow.errors import FormatError
from hedgerow.model import files
from hedgerow.model.hashes import NO_TREES_YET, longer, model_hash
from hedgerow.model.leaf_noise import stack_known, with_known
from hedgerow.model.losses import Loss, loss_for
from hedgerow.model.routing import Routes, prediction_grid, routes_of
from hedgerow.model.stacking import stack_trees, unstack_trees
from hedgerow.model.statement import Statement
from hedgerow.model.tree import Tree, check_trees


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble(Shown):
    """A sum of trees over a schema, with its guarantee.

    With `averaged` the trees add up to probabilities (or to the scaled number) themselves, as in a
    random forest; otherwise to scores. `record` says how the model was made; two models are equal
    when their trees and schema are, whatever the record says.
    """

    trees: tuple[Tree, ...]
    schema: Schema
    statement: Statement
    averaged: bool = False
    record: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_trees(self.trees, self.schema, self.loss.n_outputs)

    @property
    def loss(self) -> Loss:
        return loss_for(self.schema.label)

    @property
    def hash(self) -> str:
        """Names the model by its schema and trees, and by what becomes of their sums."""
        chain = reduce(longer, (tree.to_bytes() for tree in self.trees), NO_TREES_YET)
        return model_hash(self.schema.hash, len(self.trees), chain, self.averaged)

    def decision_function(self, data: Any) -> NDArray[np.float64]:
        """Scores (row, output): float64 sums of float32 leaf values in tree order."""
        grid, routes, values = self._compiled
        codes = encode_table(data, grid, "table to predict", self.schema.csv)
        scores = np.zeros((codes.n_rows, self.loss.n_outputs))
        routes.add_scores(codes, scores, values)
        return scores

    def predict(self, data: Any) -> NDArray[np.float64]:
        """Class probabilities (row, class) in the schema's order, or predicted values (row,)."""
        return predictions_of(self.schema, self.decision_function(data), self.averaged)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a `.hedge` file, by rename, so that a crash leaves the old file or the new one."""
        files.write(self.to_bytes(), path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Ensemble:
        """Read a `.hedge` file."""
        return Ensemble.from_bytes(files.read(path), str(Path(path)))

    def to_bytes(self) -> bytes:
        """The bytes of its file; equal models with equal records give equal bytes."""
        values = {
            "schema": self.schema.to_dict(),
            "statement": self.statement.to_dict(),
            "averaged": self.averaged,
            "record": self.record,
        }
        return files.sealed(values, {**stack_trees(self.trees), **stack_known(self.trees)})

    @staticmethod
    def from_bytes(data: bytes, source: str = "model") -> Ensemble:
        """Read a model; FormatError on anything that is not a whole, unchanged file."""
        values, arrays = files.unsealed(data, source)
        try:
            schema = Schema.from_dict(values["schema"], source)
            statement = Statement.from_dict(values["statement"])
            averaged, record = values["averaged"], dict(values["record"])
            if not isinstance(averaged, bool):
                raise FormatError("`averaged` is not true or false")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FormatError(f"{source} is not readable: {error}") from error
        trees = with_known(unstack_trees(arrays), arrays)
        return Ensemble(trees, schema, statement, averaged, record)

    def _card(self) -> Card:
        return self.card("Model")

    def card(self, title: str, notes: tuple[str, ...] = ()) -> Card:
        """What a terminal and a notebook show of it, or of an estimator that holds it."""
        label, statement = self.schema.label, self.statement
        facts = (
            ("predicts", f"{label.name} ({label.task}: {label.values})"),
            ("columns", len(self.schema.columns)),
            ("trees", len(self.trees)),
            ("method", self.record.get("method", "")),
            *statement.facts(),
        )
        return Card(title, facts, notes=(statement.words(), *notes), alarm=statement.alarm)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Ensemble)
            and self.schema == other.schema
            and self.averaged == other.averaged
            and self.trees == other.trees
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def _compiled(self) -> tuple[tuple[ColumnGrid, ...], Routes, NDArray[np.float32]]:
        grid = prediction_grid(self.trees, self.schema)
        routes = routes_of([tree.structure for tree in self.trees], grid)
        empty = np.zeros((1, self.loss.n_outputs), np.float32)
        values = np.concatenate([tree.values for tree in self.trees]) if self.trees else empty
        return grid, routes, values


def predictions_of(
    schema: Schema, scores: NDArray[np.float64], averaged: bool = False
) -> NDArray[np.float64]:
    """What scores (row, output) say: class probabilities (row, class), or values (row,).

    Of counts with exposure: those expected in one unit of it.
    """
    label = schema.label
    predictions = loss_for(label).predictions(scores, averaged)
    if label.lower is None or label.upper is None:
        return predictions
    values = label.lower + (label.upper - label.lower) * predictions[:, 0]
    return np.asarray(values if label.max_exposure is None else values / label.max_exposure)
