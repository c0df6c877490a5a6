"""scikit-learn estimators of boosting by similarity: no differential privacy, and they say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hedgerow.errors import SchemaError, SettingsError
from hedgerow.explain import Explanation, explain
from hedgerow.inputs import (
    check_fit,
    check_width,
    class_array,
    classes_given,
    is_named,
    schema_given,
    split_rows,
)
from hedgerow.model.ensemble import Ensemble
from hedgerow.rng import fresh_seed
from hedgerow.schema import Schema, Value
from hedgerow.similarity.run import train
from hedgerow.similarity.settings import SimilaritySettings
from hedgerow.statement import Statement
from hedgerow.tables import rows_of

_OWN = ("n_trees", "max_depth", "learning_rate")


class _SimilarityBoosting(BaseEstimator):
    """What classifier and regressor share."""

    schema: Schema | str | None
    settings: Mapping[str, Any] | None
    random_state: int | None

    def fit(self, X: Any, y: Any = None, parties: Any = None) -> Self:
        """Train on one table; `parties` gives each row's party and makes it a federation.

        `y` may be left out when the table has the schema's label column.
        """
        y = check_fit(X, y)
        schema = self._schema(X, y)
        settings = self._settings()
        rows = rows_of(X, schema, y)
        tables = {"all": rows} if parties is None else split_rows(rows, parties)
        self.model_: Ensemble
        self.model_, programs = train(tables, schema, settings)
        self.sent_: dict[str, dict[str, int]] = {n: dict(p.sent) for n, p in programs.items()}
        self.statement_: Statement = self.model_.statement
        self.n_features_in_ = len(schema.columns)
        if is_named(X):
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _settings(self) -> SimilaritySettings:
        further = dict(self.settings or {})
        if twice := sorted({*_OWN, "seed"} & set(further)):
            raise SettingsError(f"{twice[0]!r} is a parameter of its own; take it out of settings")
        seed = self.random_state
        if seed is not None and not isinstance(seed, (int, np.integer)):
            raise SettingsError("random_state is a whole number or None; it seeds the hashes")
        own = {name: getattr(self, name) for name in _OWN}
        own["seed"] = fresh_seed() if seed is None else int(seed)
        return SimilaritySettings.from_dict({**own, **further})

    def _schema(self, X: Any, y: Any) -> Schema:
        raise TypeError("use SimilarityBoostingClassifier or SimilarityBoostingRegressor")

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


class SimilarityBoostingClassifier(ClassifierMixin, _SimilarityBoosting):
    """Boosted trees for classes over several parties, by similar rows; NOT differentially private.

    Parameters
    ----------
    schema : Schema, path to a schema file, or None when `bounds` and `classes` are given
    n_trees, max_depth, learning_rate : of all parties together
    random_state : seeds the hash functions and ties, public to all parties; None draws a seed
    settings : further settings by name, e.g. ``{"leaves": "similar", "similar_weight": 1.0}``
    bounds : (low, high) for every column, or {column: (low, high)}; instead of a schema
    classes : the classes, with `bounds`; "public" declares the classes found in y public

    What the parties show each other is in `statement_`, and in docs/simfl.md.

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import SimilarityBoostingClassifier
    >>> X = np.linspace(-1, 1, 600).reshape(-1, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = SimilarityBoostingClassifier(bounds=(-1, 1), classes=[0, 1], n_trees=20)
    >>> bool(model.fit(X, y, parties=np.arange(300) % 3).score(X, y) > 0.95)
    True
    >>> model.statement_.guarantee
    'none'
    """

    def __init__(
        self,
        schema: Schema | str | None = None,
        n_trees: int = 500,
        max_depth: int = 8,
        learning_rate: float = 0.03,
        random_state: int | None = None,
        settings: Mapping[str, Any] | None = None,
        bounds: Any = None,
        classes: Sequence[Value] | str | None = None,
    ) -> None:
        self.schema = schema
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.settings = settings
        self.bounds = bounds
        self.classes = classes

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
            raise SchemaError("the label is a number; use SimilarityBoostingRegressor")
        return schema


class SimilarityBoostingRegressor(RegressorMixin, _SimilarityBoosting):
    """Boosted trees for a number between public bounds, by similar rows; NOT private.

    Parameters are those of `SimilarityBoostingClassifier`, with `label_bounds` (low, high) in
    place of `classes`. Labels outside the bounds are clipped to them.

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import SimilarityBoostingRegressor
    >>> X = np.linspace(-1, 1, 600).reshape(-1, 2)
    >>> model = SimilarityBoostingRegressor(bounds=(-1, 1), label_bounds=(0, 1), n_trees=100)
    >>> bool(model.fit(X, X[:, 0] ** 2, parties=np.arange(300) % 3).score(X, X[:, 0] ** 2) > 0.8)
    True
    """

    def __init__(
        self,
        schema: Schema | str | None = None,
        n_trees: int = 500,
        max_depth: int = 8,
        learning_rate: float = 0.03,
        random_state: int | None = None,
        settings: Mapping[str, Any] | None = None,
        bounds: Any = None,
        label_bounds: tuple[float, float] | None = None,
    ) -> None:
        self.schema = schema
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.settings = settings
        self.bounds = bounds
        self.label_bounds = label_bounds

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
            raise SchemaError("the label has classes; use SimilarityBoostingClassifier")
        return schema
