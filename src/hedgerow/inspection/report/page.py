"""The page: sections in order, one self-contained file without any script."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from itertools import zip_longest

from hedgerow.data.schema import Numeric, text_of
from hedgerow.evaluation.result import Evaluation
from hedgerow.inspection.explain import Explanation
from hedgerow.inspection.explain.explanation import edits_of
from hedgerow.inspection.report.budget import budget_section
from hedgerow.inspection.report.effects import effects_section, pairs_section, shapes_section
from hedgerow.inspection.report.facts import Facts
from hedgerow.inspection.report.marks import number, table, tag, text
from hedgerow.inspection.report.quality import quality_section
from hedgerow.inspection.report.style import STYLE
from hedgerow.inspection.report.trees import one_tree, some_trees
from hedgerow.model.statement import PRIVATE, Statement

_ALARM = (
    "<b>NOT PRIVATE.</b> This model and this page may tell about single rows. Treat them as you "
    "treat the rows."
)
_SCHEMA = ("column", "kind", "range or list")
MOST_COLUMNS = 60  # of the schema before the rest is folded away
# For the browser: the page holds all that it needs, and nothing may be loaded or run for it.
_RULES = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page_of(explanation: Explanation, facts: Facts, evaluation: Evaluation | None) -> str:
    """The whole report as HTML."""
    sections = [
        _head(explanation, facts),
        _promise(explanation),
        budget_section(facts, explanation.model.statement),
        quality_section(evaluation, explanation.model),
        effects_section(explanation),
        shapes_section(explanation),
        pairs_section(explanation),
        _trees(explanation),
        _training(explanation),
        _foot(facts),
    ]
    title = f"{facts.label}: hedgerow model report"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{text(_RULES)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="generator" content="hedgerow">',
            f"<title>{text(title)}</title>",
            f"<style>{STYLE}</style></head>",
            f"<body><main>{''.join(sections)}</main></body></html>",
            "",
        ]
    )


def _head(explanation: Explanation, facts: Facts) -> str:
    says = explanation.model.statement
    label = explanation.model.schema.label
    if label.classes:
        classes = [text_of(value) for value in label.classes]
        shown = ", ".join(classes[:8]) + (" and others" if len(classes) > 8 else "")
        what = f"one of {shown}"
    else:
        what = f"a number from {label.lower:,.10g} to {label.upper:,.10g}"
    private = says.guarantee in PRIVATE
    source = "released values" if private else "the model"
    parties = _counted(facts.parties, "party", "parties")
    method = f" by the method {text(facts.method)}" if facts.method else ""
    lead = (
        f"Trained{method} on {text(repr(facts.schema))}, rows of {parties}. It predicts "
        f"{text(what)}. Everything below follows from {source}; no row was looked at again."
    )
    tiles = [
        *_guarded(says),
        ("trusted", says.trust, f"{parties}"),
        ("rounds", f"{facts.releases:,}", f"{facts.numbers:,} noisy numbers"),
        (
            "trees",
            f"{facts.trees:,}",
            _counted(len(explanation.model.schema.columns), "column", "columns"),
        ),
    ]
    cards = "".join(
        tag(
            "div", tag("span", text(name)), tag("b", text(value)), tag("small", text(more)),
            class_="card tile",
        )
        for name, value, more in tiles
    )  # fmt: skip
    return tag(
        "header",
        tag("p", "hedgerow model report", class_="over"),
        tag("h1", f"Predicting {text(facts.label)}"),
        tag("p", lead),
        "" if private or says.guarantee == "label" else tag("p", _ALARM, class_="alarm"),
    ) + tag("div", cards, class_="tiles")


def _guarded(says: Statement) -> list[tuple[str, str, str]]:
    """Two tiles: how much anyone may learn, and about what."""
    if says.guarantee == "label":
        return [
            ("epsilon", f"{says.epsilon:g}", "of labels"),
            ("protected", "labels", "and no more"),
        ]
    if says.guarantee not in PRIVATE:
        return [
            ("epsilon", "none", "not private"),
            ("protected", "nothing", "no noise hides a row"),
        ]
    delta = f"at delta = {says.delta:g}" if says.guarantee == "epsilon-delta" else "pure, delta = 0"
    return [("epsilon", f"{says.epsilon:g}", delta), ("protected", says.unit, says.neighbours)]


def _counted(n: int, one: str, several: str) -> str:
    return f"1 {one}" if n == 1 else f"{n:,} {several}"


def _promise(explanation: Explanation) -> str:
    says = explanation.model.statement
    kind = "card promise" if says.guarantee in PRIVATE else "card promise none"
    words = "".join(tag("p", text(line)) for line in says.words().split("\n"))
    return tag(
        "section",
        tag("h2", "What is promised"),
        tag("p", "The statement of the model, word for word.", class_="lead"),
        tag("div", words, class_=kind),
    )


def _trees(explanation: Explanation) -> str:
    whole = one_tree(explanation)
    if whole:
        lead = "The whole model. Lines are as wide as their part of the rows."
        head = tag("h2", "The tree") + tag("p", lead, class_="lead")
        return tag("section", head, whole, class_="whole")
    drawn = some_trees(explanation)
    if not drawn:
        tables = explanation.additive or explanation.model.record.get("method") == "auto"
        lead = (
            "Its trees are step functions of one column or tables of a few; they are drawn above "
            "as shapes and maps, added up."
            if tables
            else "They have too many leaves to be drawn; shapes and maps above add them up."
        )
        return tag("section", tag("h2", "Trees"), tag("p", lead, class_="lead"))
    lead = (
        f"{len(drawn)} of {len(explanation.model.trees):,}, those that move scores most. Leaves "
        f"say what they add to the {text(explanation.unit)}; * is with missing values."
    )
    figures = "".join(
        tag(
            "figure", tag("figcaption", f"Tree {k + 1}"), tag("div", svg, class_="scroll"),
            class_="card", style="margin-bottom:1rem",
        )
        for k, svg in drawn
    )  # fmt: skip
    return tag("section", tag("h2", "Trees"), tag("p", lead, class_="lead"), figures)


def _training(explanation: Explanation) -> str:
    model = explanation.model
    columns = [
        (text(shape.column), text(shape.cells.kind), text(_range(explanation, j)))
        for j, shape in enumerate(explanation.shapes)
    ]
    parts = [
        tag("h2", "How it was trained"),
        tag("p", "Public facts: the schema and the settings.", class_="lead"),
        tag("div", table(_SCHEMA, columns[:MOST_COLUMNS]), class_="card"),
    ]
    if more := columns[MOST_COLUMNS:]:
        told = tag("summary", _counted(len(more), "more column", "more columns"))
        parts.append(tag("details", told, table(_SCHEMA, more)))
    settings = model.record.get("settings")
    if isinstance(settings, dict) and settings:
        shown = [(name, v) for name, v in sorted(settings.items()) if v not in ("", [], None)]
        half = (len(shown) + 1) // 2
        rows = [
            [text(cell) for pair in both for cell in (pair or ("", ""))]
            for both in zip_longest(shown[:half], shown[half:])
        ]
        inside = table(("setting", "value", "setting", "value"), rows)
        parts.append(tag("details", tag("summary", "All settings"), inside, class_="screen"))
    if edits := edits_of(model):
        parts += [tag("h3", "Changed by hand", style="margin:1.5rem 0 .5rem"), _edits(edits)]
    return tag("section", *parts)


def _edits(edits: Sequence[dict[str, object]]) -> str:
    rows = [
        (text(e.get("column")), text(", ".join(map(str, e.get("cells", [])))[:120]),  # type: ignore[call-overload]
         text(e.get("reason")), tag("code", text(str(e.get("from"))[:12])))
        for e in edits
    ]  # fmt: skip
    return tag("div", table(("column", "cells", "reason", "model before"), rows), class_="card")


def _range(explanation: Explanation, j: int) -> str:
    column = explanation.model.schema.columns[j]
    if isinstance(column, Numeric):
        return f"{number(column.lower)} to {number(column.upper)}"
    values = [text_of(value) for value in column.categories]
    return ", ".join(values[:8]) + (f" and {len(values) - 8} more" if len(values) > 8 else "")


def _foot(facts: Facts) -> str:
    run = f" Run <code>{text(facts.run)}</code>." if facts.run else ""
    return tag(
        "footer",
        f"Model <code>{text(facts.model[:16])}</code>.{run} Written by hedgerow "
        f"{version('hedgerow')}; the page needs no network.",
    )
