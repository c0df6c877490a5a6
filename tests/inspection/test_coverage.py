"""What explanations say of their bands is what was measured for that method."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from hedgerow.inspection.explain.coverage import Coverage, coverage_of

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "bands.json"
MEASURED = json.loads(RESULTS.read_text("utf-8"))["coverage"]


@pytest.mark.parametrize("name", sorted({one["method"] for one in MEASURED}))
def test_the_figures_of_a_method_are_those_of_the_result_file(name: str) -> None:
    own = [one for one in MEASURED if one["method"] == name]
    told = json.loads(
        files("hedgerow.inspection.explain").joinpath("coverage.json").read_text("utf-8")
    )[name]
    for key, of in (("cells", "by_cell"), ("rows", "by_weight"), ("epsilon", "epsilon")):
        assert told[key] == [min(one[of] for one in own), max(one[of] for one in own)]
    assert told["worst_column"] == min(one["worst_column"] for one in own)
    assert told["tables"] == len({one["table"] for one in own})


def test_no_method_has_figures_that_nobody_measured() -> None:
    told = json.loads(
        files("hedgerow.inspection.explain").joinpath("coverage.json").read_text("utf-8")
    )
    assert set(told) == {one["method"] for one in MEASURED}


def test_one_round_and_several_are_told_apart() -> None:
    once = coverage_of({"method": "dp-ebm-newton", "settings": {"batch_fraction": 1.0}})
    several = coverage_of({"method": "dp-ebm-newton", "settings": {"batch_fraction": 0.0}})
    assert once is not None
    assert several is not None
    assert once != several
    assert coverage_of({"method": "dp-rf", "settings": {"batch_fraction": 1.0}}) is not None


@pytest.mark.parametrize("record", [{}, {"method": "fedxgboost"}, {"method": ["auto"]}])
def test_a_method_that_was_not_measured_has_none(record: dict[str, object]) -> None:
    assert coverage_of(record) is None


def test_a_range_of_one_figure_is_one_figure() -> None:
    one = Coverage((0.951, 0.954), (0.9, 0.97), 0.5, (1.0, 1.0), 1)
    assert one.in_words == "95 % of cells"
    assert "(90 to 97 % by rows; 50 % in the column that was covered worst)" in one.sentence
