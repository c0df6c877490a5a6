"""`hedgerow schema draft`: what it proposes, and how loudly it says that it read the rows."""

from __future__ import annotations

import datetime
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow import Ensemble, PrivateBoostingClassifier
from hedgerow.data.csv_format import CsvFormat, changed
from hedgerow.data.draft_columns import nice_bounds
from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema, Unit
from hedgerow.data.tables import rows_of
from hedgerow.errors import HedgerowError, PlanWarning, SchemaError, TableError
from hedgerow.inspection.report import report_html
from tests.cli.conftest import Call, write_csv
from tests.data.test_csv_format import write

N = 60
SAMPLE: dict[str, list[Any]] = {
    "age": [18 + i for i in range(N)],
    "dose": [0.13 + 0.0075 * i for i in range(N)],
    "stage": [1 + i % 4 for i in range(N)],
    "ward": [("east", "north", None)[i % 3] for i in range(N)],
    "smoker": [i % 2 == 0 for i in range(N)],
    "name": [f"person {i}" for i in range(N)],
    "born": [datetime.date(1950 + i, 1, 1) for i in range(N)],
    "empty": [None] * N,
    "sick": ["no", "yes"] * (N // 2),
}
EXPECTED = (
    Numeric("age", 15, 80, integer=True),
    Numeric("dose", 0.1, 0.6),
    Ordinal("stage", (1, 2, 3, 4), other="category"),
    Categorical("ward", ("east", "north"), other="category"),
)


def test_a_draft_from_parquet_fits_its_table(call: Call, folder: Path) -> None:
    pq.write_table(pa.table(SAMPLE), folder / "s.parquet")
    done = call("schema", "draft", "--data", "s.parquet", "--label", "sick", "--out", "d.toml")
    assert done.exit_code == 0
    schema = Schema.read(folder / "d.toml")
    assert schema.columns == (*EXPECTED, Categorical("smoker", (False, True)))
    assert schema.label == Label("sick", ("no", "yes"))
    assert rows_of(folder / "s.parquet", schema).n_rows == N
    for name in ("name", "born", "empty"):
        assert f"Left out: '{name}'" in done.stderr
        assert f"# Left out: '{name}'" in (folder / "d.toml").read_text()


def test_a_draft_from_csv_is_the_same_but_for_booleans(call: Call, folder: Path) -> None:
    write_csv(folder / "s.csv", SAMPLE)
    done = call("schema", "draft", "--data", "s.csv", "--label", "sick")
    assert done.exit_code == 0
    (folder / "d.toml").write_text(done.stdout)
    schema = Schema.read(folder / "d.toml")
    smoker = Categorical("smoker", ("False", "True"), other="category")
    assert schema.columns == (*EXPECTED, smoker)
    assert rows_of(folder / "s.csv", schema).n_rows == N


def test_one_value_in_two_spellings_is_drafted_once() -> None:
    table = pa.table({"x": ["True", "true", "FALSE", "False"] * 5, "y": ["1", "1.0", "a", "b"] * 5})
    schema = Schema.draft(table, "y")
    assert schema.columns == (Categorical("x", ("FALSE", "True"), other="category"),)
    assert schema.label.classes == ("1", "a", "b")
    assert rows_of(table, schema).target.tolist() == [0, 0, 1, 2] * 5


def test_the_warning_is_loud(call: Call, folder: Path) -> None:
    write_csv(folder / "s.csv", SAMPLE)
    done = call("schema", "draft", "--data", "s.csv", "--label", "sick", "--out", "d.toml")
    top = (folder / "d.toml").read_text().partition("format = 1")[0]
    comment = " ".join(line.removeprefix("# ") for line in top.splitlines())
    for text in (done.stderr, comment):
        assert "COMPUTED FROM THE ROWS of s.csv" in text
        assert "only with a public or synthetic sample" in text
        assert "replace every bound" in text
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("dose", Label("dose", (), 0.1, 0.6)),
        ("stage", Label("stage", (1, 2, 3, 4))),
        ("smoker", Label("smoker", (False, True))),
        ("ward", Label("ward", ("east", "north"))),
    ],
)
def test_labels(label: str, expected: Label) -> None:
    assert Schema.draft(pa.table(SAMPLE), label).label == expected


def test_a_schema_is_not_overwritten(call: Call, folder: Path) -> None:
    before = (folder / "schema.toml").read_text()
    words = ("schema", "draft", "--data", "a.csv", "--label", "sick", "--out", "schema.toml")
    assert isinstance(call(*words).exception, HedgerowError)
    assert (folder / "schema.toml").read_text() == before


@pytest.mark.parametrize(
    ("table", "label", "message"),
    [
        (SAMPLE, "ill", "no label column 'ill'"),
        ({"a": [1, 2], "sick": [None, "yes"]}, "sick", "has 1 distinct value"),
        ({"sick": ["no", "yes"]}, "sick", "no column besides"),
        ({"a": pa.array([], pa.int64()), "sick": pa.array([], pa.int64())}, "sick", "has 0 rows"),
    ],
)
def test_no_draft_can_be_made(table: dict[str, Any], label: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        Schema.draft(pa.table(table), label)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-17.3, 4e6), (1e-9, 3e-9), (999, 1001), (5, 5), (0, 0), (-3, -3)]
)
def test_bounds_lie_outside_and_not_far(low: float, high: float) -> None:
    lower, upper = nice_bounds([low, high])
    assert lower <= low <= high <= upper
    assert lower < upper
    assert upper - lower <= 2 * (high - low) or low == high


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("temperature", [f"3{i % 9},{i % 10}" for i in range(300)], "numbers with commas"),
        ("cost", [f"1,{i:03d},5{i % 10}" for i in range(300)], "numbers with commas"),
        ("patient", [str(4000 + i) for i in range(300)], "another whole number in every row"),
        ("Patient ID", [str(31 * i) for i in range(300)], "another whole number in every row"),
        ("customerId", [str(7919 * i) for i in range(300)], "another whole number in every row"),
        ("", [str(i) for i in range(300)], "a column without a name"),
        ("Unnamed: 0", [str(i) for i in range(300)], "row numbers"),
        ("flat", ["7"] * 300, "one value in all rows"),
        (
            "share",
            [f"{i % 50} %" for i in range(300)],
            "50 distinct other texts, as signs",
        ),
        (
            "level",
            ["<5" if i % 40 == 0 else str(i % 40) for i in range(300)],
            "numbers and one other text",
        ),
        ("account", [f"{i:06d}" for i in range(300)], "300 distinct codes with leading zeros"),
        ("stamp", [1.7e12 + 4 * (i % 100) for i in range(300)], "too close together"),
        ("story", [f"came with a pain in toe {i}, left" for i in range(300)], "300 distinct texts"),
        ("crp", [f"<{i}" if i < 9 else f"{i}.5" for i in range(300)], "9 distinct other texts"),
    ],
)
def test_a_column_that_needs_a_hand_is_left_out(name: str, values: list[str], reason: str) -> None:
    table = pa.table(
        {name: values, "dose": [i % 40 for i in range(300)], "sick": ["no", "yes"] * 150}
    )
    schema = Schema.draft(table, "sick")
    assert schema.names == ("dose",)
    _, note = schema.notes
    assert note.startswith("Left out: ")
    assert reason in note


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("paid", [7919 * i for i in range(300)]),  # no id, though it ends like one
        ("code", [("1", "2", "A")[i % 3] for i in range(300)]),
        ("amounts", [str(i * i) for i in range(300)]),
        ("postcode", [f"0{i % 9}100" for i in range(300)]),
        ("ward", ["Ear, Nose & Throat", "Intensive Care", "3, east"] * 100),
    ],
)
def test_a_column_that_only_looks_odd_stays(name: str, values: list[Any]) -> None:
    table = pa.table({name: values, "sick": ["no", "yes"] * 150})
    schema = Schema.draft(table, "sick")
    assert schema.names == (name,)
    assert len(schema.notes) == 1  # that rows were read


def test_rows_without_a_label_are_counted() -> None:
    table = pa.table({"dose": list(range(6)), "sick": ["no", "yes", "", "NA", None, "no"]})
    _, note = Schema.draft(table, "sick").notes
    assert "3 of 6 rows have no value of the label 'sick'" in note


def test_a_label_with_commas_is_refused() -> None:
    table = pa.table({"dose": [1, 2, 3] * 100, "cost": [f"{i},5" for i in range(300)]})
    with pytest.raises(TableError, match="label 'cost' holds numbers with commas"):
        Schema.draft(table, "cost")


def test_where_nothing_is_left_the_reasons_are_told() -> None:
    table = pa.table({"cost": [f"{i},5" for i in range(300)], "sick": ["no", "yes"] * 150})
    with pytest.raises(TableError, match=r"no column besides 'sick'.*'cost' holds numbers"):
        Schema.draft(table, "sick")


def test_ids_with_repeats_propose_the_unit_person() -> None:
    table = {
        "Patient ID": [f"p{i // 4}" for i in range(300)],
        "site_id": [i % 5 for i in range(300)],
        "dose": [i % 40 for i in range(300)],
        "sick": ["no", "yes"] * 150,
    }
    schema = Schema.draft(table, label="sick")
    assert schema.unit == Unit("person", "Patient ID", 3)
    assert schema.names == ("site_id", "dose")
    assert "a person with at most 3 rows" in schema.notes[1]
    assert rows_of(table, schema).persons is not None


EUROPE = [
    ("1.234,5", CsvFormat(";", ",", ".", "cp1252")),
    ("1234,5", CsvFormat(";", ",", "", "utf-16")),
    ("1 234,5", CsvFormat("\t", ",", " ")),
    ("1,234.5", CsvFormat(";", ".", ",")),
]


@pytest.mark.parametrize(("sign", "form"), EUROPE)
def test_a_draft_sees_how_a_file_is_written(
    call: Call, folder: Path, sign: str, form: CsvFormat
) -> None:
    """The decimal-comma file goes on to a check by what the draft wrote down."""
    rows = [["größe", "ort", "krank"]]
    for i in range(60):
        number = f"{1000 + 7 * i},{i % 10}" if form.decimal == "," else f"{1000 + 7 * i}.{i % 10}"
        between = f"{number[0]}{form.thousands}{number[1:]}"
        rows.append([between, ("Köln", "Ulm")[i % 2], ("nein", "ja")[i // 30]])
    write(folder / "e.csv", rows, form)
    given = () if form.encoding != "cp1252" else ("--encoding", "cp1252")
    words = ("schema", "draft", "--data", "e.csv", "--label", "krank", "--out", "e.toml", *given)
    done = call(*words)
    assert done.exit_code == 0
    schema = Schema.read(folder / "e.toml")
    marked = form.encoding == "utf-16"  # its byte order mark says so
    assert schema.csv == (changed(form, encoding="utf-8") if marked else form)
    assert schema.columns[0] == Numeric("größe", 1000, 1450)
    assert "The file is read with separator" in done.stderr
    assert schema.check(folder / "e.csv").findings == ()


def test_a_comma_that_may_be_two_things_is_left_to_a_person(call: Call, folder: Path) -> None:
    rows = [["cost", "dose", "sick"]]
    rows += [[f"{i % 9 + 1},{i:03d}", str(i % 30), ("no", "yes")[i % 2]] for i in range(300)]
    write(folder / "c.csv", rows, CsvFormat(";"))
    draft = ("schema", "draft", "--data", "c.csv", "--label", "sick")
    assert "'cost' holds numbers with commas; say what a comma is" in call(*draft).stderr
    call(*draft, "--thousands", ",", "--out", "c.toml")
    assert Schema.read(folder / "c.toml").columns[0] == Numeric("cost", 1000, 9500, integer=True)


def test_a_file_that_is_no_utf_8_is_taken_for_cp1252_aloud(call: Call, folder: Path) -> None:
    (folder / "l.csv").write_bytes("größe;y\n1;a\n2;b\n".encode("cp1252"))
    draft = ("schema", "draft", "--data", "l.csv", "--label", "y")
    done = call(*draft)
    assert "taken for cp1252" in done.stderr
    assert "give its encoding by --encoding" in done.stderr
    assert Schema.from_dict(tomllib.loads(done.stdout)).names == ("größe",)
    assert "taken for" not in call(*draft, "--encoding", "latin-1").stderr
    (folder / "l.csv").write_bytes(b"gr\x81\xdfe;y\n1;a\n2;b\n")  # no text in cp1252 either
    done = call(*draft)
    assert isinstance(done.exception, TableError)
    assert "--encoding" in str(done.exception)


def test_words_among_numbers_are_missing_values(call: Call, folder: Path) -> None:
    words = ["k.A.", "?", "NA", ""]
    weights = [words[i // 10] if i % 10 == 0 and i < 40 else f"{50 + i},{i % 7}" for i in range(99)]
    rows = [["gewicht", "station", "ort", "krank"]]
    for i, weight in enumerate(weights):
        ward = "ICU" if i % 30 == 0 else str(i % 30)  # a list of codes: no word among quantities
        rows.append([weight, ward, ("Ulm", "?")[i % 2], ("ja", "nein")[i % 2]])
    write(folder / "w.csv", rows, CsvFormat(";"))
    done = call("schema", "draft", "--data", "w.csv", "--label", "krank", "--out", "w.toml")
    told = " ".join(done.stderr.split())
    assert "because they stand among numbers: '?', 'k.A.'" in told
    schema = Schema.read(folder / "w.toml")
    assert schema.csv == CsvFormat(";", ",", missing=("?", "k.A."))
    assert schema.columns[0] == Numeric("gewicht", 50, 150)
    assert isinstance(schema.columns[1], Categorical)
    assert "ICU" in schema.columns[1].categories
    assert schema.names == ("gewicht", "station")  # of the places one is left, which tells nothing
    assert schema.label.classes == ("nein", "ja")  # effects are about whoever is ill
    codes = rows_of(folder / "w.csv", schema).codes.column(0)
    assert (codes[[0, 10, 20, 30]] == codes[0]).all()
    assert (codes == codes[0]).sum() == 4


def test_ids_left_out_with_repeats_say_how_persons_are_protected() -> None:
    table = {
        "Fallakte": [f"{i // 2:05d}" for i in range(900)],
        "PLZ": [f"0{i + 1000}" for i in range(900)],
        "dose": [i % 40 for i in range(900)],
        "sick": ["no", "yes"] * 450,
    }
    schema = Schema.draft(table, label="sick")
    assert schema.names == ("dose",)
    assert "450 distinct codes with leading zeros" in schema.notes[1]
    assert "name it under [unit]" in schema.notes[1]
    assert schema.notes[2].endswith("like an id or a post code.")


@pytest.mark.parametrize(
    "name", ["Patient ID", "patient", "Patienten-Nr", "KundenNummer", "customer_no", "paciente"]
)
def test_columns_of_persons_are_known_by_their_names(name: str) -> None:
    table = {
        name: [f"{i // 2:05d}" for i in range(900)],
        "dose": [i % 40 for i in range(900)],
        "sick": ["no", "yes"] * 450,
    }
    assert Schema.draft(table, label="sick").unit == Unit("person", name, 2)


def drafted_schema() -> Schema:
    return Schema.draft({k: SAMPLE[k] for k in ("age", "dose", "sick")}, label="sick")


def test_the_mark_is_a_part_of_the_hash_and_stays() -> None:
    draft = drafted_schema()
    confirmed = draft.confirm(by="A. Meyer")
    assert draft.drafted
    assert confirmed.drafted
    unmarked = Schema(draft.columns, draft.label, name=draft.name)
    assert len({draft.hash, confirmed.hash, unmarked.hash}) == 3
    assert Schema.from_dict(confirmed.to_dict()) == confirmed
    assert "confirmed by A. Meyer; that choice is not covered by epsilon" in confirmed.origin
    assert "confirmed by A. Meyer" in confirmed._repr_html_()
    with pytest.raises(SchemaError, match="a draft is confirmed"):
        unmarked.confirm(by="A. Meyer")
    with pytest.raises(SchemaError, match="confirmed_by is for drafts"):
        Schema(draft.columns, draft.label, confirmed_by="A. Meyer")


def test_fit_statement_and_report_repeat_what_a_draft_means() -> None:
    table = {k: SAMPLE[k] for k in ("age", "dose", "sick")}
    for schema in (drafted_schema(), drafted_schema().confirm(by="A. Meyer")):
        model = PrivateBoostingClassifier(schema, method="random-trees", n_trees=2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(table)
        assert [w.category for w in caught] == [PlanWarning] * (not schema.confirmed_by)
        text = "drafted from rows, confirmed by " + (schema.confirmed_by or "nobody")
        for told in (model.statement_.words(), report_html(model.model_)):
            assert text in told
            assert "not covered by epsilon" in told
        assert "Left out" not in repr(Ensemble.from_bytes(model.model_.to_bytes()).schema.notes)


def test_confirming_adds_one_line_and_plan_and_train_repeat_it(call: Call, folder: Path) -> None:
    write_csv(folder / "s.csv", SAMPLE)
    call("schema", "draft", "--data", "s.csv", "--label", "sick", "--out", "d.toml")
    plan = ("plan", "--schema", "d.toml", "--epsilon", "1", "--delta", "1e-6")
    assert "drafted from rows, confirmed by nobody" in " ".join(call(*plan).stderr.split())
    before = (folder / "d.toml").read_text()
    assert call("schema", "confirm", "d.toml", "--by", 'Ö. "M" Meyer').exit_code == 0
    after = (folder / "d.toml").read_text()
    added = 'confirmed_by = "Ö. \\"M\\" Meyer"\n'
    assert after.replace(added, "") == before != after
    train = ("train", "--schema", "d.toml", "--data", "s.csv", "--out", "d.hedge", *plan[3:])
    for words in (plan, (*train, "--method", "random-trees", "--trees", "2")):
        done = call(*words)
        assert 'confirmed by Ö. "M" Meyer; that choice is not' in " ".join(done.stderr.split())
    assert isinstance(call("schema", "confirm", "d.toml", "--by", "B").exception, SchemaError)
    assert isinstance(call("schema", "confirm", "schema.toml", "--by", "B").exception, SchemaError)
