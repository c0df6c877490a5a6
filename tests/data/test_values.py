"""The rule by which values match: an equivalence, the same for a value and for its text."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.data.columns import unique_of
from hedgerow.data.encoding import id_of
from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema
from hedgerow.data.tables import rows_of
from hedgerow.data.values import (
    MISSING,
    MISSING_WORDS,
    UNKNOWN,
    distinct,
    is_missing,
    key_of,
    positions_of,
)
from hedgerow.errors import SchemaError, TableError

SAME: list[list[Any]] = [
    [True, "True", "true", "TRUE", 1, 1.0, "1", "1.0", " 1 ", "+1", "1e0", "1.", np.True_,
     np.int8(1), np.float16(1), Decimal("1.00"), b"1"],
    [False, "False", "FALSE", 0, 0.0, -0.0, "-0", "0.000", np.uint8(0)],
    [0.1, "0.1", ".1", "1e-1", np.float32(0.1), np.float16(0.1), Decimal("0.10")],
    [2**60 + 1, str(2**60 + 1), f"{2**60 + 1}.0", Decimal(2**60 + 1), np.int64(2**60 + 1)],
    [2**60 + 2, np.uint64(2**60 + 2)],
    [1e22, 10**22, "1e22", "1E+22"],
    [1e-30, "1e-30", "0." + "0" * 29 + "1"],
    [10**300, "1e300", 1e300],
    ["01"], ["1.5a"], ["yes"], ["Yes"], ["t"], ["é", "e\u0301", " é"], ["inf", np.inf], ["Inf"],
    ["2024-05-17", datetime.date(2024, 5, 17), datetime.datetime(2024, 5, 17),
     "2024-05-17T00:00:00", np.datetime64("2024-05-17"), np.datetime64("2024-05-17T00:00", "ns"),
     pd.Timestamp("2024-05-17")],
    ["2024-05-17 10:00", datetime.datetime(2024, 5, 17, 10), "2024-05-17 10:00:00.000000000"],
    ["2024-05-17 08:00Z", "2024-05-17 10:00:00+02:00", "2024-05-17 10:00:00.0+0200"],
    ["10:30:00", datetime.time(10, 30), "10:30:00.000000"], ["10:30:00.5", "10:30:00.500"],
    ["2024-13-17 10:00"], ["17.05.2024"],
]  # fmt: skip


def test_values_match_exactly_those_that_mean_the_same() -> None:
    keys = [{key_of(value) for value in group} for group in SAME]
    assert [len(group) for group in keys] == [1] * len(SAME), keys
    assert len(set.union(*keys)) == len(SAME)


def test_missing_is_missing_unless_the_list_has_its_word() -> None:
    marks = [None, np.nan, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("nan"), ""]
    assert positions_of([*marks, "  ", *MISSING_WORDS], ("a",)).tolist() == [MISSING] * (
        len(marks) + 1 + len(MISSING_WORDS)
    )
    assert positions_of(["NA", "None", None], ("NA", "None")).tolist() == [0, 1, MISSING]
    assert positions_of(["01", "b", 2, False, "none", "na"], (1,)).tolist() == [UNKNOWN] * 6


plain = st.text(max_size=6) | st.integers() | st.booleans() | st.floats() | st.decimals()
words = st.sampled_from(["True", "true", "1", "1.0", "01", "0", "NA", "nan", "1e3", "1000", "a"])
values = plain | words | st.none() | st.dates().map(str) | st.datetimes()


@given(plain | words)
def test_a_value_and_its_text_have_one_key(value: Any) -> None:
    if not is_missing(value):
        assert key_of(value) == key_of(str(value))
        assert key_of(f"\t{value} ") == key_of(value)


@given(st.lists(words | st.integers(-3, 3) | st.booleans() | plain, min_size=1, max_size=6))
def test_no_value_matches_two_categories_of_a_schema(listed: list[Any]) -> None:
    keys = [key_of(value) for value in listed]
    try:
        column = Categorical("x", tuple(listed))
    except SchemaError:
        wrong = (Decimal, type(None))
        assert (
            len(set(keys)) < len(keys)
            or None in keys
            or any(isinstance(v, wrong) or v in (np.inf, -np.inf) for v in listed)
        )
        return
    assert positions_of(column.categories, column.categories).tolist() == list(range(len(keys)))


@given(st.lists(values, min_size=1, max_size=8))
def test_a_column_of_anything_matches_value_by_value(column: list[Any]) -> None:
    listed = tuple(v for v in distinct(column) if isinstance(v, str | int | float) and v == v)[:3]
    listed = tuple(v for v in listed if v not in (np.inf, -np.inf)) or ("a",)
    expected = positions_of(column, listed).tolist()
    for carried in (
        column,
        np.array([*column, None], object)[:-1],
        pd.Series(column, dtype=object),
    ):
        unique, index = unique_of(carried, "x")
        found = np.append(positions_of(unique, listed), MISSING)[index]
        assert found.tolist() == expected


def test_persons_are_told_apart_by_the_same_rule() -> None:
    assert {id_of(v) for v in (17, 17.0, "17", " 17.0 ", Decimal("17.0"), np.int32(17))} == {"17"}
    assert len({id_of(v) for v in ("17", "017", "a17", "A17", 2**60, 2**60 + 1)}) == 6
    assert [id_of(v) for v in (None, np.nan, pd.NA, "", "NA", " nan ")] == [""] * 6


AMBIGUOUS = [(1, "True"), ("1", 1.0), ("true", "TRUE"), (True, "1"), (" a", "a"), ("1e3", 1000),
             ("é", "e\u0301"), (0, False), ("2024-05-17", "2024-05-17 00:00:00")]  # fmt: skip


@pytest.mark.parametrize("listed", AMBIGUOUS)
def test_a_list_with_one_value_in_two_spellings_is_refused(listed: tuple[Any, Any]) -> None:
    for make in (Categorical, Ordinal, Label):
        with pytest.raises(SchemaError, match=r"'x' lists .* and .* twice.*keep one"):
            make("x", listed)
    with pytest.raises(SchemaError, match="an empty field is a missing value"):
        Categorical("x", ("a", " "))


def test_schemas_take_scalars_and_arrays_of_numpy_and_pandas() -> None:
    plain = Schema((Categorical("c", (1, 2)), Numeric("n", 0, 2.5)), Label("y", (False, True)))
    arrays = Schema(
        (Categorical("c", pd.Index([1, 2])), Numeric("n", np.int64(0), np.float32(2.5))),  # type: ignore[arg-type]
        Label("y", np.array([False, True])),  # type: ignore[arg-type]
    )
    assert arrays == plain
    assert arrays.hash == plain.hash
    assert [type(c) for c in arrays.label.classes] == [bool, bool]
    assert Label("y", [np.str_("a"), np.float32(0.1)]).classes == ("a", 0.1)  # type: ignore[arg-type]
    for wrong in (None, np.nan, pd.NA, b"a", datetime.date(2024, 5, 17)):
        with pytest.raises(SchemaError, match="class"):
            Label("y", ("a", wrong))  # type: ignore[arg-type]


def test_words_of_truth_are_numbers_in_a_numeric_column() -> None:
    schema = Schema((Numeric("x", 0, 1),), Label("y", (0, 1)))
    texts = rows_of({"x": ["TRUE", "false", "0.5", "NA"], "y": [0] * 4}, schema)
    numbers = rows_of({"x": [True, 0.0, 0.5, None], "y": [0] * 4}, schema)
    assert texts.codes.column(0).tolist() == numbers.codes.column(0).tolist()
    with pytest.raises(TableError, match="1 rows hold text that is no number"):
        rows_of({"x": ["true", "yes"], "y": [0] * 2}, schema)


def test_rows_of_python_lists_keep_all_digits_beside_floats() -> None:
    large = (2**60 + 1, 2**60 + 2)
    schema = Schema((Categorical("c", large), Numeric("n", 0, 1)), Label("y", (0, 1)))
    for last in (1, 0.25, None, float("nan")):
        rows = rows_of([[large[1], 0.5], [large[0], last]], schema, [0, 1])
        assert rows.codes.column(0).tolist() == [1, 0]


def test_times_of_day_among_dates_are_kept_and_durations_refused() -> None:
    days = [datetime.date(2024, 5, 17), datetime.datetime(2024, 5, 17, 10)]
    schema = Schema((Categorical("x", ("2024-05-17", "2024-05-17 10:00")),), Label("y", (0, 1)))
    assert rows_of({"x": days, "y": [0, 1]}, schema).codes.column(0).tolist() == [0, 1]
    for column in ([datetime.timedelta(1)] * 2, pa.array([1, 2], pa.duration("s"))):
        with pytest.raises(TableError, match="column 'x' holds durations"):
            rows_of({"x": column, "y": [0, 1]}, schema)


# Objects of which two in one column once changed what the others were read as.
OBJECTS: list[Any] = [
    1, 2.5, True, "1", "x", None, np.float32(0.1), np.float16(0.1), 0.1, 2**53 + 1, 2**70, b"x",
    Decimal("1.50"), datetime.date(2024, 5, 17), datetime.datetime(2024, 5, 17),
    datetime.datetime(2024, 5, 17, 10, tzinfo=datetime.UTC), datetime.time(10, 30),
    np.datetime64("2024-05-17T10:00"), pd.Timestamp("2024-05-17"), pd.NA, float("nan"), "nan",
]  # fmt: skip
CARRIERS: dict[str, Any] = {
    "list": lambda values: {"c": values},
    "array": lambda values: {"c": np.array([*values, None], object)[:-1]},
    "series": lambda values: {"c": pd.Series(values, dtype=object)},
    "rows": lambda values: [[value] for value in values],
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("numeric", [False, True])
def test_what_a_row_is_read_as_does_not_depend_on_other_rows(carrier: str, numeric: bool) -> None:
    """A row that changed the codes of others would move sums by more than any sensitivity."""
    keys = dict.fromkeys(key for value in OBJECTS if (key := key_of(value)) not in (None, "nan"))
    listed = Categorical("c", (*keys, "nan"), other="category")
    column = Numeric("c", 0.1, 2.0) if numeric else listed  # 0.1 as float32 lies above the edge
    schema = Schema((column,), Label("label", classes=("a", "b")))

    def codes(values: list[Any]) -> list[int] | None:
        try:
            rows = rows_of(CARRIERS[carrier](values), schema, with_label=False)
        except TableError:
            return None  # refused as a whole
        return list(rows.codes.column(0).tolist())

    alone = {place: codes([value]) for place, value in enumerate(OBJECTS)}
    for i, one in enumerate(OBJECTS):
        for j, other in enumerate(OBJECTS):
            if (found := codes([one, other])) is not None:
                assert [found[:1], found[1:]] == [alone[i], alone[j]], (one, other)
