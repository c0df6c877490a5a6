"""`hedgerow explain`: tables, pictures and JSON of one model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hedgerow.inspection.explain.coverage import coverage_of
from tests.cli.conftest import Call


def test_from_a_model_to_shapes(call: Call, train: Call, folder: Path) -> None:
    assert train("--epsilon", 8, "--delta", "1e-5", "--json").exit_code == 0
    shown = call("explain", "m.hedge").stdout
    assert "What moves the log-odds of sick = yes" in shown
    assert "age" in shown
    measured = coverage_of({"method": "auto"})
    assert measured is not None
    assert f"held the effect of training without noise in {measured.in_words}" in shown
    of_site = call("explain", "m.hedge", "--column", "site")
    assert of_site.exit_code == 0
    assert "band" in of_site.stdout
    assert "95 %" not in of_site.stdout
    assert "any other" in of_site.stdout
    assert "●" in of_site.stdout
    found = json.loads(call("explain", "m.hedge", "--json").stdout)
    assert [shape["column"] for shape in found["shapes"]] == [
        "age",
        "dose",
        "stage",
        "site",
        "code",
    ]
    one = json.loads(call("explain", "m.hedge", "--column", "age", "--json").stdout)
    assert one == found["shapes"][0]
    drawn = call("explain", "m.hedge", "--column", "age", "--svg", "age.svg")
    assert drawn.exit_code == 0
    assert "Effect of age" in "".join(ElementTree.parse(folder / "age.svg").getroot().itertext())


def test_pairs_and_what_is_not_there(call: Call, train: Call) -> None:
    trees = ("--method", "random-trees", "--trees", 6, "--set", "features_per_tree=2")
    assert train(*trees, "--epsilon", 8, "--delta", "1e-5", "--json").exit_code == 0
    pair = json.loads(call("explain", "m.hedge", "--json").stdout)["pairs"][0]
    named = [word for name in pair["columns"] for word in ("--column", name)]
    assert "beyond their shapes" in call("explain", "m.hedge", *named).stdout
    assert json.loads(call("explain", "m.hedge", *named, "--json").stdout) == pair
    absent = call("explain", "m.hedge", "--column", "height")
    assert "no column 'height'; it has age, dose" in str(absent.exception)
    unnamed = call("explain", "m.hedge", "--svg", "x.svg")
    assert "name one --column" in str(unnamed.exception)


def test_a_large_pair_is_shown_by_its_largest_cells(
    call: Call, train: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ("--method", "random-trees", "--trees", 12, "--set", "features_per_tree=2")
    assert train("--epsilon", 50, "--delta", "1e-5", *settings, "--json").exit_code == 0
    pair = json.loads(call("explain", "m.hedge", "--json").stdout)["pairs"][0]
    named = [word for name in pair["columns"] for word in ("--column", name)]
    monkeypatch.setenv("COLUMNS", "40")
    shown = call("explain", "m.hedge", *named).stdout
    assert "largest of" in " ".join(shown.split())
    effects = [abs(float(x)) for x in re.findall(r"([+-]\d\.\d\d) ± \d", shown)]
    assert effects == sorted(effects, reverse=True)
    assert len(effects) > 3
