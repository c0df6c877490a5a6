"""Figures in documents are those of the result files: a changed number or a lost cell is an error.

Each test writes the text anew from `benchmarks/results` and looks for it on the page.
"""

from __future__ import annotations

import json
from statistics import mean
from typing import Any

import pytest

from tests.test_documents import ROOT

RESULTS = ROOT / "benchmarks" / "results"
SIMFL = {
    "SimFL, default": "simfl", "SimFL, the paper's algorithm": "simfl-paper",
    "TFL, one block a party": "tfl", "TFL, turns after every tree": "tfl-round-robin",
    "SOLO, first party": "solo-a", "SOLO, second party": "solo-b",
}  # fmt: skip

FIGURES = ("simfl", "simfl-paper", "tfl", "solo-a")


def result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def page(name: str) -> str:
    return " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())


def rows_of(name: str, first: str) -> list[list[str]]:
    """Lines of a page's tables whose first cell says this, without that cell."""
    lines = (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [found[1:] for found in cells if found[0] == first]


def short(share: float) -> str:
    """A share as tables write it: .832."""
    return f"{share:.3f}".removeprefix("0")


def test_the_time_of_preprocessing_is_the_measured_one() -> None:
    scaling = {one["rows"]: one for one in result("simfl_tables")["scaling"]}
    for rows in (250_000, 500_000, 1_000_000):
        one = scaling[rows]
        assert rows_of("simfl.md", f"{rows:,}") == [[
            f"{one['seconds_preprocessing']:.1f} s", f"{one['seconds_training']:.1f} s",
            f"{100 * one['share_of_most_collisions']:.1f} %",
        ]]  # fmt: skip
    seconds = scaling[1_000_000]["seconds_preprocessing"]
    assert f"compared in windows: {seconds:.1f} s of one core" in page("papers.md")


@pytest.mark.parametrize("name", sorted(SIMFL))
def test_errors_of_simfl_are_means_of_five_splits(name: str) -> None:
    cells = result("simfl_tables")["cells"]
    expected = []
    for dataset in ("a9a", "higgs"):
        for theta in (0.8, None):
            kind = {"dataset": dataset, "theta": theta, "parties": 2, "method": SIMFL[name]}
            found = [c["error"] for c in cells if kind.items() <= c.items() and c["trees"] == 500]
            assert len(found) == 5, f"{name}, {dataset}, theta = {theta}: {len(found)} fits"
            expected.append(f"{mean(found):.2f}")
    shown = rows_of("simfl.md", name)[0]
    assert [cell.split()[0] for cell in shown] == expected


def test_the_figures_of_simfl_are_drawn_from_the_same_cells() -> None:
    """By theta, by parties, and by parties at theta = 80 %; means where there are five splits."""
    cells = result("simfl_tables")["cells"]
    columns = [(theta, 2) for theta in (0.6, 0.7, 0.8, 0.9)]
    columns += [(theta, parties) for theta in (None, 0.8) for parties in (4, 6, 8, 10)]
    text = (ROOT / "docs" / "simfl.md").read_text(encoding="utf-8")
    lines = text.split("| | 60 % | 70 % |")[1].split("\n\n")[0].splitlines()[2:]
    ways = [(data, way) for data in ("a9a", "higgs") for way in FIGURES]
    assert len(lines) == len(ways)
    for line, (dataset, method) in zip(lines, ways, strict=True):
        shown = [cell.strip() for cell in line.strip("|").split("|")][1:]
        expected = []
        for theta, parties in columns:
            kind = {"dataset": dataset, "theta": theta, "parties": parties, "method": method}
            found = [c["error"] for c in cells if kind.items() <= c.items() and c["trees"] == 500]
            expected.append(f"{mean(found):.1f}")
        assert shown == expected, (dataset, method)


def _tree_cells(table: str, name: str) -> str:
    found = result("private_tree")["tables"][f"{table} {name}"]
    assert found["n"] == 5
    return f"{short(found['accuracy'])}, {short(found['auc'])}"


TREES: dict[str, str] = {
    "epsilon 0.3": "saving epsilon=0.3", "epsilon 1": "saving epsilon=1",
    "epsilon 3": "saving epsilon=3",
    "epsilon 1, five parties that trust each other": "saving, 5 parties epsilon=1",
    "epsilon 1 without saving": "plain epsilon=1",
    "diffprivlib 0.6.6, epsilon 1": "diffprivlib epsilon=1",
    "CART, not private, 16 of the same bins": "cart, 16 bins",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TREES))
def test_the_readable_tree_is_as_good_as_measured(name: str) -> None:
    cells = [_tree_cells(table, TREES[name]) for table in ("adult", "bank", "credit2")]
    assert rows_of("private-tree.md", name) == [cells]


def test_saving_beats_no_saving_as_the_page_says() -> None:
    panels, text = result("private_tree")["panels"], page("private-tree.md")
    (rounds,) = {one["rounds"] for one in panels.values()}
    gains = {
        (key, epsilon): one["tests"][f"saving above plain {epsilon}"]["gain"]
        for key, one in panels.items()
        for epsilon in ("2", "5")
    }
    assert min(gains.values()) > 0
    many = min(gain for (key, _), gain in gains.items() if " p=50 " in key)
    assert (
        f"five parties; {rounds} rounds, as in the report) saving is more accurate than no saving "
        f"in all {len(panels)} panels at epsilon 2 and 5, by {short(min(gains.values()))} or more, "
        f"and by {short(many)} or more with 50 columns"
    ) in text


def test_saving_beats_one_party_alone_as_the_page_says() -> None:
    panels = result("private_tree")["panels"]
    over = [
        one["tests"][f"saving above local {epsilon}"]["gain"]
        for key, one in panels.items()
        if "rho=0.9" in key and not key.startswith("n=100 ")
        for epsilon in ("2", "5", "10")
    ]
    told = f"from epsilon 2 on everywhere, by {short(min(over))} to {short(max(over))};"
    assert told in page("private-tree.md")


def test_one_informative_column_is_found_as_the_page_says() -> None:
    for key, one in result("private_tree")["one_column"].items():
        _, _, _, columns, n = key.replace("n=", "").split()
        for epsilon in ("1", "2", "5"):
            cells = [short(one["mean"][f"{way} {epsilon}"]) for way in ("saving", "plain")]
            shown = rows_of("private-tree.md", f"{int(n):,} rows, {columns} columns, {epsilon}")
            assert shown == [[*cells, short(one["mean"]["local"])]]
            assert one["mean"][f"saving {epsilon}"] >= one["mean"][f"plain {epsilon}"] - 0.005


def test_members_are_told_from_xgboost_and_from_private_models_no_better_than_promised() -> None:
    found = result("membership")["found"]
    for name, one in found.items():
        if name.endswith(("XGBoost", "off")):
            assert one["auc"] > 0.5 + 3 * one["auc_error"]
        else:
            assert one["right"] <= one["at_most_right"]
            assert one["auc"] < found[f"{name.split(',')[0]}, off"]["auc"]


def test_rows_are_told_from_histograms_and_not_from_what_private_methods_release() -> None:
    for name, one in result("reconstruction")["summary"].items():
        alone, error = one["points_of_seen_rows_alone"], one["standard_error_of_those"]
        if name.endswith(("NVFlare histograms", "Flower bagging")):
            assert alone > 3 * error
        elif not name.endswith(("XGBoost", "off")):
            assert abs(alone) < 2
