"""What estimators of every family share: inputs, settings, the ledger, the model, predictions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hedgerow.coordinator.federation import Federation
from hedgerow.data.cards import html_of
from hedgerow.data.habits import attribute_here
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows, numbers_of, rows_of, target_of
from hedgerow.data.values import Value
from hedgerow.data.weights import refuse_weight
from hedgerow.errors import SchemaError, SettingsError
from hedgerow.estimators.inputs import (
    check_fit,
    check_weights,
    check_width,
    class_array,
    classes_given,
    ledger_given,
    refuse_time_to_event,
    schema_given,
    with_cap,
)
from hedgerow.estimators.keywords import refuse_parameters
from hedgerow.estimators.progress import begin
from hedgerow.export.estimator_methods import Exports
from hedgerow.inspection.explain import Explanation, explain
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Statement
from hedgerow.privacy.ledger.in_force import ledger_in_force
from hedgerow.privacy.ledger.ledger import Ledger


class Estimator(Exports, BaseEstimator):
    """Rows and settings on the way in; a model and its statement on the way out."""

    schema: Schema | str | None
    bounds: Any
    settings: Mapping[str, Any] | None
    ledger: Ledger | str | None
    random_state: int | None
    verbose: int
    max_weight: float | None = None  # the public cap on weights of rows, where they may have any
    model_: Ensemble
    statement_: Statement
    not_in_file_: tuple[str, ...]  # of an estimator that was loaded: parameters it has to guess
    _OWN: tuple[str, ...] = ("n_trees", "max_depth", "learning_rate")  # parameters and settings
    _FURTHER: frozenset[str] = frozenset()  # names that `settings` may have

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Schema, Rows]:
        """The schema, and the rows as it reads them."""
        begin(self.verbose)
        y = self._one_column(X, y)
        schema = self._public(X, y)
        if sample_weight is not None and not hasattr(sample_weight, "__len__"):
            sample_weight = np.asarray(sample_weight)
        weighs = check_weights(schema, sample_weight, X, self.max_weight)
        return schema, rows_of(X, schema, y, weights=sample_weight, with_weight=weighs)

    def _one_column(self, X: Any, y: Any) -> Any:
        """`y` as scikit-learn wants labels."""
        return check_fit(X, y)

    def _public(self, X: Any, y: Any) -> Schema:
        """The schema with all that parameters add to it; weights only where rows can have them."""
        schema = self._schema(X, y)
        refuse_weight(schema.weight, type(self).__name__)
        return schema

    def _given(self, elsewhere: Collection[str] = ()) -> dict[str, Any]:
        """Parameters and further settings as one table, each given once.

        Settings named in `elsewhere` are not those of the method.
        """
        own = {name: getattr(self, name) for name in self._OWN}
        further = {k: v for k, v in (self.settings or {}).items() if k not in elsewhere}
        if twice := [name for name in further if own.get(name) is not None]:
            raise SettingsError(f"{twice[0]!r} is given twice, as parameter and in settings")
        return {**own, **further}

    def _seed(self) -> int | None:
        """What seeds everything but noise; None draws a seed."""
        seed = self.random_state
        if seed is not None and not isinstance(seed, (int, np.integer)):
            raise SettingsError("random_state is a whole number or None; it never seeds noise")
        return None if seed is None else int(seed)

    def _open_ledger(self, federation: Federation | None = None) -> AbstractContextManager[Ledger]:
        """The ledger that pays for this fit, see `ledger_given`; else that of a site."""
        ledger = self.ledger
        if ledger is None and federation is not None and ledger_in_force() is None:
            ledger = federation.ledger
        return ledger_given(ledger)

    def _begin_over(self, federation: Federation) -> Schema:
        """The federation's schema, which must be the estimator's if that names one."""
        begin(self.verbose)
        schema = federation.schema
        if self.schema is not None or self.bounds is not None:
            own = self._schema(dict.fromkeys(schema.names, ()), None)
            if with_cap(own, self.max_weight).hash != with_cap(schema, self.max_weight).hash:
                raise SchemaError(
                    "the estimator's schema is not that of the federation, whose parties would "
                    "refuse. Nothing was asked. Leave it out of the estimator, or give the file "
                    "that everybody agreed on."
                )
        self._check_task(schema)
        return schema

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds, for joblib's processes too: there, a ledger is opened by its path.

        An estimator that is yet to be fitted takes the ledger in force with it.
        """
        state = dict(super().__getstate__())
        ledger = state.get("ledger")
        if ledger is None and "model_" not in state:
            ledger = ledger_in_force()
        if isinstance(ledger, Ledger) and ledger.path is not None:
            ledger = str(ledger.path.resolve())
        return {**state, "ledger": ledger}

    def _keep(self, model: Ensemble, named: bool) -> None:
        self.model_, self.statement_ = model, model.statement
        self.n_features_in_ = len(model.schema.columns)
        if hasattr(self, "not_in_file_"):  # it was loaded, and now has a fit of its own
            del self.not_in_file_
        if named:
            self.feature_names_in_ = np.array(model.schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _schema(self, X: Any, y: Any) -> Schema:
        raise TypeError("use one of the classes that end in Classifier or Regressor")

    def _check_task(self, schema: Schema) -> None:
        raise TypeError("use one of the classes that end in Classifier or Regressor")

    def _fitted(self, X: Any) -> Ensemble:
        """The model, if there is one and X could be a table for it."""
        check_is_fitted(self)
        check_width(X, self.n_features_in_, type(self).__name__)
        return self.model_

    def explain(self) -> Explanation:
        """Shapes with error bands where there is noise, importances, contributions of rows."""
        check_is_fitted(self)
        return explain(self.model_)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model with its statement as a `.hedge` file; `hedgerow.load` reads it.

        The file holds released values and public facts; `joblib.dump` keeps the parameters too.
        """
        self._fitted_model().save(path)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """How much each column moves the score, (column,), adding up to 1; noise moves it, too.

        The mean sizes of effects that `explain().importances` lists; a pair's is shared by its two
        columns. It follows from released values, so it costs nothing.
        """
        explanation = self.explain()
        sizes = {shape.column: shape.importance for shape in explanation.shapes}
        for pair in explanation.pairs:
            for column in pair.columns:
                sizes[column] += pair.importance / 2
        values = np.array(list(sizes.values()))
        total = values.sum()
        return np.asarray(values / total if total > 0 else values)

    def __getattr__(self, name: str) -> Any:
        """Python asks here for what is not there; other libraries' names are told what to write."""
        if not (advice := attribute_here(name)):
            return object.__getattribute__(self, name)  # raises what was raised before
        told = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(f"{told}: {advice}", name=name, obj=self)

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as grids of scikit-learn's searches do."""
        refuse_parameters(type(self), params, self._get_param_names())
        super().set_params(**params)
        return self

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Notebooks show a fitted model and its promise; before, scikit-learn's diagram."""
        shown: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in shown and hasattr(self, "model_"):
            shown["text/html"] = self._repr_html_inner()
        return shown

    def _repr_html_inner(self) -> str:
        """What scikit-learn calls for the HTML of an estimator."""
        if not hasattr(self, "model_"):
            html: str = super()._repr_html_inner()
            return html
        notes: tuple[str, ...] = ()
        if hasattr(self, "not_in_file_"):
            notes = (f"Loaded from a file, which does not hold: {', '.join(self.not_in_file_)}.",)
        return html_of(self.model_.card(type(self).__name__, notes))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing value goes where a split sends it
        tags.input_tags.sparse = True
        tags.input_tags.string = True  # where the schema has a list
        return tags


def scope_of(ledger: Ledger, run: str) -> str:
    """What a statement counts: a ledger that lasts has the run, one in memory ends with the fit."""
    return "this fit alone" if ledger.path is None else f"run {run}"


class Classifier(ClassifierMixin, Estimator):
    """Predictions of classes."""

    classes: Sequence[Value] | str | None
    _REGRESSOR: str | None = None  # where the regressor is not called like the classifier

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log-odds of the second class, (row,); for multiclass one score a class, (row, class)."""
        model = self._fitted(X)
        if model.averaged:
            shares = np.clip(self.predict_proba(X), 1e-12, 1 - 1e-12)
            return np.asarray(
                np.log(shares[:, 1] / shares[:, 0]) if shares.shape[1] == 2 else shares
            )
        scores = model.decision_function(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities (row, class) in the order of `classes_`."""
        return self._fitted(X).predict(X)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`; minus infinity where a probability is 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        likeliest = np.argmax(self.predict_proba(X), axis=1)
        labels: NDArray[Any] = self.classes_[likeliest]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is predicted; classes match as they do in training."""
        label = self._fitted(X).schema.label
        right = np.argmax(self.predict_proba(X), axis=1) == target_of(y, label, "y")
        return float(np.average(right, weights=sample_weight))

    @property
    def classes_(self) -> NDArray[Any]:
        check_is_fitted(self)
        return class_array(self.model_.schema.label.classes)

    def _schema(self, X: Any, y: Any) -> Schema:
        schema = schema_given(self.schema, self.bounds, classes_given(self.classes, y), X, y)
        self._check_task(schema)
        return schema

    def _check_task(self, schema: Schema) -> None:
        refuse_time_to_event(schema, type(self).__name__)
        if schema.label.task in ("regression", "counts"):
            name = self._REGRESSOR or type(self).__name__.replace("Classifier", "Regressor")
            raise SchemaError(f"the label is a number; use {name}")


class Regressor(RegressorMixin, Estimator):
    """Predictions of a number between public bounds."""

    label_bounds: tuple[float, float] | None
    _TASKS: tuple[str, ...] = ("regression",)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted number of each row, within the label's bounds."""
        return self._fitted(X).predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R squared of the predictions; labels are read as in training."""
        return float(super().score(X, numbers_of(y, "y"), sample_weight))

    def _schema(self, X: Any, y: Any) -> Schema:
        label = None
        if self.label_bounds is not None:
            low, high = self.label_bounds
            label = {"label_bounds": (float(low), float(high))}
        schema = schema_given(self.schema, self.bounds, label, X, y)
        self._check_task(schema)
        return schema

    def _check_task(self, schema: Schema) -> None:
        refuse_time_to_event(schema, type(self).__name__)
        if schema.label.task == "counts" and "counts" not in self._TASKS:
            raise SchemaError(
                f"the label {schema.label.name!r} is a count, which {type(self).__name__} does not "
                "predict; use PrivateBoostingRegressor"
            )
        if schema.label.task not in self._TASKS:
            name = type(self).__name__.replace("Regressor", "Classifier")
            raise SchemaError(f"the label has classes; use {name}")
