"""Fitted estimators from model files: which class a model belongs to, and its parameters.

A file holds the model, its statement and the settings it was grown with, nothing else; parameters
that it does not hold keep their defaults and are named in `not_in_file_`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from os import PathLike
from typing import Any

from hedgerow.errors import FormatError
from hedgerow.estimators.base import Estimator
from hedgerow.estimators.boosting import PrivateBoostingClassifier
from hedgerow.estimators.regression import PrivateBoostingRegressor
from hedgerow.estimators.simfl import SimilarityBoostingClassifier, SimilarityBoostingRegressor
from hedgerow.estimators.survival import PrivateSurvivalBoosting
from hedgerow.estimators.tree import PrivateTreeClassifier
from hedgerow.estimators.vertical import VerticalBoostingClassifier, VerticalBoostingRegressor
from hedgerow.estimators.weights import class_weight_of
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.methods.registry import METHODS
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Statement
from hedgerow.model.trust import TRUSTS, usual_trust
from hedgerow.privacy.settings import Privacy

_OF_A_RUN = ("keep", "continues")  # of similarity: what parties kept between two runs
_OF_THE_PARTIES = ("owners", "active", "merge", "ids")  # of vertical: arguments of `fit`


def load(source: str | PathLike[str] | bytes) -> Estimator:
    """Read a model file (.hedge) back as a fitted estimator of the class that trained it.

    Predictions, `explain`, exports and `statement_` are those of the model that was saved. What a
    file does not say of the parameters (the ledger, where the model has noise also `random_state`)
    has its default, and `not_in_file_` names it; the schema stands in for `bounds`, `classes` and
    `label_bounds`.

    Parameters
    ----------
    source : the path of a model file, or its bytes

    Examples
    --------
    >>> import numpy as np
    >>> import hedgerow
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = hedgerow.PrivateBoostingClassifier(bounds=(-1, 1), classes=[0, 1]).fit(X, y)
    >>> again = hedgerow.load(model.model_.to_bytes())
    >>> bool((again.predict(X) == model.predict(X)).all()), again.epsilon
    (True, 1.0)
    """
    if isinstance(source, bytes):
        return estimator_of(Ensemble.from_bytes(source))
    if not isinstance(source, (str, PathLike)):
        raise FormatError(
            f"a model is loaded from a path or from bytes, not from a {type(source).__name__}; "
            "name its .hedge file"
        )
    return estimator_of(Ensemble.load(source))


def estimator_of(model: Ensemble) -> Estimator:
    """A fitted estimator around a model, with the parameters that its record tells."""
    method = model.record.get("method", "auto")
    try:
        family = _FAMILIES.get(method, _boosting)
        estimator, unknown = family(model, str(method))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError("the model's record of its settings is not readable") from error
    estimator._keep(model, named=True)
    estimator.not_in_file_ = (*unknown, "ledger")
    return estimator


Loaded = tuple[Estimator, tuple[str, ...]]


def _boosting(model: Ensemble, method: str) -> Loaded:
    parameters, unknown = _of_private(model, method)
    parameters["method"], parameters["delta"] = method, model.statement.delta
    if model.schema.label.task == "survival":
        return PrivateSurvivalBoosting(**parameters), unknown
    if _is_regression(model):
        return PrivateBoostingRegressor(**parameters), unknown
    return PrivateBoostingClassifier(**parameters, class_weight=class_weight_of(model)), unknown


def _tree(model: Ensemble, method: str) -> Loaded:
    parameters, unknown = _of_private(model, method)
    return PrivateTreeClassifier(**parameters), unknown


def _of_private(model: Ensemble, method: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Parameters of a method with a promise, and names of those that the file does not hold."""
    told = dict(model.record.get("settings", {})) if method in METHODS else {}
    usual = asdict(METHODS[method].settings({})) if told else {}
    uses = METHODS[method].uses if told else frozenset()
    chosen = {name: value for name, value in told.items() if name in uses and value != usual[name]}
    builds_on = bool(chosen.pop("warm_start", "") or model.statement.builds_on)
    says = chosen.pop("warm_start_says", "")
    chosen.pop("cuts", None)  # read from the rows of a fit, which reads them anew
    if "n_trees" in chosen:
        chosen.pop("cycles", None)  # has become a number of trees
    own = PrivateTreeClassifier._OWN if method == "private-tree" else PrivateBoostingClassifier._OWN
    parameters = {name: chosen.pop(name) for name in own if name in chosen}
    if monotone := chosen.pop("monotone", ""):
        parameters["monotone"] = dict(json.loads(monotone))
    if builds_on:
        parameters["warm_start_is_public"] = says == "public"
    statement = model.statement
    n_parties = max(1, len(statement.parties))
    settings = {**chosen, **_agreed(statement)}
    if method == "private-tree":  # there is no other accounting, so it is no setting
        settings.pop("accounting", None)
    parameters.update(
        schema=model.schema,
        epsilon=statement.epsilon,
        trust=None if statement.trust == usual_trust(n_parties) else statement.trust,
        settings=settings or None,
    )
    unknown = ("random_state", "spare", *(("warm_start_from",) if builds_on else ()))
    return parameters, unknown


def _agreed(statement: Statement) -> dict[str, Any]:
    """Privacy settings beside epsilon, delta and trust, where they are not the usual ones."""
    usual: dict[str, Any] = {"accounting": "exact"}
    told: dict[str, Any] = {"accounting": statement.accounting}
    if TRUSTS[statement.trust].masked:
        promise = Privacy(1.0, 1e-6, statement.trust, colluding=statement.colluding)
        usual |= {"colluding": 1, "minimum_parties": promise.minimum_parties}
        told |= {name: getattr(statement, name) for name in ("colluding", "minimum_parties")}
    return {name: value for name, value in told.items() if value != usual[name]}


def _similarity(model: Ensemble, _: str) -> Loaded:
    parameters = _given(model, SimilaritySettings(), ("n_trees", "max_depth", "learning_rate"))
    further = parameters.pop("settings")
    seed = further.pop("seed", 0)
    further = {name: value for name, value in further.items() if name not in _OF_A_RUN}
    parameters.update(random_state=seed, settings=further or None)
    if _is_regression(model):
        return SimilarityBoostingRegressor(**parameters), ()
    return SimilarityBoostingClassifier(**parameters), ()


def _vertical(model: Ensemble, _: str) -> Loaded:
    parameters = _given(model, VerticalSettings(), VerticalBoostingClassifier._OWN)
    further = parameters.pop("settings")
    further = {name: value for name, value in further.items() if name not in _OF_THE_PARTIES}
    parameters["settings"] = further or None
    if _is_regression(model):
        return VerticalBoostingRegressor(**parameters), ()
    return VerticalBoostingClassifier(**parameters), ()


def _given(model: Ensemble, usual: Any, own: tuple[str, ...]) -> dict[str, Any]:
    """Parameters from a record that holds settings beside other facts; what is usual is left out.

    Parameters of a name of their own are kept as they are.
    """
    record: Mapping[str, Any] = model.record
    told = {f.name: record[f.name] for f in fields(usual) if f.name in record}
    parameters: dict[str, Any] = {name: told[name] for name in own if name in told}
    parameters["schema"] = model.schema
    parameters["settings"] = {
        name: value
        for name, value in told.items()
        if name not in own and value != getattr(usual, name)
    }
    return parameters


def _is_regression(model: Ensemble) -> bool:
    return model.schema.label.task in ("regression", "counts")


_FAMILIES = {
    "private-tree": _tree,
    "simfl": _similarity,
    "tfl": _similarity,
    "fedxgboost": _vertical,
}
