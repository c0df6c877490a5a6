"""One self-contained page about a model: promise, budget, shapes, trees, and how good it is.

page.py          the sections, in order
facts.py         the numbers: from the model, its ledger and its plan
budget.py        where the privacy budget went
quality.py       a private evaluation
effects.py       importances, shapes and maps
trees.py         pictures of trees
charts.py        bars, maps and curves as SVG
shape_charts.py  shapes as SVG
frame.py         axes of a chart
marks.py         small pieces of HTML and SVG
style.py         the style sheet
"""

from __future__ import annotations

from hedgerow.evaluation.result import Evaluation
from hedgerow.inspection.explain import explain
from hedgerow.inspection.report.facts import Facts, check_evaluation, facts_of
from hedgerow.inspection.report.page import page_of
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger

__all__ = ["Facts", "facts_of", "report_html"]


def report_html(
    model: Ensemble,
    ledger: Ledger | None = None,
    evaluation: Evaluation | None = None,
    plan: Plan | None = None,
) -> str:
    """The report of a model as HTML; it needs no other file and no network."""
    if evaluation is not None:
        check_evaluation(model, evaluation)
    return page_of(explain(model), facts_of(model, ledger, plan), evaluation)
