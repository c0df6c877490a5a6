"""PrivateBoostingRegressor: numbers between bounds by their mean or a quantile, and counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Progress
from hedgerow.data.counts import counts_given
from hedgerow.data.schema import Label, Schema
from hedgerow.data.tables import numbers_of
from hedgerow.errors import SchemaError, SettingsError, TableError
from hedgerow.estimators.base import Regressor
from hedgerow.estimators.boosting import PrivateBoosting
from hedgerow.estimators.inputs import has_names
from hedgerow.estimators.keywords import explained
from hedgerow.evaluation.counts import exact_measures
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger

Floats = NDArray[np.float64]
_OF_LABEL = ("loss", "quantile", "huber", "max_exposure")


class PrivateBoostingRegressor(Regressor, PrivateBoosting):
    """Boosted trees for a number or a count, under differential privacy.

    Parameters are those of `PrivateBoostingClassifier`, with `label_bounds` (low, high) in place
    of `classes`. Labels outside the bounds are clipped to them.

    Parameters
    ----------
    loss : "squared" predicts the mean of numbers, "quantile" a quantile, "huber" a mean that
        errors beyond `huber` pull no further, "poisson" the mean of counts on a logarithmic scale.
        None is what the schema says, else squared. All but squared are for method "auto"
    quantile : which one, with loss="quantile": above 0 and below 1
    huber : the error, in units of the label, beyond which Huber's loss is straight
    max_exposure : the public cap on exposures, with loss="poisson"

    Notes
    -----
    These four are facts about the label. A schema can say them, too (`loss`, `quantile`, `huber`,
    `exposure`, `max_exposure` of its label); then they must agree.

    Counts have the bounds (0, cap). Where rows were seen for different lengths of time, `y` of
    `fit` and `score` is a pair (counts, exposures), or has both columns by name; `predict` returns
    counts expected in one unit of exposure, or with `exposure` in so much. `score` is R squared;
    of counts the share of the deviance that is explained, of quantiles that of the pinball loss.

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import PrivateBoostingRegressor
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 2)
    >>> model = PrivateBoostingRegressor(bounds=(-1, 1), label_bounds=(0, 1), epsilon=2.0)
    >>> bool(model.fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.3)
    True

    Claims of drivers who were insured for up to a year:

    >>> rng = np.random.default_rng(0)
    >>> X, years = rng.uniform(-1, 1, (6000, 2)), rng.uniform(0.1, 1, 6000)
    >>> claims = rng.poisson(years * np.exp(X[:, 0]))
    >>> facts = {"bounds": (-1, 1), "label_bounds": (0, 10), "loss": "poisson", "max_exposure": 1}
    >>> model = PrivateBoostingRegressor(**facts, epsilon=4.0).fit(X, (claims, years))
    >>> bool(model.score(X, (claims, years)) > 0.05)
    True
    """

    _TASKS = ("regression", "counts")

    @explained
    def __init__(
        self,
        schema: Schema | str | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        method: str = "auto",
        trust: str | None = None,
        n_trees: int | None = None,
        max_depth: int | None = None,
        learning_rate: float | None = None,
        n_bins: int | None = None,
        settings: Mapping[str, Any] | None = None,
        bounds: Any = None,
        label_bounds: tuple[float, float] | None = None,
        ledger: Ledger | str | None = None,
        random_state: int | None = None,
        monotone: Mapping[str, int] | None = None,
        warm_start_from: Ensemble | str | None = None,
        warm_start_is_public: bool = False,
        verbose: int = 0,
        max_weight: float | None = None,
        loss: str | None = None,
        quantile: float | None = None,
        huber: float | None = None,
        max_exposure: float | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.trust = trust
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.n_bins = n_bins
        self.settings = settings
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.ledger = ledger
        self.random_state = random_state
        self.monotone = monotone
        self.warm_start_from = warm_start_from
        self.warm_start_is_public = warm_start_is_public
        self.verbose = verbose
        self.max_weight = max_weight
        self.loss = loss
        self.quantile = quantile
        self.huber = huber
        self.max_exposure = max_exposure

    def predict(self, X: Any, exposure: Any = None) -> Floats:
        """The predicted number of each row, within the label's bounds.

        Of counts the one expected in one unit of exposure, or in `exposure`, one number a row.
        """
        predicted = self._fitted(X).predict(X)
        if exposure is None:
            return predicted
        if self.model_.schema.label.task != "counts":
            raise SettingsError("exposure is for counts, and the model predicts numbers")
        seen = numbers_of(exposure, "exposure")
        if seen.shape != predicted.shape or not bool(np.all(seen >= 0)):
            raise TableError(
                f"X has {len(predicted)} rows and exposure {len(seen)} numbers; give one of at "
                "least 0 for every row"
            )
        return np.asarray(predicted * seen)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R squared; of counts the share of the deviance explained, of quantiles of pinball loss.

        Labels are read as in training.
        """
        label = self._fitted(X).schema.label
        if label.loss not in ("poisson", "quantile"):
            return super().score(X, y, sample_weight)
        if sample_weight is not None:
            raise SettingsError(
                "scores of counts and quantiles have no sample_weight; leave it out"
            )
        if label.quantile is not None:
            return _pinball_share(numbers_of(y, "y"), self.predict(X), label.quantile)
        counts, exposures = counts_given(y, label)
        seen = np.ones_like(counts) if exposures is None else exposures
        return exact_measures(counts, self.predict(X, seen), seen)["d2"]

    def fit_federation(
        self, federation: Federation, observe: Callable[[Progress], None] | None = None
    ) -> Self:
        """Train over a federation that exists already, as for classes; its schema has the loss."""
        if self._with_loss(federation.schema) != federation.schema:
            raise SettingsError(
                f"loss is {self.loss!r}, and the federation's schema says another one; agree on a "
                "schema whose label has it, or leave it out here. Nothing was asked."
            )
        return super().fit_federation(federation, observe)

    def _schema(self, X: Any, y: Any) -> Schema:
        return self._with_loss(super()._schema(X, y))

    def _with_loss(self, schema: Schema) -> Schema:
        """The schema with what parameters say of the label."""
        given = {name: getattr(self, name) for name in _OF_LABEL}
        if all(value is None for value in given.values()):
            return schema
        own, label = schema.label, _label_with(schema.label, given)
        if own.loss is not None and label != own:
            raise SchemaError(
                f"the schema's label has loss = {own.loss!r} with facts of its own, and the "
                "parameters say another one; leave them out, or give the same. Nothing was asked."
            )
        return schema.with_label(label)

    def _one_column(self, X: Any, y: Any) -> Any:
        """Counts with exposure have two columns, which the schema reads."""
        if not (isinstance(y, tuple) or has_names(y)):
            return super()._one_column(X, y)
        return y


def _label_with(label: Label, given: Mapping[str, Any]) -> Label:
    """The label with these facts; exposures that no schema names are in `y`, beside the counts."""
    facts = {name: value for name, value in given.items() if value is not None}
    if "max_exposure" in facts and label.exposure is None:
        facts["exposure"] = "exposure"
    return replace(label, **facts)


def _pinball_share(labels: Floats, predicted: Floats, level: float) -> float:
    """The share of the pinball loss of one quantile for all rows that is explained."""

    def loss(values: Floats | float) -> float:
        errors = labels - values
        return float(np.mean(np.maximum(level * errors, (level - 1) * errors)))

    of_one = loss(float(np.quantile(labels, level)))
    return 1 - loss(predicted) / of_one if of_one > 0 else 0.0
