"""Dataset descriptions (TOML with `[[feature]]`): they carry the facts of a schema, and more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from hedgerow.data.schema_checks import SCHEMA, Bound
from hedgerow.data.schema_parts import Categorical, Column, Label, Numeric, Ordinal
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


class Described(NamedTuple):
    """What a description says of a schema."""

    columns: tuple[Column, ...]
    label: Label
    name: str


def described(document: Mapping[str, Any]) -> Described:
    """Read a description; its columns may hold other categories than those it lists."""
    told = _DESCRIPTION.read(_Description, document)
    numeric = told.label_lower is not None
    label = Label("label", () if numeric else (0, 1), told.label_lower, told.label_upper)
    return Described(tuple(_column(feature) for feature in told.feature), label, told.name)


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
