"""Scores of searches that are paid for, and what the choice of a search shows otherwise.

The scores that a search compares, and so the parameters that it picks, are facts about private rows
like any other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from hedgerow.errors import SettingsError
from hedgerow.estimators.base import Estimator
from hedgerow.estimators.evaluation import evaluate_privately
from hedgerow.model.statement import Disclosure

# What a scorer can measure, and whether more of it is better.
MEASURES = {
    "auc": 1, "accuracy": 1, "r2": 1, "d2": 1, "log_loss": -1, "rmse": -1, "mae": -1,
    "deviance": -1, "pinball": -1,
}  # fmt: skip


@dataclass(frozen=True)
class PrivateScorer:
    """A scorer for searches and cross-validation that asks with noise, and pays for it.

    Every score is a private evaluation of its own, charged to the estimator's ledger or to that of
    the `with` block around it. Give it as `scoring` to `GridSearchCV` or `cross_val_score`; without
    it their scores are exact figures of private rows, which no epsilon covers.

    Parameters
    ----------
    measure : "auc", "accuracy" or "log_loss" of classes; "rmse", "mae" or "r2" of numbers;
        "deviance", "d2" or "mae" of counts; "pinball" or "mae" of quantiles. Errors are
        returned with a minus, as scikit-learn's are, so that more is better
    epsilon, delta : what each score costs

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from hedgerow import Ledger, PrivateBoostingClassifier, PrivateScorer
    >>> X = np.linspace(-1, 1, 6000).reshape(-1, 2)
    >>> X = np.random.default_rng(0).permutation(X)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = PrivateBoostingClassifier(bounds=(-1, 1), classes=[0, 1], epsilon=2.0)
    >>> with Ledger.in_memory() as ledger:
    ...     found = cross_val_score(model, X, y, cv=2, scoring=PrivateScorer("auc", epsilon=1.0))
    ...     len(ledger.history())  # two fits and two scores
    4
    >>> bool(found.mean() > 0.8)
    True
    """

    measure: str
    epsilon: float
    delta: float = 1e-6

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise SettingsError(
                f"{self.measure!r} cannot be scored; known: {', '.join(MEASURES)}. Nothing was "
                "asked."
            )

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """The score of a fitted estimator on rows with labels; more is better."""
        if isinstance(estimator, Pipeline):
            X, estimator = estimator[:-1].transform(X), estimator[-1]
        evaluation = evaluate_privately(
            estimator, X, y, epsilon=self.epsilon, delta=self.delta,
            ledger=getattr(estimator, "ledger", None),
        )  # fmt: skip
        try:
            value = evaluation[self.measure].value
        except KeyError as error:
            raise SettingsError(
                f"{self.measure!r} is no measure of a {evaluation.task} task. The evaluation was "
                "charged. Score by another one."
            ) from error
        if value is None and self.measure == "auc":
            return 0.5  # as good as guessing, as far as can be seen
        if value is None:
            raise SettingsError(
                f"{self.measure} was lost in noise at epsilon = {self.epsilon:g} on these rows. It "
                "was charged. Score with a larger epsilon, or on fewer and larger folds."
            )
        return MEASURES[self.measure] * float(value)


def private_scorers(scoring: Any) -> Iterator[PrivateScorer]:
    """The private ones of what scikit-learn was given as `scoring`, one or several by name."""
    for one in scoring.values() if isinstance(scoring, Mapping) else [scoring]:
        if isinstance(one, PrivateScorer):
            yield one


def selection_disclosures(counted_alone: bool) -> tuple[Disclosure, ...]:
    """What the model of this fit shows because a search has chosen its parameters.

    scikit-learn tells an estimator nothing of a search around it, and candidates may have been
    fitted in other processes; but the model that a search keeps is fitted by the search itself. Who
    compares scores in a loop of their own cannot be seen from here.
    """
    search = _search_around(sys._getframe(1))
    if search is None:
        return ()
    name, scoring = type(search).__name__, search.scoring
    scorers = len(scoring) if isinstance(scoring, Mapping) else 1
    if len(list(private_scorers(scoring))) < scorers:
        what = (
            f"the choice of its parameters by {name}: selected by exact scores on private rows, "
            "which is not covered"
        )
    elif counted_alone:
        what = (
            f"the choice of its parameters by {name} among private fits and scores, which no "
            "ledger has added up with this one"
        )
    else:
        return ()
    return (Disclosure("everyone", "all rows", what),)


def _search_around(frame: FrameType | None) -> Any:
    """The innermost meta-estimator whose `fit` is under way and that compares scores, or None."""
    while frame is not None:
        owner = frame.f_locals.get("self") if frame.f_code.co_name == "fit" else None
        if (
            isinstance(owner, BaseEstimator)
            and not isinstance(owner, Estimator)
            and "scoring" in owner.get_params(deep=False)
        ):
            return owner
        frame = frame.f_back
    return None
