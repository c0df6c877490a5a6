"""Schemas as TOML files, and the dataset descriptions (`[[feature]]`) that carry the same facts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from hedgerow.data.schema import Categorical, Column, Label, Numeric, Ordinal, Schema, Unit
from hedgerow.errors import FormatError, SchemaError

FORMAT = 1
_TOP = ("format", "name", "label", "unit", "column")
_LABEL = ("name", "classes", "lower", "upper")
_UNIT = ("kind", "column", "at_most")
_COLUMN = {
    "numeric": ("name", "kind", "lower", "upper", "integer", "missing"),
    "ordinal": ("name", "kind", "categories", "missing", "other"),
    "categorical": ("name", "kind", "categories", "missing", "other"),
}
_BOOLEANS = ("integer", "missing")


def read_schema(path: str | PathLike[str]) -> Schema:
    """Read a schema file; errors name the file and the place in it."""
    file = Path(path)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SchemaError(f"no schema file at {file}; check the path") from error
    except IsADirectoryError as error:
        raise SchemaError(f"{file} is a folder; name the schema file in it") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"cannot read {file} as UTF-8 text: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{file} is not valid TOML: {error}. Correct it there.") from error
    return schema_from_document(document, str(file))


def write_schema(schema: Schema, path: str | PathLike[str]) -> None:
    import tomli_w

    Path(path).write_text(tomli_w.dumps(schema.to_dict()), encoding="utf-8")


def schema_from_document(document: Mapping[str, Any], source: str) -> Schema:
    """Build a schema from parsed TOML, refusing every key that is not known."""
    try:
        if "feature" in document:
            return _from_description(document)
        return _from_format(document)
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from error
    except FormatError as error:
        raise FormatError(f"{source}: {error}") from error


def _from_format(document: Mapping[str, Any]) -> Schema:
    version = document.get("format")
    if version is None:
        raise SchemaError(f"format is missing; write format = {FORMAT} at the top")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise SchemaError(f"format is {version!r}; it must be {FORMAT}")
    if version > FORMAT:
        raise FormatError(
            f"schema format {version} is newer than this hedgerow reads ({FORMAT}); "
            f"install the hedgerow version that writes schema format {version}"
        )
    _known(document, _TOP, "top level")
    label = _table(document, "label", "[label]")
    _known(label, _LABEL, "[label]")
    unit = document.get("unit", {})
    if not isinstance(unit, Mapping):
        raise SchemaError("unit must be a table: [unit]")
    _known(unit, _UNIT, "[unit]")
    columns = document.get("column", [])
    if not isinstance(columns, Sequence) or isinstance(columns, str):
        raise SchemaError("columns are written as [[column]] tables")
    at_most = unit.get("at_most", 1)
    if not isinstance(at_most, int) or isinstance(at_most, bool):
        raise SchemaError(f"[unit] at_most is {at_most!r}; it must be a whole number")
    return Schema(
        columns=tuple(_column(entry, i) for i, entry in enumerate(columns)),
        label=Label(
            str(_required(label, "name", "[label]")),
            tuple(_list(label.get("classes", []), "[label] classes")),
            label.get("lower"),
            label.get("upper"),
        ),
        unit=Unit(unit.get("kind", "row"), unit.get("column"), at_most),
        name=str(document.get("name", "table")),
    )


def _column(entry: Any, index: int) -> Column:
    place = f"[[column]] number {index + 1}"
    if not isinstance(entry, Mapping):
        raise SchemaError(f"{place} must be a table")
    name = _required(entry, "name", place)
    place = f"column {name!r}"
    kind = _required(entry, "kind", place)
    if not isinstance(kind, str) or kind not in _COLUMN:
        raise SchemaError(f"{place} has kind {kind!r}; choose one of {', '.join(_COLUMN)}")
    _known(entry, _COLUMN[kind], place)
    for key in _BOOLEANS:
        if not isinstance(entry.get(key, True), bool):
            raise SchemaError(f"{place} has {key} = {entry[key]!r}; it must be true or false")
    if kind == "numeric":
        return Numeric(
            name,
            _required(entry, "lower", place),
            _required(entry, "upper", place),
            entry.get("integer", False),
            entry.get("missing", True),
        )
    categories = tuple(_list(_required(entry, "categories", place), f"{place} categories"))
    make = Ordinal if kind == "ordinal" else Categorical
    return make(name, categories, entry.get("missing", True), entry.get("other", "error"))


def _from_description(document: Mapping[str, Any]) -> Schema:
    """The descriptions' measured fields (data_min, missing ...) are not public and stay unread."""
    features = document["feature"]
    if not isinstance(features, list):
        raise SchemaError("features are written as [[feature]] tables")
    if "label_lower" in document:
        label = Label("label", (), document["label_lower"], document.get("label_upper"))
    else:
        label = Label("label", (0, 1))
    columns = tuple(_feature(entry, i) for i, entry in enumerate(features))
    return Schema(columns, label, name=str(document.get("name", "table")))


def _feature(entry: Any, index: int) -> Column:
    place = f"[[feature]] number {index + 1}"
    if not isinstance(entry, Mapping):
        raise SchemaError(f"{place} must be a table")
    name = str(_required(entry, "name", place))
    kind = _required(entry, "kind", place)
    whole = str(entry.get("dtype", "")).startswith(("int", "uint"))
    if kind == "numeric":
        lower, upper = _required(entry, "lower", place), _required(entry, "upper", place)
        return Numeric(name, lower, upper, integer=whole)
    if kind == "ordinal" and "categories" not in entry:
        lower, upper = _required(entry, "lower", place), _required(entry, "upper", place)
        if not whole or upper - lower > 10_000:
            return Numeric(name, lower, upper)
        return Ordinal(name, tuple(range(int(lower), int(upper) + 1)), other="category")
    categories = tuple(_list(_required(entry, "categories", place), f"{place} categories"))
    if kind == "ordinal":
        return Ordinal(name, categories, other="category")
    if kind == "categorical":
        return Categorical(name, categories, other="category")
    raise SchemaError(f"{place} has kind {kind!r}; choose one of {', '.join(_COLUMN)}")


def _known(table: Mapping[str, Any], keys: Sequence[str], place: str) -> None:
    unknown = [key for key in table if key not in keys]
    if unknown:
        raise SchemaError(f"{place} has the unknown key {unknown[0]!r}; known: {', '.join(keys)}")


def _required(table: Mapping[str, Any], key: str, place: str) -> Any:
    if key not in table:
        raise SchemaError(
            f"{place} has no {key!r}. It is a public fact that must be written down: "
            "take it from documentation, or agree on it with the other parties."
        )
    return table[key]


def _table(document: Mapping[str, Any], key: str, place: str) -> Mapping[str, Any]:
    value = document.get(key)
    if not isinstance(value, Mapping):
        raise SchemaError(f"{place} is missing; describe what is predicted there")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise SchemaError(f"{place} must be a list")
    return value
