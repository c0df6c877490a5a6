"""Public facts about a table, agreed before anything is asked: columns, bounds, label, unit.

Nothing in a schema may be computed from private rows. Reading TOML lives in `schema_toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Annotated, Any, ClassVar, Literal

from hedgerow.data.documents import Document, Key, Within, shown
from hedgerow.data.values import Value, key_of, plain_value
from hedgerow.errors import SchemaError
from hedgerow.packing import canonical_json, digest

Bound = Annotated[float, Within(-1e37, 1e37)]
MAX_CATEGORIES = 65_000
SCHEMA = Document(
    "schema",
    SchemaError,
    format=1,
    absent=". It is a public fact that must be written down: take it from documentation, or agree "
    "on it with the other parties.",
)


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
        _make_plain(self, "lower", "upper")
        SCHEMA.check(self, place)
        _check_order(place, self.lower, self.upper)


@dataclass(frozen=True)
class Ordinal:
    """One of a public list of values whose order means something."""

    name: str
    categories: tuple[Value, ...]
    missing: bool = True
    other: Literal["category", "error"] = "error"
    kind: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        _check_categories(self)


@dataclass(frozen=True)
class Categorical:
    """One of a public list of values without order."""

    name: str
    categories: tuple[Value, ...]
    missing: bool = True
    other: Literal["category", "error"] = "error"
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        _check_categories(self)


Column = Numeric | Ordinal | Categorical


@dataclass(frozen=True)
class Label:
    """What is predicted: a class of a public list, or a number between public bounds."""

    name: str
    classes: tuple[Value, ...] = ()
    lower: Bound | None = None
    upper: Bound | None = None

    def __post_init__(self) -> None:
        place = f"label {shown(self.name)}"
        _make_plain(self, "classes", "lower", "upper")
        SCHEMA.check(self, place)
        if self.classes:
            if self.lower is not None or self.upper is not None:
                raise SchemaError(f"{place} has classes and bounds; keep one of the two")
            if len(self.classes) < 2:
                raise SchemaError(f"{place} has {len(self.classes)} class; it needs at least two")
            _check_unique(place, "class", self.classes)
        elif self.lower is None or self.upper is None:
            raise SchemaError(
                f"{place} needs either classes = [...] or both lower and upper. "
                "They are public facts and are never read from the rows."
            )
        else:
            _check_order(place, self.lower, self.upper)

    @property
    def task(self) -> Literal["binary", "multiclass", "regression"]:
        if not self.classes:
            return "regression"
        return "binary" if len(self.classes) == 2 else "multiclass"


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


@dataclass(frozen=True)
class Schema:
    """Columns in order, the label and the unit of privacy.

    >>> schema = Schema.from_bounds({"age": (0, 110), "dose": (0, 5)}, classes=[0, 1])
    >>> schema.names, schema.label.task
    (('age', 'dose'), 'binary')
    """

    columns: Annotated[tuple[Column, ...], Key("column")]
    label: Label
    unit: Unit = field(default_factory=Unit)
    name: str = "table"

    def __post_init__(self) -> None:
        SCHEMA.check(self)
        if not self.columns:
            raise SchemaError("the schema has no columns; describe at least one with [[column]]")
        taken: set[str] = set()
        special = [("label", self.label.name)]
        if self.unit.column:
            special.append(("unit", self.unit.column))
        for place, name in [*special, *(("column", c.name) for c in self.columns)]:
            if not name or re.search(r"[\x00-\x1f]", name):
                raise SchemaError(f"{place} has the name {name!r}; names are non-empty text")
            if name in taken:
                raise SchemaError(f"{place} {name!r} appears twice; rename or remove one of them")
            taken.add(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical form: two parties with the same hash mean the same table."""
        return digest("hedgerow schema 1", canonical_json(self.to_dict()))

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(f"no column {name!r}; the schema has {', '.join(self.names)}")

    def with_label(self, label: Label) -> Schema:
        return replace(self, label=label)

    def to_dict(self) -> dict[str, Any]:
        """A plain form that `from_dict` reads back; also the layout of the TOML file."""
        label = {k: v for k, v in asdict(self.label).items() if v not in (None, ())}
        unit = {k: v for k, v in asdict(self.unit).items() if v is not None}
        if self.unit.kind == "row":
            unit.pop("at_most")
        return {
            "format": 1,
            "name": self.name,
            "label": _plain(label),
            "unit": unit,
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
            if len(tuple(pair)) != 2:
                raise SchemaError(f"column {name!r} has bounds {pair!r}; give (low, high)")
            columns.append(Numeric(str(name), float(pair[0]), float(pair[1])))
        low, high = label_bounds if label_bounds is not None else (None, None)
        return Schema(tuple(columns), Label(label, tuple(classes or ()), low, high))


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _make_plain(facts: Any, *names: str) -> None:
    """Turn scalars of numpy into Python's own, and lists and arrays of them into tuples."""
    for name in names:
        value = getattr(facts, name)
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            object.__setattr__(facts, name, tuple(plain_value(item) for item in value))
        else:
            object.__setattr__(facts, name, plain_value(value))


def _check_order(place: str, lower: float, upper: float) -> None:
    if not lower < upper:
        raise SchemaError(f"{place} has lower = {lower} and upper = {upper}; swap or widen them")


def _check_categories(column: Ordinal | Categorical) -> None:
    place = f"column {shown(column.name)}"
    _make_plain(column, "categories")
    SCHEMA.check(column, place)
    categories = column.categories
    if not categories:
        raise SchemaError(f"{place} has no categories; list them, they are never read from rows")
    if len(categories) > MAX_CATEGORIES:
        raise SchemaError(f"{place} has {len(categories)} categories; at most {MAX_CATEGORIES}")
    _check_unique(place, "category", categories)


def _check_unique(place: str, what: str, values: Iterable[Value]) -> None:
    """Refuse a list in which one value of a row could match two entries, see `values`."""
    seen: dict[str, Value] = {}
    for value in values:
        key = key_of(value)
        if key is None:
            raise SchemaError(
                f"{place} has the {what} {value!r}; an empty field is a missing value, so leave it "
                "out of the list"
            )
        if key in seen:
            raise SchemaError(
                f"{place} lists {shown(seen[key])} and {shown(value)}, which are the same {what} "
                "twice, in whatever way a table writes it; keep one"
            )
        seen[key] = value
