"""Boosted trees across organisations that may not share their rows, under differential privacy.

cli/           the command line: one file per command
deployment/    running a site: the party's process, status, console, approvals, limits, roster
estimators/    scikit-learn estimators
inspection/    explanations, reports, views of trees, advice on epsilon
audit/         attacks and audits of what leaves a party, measured
evaluation/    private evaluation of a model, as a program of sum queries
export/        models in the formats of other libraries
methods/       what is asked and what is made of it: one folder per method, and their registry
engines/       what carries messages: one process, NVFlare, Dask
coordinator/   drives a run: the gate, the federation (the sum), transport, presence
party/         a data holder: checks, charges, answers or refuses
protocol/      what travels: messages, replies, identities, secure aggregation
queries/       what may be asked: one file per kind, with its sensitivity and the proof
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

__version__ = "0.1.0"  # the one place: the wheel, `hedgerow --version` and the site read it here
# Names load with their first use, so `import hedgerow` and `hedgerow --help` start at once.
_HOMES = {
    "Budget": "hedgerow.privacy.ledger.spending",
    "Categorical": "hedgerow.data.schema",
    "Disclosure": "hedgerow.model.statement",
    "Ensemble": "hedgerow.model.ensemble",
    "Evaluation": "hedgerow.evaluation",
    "Federation": "hedgerow.coordinator.federation",
    "Label": "hedgerow.data.schema",
    "Ledger": "hedgerow.privacy.ledger.ledger",
    "LedgerRun": "hedgerow.privacy.ledger.spending",
    "Limits": "hedgerow.party.limits",
    "Measure": "hedgerow.evaluation",
    "Numeric": "hedgerow.data.schema",
    "Ordinal": "hedgerow.data.schema",
    "Plan": "hedgerow.privacy.accounting.plan",
    "Privacy": "hedgerow.privacy.settings",
    "PrivateBoostingClassifier": "hedgerow.estimators.boosting",
    "PrivateBoostingRegressor": "hedgerow.estimators.regression",
    "PrivateScorer": "hedgerow.estimators.scoring",
    "PrivateSurvivalBoosting": "hedgerow.estimators.survival",
    "PrivateTreeClassifier": "hedgerow.estimators.tree",
    "Schema": "hedgerow.data.schema",
    "SearchCost": "hedgerow.estimators.search_cost",
    "SimilarityBoostingClassifier": "hedgerow.estimators.simfl",
    "SimilarityBoostingRegressor": "hedgerow.estimators.simfl",
    "SimilarityMemory": "hedgerow.methods.simfl.memory",
    "Spending": "hedgerow.privacy.ledger.spending",
    "Statement": "hedgerow.model.statement",
    "Unit": "hedgerow.data.schema",
    "Weight": "hedgerow.data.weights",
    "VerticalBoostingClassifier": "hedgerow.estimators.vertical",
    "VerticalBoostingRegressor": "hedgerow.estimators.vertical",
    "evaluate_privately": "hedgerow.estimators.evaluation",
    "explain": "hedgerow.inspection.explain",
    "load": "hedgerow.estimators.loading",
    "local_federation": "hedgerow.engines.local",
    "open_federation": "hedgerow.deployment.driving",
    "plan_for": "hedgerow.methods.registry",
    "read_limits": "hedgerow.deployment.limits_file",
    "report_html": "hedgerow.inspection.report",
    "rows_of": "hedgerow.data.tables",
    "search_cost": "hedgerow.estimators.search_cost",
    "set_budget": "hedgerow.privacy.ledger.spending",
    "spending": "hedgerow.privacy.ledger.spending",
}
_NAMESPACES = ("audit", "errors", "export", "inspection", "testing")
__all__ = [*sorted(_HOMES), *_NAMESPACES, "__version__"]

if TYPE_CHECKING:  # the same again for type checkers; tests compare the two
    from hedgerow import audit as audit
    from hedgerow import errors as errors
    from hedgerow import export as export
    from hedgerow import inspection as inspection
    from hedgerow import testing as testing
    from hedgerow.coordinator.federation import Federation as Federation
    from hedgerow.data.schema import Categorical as Categorical
    from hedgerow.data.schema import Label as Label
    from hedgerow.data.schema import Numeric as Numeric
    from hedgerow.data.schema import Ordinal as Ordinal
    from hedgerow.data.schema import Schema as Schema
    from hedgerow.data.schema import Unit as Unit
    from hedgerow.data.tables import rows_of as rows_of
    from hedgerow.data.weights import Weight as Weight
    from hedgerow.deployment.driving import open_federation as open_federation
    from hedgerow.deployment.limits_file import read_limits as read_limits
    from hedgerow.engines.local import local_federation as local_federation
    from hedgerow.estimators.boosting import PrivateBoostingClassifier as PrivateBoostingClassifier
    from hedgerow.estimators.evaluation import evaluate_privately as evaluate_privately
    from hedgerow.estimators.loading import load as load
    from hedgerow.estimators.regression import PrivateBoostingRegressor as PrivateBoostingRegressor
    from hedgerow.estimators.scoring import PrivateScorer as PrivateScorer
    from hedgerow.estimators.search_cost import SearchCost as SearchCost
    from hedgerow.estimators.search_cost import search_cost as search_cost
    from hedgerow.estimators.simfl import (
        SimilarityBoostingClassifier as SimilarityBoostingClassifier,
    )
    from hedgerow.estimators.simfl import SimilarityBoostingRegressor as SimilarityBoostingRegressor
    from hedgerow.estimators.survival import PrivateSurvivalBoosting as PrivateSurvivalBoosting
    from hedgerow.estimators.tree import PrivateTreeClassifier as PrivateTreeClassifier
    from hedgerow.estimators.vertical import (
        VerticalBoostingClassifier as VerticalBoostingClassifier,
    )
    from hedgerow.estimators.vertical import VerticalBoostingRegressor as VerticalBoostingRegressor
    from hedgerow.evaluation import Evaluation as Evaluation
    from hedgerow.evaluation import Measure as Measure
    from hedgerow.inspection.explain import explain as explain
    from hedgerow.inspection.report import report_html as report_html
    from hedgerow.methods.registry import plan_for as plan_for
    from hedgerow.methods.simfl.memory import SimilarityMemory as SimilarityMemory
    from hedgerow.model.ensemble import Ensemble as Ensemble
    from hedgerow.model.statement import Disclosure as Disclosure
    from hedgerow.model.statement import Statement as Statement
    from hedgerow.party.limits import Limits as Limits
    from hedgerow.privacy.accounting.plan import Plan as Plan
    from hedgerow.privacy.ledger.ledger import Ledger as Ledger
    from hedgerow.privacy.ledger.spending import Budget as Budget
    from hedgerow.privacy.ledger.spending import LedgerRun as LedgerRun
    from hedgerow.privacy.ledger.spending import Spending as Spending
    from hedgerow.privacy.ledger.spending import set_budget as set_budget
    from hedgerow.privacy.ledger.spending import spending as spending
    from hedgerow.privacy.settings import Privacy as Privacy
else:  # hidden from type checkers, to which it would make any name a name of hedgerow

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        if name in _NAMESPACES:
            return import_module(f"hedgerow.{name}")
        raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
