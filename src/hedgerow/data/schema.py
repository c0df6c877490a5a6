"""Public facts about a table, agreed before anything is asked: columns, bounds, label, unit.

Nothing in a schema may be computed from private rows. Reading TOML lives in `schema_toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from hedgerow.data.cards import Card, Shown, listed
from hedgerow.data.csv_format import PLAIN, CsvFormat, changed
from hedgerow.data.documents import Key, shown
from hedgerow.data.schema_checks import (
    SCHEMA,
    Bound,
    check_categories,
    check_order,
    check_told_apart,
    check_unique,
    make_plain,
)
from hedgerow.data.values import Value
from hedgerow.data.weights import Weight
from hedgerow.errors import SchemaError
from hedgerow.packing import canonical_json, digest

if TYPE_CHECKING:
    from hedgerow.data.checking import TableCheck


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
    """What is predicted: a class of a public list, or a number between public bounds."""

    name: str
    classes: tuple[Value, ...] = ()
    lower: Bound | None = None
    upper: Bound | None = None

    def __post_init__(self) -> None:
        place = f"label {shown(self.name)}"
        make_plain(self, "classes", "lower", "upper")
        SCHEMA.check(self, place)
        if self.classes:
            if self.lower is not None or self.upper is not None:
                raise SchemaError(f"{place} has classes and bounds; keep one of the two")
            if len(self.classes) < 2:
                raise SchemaError(f"{place} has {len(self.classes)} class; it needs at least two")
            check_unique(place, "class", self.classes)
        elif self.lower is None or self.upper is None:
            raise SchemaError(
                f"{place} needs either classes = [...] or both lower and upper. "
                "They are public facts and are never read from the rows."
            )
        else:
            check_order(place, self.lower, self.upper)

    @property
    def task(self) -> Literal["binary", "multiclass", "regression"]:
        if not self.classes:
            return "regression"
        return "binary" if len(self.classes) == 2 else "multiclass"

    @property
    def values(self) -> str:
        """What it can be, in a few words."""
        return listed(self.classes) if self.classes else f"{self.lower:g} to {self.upper:g}"

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


@dataclass(frozen=True, repr=False)
class Schema(Shown):
    """Columns in order, the label and the unit of privacy.

    >>> schema = Schema.from_bounds({"age": (0, 110), "dose": (0, 5)}, classes=[0, 1])
    >>> schema.names, schema.label.task
    (('age', 'dose'), 'binary')
    """

    columns: Annotated[tuple[Column, ...], Key("column")]
    label: Label
    unit: Unit = field(default_factory=Unit)
    name: str = "table"
    # How the CSV files at hand are written: a site's own matter, so no part of the hash.
    csv: CsvFormat = field(default=PLAIN, compare=False)
    drafted: bool = False  # whether rows were read to make it; the mark stays
    confirmed_by: str = ""  # who replaced or accepted what was read
    weight: Weight | None = None  # how often rows count; None: each once
    # What a draft saw and left out, for whoever drafted; neither stored nor sent.
    notes: tuple[str, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        SCHEMA.check(self)
        if self.confirmed_by and not self.drafted:
            raise SchemaError("confirmed_by is for drafts; write drafted = true, or leave it out")
        if not self.columns:
            raise SchemaError("the schema has no columns; describe at least one with [[column]]")
        taken: set[str] = set()
        special = [("label", self.label.name)]
        if self.unit.column:
            special.append(("unit", self.unit.column))
        if self.weight:
            special.append(("weight", self.weight.column))
        for place, name in [*special, *(("column", c.name) for c in self.columns)]:
            if not name or re.search(r"[\x00-\x1f]", name):
                raise SchemaError(f"{place} has the name {name!r}; names are non-empty text")
            if name in taken:
                raise SchemaError(f"{place} {name!r} appears twice; rename or remove one of them")
            taken.add(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def max_weight(self) -> float:
        """How often one row can count: by so much it moves every sum at most."""
        return 1.0 if self.weight is None else self.weight.at_most

    @property
    def weight_bits(self) -> int:
        """The grid 2**-bits on which rows' weights lie."""
        return 0 if self.weight is None else self.weight.bits

    @property
    def weight_steps(self) -> int:
        """The largest weight in steps of that grid; 0 where rows have none."""
        return 0 if self.weight is None else int(self.max_weight * 2**self.weight_bits)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical form: two parties with the same hash mean the same table."""
        facts = self.to_dict()
        facts.pop("csv", None)
        return digest("hedgerow schema 1", canonical_json(facts))

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(f"no column {name!r}; the schema has {', '.join(self.names)}")

    def with_label(self, label: Label) -> Schema:
        return replace(self, label=label)

    def _card(self) -> Card:
        facts = (
            ("name", self.name),
            ("columns", len(self.columns)),
            ("label", f"{self.label.name} ({self.label.task}: {self.label.values})"),
            ("unit", self.unit.text),
            *([("weight", self.weight.text)] if self.weight else []),
            *([("origin", self.origin)] if self.drafted else []),
        )
        rows = tuple((column.name, *_in_words(column)) for column in self.columns)
        return Card("Schema", facts, ("column", "kind", "values", "missing", "others"), rows)

    def to_dict(self) -> dict[str, Any]:
        """A plain form that `from_dict` reads back; also the layout of the TOML file."""
        label = {k: v for k, v in asdict(self.label).items() if v not in (None, ())}
        unit = {k: v for k, v in asdict(self.unit).items() if v is not None}
        if self.unit.kind == "row":
            unit.pop("at_most")
        written, mark = self.csv.to_dict(), {}
        if self.drafted:
            by = {"confirmed_by": self.confirmed_by} if self.confirmed_by else {}
            mark = {"drafted": True, **by}
        return {
            "format": 1,
            "name": self.name,
            **mark,
            **({"csv": written} if written else {}),
            "label": _plain(label),
            "unit": unit,
            **({"weight": asdict(self.weight)} if self.weight else {}),
            "column": [_plain({"kind": c.kind, **asdict(c)}) for c in self.columns],
        }

    @staticmethod
    def from_dict(document: Mapping[str, Any], source: str = "schema") -> Schema:
        from hedgerow.data.schema_toml import schema_from_document

        return schema_from_document(document, source)

    @staticmethod
    def read(path: str | PathLike[str]) -> Schema:
        """Read a schema file (TOML), or one of the dataset descriptions with `[[feature]]`."""
        from hedgerow.data.schema_toml import read_schema

        return read_schema(path)

    def write(self, path: str | PathLike[str]) -> None:
        from hedgerow.data.schema_toml import write_schema

        write_schema(self, path)

    @property
    def origin(self) -> str:
        """What it means that this schema was drafted from rows; "" if it was not."""
        if not self.drafted:
            return ""
        by = f"confirmed by {self.confirmed_by}" if self.confirmed_by else "confirmed by nobody"
        return f"the schema was drafted from rows, {by}; that choice is not covered by epsilon"

    def confirm(self, by: str) -> Schema:
        """A draft whose bounds and lists a person has replaced or accepted; the mark stays."""
        if not self.drafted or not by.strip():
            raise SchemaError("a draft is confirmed, by a name that is not empty")
        return replace(self, confirmed_by=by.strip())

    @staticmethod
    def draft(table: Any, label: str, **csv: str | Sequence[str]) -> Schema:
        """Propose a schema from a PUBLIC or SYNTHETIC sample: it reads the rows.

        The schema is marked as `drafted`, and every statement of a model repeats what that means.
        Its `notes` say which columns were left out, and why; `write` puts them on top of the file.
        For a CSV file `separator`, `decimal`, `thousands`, `encoding` and `missing` may be given.

        >>> ages = [18 + i for i in range(60)]
        >>> draft = Schema.draft({"age": ages, "sick": ["no", "yes"] * 30}, label="sick")
        >>> draft.columns[0].lower, draft.columns[0].upper, draft.drafted
        (15, 80, True)
        """
        from hedgerow.data.drafting import draft_schema

        return draft_schema(table, label, given=changed(PLAIN, **csv))

    def check(self, table: Any, y: Any = None, sample_weight: Any = None) -> TableCheck:
        """Count what this schema does to a table, before a fit: for its owner's eyes alone.

        Values clipped by bounds, values that lists lack, missing values and columns that never
        vary are counted exactly, so neither a fit nor a model nor a report repeats them. Labels are
        `y`, or else the table's label column, and weights, where the schema has a cap on them,
        `sample_weight` or its weight column. Whether the table can be used is `fits`.
        """
        from hedgerow.data.checking import check_table

        return check_table(self, table, y, weights=sample_weight)

    @staticmethod
    def from_bounds(
        bounds: Mapping[str, tuple[float, float]],
        classes: Sequence[Value] | None = None,
        label: str = "label",
        label_bounds: tuple[float, float] | None = None,
    ) -> Schema:
        """A schema of numeric columns, each with its public (low, high)."""
        columns: list[Column] = []
        for name, pair in bounds.items():
            if len(tuple(pair)) != 2 or any(isinstance(value, str) for value in pair):
                raise SchemaError(
                    f"column {name!r} has bounds {pair!r}; give (low, high). A column with "
                    "categories is described in a schema: Categorical(name, values)"
                )
            columns.append(Numeric(str(name), float(pair[0]), float(pair[1])))
        low, high = label_bounds if label_bounds is not None else (None, None)
        return Schema(tuple(columns), Label(label, tuple(classes or ()), low, high))


def _column_card(column: Ordinal | Categorical) -> Card:
    names = ("kind", "values", "missing", "others")
    facts = zip(names, _in_words(column), strict=True)
    return Card(type(column).__name__, (("name", column.name), *facts))


def _in_words(column: Column) -> tuple[str, str, str, str]:
    """A column's kind, its values, and what becomes of missing and of other ones."""
    missing = "allowed" if column.missing else "refused"
    if isinstance(column, Numeric):
        values = f"{column.lower:g} to {column.upper:g}"
        return column.kind, f"{values}, integers" if column.integer else values, missing, "clipped"
    other = "a category of their own" if column.other == "category" else "refused"
    return column.kind, listed(column.categories), missing, other


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
