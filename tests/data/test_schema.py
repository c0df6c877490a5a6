"""Schemas: files round-trip, every unknown or missing fact is named, hashes follow the meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema, Unit
from hedgerow.data.values import text_of
from hedgerow.errors import FormatError, SchemaError
from tests.conftest import MIXED

names = st.text("abcdefgh é-_.", min_size=1, max_size=6).filter(str.strip)
numbers = st.floats(-1e30, 1e30) | st.integers(-(10**6), 10**6)
listed = st.lists(names, min_size=1, max_size=5, unique=True).map(tuple)
bounds = st.tuples(numbers, numbers).map(sorted).filter(lambda b: b[0] < b[1])


def _can_be_cut(bounds: Any) -> bool:
    """Whether 32-bit floats have room for cells between them."""
    return bool(bounds[1] - bounds[0] > max(1e-4 * max(map(abs, bounds)), 1e-30))


@st.composite
def columns(draw: st.DrawFn) -> Any:
    name, missing = draw(names), draw(st.booleans())
    if draw(st.booleans()):
        low, high = draw(bounds.filter(_can_be_cut))
        return Numeric(name, low, high, draw(st.booleans()), missing)
    kind = draw(st.sampled_from([Ordinal, Categorical]))
    return kind(name, draw(listed), missing, draw(st.sampled_from(["category", "error"])))


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    found = draw(st.lists(columns(), min_size=1, max_size=4, unique_by=lambda c: c.name))
    low, high = draw(bounds)
    label = draw(st.sampled_from([Label("LABEL", ("no", "yes")), Label("LABEL", (), low, high)]))
    unit = draw(st.sampled_from([Unit(), Unit("person", "ID", 3)]))
    return Schema(tuple(found), label, unit, draw(names))


@settings(max_examples=60, deadline=None)
@given(schemas())
def test_a_schema_file_says_the_same_schema(
    tmp_path_factory: pytest.TempPathFactory, schema: Schema
) -> None:
    path = tmp_path_factory.mktemp("schema") / "schema.toml"
    schema.write(path)
    again = Schema.read(path)
    assert again == schema
    assert again.hash == schema.hash
    assert Schema.from_dict(schema.to_dict()).hash == schema.hash


def document(**changes: Any) -> dict[str, Any]:
    return {**MIXED.to_dict(), **changes}


def with_column(**changes: Any) -> dict[str, Any]:
    first = {**MIXED.to_dict()["column"][0], **changes}
    return document(column=[{k: v for k, v in first.items() if v is not ...}])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (document(colour=1), "unknown key 'colour'"),
        (with_column(low=1), r"column 'age' has the unknown key 'low' \(did you mean 'lower'\?\)"),
        (document(label={"name": "y", "classes": [0, 1], "rate": 0.5}), "unknown key 'rate'"),
        (document(unit={"kind": "row", "rows": 1}), "unknown key 'rows'"),
        (with_column(lower=...), "no 'lower'"),
        (with_column(kind="word"), "choose one of"),
        (with_column(lower=5, upper=5), "swap or widen"),
        (with_column(lower=float("inf")), r"a number from -1e\+37 to 1e\+37"),
        (with_column(lower="0"), "must be a number"),
        (with_column(missing="yes"), "true or false"),
        (document(column=[]), "no columns"),
        (document(label={"name": "y"}), "classes"),
        (document(label={"name": "y", "classes": [1]}), "at least two"),
        (document(label={"name": "y", "classes": [1, "1"]}), "twice"),
        (document(label={"name": "age", "classes": [0, 1]}), "appears twice"),
        (document(unit={"kind": "person"}), "at_most"),
        (document(unit={"kind": "house"}), "'row' or 'person'"),
        (document(format=0), "must be 1"),
        ({"name": "x"}, "format is missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_fact_is_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.from_dict(wrong)


def test_a_newer_format_names_the_version_needed() -> None:
    with pytest.raises(FormatError, match="writes schema format 2"):
        Schema.from_dict(document(format=2))


@pytest.mark.parametrize("content", [b"format = ", b"\xff\xfe", b"a = [" * 5000])
def test_unreadable_files_are_schema_errors(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "schema.toml"
    path.write_bytes(content)
    with pytest.raises(SchemaError, match=r"schema\.toml"):
        Schema.read(path)
    with pytest.raises(SchemaError, match="no schema file"):
        Schema.read(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    "other",
    [
        with_column(upper=101),
        with_column(integer=False),
        document(name="another"),
        document(unit={"kind": "person", "column": "id", "at_most": 2}),
        document(label={"name": "sick", "classes": ["yes", "no"]}),
        document(column=MIXED.to_dict()["column"][::-1]),
    ],
)
def test_every_fact_is_in_the_hash(other: dict[str, Any]) -> None:
    assert Schema.from_dict(other).hash != MIXED.hash


def test_numbers_text_and_booleans_match_as_people_mean_them() -> None:
    assert text_of(1) == text_of(1.0) == text_of("1") == "1"
    assert text_of(1.5) == "1.5"
    assert text_of(True) == "true" != text_of(1)


def test_descriptions_are_read_without_their_measured_fields() -> None:
    feature = {"name": "a", "kind": "numeric", "lower": 0, "upper": 9, "dtype": "int64"}
    plain = Schema.from_dict({"feature": [feature]})
    measured = Schema.from_dict({"feature": [{**feature, "data_min": 3, "missing": 7}]})
    assert plain == measured
    assert plain.columns == (Numeric("a", 0, 9, integer=True),)


@pytest.mark.parametrize("k", [1.5, 0, -1, True, "3"])
def test_a_person_has_a_whole_number_of_rows(k: Any) -> None:
    with pytest.raises(SchemaError, match="at_most"):
        Unit("person", "id", k)
