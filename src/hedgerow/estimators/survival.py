"""PrivateSurvivalBoosting: time to an event, under differential privacy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hedgerow.data.schema import Label, Schema
from hedgerow.data.survival import outcomes_given
from hedgerow.errors import PlanWarning, SchemaError, SettingsError, TableError
from hedgerow.estimators.boosting import PrivateBoosting
from hedgerow.estimators.inputs import has_names, schema_given
from hedgerow.estimators.keywords import explained
from hedgerow.evaluation.survival import concordance, medians
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger

Floats = NDArray[np.float64]


class PrivateSurvivalBoosting(PrivateBoosting):
    """Boosted trees for the time to an event, under differential privacy.

    The schema's label names a column of times, a column that says whether the event happened then
    or the row was censored, and public `cuts` of time. The model is one of proportional hazards:
    hazards of the intervals between cuts, times a ratio for every row. Times beyond the last cut,
    the horizon, are censored there. Every person is in one cell of every column with one number
    between -1 and 1. With `change_at` in the label, one of the cuts, columns may have other effects
    from there on, and a person has two numbers, together no longer than 1.

    Parameters
    ----------
    schema : Schema, path to a schema file, or None when `bounds` and `label` are given
    epsilon, delta : the guarantee; delta well below 1 / rows
    method : "auto", or "random-trees"; others know nothing of times to an event
    trust : "coordinator", "parties" or "nobody"; None = the parties where there are several
    settings : further settings by name, e.g. ``{"minimum_parties": 2}``
    bounds : (low, high) for every column, or {column: (low, high)}; instead of a schema
    label : `Label(time, event=..., cuts=...)`, with `bounds`
    ledger : Ledger or path; None is that of the `with` block around the fit, or this fit alone
    random_state : seeds the questions, never the noise
    monotone : 1 or -1 by column, for risks that may only rise or fall; costs nothing
    verbose : 1 prints some lines while a fit runs, 2 one for every step; 0 is silent
    max_weight : the public cap on `sample_weight` of `fit`, which all noise grows with

    Notes
    -----
    `y` of `fit` and `score` has both columns by name (a frame, a dict), or is a pair (times,
    events), or a structured array as scikit-survival makes them. It may be left out where the table
    has them.

    Where a released count of events says that noise would be more than most effects, the model is
    one Kaplan-Meier curve for all rows; `fit` warns of it, and `curve_for_all_` is true.

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import Label, PrivateSurvivalBoosting
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (6000, 2))
    >>> time = rng.exponential(np.exp(-2 * X[:, 0]))
    >>> y = np.minimum(time, 2.0), time < 2.0
    >>> label = Label("years", event="died", cuts=[0.25, 0.5, 1.0, 1.5, 2.0])
    >>> model = PrivateSurvivalBoosting(bounds=(-1, 1), label=label, epsilon=2.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.6), model.predict_survival_function(X[:3]).shape
    (True, (3, 5))
    """

    warm_start_from = None
    warm_start_is_public = False
    _OWN = ()

    @explained
    def __init__(
        self,
        schema: Schema | str | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        method: str = "auto",
        trust: str | None = None,
        settings: Mapping[str, Any] | None = None,
        bounds: Any = None,
        label: Label | None = None,
        ledger: Ledger | str | None = None,
        random_state: int | None = None,
        monotone: Mapping[str, int] | None = None,
        verbose: int = 0,
        max_weight: float | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.trust = trust
        self.settings = settings
        self.bounds = bounds
        self.label = label
        self.ledger = ledger
        self.random_state = random_state
        self.monotone = monotone
        self.verbose = verbose
        self.max_weight = max_weight

    @property
    def cuts_(self) -> Floats:
        """The public times at which the model says something; the last is the horizon: (cut,)."""
        check_is_fitted(self)
        return np.asarray(self.model_.schema.label.cuts, np.float64)

    @property
    def curve_for_all_(self) -> bool:
        """Whether noise left no more than one Kaplan-Meier curve, the same for every row."""
        check_is_fitted(self)
        return bool(self.model_.record.get("curve_for_all", False))

    def predict(self, X: Any) -> Floats:
        """The risk of each row: the logarithm of its hazards up to the horizon together, (row,)."""
        return np.asarray(np.log(self.predict_cumulative_hazard_function(X)[:, -1]))

    def predict_survival_function(self, X: Any, times: Any = None) -> Floats:
        """Probabilities to be without the event at `times`, by default at the cuts: (row, time).

        Between cuts hazards are constant. The model says nothing about times beyond the horizon.
        """
        return np.asarray(np.exp(-self.predict_cumulative_hazard_function(X, times)))

    def predict_cumulative_hazard_function(self, X: Any, times: Any = None) -> Floats:
        """Hazards up to `times` together, by default up to the cuts: (row, time)."""
        scores = self._fitted(X).decision_function(X)
        at_cuts = np.cumsum(np.exp(np.clip(scores, -700, 50)), axis=1)  # (row, cut)
        if times is None:
            return np.asarray(at_cuts)
        asked, cuts = np.asarray(times, np.float64).reshape(-1), self.cuts_
        if not np.all((asked >= 0) & (asked <= cuts[-1])):
            raise SettingsError(
                f"times lie between 0 and the horizon {cuts[-1]:g}, the last cut of the schema; "
                "the model says nothing about others"
            )
        ends, begins = np.searchsorted(cuts, asked), np.append(0.0, cuts)
        ends = np.minimum(ends, len(cuts) - 1)
        part = (asked - begins[ends]) / (cuts[ends] - begins[ends])
        before = np.hstack([np.zeros((len(at_cuts), 1)), at_cuts])
        return np.asarray(before[:, ends] + part * (at_cuts[:, ends] - before[:, ends]))

    def predict_median(self, X: Any) -> Floats:
        """The time by which half of such rows have the event: (row,); infinite beyond the horizon.

        Between cuts hazards are constant.
        """
        return medians(self.predict_survival_function(X), self.cuts_.tolist())

    def score(self, X: Any, y: Any = None) -> float:
        """Harrell's concordance: pairs of which the one at higher risk had the event first."""
        risk, label = self.predict(X), self.model_.schema.label
        times, events = outcomes_given(X if y is None else y, label)
        if len(times) != len(risk):
            raise TableError(f"X has {len(risk)} rows and y {len(times)}.")
        return concordance(risk, times, events > 0.5)

    def _one_column(self, X: Any, y: Any) -> Any:
        """`y` has two columns here, which the schema reads."""
        if y is None and not has_names(X):
            raise TableError(
                "fitting requires y to be passed, but the target y is None; only a table with "
                "names can hold its own columns of times and events. Nothing was asked."
            )
        return y

    def _fit_on_cluster(self, X: Any, y: Any, parties: Any, sample_weight: Any) -> Self:
        raise SettingsError(
            "times to an event are not trained on a cluster of Dask; give a table of this "
            "process. Nothing was asked."
        )

    def _keep(self, model: Ensemble, named: bool) -> None:
        super()._keep(model, named)
        if self.curve_for_all_:
            warnings.warn(
                "noise would have been more than most effects of the columns, so the model is one "
                "Kaplan-Meier curve for all rows. `hedgerow plan` says how many events it takes; "
                "a larger epsilon, fewer columns or more rows help.",
                PlanWarning,
                stacklevel=4,
            )

    def _schema(self, X: Any, y: Any) -> Schema:
        given = None if self.label is None else {"time_to_event": self.label}
        schema = schema_given(self.schema, self.bounds, given, X, y)
        self._check_task(schema)
        return schema

    def _check_task(self, schema: Schema) -> None:
        if schema.label.task != "survival":
            raise SchemaError(
                f"the label {schema.label.name!r} is no time to an event: it needs event = the "
                "column that says whether it happened, and cuts = [...]. For classes and numbers "
                "use PrivateBoostingClassifier and PrivateBoostingRegressor"
            )
