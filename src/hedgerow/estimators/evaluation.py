"""Private evaluation of a model on one table, or on several parties of one process."""

from __future__ import annotations

from os import PathLike
from typing import Any

from hedgerow.coordinator.gate import Gate
from hedgerow.data.tables import rows_of
from hedgerow.engines.local import local_federation
from hedgerow.errors import SettingsError
from hedgerow.estimators.inputs import check_fit, ledger_given, split_rows
from hedgerow.evaluation import Evaluation, evaluate, evaluation_plan
from hedgerow.methods.registry import check_party_count
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.trust import usual_trust
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy


def evaluate_privately(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    epsilon: float,
    delta: float = 1e-6,
    parties: Any = None,
    trust: str | None = None,
    ledger: Ledger | str | None = None,
    **further: Any,
) -> Evaluation:
    """Measure a model on rows that stay where they are: AUC, accuracy, calibration or errors.

    Times to an event: concordance, Brier scores, calibration and Kaplan-Meier curves by risk.

    Every row counts once, also where the model was trained with weights.

    Parameters
    ----------
    model : a fitted estimator, an Ensemble, or the path of a .hedge file
    X, y : rows with labels, as for `fit`; `y` may be a column of X
    epsilon, delta : what this evaluation costs, on top of training where rows are the same
    parties : each row's party; makes it a federation
    trust : "coordinator", "parties" or "nobody"; None = the parties where there are several
    ledger : Ledger or path; give training's, so that the two are added up. None is that of the
        `with` block around the call, or counts this evaluation alone
    further : further privacy settings by name: colluding, minimum_parties, spare, accounting

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import PrivateBoostingClassifier, evaluate_privately
    >>> X = np.linspace(-1, 1, 8000).reshape(-1, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = PrivateBoostingClassifier(bounds=(-1, 1), classes=[0, 1]).fit(X, y)
    >>> bool(evaluate_privately(model, X, y, epsilon=2.0)["accuracy"].value > 0.8)
    True
    """
    if isinstance(model, (str, PathLike)):
        model = Ensemble.load(model)
    model = getattr(model, "model_", model)
    if not isinstance(model, Ensemble):
        raise SettingsError(
            "the model is no Ensemble, no file of one and no fitted estimator; fit it first. "
            "Nothing was asked."
        )
    labels = y if len(model.schema.label.columns) > 1 else check_fit(X, y)
    rows = rows_of(X, model.schema, labels, with_weight=False)
    tables = {"all": rows} if parties is None else split_rows(rows, parties)
    trust = trust or usual_trust(len(tables))
    privacy = Privacy(epsilon, delta, trust, **further)
    check_party_count(privacy, len(tables))
    plan = evaluation_plan(model, privacy)
    with ledger_given(ledger) as opened:
        asked = (privacy.colluding, privacy.minimum_parties, privacy.trust)
        federation = local_federation(tables, model.schema, opened, *asked)
        return evaluate(Gate(federation, plan, opened, start=model), model)
