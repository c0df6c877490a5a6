"""CSV files as half of Europe writes them: separators, decimal signs, thousands, encodings."""

from __future__ import annotations

import codecs
import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedgerow import Categorical, Label, Numeric, Ordinal, PrivateBoostingClassifier, Schema
from hedgerow.data.csv_format import PLAIN, CsvFormat, changed, sniffed
from hedgerow.data.tables import rows_of
from hedgerow.errors import SchemaError, TableError

STAGES, PLACES = (0.5, 1.5, 2), ("Köln", "a;b,c")
COLUMNS = (Numeric("höhe", -1e6, 1e6), Ordinal("stufe", STAGES), Categorical("ort", PLACES))
LABEL = Label("krank", ("nein", "ja"))
SEPARATORS = st.sampled_from([",", ";", "\t", "|"])
ENCODINGS = st.sampled_from(["utf-8", "cp1252", "latin-1", "utf-16", "utf-16-be", "utf-8-sig"])
FORMATS = st.builds(
    CsvFormat, SEPARATORS, st.just("."), st.sampled_from(["", ",", " ", "'"]), ENCODINGS
) | st.builds(CsvFormat, SEPARATORS, st.just(","), st.sampled_from(["", ".", " ", "'"]), ENCODINGS)
NUMBERS = st.integers(-(10**9), 10**9).map(lambda n: n / 1000)
ROWS = st.lists(st.tuples(NUMBERS, st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=8)


def written(number: float, form: CsvFormat) -> str:
    """A number as a spreadsheet with these signs would write it."""
    signs = {",": form.thousands, ".": form.decimal}
    return "".join(signs.get(sign, sign) for sign in f"{number:,.3f}")


def write(file: Path, rows: list[list[str]], form: CsvFormat) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=form.separator).writerows(rows)
    file.write_bytes(text.getvalue().encode(form.encoding))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FORMATS, ROWS)
def test_a_table_means_the_same_however_its_file_is_written(
    tmp_path: Path, form: CsvFormat, rows: list[tuple[float, int, int]]
) -> None:
    table = {
        "höhe": [number for number, _, _ in rows],
        "stufe": [STAGES[stage] for _, stage, _ in rows],
        "ort": [PLACES[place] for _, _, place in rows],
        "krank": [LABEL.classes[place] for _, _, place in rows],
    }
    lines = [list(table)]
    for number, stage, place, label in zip(*table.values(), strict=True):
        lines.append([written(number, form), written(stage, form), place, label])
    write(tmp_path / "t.csv", lines, form)
    schema = Schema(COLUMNS, LABEL, csv=form)
    expected, read = rows_of(table, schema), rows_of(tmp_path / "t.csv", schema)
    for j in range(3):
        assert np.array_equal(read.codes.column(j), expected.codes.column(j))
    assert np.array_equal(read.target, expected.target)
    assert schema.check(tmp_path / "t.csv").findings == schema.check(table).findings


def test_a_files_own_words_for_missing_values(tmp_path: Path) -> None:
    form = CsvFormat(";", missing=("k.A.", "?"))
    lines = [list("abcd"), ["1", "0.5", "Köln", "ja"], ["k.A.", "?", "?", "ja"], ["", "", "", "ja"]]
    columns = (Numeric("a", 0, 9), Ordinal("b", STAGES), Categorical("c", (*PLACES, "?")))
    write(tmp_path / "t.csv", lines, form)
    schema = Schema(columns, Label("d", LABEL.classes), csv=form)
    assert Schema.from_dict(schema.to_dict()).csv == form
    codes = rows_of(tmp_path / "t.csv", schema).codes
    for j in range(3):
        first, second, third = codes.column(j).tolist()
        assert first != second == third  # a word is missing even where a list has it
    with pytest.raises(TableError, match="no number"):
        rows_of(tmp_path / "t.csv", Schema(columns, schema.label, csv=CsvFormat(";")))
    with pytest.raises(SchemaError, match="missing"):
        CsvFormat(missing="k.A.")  # type: ignore[arg-type]


@given(FORMATS)
def test_a_format_is_written_down_and_read_back_and_is_no_part_of_the_hash(form: CsvFormat) -> None:
    schema = Schema(COLUMNS, LABEL, csv=form)
    again = Schema.from_dict(schema.to_dict())
    assert again.csv == form
    assert again.hash == Schema(COLUMNS, LABEL).hash
    assert ("csv" in schema.to_dict()) is (form != PLAIN)


@pytest.mark.parametrize(
    ("text", "form", "number"),
    [
        ("1.234,5", CsvFormat(decimal=",", thousands="."), 1234.5),
        ("1 234,5", CsvFormat(decimal=",", thousands=" "), 1234.5),
        ("1\u202f234,5", CsvFormat(decimal=",", thousands=" "), 1234.5),
        ("1,234.56", CsvFormat(thousands=","), 1234.56),
        ("-,5", CsvFormat(decimal=","), -0.5),
        ("2,5e3", CsvFormat(decimal=","), 2500),
        ("17", CsvFormat(decimal=","), 17),
        ("", CsvFormat(decimal=","), None),
        ("NA", CsvFormat(decimal=","), None),
        # What is not certain is refused, because a guess is wrong by a thousand.
        ("1.234", CsvFormat(decimal=","), "thousands"),
        ("3.14", CsvFormat(decimal=",", thousands="."), "thousands"),
        ("1.5e3", CsvFormat(decimal=","), "thousands"),
        ("3,14", CsvFormat(thousands=","), "decimal comma"),
        ("12,34,567", CsvFormat(thousands=","), "no number"),
        ("12 %", CsvFormat(decimal=","), "no number"),
    ],
)
def test_numbers_by_format(tmp_path: Path, text: str, form: CsvFormat, number: Any) -> None:
    write(tmp_path / "t.csv", [["x", "y"], [text, "no"]], form)
    schema = Schema((Numeric("x", -9999, 9999),), Label("y", ("no", "yes")), csv=form)
    if isinstance(number, str):
        with pytest.raises(TableError, match=number):
            rows_of(tmp_path / "t.csv", schema)
        return
    expected = rows_of({"x": [math.nan if number is None else number], "y": ["no"]}, schema)
    assert rows_of(tmp_path / "t.csv", schema).codes.column(0) == expected.codes.column(0)


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_a_byte_order_mark_says_the_encoding(tmp_path: Path, mark: bytes, encoding: str) -> None:
    codec = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le"}.get(mark, "utf-16-be")
    (tmp_path / "t.csv").write_bytes(mark + "größe,y\n1,ja\n2,nein\n".encode(codec))
    columns, label = (Numeric("größe", 0, 9),), Label("y", ("ja", "nein"))
    schema = Schema(columns, label, csv=CsvFormat(encoding=encoding))
    assert rows_of(tmp_path / "t.csv", schema).n_rows == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"separator": ";;"}, "separator"),
        ({"separator": "x"}, "one sign"),
        ({"decimal": "'"}, "decimal"),
        ({"decimal": ",", "thousands": ","}, "correct one"),
        ({"encoding": "klingon"}, "cp1252"),
        ({"encoding": "base64"}, "cp1252"),
    ],
)
def test_a_format_that_cannot_be(values: dict[str, str], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        changed(PLAIN, **values)


def test_a_separator_is_seen_in_the_header(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a;"b,c";d\n1;2;3\n')
    assert sniffed(tmp_path / "t.csv", CsvFormat(decimal=",")) == CsvFormat(";", ",")


def test_estimators_read_paths_by_the_format_of_their_schema(tmp_path: Path) -> None:
    rows = [["x", "y"], *([f"{i},5", "ja" if i > 50 else "nein"] for i in range(100))]
    form = CsvFormat(";", ",")
    write(tmp_path / "t.csv", rows, form)
    schema = Schema((Numeric("x", 0, 100),), Label("y", ("nein", "ja")), csv=form)
    model = PrivateBoostingClassifier(schema, method="random-trees", n_trees=2)
    model.fit(tmp_path / "t.csv")
    by_array = model.predict_proba(np.arange(100).reshape(-1, 1) + 0.5)
    assert np.array_equal(model.predict_proba(tmp_path / "t.csv"), by_array)
