"""One self-contained page about a model: guarantee, budget, quality, effects and trees.

page.py          the templates, filled; they are the HTML files of the folder beside it
overview.py      what the model is, its statement, its schema and settings
facts.py         the numbers: from the model, its ledger and its plan
budget.py        where the privacy budget went
audited.py       what an audit found, beside the promise
quality.py       a private evaluation, with its curves
effect_cards.py  importances, main effects, interactions and trees
"""

from __future__ import annotations

from hedgerow.audit.result import AuditResult
from hedgerow.evaluation.result import Evaluation
from hedgerow.inspection.explain import explain
from hedgerow.inspection.report.audited import check_audit
from hedgerow.inspection.report.facts import ReportFacts, check_evaluation, facts_of
from hedgerow.inspection.report.page import page_of
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger

__all__ = ["ReportFacts", "facts_of", "report_html"]


def report_html(
    model: Ensemble,
    ledger: Ledger | None = None,
    evaluation: Evaluation | None = None,
    plan: Plan | None = None,
    audit: AuditResult | None = None,
) -> str:
    """The report of a model as HTML; it needs no other file and no network."""
    if evaluation is not None:
        check_evaluation(model, evaluation)
    if audit is not None:
        check_audit(model, audit)
    return page_of(explain(model), facts_of(model, ledger, plan), evaluation, audit)
