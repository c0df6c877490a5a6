"""Boosted trees across organisations that may not share their rows, under differential privacy.

cli/           the command line: one file a command
deployment/    running a site: the party's process, status, console, approvals, limits, roster
estimators/    scikit-learn estimators
inspection/    explanations, reports, views of trees, advice on epsilon
audit/         attacks on what leaves a party, measured
evaluation/    private evaluation of a model, as a program of sum queries
export/        models in the formats of other libraries
methods/       what is asked and what is made of it: one folder a method, and their registry
engines/       what carries messages: one process, NVFlare, Dask
coordinator/   drives a run: the gate, the federation (the sum), transport, presence
party/         a data holder: checks, charges, answers or refuses
protocol/      what travels: messages, replies, identities, secure aggregation
queries/       what may be asked: one file a kind, with its sensitivity and the proof
privacy/       noise, accounting and the ledger
model/         trees, ensembles, losses, the statement, model files
data/          the public schema, readers, encoding, tables, persons
kernels/       compiled loops over rows
testing/       noise off or seeded, and contracts for whoever adds a query or an engine
clock.py       one clock for everything that reads the time or sleeps
packing.py     values and arrays to bytes and back; hashes; no pickle
errors.py      every exception raised on purpose, with its exit code
failpoints.py  named places where crash tests kill the process
__main__.py    `python -m hedgerow`
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
