"""The page: templates filled with what each section shows, as one file without any script."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from hedgerow.audit.result import AuditResult
from hedgerow.data.cards import printable
from hedgerow.evaluation.result import Evaluation
from hedgerow.inspection.drawing import style
from hedgerow.inspection.explain import Explanation
from hedgerow.inspection.report.audited import section_of
from hedgerow.inspection.report.budget import budget_of_run
from hedgerow.inspection.report.effect_cards import effects_of_model, trees_of_model
from hedgerow.inspection.report.facts import ReportFacts
from hedgerow.inspection.report.overview import overview_of, training_of
from hedgerow.inspection.report.quality import quality_of
from hedgerow.model.changes import PRIVATE


def page_of(
    explanation: Explanation,
    facts: ReportFacts,
    evaluation: Evaluation | None,
    audit: AuditResult | None = None,
) -> str:
    """The whole report as HTML."""
    statement = explanation.model.statement
    return _environment().get_template("page.html").render(
        facts=facts,
        private=statement.guarantee in PRIVATE,
        overview=overview_of(explanation, facts),
        budget=budget_of_run(facts, statement),
        audit=None if audit is None else section_of(audit),
        quality=None if evaluation is None else quality_of(evaluation, explanation.model),
        effects=effects_of_model(explanation),
        trees=trees_of_model(explanation),
        training=training_of(explanation),
        version=version("hedgerow"),
    )  # fmt: skip


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hedgerow.inspection.report"),
        autoescape=True,  # names of columns, classes and parties come from other people
        undefined=StrictUndefined,
        finalize=_without_control_characters,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    environment.globals.update(
        light=_variables(style.LIGHT),
        dark=_variables(style.DARK),
        picture_rules=Markup(style.RULES),
        n_series=style.N_SERIES,
        series_class=style.series_class,
        series_style=style.series_style,
    )
    return environment


def _without_control_characters(value: object) -> object:
    return value if hasattr(value, "__html__") else printable(value)


def _breakable(name: object) -> Markup:
    """A name that may go on in the next line after an underscore."""
    return Markup(str(escape(printable(name))).replace("_", "_<wbr>"))


def _variables(palette: Mapping[str, str]) -> Markup:
    """Colours as CSS variables."""
    return Markup(" ".join(f"--{name}: {colour};" for name, colour in palette.items()))
