"""The parts of a schema: columns, the label, the unit of privacy. `schema` puts them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from hedgerow.data.cards import Card, Shown, listed
from hedgerow.data.documents import shown
from hedgerow.data.schema_checks import (
    SCHEMA,
    Bound,
    check_categories,
    check_loss,
    check_order,
    check_time_to_event,
    check_told_apart,
    check_unique,
    make_plain,
)
from hedgerow.data.values import Value
from hedgerow.errors import SchemaError


@dataclass(frozen=True)
class Numeric:
    """A number between two public bounds; values outside are clipped to them."""

    name: str
    lower: Bound
    upper: Bound
    integer: bool = False
    missing: bool = True
    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        place = f"column {shown(self.name)}"
        make_plain(self, "lower", "upper")
        SCHEMA.check(self, place)
        check_order(place, self.lower, self.upper)
        check_told_apart(place, self.lower, self.upper, self.integer)


@dataclass(frozen=True, repr=False)
class Ordinal(Shown):
    """One of a public list of values whose order means something."""

    name: str
    categories: tuple[Value, ...]
    missing: bool = True
    other: Literal["category", "error"] = "error"
    kind: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        check_categories(self)

    def _card(self) -> Card:
        return _column_card(self)


@dataclass(frozen=True, repr=False)
class Categorical(Shown):
    """One of a public list of values without order."""

    name: str
    categories: tuple[Value, ...]
    missing: bool = True
    other: Literal["category", "error"] = "error"
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        check_categories(self)

    def _card(self) -> Card:
        return _column_card(self)


Column = Numeric | Ordinal | Categorical


@dataclass(frozen=True, repr=False)
class Label(Shown):
    """What is predicted: a class, a number between bounds, a count, or the time to an event.

    A number is predicted by its mean, or with `loss = "quantile"` by that quantile, or with
    `loss = "huber"` by a mean that errors beyond `huber` pull no further. With `loss = "poisson"`
    it is a count of at most `upper`; where rows were seen for different lengths of time, `exposure`
    names the column of these, none above `max_exposure`.

    Time to an event has two columns: `name` is that of the times, `event` says whether the event
    happened then (the second of `event_codes`) or the row was censored (the first). `cuts` are
    public times; the last is the horizon, at which all rows still under observation are censored.
    With `change_at`, one of the other cuts, columns may have other effects from there on.
    """

    name: str
    classes: tuple[Value, ...] = ()
    lower: Bound | None = None
    upper: Bound | None = None
    event: str | None = None
    event_codes: tuple[Value, ...] = ()
    cuts: tuple[Bound, ...] = ()
    loss: Literal["squared", "poisson", "quantile", "huber"] | None = None  # None: the usual one
    quantile: float | None = None  # which one
    huber: Bound | None = None  # the error beyond which the loss is straight, in units of the label
    exposure: str | None = None  # the column of how long, or how much, rows were seen
    max_exposure: Bound | None = None  # the public cap on it
    change_at: Bound | None = None  # the cut from which on effects on hazards may be others

    def __post_init__(self) -> None:
        place = f"label {shown(self.name)}"
        make_plain(self, "classes", "lower", "upper", "event_codes", "cuts")
        make_plain(self, "quantile", "huber", "max_exposure", "change_at")
        SCHEMA.check(self, place)
        check_loss(self, place)
        if self.event is not None or self.event_codes or self.cuts or self.change_at is not None:
            if self.classes or self.lower is not None or self.upper is not None:
                raise SchemaError(
                    f"{place} has an event and classes or bounds; keep one of the two"
                )
            check_time_to_event(self, place)
        elif self.classes:
            if self.lower is not None or self.upper is not None:
                raise SchemaError(f"{place} has classes and bounds; keep one of the two")
            if len(self.classes) < 2:
                raise SchemaError(f"{place} has {len(self.classes)} class; it needs at least two")
            check_unique(place, "class", self.classes)
        elif self.lower is None or self.upper is None:
            raise SchemaError(
                f"{place} needs classes = [...], both lower and upper, or an event with cuts. "
                "They are public facts and are never read from the rows."
            )
        else:
            check_order(place, self.lower, self.upper)

    @property
    def task(self) -> Literal["binary", "multiclass", "regression", "survival", "counts"]:
        if self.event is not None:
            return "survival"
        if self.loss == "poisson":
            return "counts"
        if not self.classes:
            return "regression"
        return "binary" if len(self.classes) == 2 else "multiclass"

    @property
    def n_outcomes(self) -> int:
        """How many outcomes rows are counted by: classes, or cells of time and event; 0: none.

        With J cuts a row is censored or has its event in one of J intervals, or is still there at
        the last cut: 2 J + 1 cells, see `survival`.
        """
        return 2 * len(self.cuts) + 1 if self.cuts else len(self.classes)

    @property
    def n_first(self) -> int:
        """How many intervals end at or before `change_at`; 0 where effects do not change."""
        return 0 if self.change_at is None else self.cuts.index(self.change_at) + 1

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it is read from."""
        second = self.exposure if self.event is None else self.event
        return (self.name,) if second is None else (self.name, second)

    @property
    def values(self) -> str:
        """What it can be, in a few words."""
        if self.event is not None:
            n, last, happened = len(self.cuts), self.cuts[-1], self.event_codes[1]
            change = "" if self.change_at is None else f", effects change at {self.change_at:g}"
            return f"up to {last:g} in {n} intervals, {self.event} = {shown(happened)}{change}"
        return (
            listed(self.classes) if self.classes else f"{self.lower:g} to {self.upper:g}{self._by}"
        )

    @property
    def _by(self) -> str:
        """What is said of the number beside its bounds."""
        if self.loss == "quantile":
            return f", quantile {self.quantile:g}"
        if self.loss == "huber":
            return f", errors beyond {self.huber:g} held back"
        if self.exposure is not None:
            return f" in {self.exposure}, at most {self.max_exposure:g}"
        return ""

    def _card(self) -> Card:
        return Card("Label", (("name", self.name), ("task", self.task), ("values", self.values)))


@dataclass(frozen=True)
class Unit:
    """What one unit of privacy is: a row, or a person with at most k rows in each party."""

    kind: Literal["row", "person"] = "row"
    column: str | None = None
    at_most: int = 1

    def __post_init__(self) -> None:
        SCHEMA.check(self, "[unit]")
        if self.kind == "person" and (not self.column or self.at_most < 1):
            raise SchemaError('unit person needs column = "..." and at_most >= 1')
        if self.kind == "row" and (self.column or self.at_most != 1):
            raise SchemaError('unit row takes no column and no at_most; use kind = "person"')

    @property
    def text(self) -> str:
        """The unit in a word or two, by which budgets are kept apart."""
        if self.kind == "row":
            return "row"
        return f"person with at most {self.at_most} rows"


def _column_card(column: Ordinal | Categorical) -> Card:
    names = ("kind", "values", "missing", "others")
    facts = zip(names, in_words(column), strict=True)
    return Card(type(column).__name__, (("name", column.name), *facts))


def in_words(column: Column) -> tuple[str, str, str, str]:
    """A column's kind, its values, and what becomes of missing and of other ones."""
    missing = "allowed" if column.missing else "refused"
    if isinstance(column, Numeric):
        values = f"{column.lower:g} to {column.upper:g}"
        return column.kind, f"{values}, integers" if column.integer else values, missing, "clipped"
    other = "a category of their own" if column.other == "category" else "refused"
    return column.kind, listed(column.categories), missing, other
