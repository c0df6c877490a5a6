"""What a search over parameters, or a cross-validation, will cost, before anybody is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
    check_cv,
)

from hedgerow.errors import BudgetExceeded, SettingsError
from hedgerow.estimators.boosting import PrivateBoosting
from hedgerow.estimators.inputs import ledger_given
from hedgerow.estimators.scoring import private_scorers
from hedgerow.privacy.accounting.gaussian import mu_of
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import Spending, counts_as_gaussians, spending

_NOTHING = Spending(0.0, 0, 0, 0.0, 0.0)


@dataclass(frozen=True)
class SearchCost:
    """What a search will reserve: fits and private scores, and their epsilon together.

    `before` and `after` are totals of the ledger that would pay, where there is one.
    """

    fits: int
    scores: int  # private ones; 0 where they are exact, so not covered
    epsilon: float  # of all fits and private scores of the search
    delta: float
    before: float
    after: float
    budget: float | None

    @property
    def affordable(self) -> bool:
        """Whether the ledger's budget has room for all of it."""
        return self.budget is None or self.after <= self.budget * (1 + 1e-9)

    def check(self) -> None:
        """Raise BudgetExceeded if the search could not be finished."""
        if not self.affordable:
            raise BudgetExceeded(
                f"{self}. Nothing was asked and nothing was spent. Search over fewer candidates or "
                "folds, or with a smaller epsilon for each fit."
            )

    def __str__(self) -> str:
        scored = f" and {self.scores} private scores" if self.scores else ""
        text = f"{self.fits} fits{scored} cost epsilon = {self.epsilon:.3g} at {self.delta:g}"
        if self.budget is not None or self.before:
            text += f"; the ledger goes from {self.before:.3g} to {self.after:.3g}"
            text += "" if self.budget is None else f", of a budget of {self.budget:g}"
        if not self.scores:
            text += "; scores are exact figures of private rows, which no epsilon covers"
        return text


def search_cost(
    search: Any, X: Any, y: Any = None, *, groups: Any = None, cv: Any = None, scoring: Any = None
) -> SearchCost:
    """What a search, or a cross-validation, over hedgerow's estimators will cost; nobody is asked.

    Parameters
    ----------
    search : GridSearchCV or RandomizedSearchCV; or an estimator that is to be cross-validated
    X, y, groups : what its `fit` will get; the number of folds may follow from them
    cv, scoring : of a cross-validation, as `cross_val_score` takes them

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from hedgerow import PrivateBoostingClassifier, PrivateScorer, search_cost
    >>> X, y = np.linspace(-1, 1, 4000).reshape(-1, 2), np.arange(2000) % 2
    >>> model = PrivateBoostingClassifier(bounds=(-1, 1), classes=[0, 1], epsilon=0.5)
    >>> grid = {"method": ["auto", "random-trees"]}
    >>> search = GridSearchCV(model, grid, cv=3, scoring=PrivateScorer("auc", epsilon=0.1))
    >>> print(search_cost(search, X, y))
    7 fits and 6 private scores cost epsilon = 1.46 at 1e-06
    """
    candidates, refit = _candidates(search), bool(getattr(search, "refit", False))
    base = getattr(search, "estimator", search)
    splitter = check_cv(getattr(search, "cv", cv), y, classifier=is_classifier(base))
    n_folds = int(splitter.get_n_splits(X, y, groups))
    scorers = list(private_scorers(getattr(search, "scoring", scoring)))
    added, delta, dearest = _NOTHING, 0.0, _NOTHING
    for candidate in candidates:
        fit = _NOTHING
        for private in _private_parts(clone(base).set_params(**candidate)):
            delta = max(delta, private.delta)
            fit = fit.with_plan(private._planned(X, y))
        dearest = max(dearest, fit, key=lambda one: (one.mu, one.pure))
        for _ in range(n_folds):
            added = added.together(fit)
            for scorer in scorers:
                delta = max(delta, scorer.delta)
                mu = mu_of(scorer.epsilon, scorer.delta, 0)
                added = added.together(Spending(mu, 0, 1, 0.0, mu))
    if refit:  # whichever is chosen costs no more than the dearest
        added = added.together(dearest)
    n_scores = len(scorers) * n_folds * len(candidates)
    fits = n_folds * len(candidates) + refit
    ledger = next(iter(_private_parts(base))).ledger
    return _against(ledger, added, delta, fits, n_scores)


def _against(
    ledger: Ledger | str | None, added: Spending, delta: float, fits: int, n_scores: int
) -> SearchCost:
    """The cost of a search beside what the ledger has that would pay for it."""
    if isinstance(ledger, str) and not Path(ledger).exists():
        ledger = Ledger.in_memory()  # a calculation makes no file
    with ledger_given(ledger) as opened:
        before, budget = spending(opened), opened.budget
    at = delta if budget is None else budget.delta
    after = before.together(added)
    own, earlier, whole = (
        one.epsilon(at, as_gaussians=counts_as_gaussians(budget)) for one in (added, before, after)
    )
    return SearchCost(
        fits, n_scores, own, at, earlier, whole,
        None if budget is None else budget.epsilon,
    )  # fmt: skip


def _candidates(search: Any) -> list[dict[str, Any]]:
    if isinstance(search, GridSearchCV):
        return list(ParameterGrid(search.param_grid))
    if isinstance(search, RandomizedSearchCV):
        drawn, seed = search.param_distributions, search.random_state
        given = [drawn] if isinstance(drawn, Mapping) else drawn
        varied = {name for one in given for name in one}
        if seed is None and any(name.split("__")[-1] in ("epsilon", "delta") for name in varied):
            raise SettingsError(
                "the search draws epsilons, so its cost is not known before it draws. Nothing was "
                "asked. Give it a random_state, or search over other parameters."
            )
        return list(ParameterSampler(drawn, search.n_iter, random_state=seed))
    if isinstance(search, BaseEstimator) and not hasattr(search, "scoring"):
        return [{}]
    raise SettingsError(
        f"what a {type(search).__name__} will cost is not known: it takes GridSearchCV, "
        "RandomizedSearchCV, or an estimator with cv. Nothing was asked."
    )


def _private_parts(estimator: Any) -> Iterator[PrivateBoosting]:
    """The estimators of hedgerow that a fit of this one fits."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    found = [part for part in parts if isinstance(part, PrivateBoosting)]
    if not found:
        raise SettingsError(
            f"{type(estimator).__name__} has no private estimator of hedgerow in it, so nothing "
            "is known of its cost. Nothing was asked."
        )
    yield from found
