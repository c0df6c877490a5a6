"""Pages say what result files hold: a lost cell or a changed number is an error."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from tests.record import blocks, maddock
from tests.record.blocks import RESULTS, ROOT, names_in, written
from tests.record.pages import PAGES, PICTURES, pictures


def agrees(page: str) -> bool:
    """Whether a page can be written from the result files, and stands there so."""
    text = (ROOT / page).read_text(encoding="utf-8")
    try:
        return written(text, PAGES[page]()) == text
    except (KeyError, IndexError, StopIteration, ValueError):
        return False  # a cell that the page cannot do without is gone


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_those_of_the_result_files(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert names_in(text), f"{page} has no blocks"
    assert written(text, PAGES[page]()) == text, "run python -m tests.record"


def test_drawings_are_those_of_the_result_files_and_stand_on_a_page() -> None:
    drawn = pictures()
    assert {path.stem for path in PICTURES.glob("*.svg")} == set(drawn)
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    for name, one in drawn.items():
        path = PICTURES / f"{name}.svg"
        assert path.read_text(encoding="utf-8") == one, "run python -m tests.record"
        assert f"images/papers/{name}.svg" in text, f"no page shows {name}"


def test_every_block_belongs_to_a_page() -> None:
    """A block that nobody writes would go stale without a word."""
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks/README.md"]:
        names = names_in(path.read_text(encoding="utf-8"))
        page = path.relative_to(ROOT).as_posix()
        assert sorted(names) == sorted(PAGES[page]() if page in PAGES else {}), page


@pytest.mark.parametrize("page", PAGES)
def test_a_changed_number_in_a_block_is_noticed(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, block in PAGES[page]().items():
        digit = re.search(r"\d(?=\D*$)", block)
        assert digit, f"{page}, {name}: a block without a figure"
        at = digit.start()
        other = block[:at] + str((int(digit[0]) + 1) % 10) + block[at + 1 :]
        changed = text.replace(block, other)
        assert changed != text
        assert written(changed, PAGES[page]()) != changed


def _first_list(name: str) -> Callable[[Any], None]:
    return lambda document: document[name].pop(0)


def _first_key(name: str) -> Callable[[Any], None]:
    return lambda document: document[name].pop(next(iter(document[name])))


REMOVALS: dict[str, tuple[str, Callable[[Any], None], tuple[str, ...]]] = {
    "a cell of Maddock's tables": (
        "maddock_tables", _first_list("cells"), ("docs/papers/maddock2022.md", "docs/papers.md"),
    ),
    "a cell of an experiment": (
        "maddock_floor", _first_list("cells"), ("docs/papers/maddock2022.md",),
    ),
    "a figure of DP-XGBoost": (
        "dpxgboost_table", _first_list("results"),
        ("docs/papers/grislain2021.md", "docs/dp-xgboost.md"),
    ),
    "a panel of the readable tree": (
        "private_tree", _first_key("panels"), ("docs/papers/gubler2023.md", "docs/papers.md"),
    ),
    "a fit of FedXGBoost": (
        "fedxgboost_tables", _first_key("cells"), ("docs/papers/le2021.md", "docs/vertical.md"),
    ),
    "a fit of SimFL": (
        "simfl_tables", _first_list("cells"), ("docs/papers/li2020.md", "benchmarks/README.md"),
    ),
    "a row count of SimFL": ("simfl_tables", _first_list("scaling"), ("docs/simfl.md",)),
    "a size": ("scaling", lambda d: d["cells"].pop("100,000 x 28"), ("docs/performance.md",)),
}  # fmt: skip


@pytest.mark.parametrize("what", REMOVALS)
def test_a_cell_that_is_removed_is_noticed(
    what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, remove, pages = REMOVALS[what]
    for file in RESULTS.glob("*.json"):
        shutil.copy(file, tmp_path)
    document = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    remove(document)
    (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    assert all(agrees(page) for page in pages)
    monkeypatch.setattr(blocks, "RESULTS", tmp_path)
    for page in pages:
        assert not agrees(page), f"{page} does not notice"


@pytest.mark.parametrize("name", ["maddock_tables", *maddock.EXPERIMENTS])
def test_cells_of_maddock_follow_from_their_fits(name: str) -> None:
    """Means, counts of fits and deviations from every single AUC and the published file."""
    printed = {
        (number, row, dataset): (figure, deviation)
        for number in (3, 4, 5, 9, 10, 11, 12)
        for row, dataset, figure, deviation in maddock.printed(number)
    }
    found = maddock.cells(name)
    assert found
    for key, cell in found.items():
        assert cell["fits"] == len(cell["auc"])
        assert cell["mean"] == pytest.approx(mean(cell["auc"]), abs=2e-5)
        if key in printed:
            figure, deviation = printed[key]
            assert (cell["published"], cell["published_sd"]) == (figure, deviation)
            far = (mean(cell["auc"]) - figure) / deviation
            assert cell["in_sds"] == pytest.approx(far, abs=0.01)


def test_described_trends_hold_in_most_cells() -> None:
    lines = [line.strip("| ").split(" | ") for line in maddock.trends_block().splitlines()[2:]]
    assert len(lines) == 5
    for words, found in lines:
        held, asked = (int(n) for n in found.split(" of "))
        assert 2 * held > asked, words


def test_with_their_causes_put_back_at_most_one_cell_in_ten_is_outside() -> None:
    printed = [1 for number in (3, 4, 5, 9, 10, 11, 12) for _ in maddock.printed(number)]
    left = [cell for cell in maddock.outside() if maddock.first_cause(cell) is None]
    assert 10 * len(left) <= len(printed)


def test_experiments_change_what_their_words_say() -> None:
    chosen = {name: blocks.result(name)["chosen"] for name in maddock.EXPERIMENTS}
    assert chosen["maddock_floor"]["settings"] == [["floor_deviations", 3.33]]
    assert chosen["maddock_floor1"]["settings"] == [["floor_deviations", 1.0]]
    assert chosen["maddock_both"]["settings"] == [["floor_deviations", 3.33]]
    assert chosen["maddock_bounds"]["settings"] == []
    bounds = {name: one["bounds"] for name, one in chosen.items()}
    of_rows = {
        "maddock_bounds",
        "maddock_both",
        "maddock_scalar",
        "maddock_binned",
        "maddock_forest",
    }
    assert {n for n, b in bounds.items() if b == "data"} == {*of_rows, "maddock_authors"}
    variants = {name: one.get("variant", "") for name, one in chosen.items()}
    assert {name: one for name, one in variants.items() if one} == {
        "maddock_gains": "gains", "maddock_subtraction": "subtraction", "maddock_cuts": "cuts",
        "maddock_scalar": "cuts+scalar", "maddock_binned": "cuts+subtraction",
        "maddock_forest": "cuts+leaves+noise",
        "maddock_authors": "cuts+gains+leaves+noise+subtraction",
    }  # fmt: skip
    others = {name for name, one in chosen.items() if one["encoding"] != "published"}
    assert others == {"maddock_binned", "maddock_forest"}
    assert {chosen[name]["encoding"] for name in others} == {"binned"}
    assert blocks.result("maddock_tables")["chosen"]["bounds"] == "schema"
