"""What estimators without differential privacy share: checked parameters, predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hedgerow.errors import SchemaError, SettingsError
from hedgerow.explain import Explanation, explain
from hedgerow.export.methods import Exports
from hedgerow.inputs import check_width, class_array, classes_given, is_named, schema_given
from hedgerow.model.ensemble import Ensemble
from hedgerow.rng import fresh_seed
from hedgerow.schema import Schema, Value
from hedgerow.statement import Statement


class ExactBoosting(Exports, BaseEstimator):
    """A model, its statement, and what scikit-learn wants to know of both."""

    schema: Schema | str | None
    settings: Mapping[str, Any] | None
    bounds: Any
    model_: Ensemble
    statement_: Statement
    _OWN: tuple[str, ...] = ("n_trees", "max_depth", "learning_rate")  # settings by parameters

    _SEEDED = True  # whether something is drawn by `random_state`

    def _given(self) -> dict[str, Any]:
        """Settings by parameters and by `settings`, each given once."""
        further = dict(self.settings or {})
        taken = {*self._OWN, *(["seed"] if self._SEEDED else [])}
        if twice := sorted(taken & set(further)):
            raise SettingsError(f"{twice[0]!r} is a parameter of its own; take it out of settings")
        if not self._SEEDED:
            return {**{name: getattr(self, name) for name in self._OWN}, **further}
        seed = getattr(self, "random_state", None)
        if seed is not None and not isinstance(seed, (int, np.integer)):
            raise SettingsError("random_state is a whole number or None")
        own = {name: getattr(self, name) for name in self._OWN}
        own["seed"] = fresh_seed() if seed is None else int(seed)
        return {**own, **further}

    def _keep(self, model: Ensemble, X: Any) -> None:
        self.model_, self.statement_ = model, model.statement
        self.n_features_in_ = len(model.schema.columns)
        if is_named(X):
            self.feature_names_in_ = np.array(model.schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _schema(self, X: Any, y: Any) -> Schema:
        raise TypeError(f"use {type(self).__name__}Classifier or {type(self).__name__}Regressor")

    def _fitted(self, X: Any) -> Ensemble:
        check_is_fitted(self)
        check_width(X, self.n_features_in_, type(self).__name__)
        return self.model_

    def explain(self) -> Explanation:
        """Shapes, importances, contributions of rows; without bands, for there is no noise."""
        check_is_fitted(self)
        return explain(self.model_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing value goes where a split sends it
        tags.input_tags.sparse = True
        tags.input_tags.string = True  # where the schema has a list
        return tags


class ExactClassifier(ClassifierMixin, ExactBoosting):
    """Predictions of classes."""

    classes: Sequence[Value] | str | None

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log-odds of the second of two classes, or one score a class: (row,) or (row, class)."""
        scores = self._fitted(X).decision_function(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities (row, class) in the order of `classes_`."""
        return self._fitted(X).predict(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        likeliest = np.argmax(self.predict_proba(X), axis=1)
        labels: NDArray[Any] = self.classes_[likeliest]
        return labels

    @property
    def classes_(self) -> NDArray[Any]:
        check_is_fitted(self)
        return class_array(self.model_.schema.label.classes)

    def _schema(self, X: Any, y: Any) -> Schema:
        schema = schema_given(self.schema, self.bounds, classes_given(self.classes, y), X, y)
        if schema.label.task == "regression":
            name = type(self).__name__.replace("Classifier", "Regressor")
            raise SchemaError(f"the label is a number; use {name}")
        return schema


class ExactRegressor(RegressorMixin, ExactBoosting):
    """Predictions of a number between public bounds."""

    label_bounds: tuple[float, float] | None

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted number of each row, within the label's bounds."""
        return self._fitted(X).predict(X)

    def _schema(self, X: Any, y: Any) -> Schema:
        label = None
        if self.label_bounds is not None:
            low, high = self.label_bounds
            label = {"label_bounds": (float(low), float(high))}
        schema = schema_given(self.schema, self.bounds, label, X, y)
        if schema.label.task != "regression":
            name = type(self).__name__.replace("Regressor", "Classifier")
            raise SchemaError(f"the label has classes; use {name}")
        return schema
