"""Boosted trees across organisations that may not share their rows, under differential privacy.

Public names load on first use, so that ``import hedgerow`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
_HOMES = {
    "Ensemble": "hedgerow.model.ensemble",
    "Evaluation": "hedgerow.evaluation",
    "Federation": "hedgerow.coordinator.federation",
    "Ledger": "hedgerow.privacy.ledger.ledger",
    "Plan": "hedgerow.privacy.accounting.plan",
    "Privacy": "hedgerow.privacy.settings",
    "PrivateBoostingClassifier": "hedgerow.estimators.boosting",
    "PrivateBoostingRegressor": "hedgerow.estimators.boosting",
    "PrivateTreeClassifier": "hedgerow.estimators.tree",
    "Schema": "hedgerow.data.schema",
    "SimilarityBoostingClassifier": "hedgerow.estimators.simfl",
    "SimilarityBoostingRegressor": "hedgerow.estimators.simfl",
    "SimilarityMemory": "hedgerow.methods.simfl.memory",
    "Statement": "hedgerow.model.statement",
    "VerticalBoostingClassifier": "hedgerow.estimators.vertical",
    "VerticalBoostingRegressor": "hedgerow.estimators.vertical",
    "evaluate_privately": "hedgerow.estimators.evaluation",
    "local_federation": "hedgerow.engines.local",
    "export_text": "hedgerow.inspection.tree_view",
    "plan_for": "hedgerow.methods.registry",
    "plot_tree": "hedgerow.inspection.tree_view",
}
__all__ = [*sorted(_HOMES), "__version__"]

if TYPE_CHECKING:
    from hedgerow.coordinator.federation import Federation as Federation
    from hedgerow.data.schema import Schema as Schema
    from hedgerow.engines.local import local_federation as local_federation
    from hedgerow.estimators.boosting import PrivateBoostingClassifier as PrivateBoostingClassifier
    from hedgerow.estimators.boosting import PrivateBoostingRegressor as PrivateBoostingRegressor
    from hedgerow.estimators.evaluation import evaluate_privately as evaluate_privately
    from hedgerow.estimators.simfl import (
        SimilarityBoostingClassifier as SimilarityBoostingClassifier,
    )
    from hedgerow.estimators.simfl import SimilarityBoostingRegressor as SimilarityBoostingRegressor
    from hedgerow.estimators.tree import PrivateTreeClassifier as PrivateTreeClassifier
    from hedgerow.estimators.vertical import (
        VerticalBoostingClassifier as VerticalBoostingClassifier,
    )
    from hedgerow.estimators.vertical import VerticalBoostingRegressor as VerticalBoostingRegressor
    from hedgerow.evaluation import Evaluation as Evaluation
    from hedgerow.inspection.tree_view import export_text as export_text
    from hedgerow.inspection.tree_view import plot_tree as plot_tree
    from hedgerow.methods.registry import plan_for as plan_for
    from hedgerow.methods.simfl.memory import SimilarityMemory as SimilarityMemory
    from hedgerow.model.ensemble import Ensemble as Ensemble
    from hedgerow.model.statement import Statement as Statement
    from hedgerow.privacy.accounting.plan import Plan as Plan
    from hedgerow.privacy.ledger.ledger import Ledger as Ledger
    from hedgerow.privacy.settings import Privacy as Privacy


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
