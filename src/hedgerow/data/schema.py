"""Public facts about a table, agreed before anything is asked: columns, bounds, label, unit.

Nothing in a schema may be computed from private rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hedgerow.data.cards import Card, Shown
from hedgerow.data.csv_format import PLAIN, CsvFormat, changed
from hedgerow.data.descriptions import described
from hedgerow.data.documents import Key, named
from hedgerow.data.schema_checks import SCHEMA
from hedgerow.data.schema_parts import Categorical, Column, Label, Numeric, Ordinal, Unit, in_words
from hedgerow.data.values import Value
from hedgerow.data.weights import Weight
from hedgerow.errors import SchemaError
from hedgerow.packing import canonical_json, digest

if TYPE_CHECKING:
    from hedgerow.data.checking import TableCheck

__all__ = ["Categorical", "Column", "Label", "Numeric", "Ordinal", "Schema", "Unit"]


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
        special = [("label", name) for name in self.label.columns]
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
        rows = tuple((column.name, *in_words(column)) for column in self.columns)
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
        """Build a schema from a plain form; errors name the source and the place in it."""
        with named(source):
            if isinstance(document, Mapping) and "feature" in document:
                return Schema(**described(document)._asdict())
            return SCHEMA.read(Schema, document)

    @staticmethod
    def read(path: str | PathLike[str]) -> Schema:
        """Read a schema file (TOML), or one of the dataset descriptions with `[[feature]]`."""
        return Schema.from_dict(SCHEMA.load(path), str(path))

    def write(self, path: str | PathLike[str]) -> None:
        from hedgerow.data.schema_toml import schema_text  # its writer is seldom needed

        Path(path).write_text(schema_text(self), encoding="utf-8")

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
    def draft(table: Any, label: str, **csv: str | Sequence[str] | None) -> Schema:
        """Propose a schema from a PUBLIC or SYNTHETIC sample: it reads the rows.

        The schema is marked as `drafted`, and every statement of a model repeats what that means.
        Its `notes` say which columns were left out, and why; `write` puts them on top of the file.
        For a CSV file `separator`, `decimal`, `thousands`, `encoding` and `missing` may be given.

        >>> ages = [18 + i for i in range(60)]
        >>> draft = Schema.draft({"age": ages, "sick": ["no", "yes"] * 30}, label="sick")
        >>> draft.columns[0].lower, draft.columns[0].upper, draft.drafted
        (15, 80, True)
        """
        from hedgerow.data.drafting import draft_of  # loads Arrow

        draft = draft_of(table, label, changed(PLAIN, **csv))
        facts = (draft.columns, draft.label, draft.unit, draft.name, draft.csv)
        schema = Schema(*facts, drafted=True)
        object.__setattr__(schema, "notes", draft.notes)  # of this object alone: no copy has them
        return schema

    def check(self, table: Any, y: Any = None, sample_weight: Any = None) -> TableCheck:
        """Count what this schema does to a table, before a fit: for its owner's eyes alone.

        Values clipped by bounds, values that lists lack, missing values and columns that never
        vary are counted exactly, so neither a fit nor a model nor a report repeats them. Labels are
        `y`, or else the table's label column, and weights, where the schema has a cap on them,
        `sample_weight` or its weight column. Whether the table can be used is `fits`.
        """
        from hedgerow.data.checking import check_table  # loads Arrow and compiled loops

        return check_table(self, table, y, weights=sample_weight)

    @staticmethod
    def from_bounds(
        bounds: Mapping[str, tuple[float, float]],
        classes: Sequence[Value] | None = None,
        label: str = "label",
        label_bounds: tuple[float, float] | None = None,
        time_to_event: Label | None = None,
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
        if time_to_event is not None:
            return Schema(tuple(columns), time_to_event)
        low, high = label_bounds if label_bounds is not None else (None, None)
        return Schema(tuple(columns), Label(label, tuple(classes or ()), low, high))


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
