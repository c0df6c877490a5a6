"""What stands first and last on the page: what the model is, its statement, schema and settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hedgerow.data.schema import Column, Numeric
from hedgerow.data.values import text_of
from hedgerow.inspection.drawing.words import number
from hedgerow.inspection.explain import Explanation
from hedgerow.inspection.explain.edits import edits_of
from hedgerow.inspection.report.facts import ReportFacts
from hedgerow.model.changes import PRIVATE, leaving_words
from hedgerow.model.statement import Statement

MOST_COLUMNS = 60  # of the schema before the rest is folded away
MOST_VALUES = 8  # of a list
_TRUST = {
    "coordinator": "central noise",
    "parties": "secure aggregation",
    "nobody": "local differential privacy",
}


@dataclass(frozen=True)
class Tile:
    """A large value with a name above it and a remark below."""

    name: str
    value: str
    remark: str = ""


@dataclass(frozen=True)
class Overview:
    """The head of the page and the statement."""

    lead: str
    tiles: tuple[Tile, ...]
    alarm: bool  # whether rows may be read from the model
    statement: tuple[str, ...]  # paragraphs
    changes: tuple[tuple[str, str, str], ...]  # by what tables differ, epsilon, best guess
    changes_lead: str
    leaving: str  # what stays of a party's rows when it leaves


@dataclass(frozen=True)
class Training:
    """Public facts: the schema, the settings, and what was edited by hand."""

    columns: tuple[tuple[str, str, str], ...]  # name, kind, range or values
    more_columns: tuple[tuple[str, str, str], ...]  # the same, folded away
    settings: tuple[tuple[str, str], ...]
    edits: tuple[tuple[str, str, str, str], ...]  # column, cells, reason, hash of the model before


def overview_of(explanation: Explanation, facts: ReportFacts) -> Overview:
    statement = explanation.model.statement
    parties = counted(facts.parties, "party", "parties")
    rows = "one table" if statement.single_owner else f"the rows of {parties}"
    source = "released values" if statement.guarantee in PRIVATE else "the model alone"
    method = f" with the method {facts.method}" if facts.method else ""
    lead = (
        f"{_task(explanation)}, trained{method} on {rows} with the schema "
        f"{facts.schema!r}. Everything on this page follows from {source}; no row was read to "
        "make it."
    )
    whom = ", ".join(word for word in (_TRUST.get(statement.trust, ""), parties) if word)
    trust = Tile("trust", statement.trust, whom)
    if statement.single_owner:
        trust = Tile("trust", "one owner", "noise is added to every sum of one table")
    n_columns = counted(len(explanation.model.schema.columns), "column", "columns")
    tiles = (
        *_guarantee_tiles(statement),
        trust,
        Tile("releases", f"{facts.releases:,}", f"{facts.n_values:,} noisy values"),
        Tile("trees", f"{facts.trees:,}", n_columns),
    )
    alarm = statement.guarantee not in PRIVATE and statement.guarantee != "label"
    return Overview(
        lead,
        tiles,
        alarm,
        tuple(statement.words().split("\n")),
        tuple(change.cells() for change in statement.changes()),
        _changes_lead(statement),
        leaving_words(statement),
    )


def _changes_lead(statement: Statement) -> str:
    at = f" at delta = {statement.delta:g}" if statement.delta else ""
    return (
        f"The same promise{at} for what people ask about: two tables that differ by more than one "
        f"{'label' if statement.guarantee == 'label' else statement.unit}, and how often whoever "
        "takes both to be equally likely can be right which of them it was."
    )


def _task(explanation: Explanation) -> str:
    label = explanation.model.schema.label
    if label.task == "survival":
        return f"A model of {label.name}, the time to {label.event}, up to {label.cuts[-1]:g}"
    if label.task == "counts":
        per = f" for each unit of {label.exposure}" if label.exposure else ""
        return f"A model of {label.name}, a count of at most {label.upper:,.10g}{per}"
    if label.loss == "quantile" and label.lower is not None:
        return (
            f"A model of the {label.quantile:g} quantile of values from {label.lower:,.10g} to "
            f"{label.upper:,.10g}"
        )
    if label.lower is not None and label.upper is not None:
        return f"A regression model of values from {label.lower:,.10g} to {label.upper:,.10g}"
    return f"A {label.task} classifier ({_listed([text_of(value) for value in label.classes])})"


def _guarantee_tiles(statement: Statement) -> tuple[Tile, Tile]:
    """How much anyone may learn, and about what."""
    epsilon = f"{statement.epsilon:g}"
    if statement.guarantee == "label":
        return (
            Tile("epsilon", epsilon, "label differential privacy"),
            Tile("protected", "labels", "and nothing else"),
        )
    if statement.guarantee not in PRIVATE:
        return (
            Tile("epsilon", "none", "not private"),
            Tile("protected", "nothing", "no noise hides a row"),
        )
    pure = statement.guarantee != "epsilon-delta"
    delta = "pure, delta = 0" if pure else f"at delta = {statement.delta:g}"
    return (
        Tile("epsilon", epsilon, delta),
        Tile("protected", statement.unit, statement.shown_neighbours),
    )


def training_of(explanation: Explanation) -> Training:
    model = explanation.model
    columns = tuple((column.name, column.kind, _range(column)) for column in model.schema.columns)
    settings = model.record.get("settings")
    known = settings if isinstance(settings, dict) else {}
    return Training(
        columns[:MOST_COLUMNS],
        columns[MOST_COLUMNS:],
        tuple(
            (str(name), str(value))
            for name, value in sorted(known.items())
            if value not in ("", [], None)
        ),
        tuple(_edit(edit) for edit in edits_of(model)),
    )


def _edit(edit: dict[str, Any]) -> tuple[str, str, str, str]:
    return edit["column"], ", ".join(edit["cells"])[:120], edit["reason"], edit["from"][:12]


def _range(column: Column) -> str:
    if isinstance(column, Numeric):
        return f"{number(column.lower)} to {number(column.upper)}"
    return _listed([text_of(value) for value in column.categories])


def _listed(values: list[str]) -> str:
    more = len(values) - MOST_VALUES
    return ", ".join(values[:MOST_VALUES]) + (f" and {more} more" if more > 0 else "")


def counted(n: int, one: str, several: str) -> str:
    """A number of things.

    >>> counted(1, "party", "parties"), counted(1200, "party", "parties")
    ('1 party', '1,200 parties')
    """
    return f"1 {one}" if n == 1 else f"{n:,} {several}"
