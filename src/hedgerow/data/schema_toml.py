"""Schemas as TOML files, and the dataset descriptions (`[[feature]]`) that carry the same facts."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from hedgerow.data.documents import named
from hedgerow.data.schema import Categorical, Column, Label, Numeric, Ordinal, Schema
from hedgerow.data.schema_checks import SCHEMA, Bound
from hedgerow.data.values import Value

# A description's measured fields (data_min, missing ...) are not public and stay unread.
_DESCRIPTION = replace(SCHEMA, format=0, open=True)


@dataclass(frozen=True)
class _Feature:
    name: str
    kind: Literal["numeric", "ordinal", "categorical"]
    lower: Bound | None = None
    upper: Bound | None = None
    categories: tuple[Value, ...] | None = None
    dtype: str = ""


@dataclass(frozen=True)
class _Description:
    feature: tuple[_Feature, ...]
    name: str = "table"
    label_lower: Bound | None = None
    label_upper: Bound | None = None


def read_schema(path: str | PathLike[str]) -> Schema:
    """Read a schema file; errors name the file and the place in it."""
    return schema_from_document(SCHEMA.load(path), str(path))


def write_schema(schema: Schema, path: str | PathLike[str]) -> None:
    Path(path).write_text(schema_text(schema), encoding="utf-8")


def schema_text(schema: Schema) -> str:
    """A schema as TOML, with the notes of a draft on top."""
    import tomli_w

    notes = [line for note in schema.notes for line in textwrap.wrap(note, 96)]
    header = "".join(f"# {line}\n" for line in notes)
    return f"{header}\n" * bool(notes) + tomli_w.dumps(schema.to_dict())


def confirmed_text(text: str, by: str) -> str:
    """The text of a schema file with a line that says who confirmed it; all else stays."""
    line = f"confirmed_by = {json.dumps(by, ensure_ascii=False)}\n"
    return re.sub(r"(?m)^(drafted\s*=\s*true.*\n)", lambda mark: mark[1] + line, text, count=1)


def schema_from_document(document: Mapping[str, Any], source: str) -> Schema:
    """Build a schema from parsed TOML, refusing every key that is not known."""
    with named(source):
        if isinstance(document, Mapping) and "feature" in document:
            return _from_description(_DESCRIPTION.read(_Description, document))
        return SCHEMA.read(Schema, document)


def _from_description(told: _Description) -> Schema:
    numeric = told.label_lower is not None
    label = Label("label", () if numeric else (0, 1), told.label_lower, told.label_upper)
    return Schema(tuple(_column(feature) for feature in told.feature), label, name=told.name)


def _column(feature: _Feature) -> Column:
    name, whole = feature.name, feature.dtype.startswith(("int", "uint"))
    if feature.kind != "numeric" and feature.categories is not None:
        make = Ordinal if feature.kind == "ordinal" else Categorical
        return make(name, feature.categories, other="category")
    needed = ("categories",) if feature.kind == "categorical" else ("lower", "upper")
    for key in needed:
        if getattr(feature, key) is None:
            raise _DESCRIPTION.wrong(f"feature {name!r} has no {key!r}{_DESCRIPTION.absent}")
    lower, upper = feature.lower, feature.upper
    assert lower is not None
    assert upper is not None
    if feature.kind == "numeric":
        return Numeric(name, lower, upper, integer=whole)
    if not whole or upper - lower > 10_000:
        return Numeric(name, lower, upper)
    return Ordinal(name, tuple(range(int(lower), int(upper) + 1)), other="category")
