"""Model files from somebody else: reports, explanations and commands only show what is in them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hedgerow.cli.app import app
from hedgerow.data.schema import Categorical, Label, Numeric, Schema
from hedgerow.errors import FormatError, HedgerowError
from hedgerow.evaluation.result import Confusion, Evaluation, Findings, Measure
from hedgerow.inspection.explain import explain
from hedgerow.inspection.report import report_html
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Disclosure, Statement
from hedgerow.model.tree import Structure, Tree, member_words, single_leaf

ESCAPE = chr(27) + "]0;owned" + chr(7) + chr(27) + "[2J"
MARKUP = "<evil a=\"b\" onload='x'>&amp;</title></style></svg>[/bold][link=http://evil]"
EVIL = MARKUP + ESCAPE
NAME = MARKUP + chr(0x9B) + "2J"  # names have no control characters below 32; this is one above


def _schema(words: str) -> Schema:
    name = NAME if words else ""
    columns = (
        Numeric(f"n{name}", 0, 10),
        Categorical(f"c{name}", (f"x{words}", f"y{words}")),
    )
    return Schema(columns, Label(f"l{name}", (f"no{words}", f"yes{words}")), name=f"s{words}")


def _stump(column: int, schema: Schema, threshold: float = 5.0) -> Tree:
    words = member_words(schema.columns[column])
    structure = Structure(
        np.array([column, -1, -1], np.int32), np.array([threshold, 0, 0], np.float32),
        np.zeros(3, np.uint8), np.array([1, -1, -1], np.int32), np.array([2, -1, -1], np.int32),
        np.array([0, words, words, words], np.int32), np.ones(words, np.uint64),
    )  # fmt: skip
    values = np.array([[-1.0], [1.0]], np.float32)
    return Tree(structure, values, values * 0 + 0.1, np.ones(2, np.float32))


def _says(words: str) -> Statement:
    return Statement(
        "none", 1.0, 1e-6, f"t{words}", f"a{words}", unit=f"u{words}", neighbours=f"n{words}",
        parties=(f"p{words}",), scope=f"s{words}", reason=f"r{words}", builds_on=f"b{words}",
        disclosures=(Disclosure(*[f"d{words}"] * 4),),
    )  # fmt: skip


def _record(words: str) -> dict[str, Any]:
    asked = {"name": f"q{words}", "kind": f"k{words}", "numbers": 3, "mu": 0.5, "epsilon": 0.0}
    edit = {
        "tree": 0, "output": 0, "direction": 1, "column": f"n{NAME}", "cells": [f"z{words}"],
        "reason": f"why{words}", "from": f"f{words}",
    }  # fmt: skip
    return {
        "method": f"m{words}", "run": f"run{words}", "plan": f"plan{words}",
        "settings": {f"set{words}": f"v{words}"}, "asked": [{**asked, "repeat": 1}],
        "edits": [edit],
    }  # fmt: skip


def _model(words: str = EVIL) -> Ensemble:
    schema = _schema(words)
    trees = (single_leaf(np.zeros(1)), _stump(0, schema), _stump(1, schema))
    return Ensemble(trees, schema, _says(words), record=_record(words))


class _Names(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.meta: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "meta":
            self.meta.append(dict(attrs))


def _parsed(page: str) -> _Names:
    found = _Names()
    found.feed(page)
    found.close()
    return found


def test_no_text_of_a_model_becomes_part_of_a_page() -> None:
    model = _model()
    findings = Findings(
        (Measure(f"m{EVIL}", 0.5, 0.1, 0.1, 0.0, 1.0),),
        Confusion((f"a{EVIL}", f"b{EVIL}"), ((1.0, 2.0), (3.0, 4.0)), 1.0),
        notes=(f"note{EVIL}",),
    )
    told = Evaluation(model.hash, "binary", f"l{EVIL}", f"run{EVIL}", findings, _says(EVIL))
    page = report_html(model, evaluation=told)
    found, plain = _parsed(page), _parsed(report_html(_model("")))
    assert "evil" not in found.tags
    assert found.attributes <= plain.attributes | {"role"}
    assert not any(name.startswith("on") for name in found.attributes)
    assert "<evil" not in page
    assert not set(page) & {chr(7), chr(27), chr(0x9B)}


def test_a_page_forbids_whatever_it_does_not_hold_itself() -> None:
    """Should a text ever get through, a browser loads nothing and runs nothing for it."""
    rules = [m["content"] for m in _parsed(report_html(_model(""))).meta if "http-equiv" in m]
    assert rules == ["default-src 'none'; style-src 'unsafe-inline'"]


@pytest.mark.parametrize(
    "words",
    [
        ("statement",), ("explain",), ("explain", "--column", f"n{NAME}"),
        ("explain", "--column", f"c{NAME}"), ("report", "--out", "r.html"),
        ("export", "--to", "xgboost", "--out", "x.json"),
    ],
)  # fmt: skip
def test_no_text_of_a_model_speaks_to_the_terminal(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _model().save("m.hedge")
    result = CliRunner().invoke(app, [words[0], "m.hedge", *words[1:]], catch_exceptions=False)
    assert result.exit_code == 0
    assert not set(result.output) & {chr(7), chr(27), chr(0x9B)}
    if words[0] in ("explain", "statement"):
        assert "[link=" in result.output  # shown as it is, not followed


@pytest.mark.parametrize(
    "record",
    [
        {"asked": 5}, {"asked": [{"name": "x"}]}, {"edits": 7}, {"edits": [{"tree": "x"}]},
        {"edits": [{**_record("")["edits"][0], "reason": ["x"], "cells": 4}]},
        {"edits": [{k: v for k, v in _record("")["edits"][0].items() if k != "reason"}]},
        {"settings": {"monotone": 5}}, {"settings": {"monotone": "{"}},
        {"settings": {"monotone": "[1]"}}, {"settings": {"monotone": '{"n": "up"}'}},
        {"tree": {}}, {"tree": {"counts": [[1]], "shares": [], "deviations": 1}},
        {"method": {"a": 1}}, {"run": 10**400},
    ],
)  # fmt: skip
def test_a_record_that_is_none_is_refused_or_passed_over(record: dict[str, Any]) -> None:
    model = replace(_model(""), record=record)
    if "tree" in record:
        model = replace(model, trees=model.trees[1:2])
    with suppress(FormatError):
        report_html(model)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "1"}, {"epsilon": True}, {"delta": None}, {"releases": 1.5}, {"mu": [1]},
        {"reason": 5}, {"unit": {}}, {"simulated": 1}, {"guarantee": "sure"}, {"epsilon": -1.0},
        {"parties": "abc"}, {"disclosures": [{"seen_by": 1, "about": "", "what": ""}]},
        {"edits": -1},
    ],
)  # fmt: skip
def test_statements_of_other_types_are_refused(changes: dict[str, Any]) -> None:
    good = _says("").to_dict()
    assert Statement.from_dict(good) == _says("")
    with pytest.raises(FormatError, match="statement"):
        Statement.from_dict({**good, **changes})


def test_explanations_do_not_take_memory_that_no_file_has() -> None:
    """Two long lists in one tree: their map would have 4,225,000,000 values, twice."""
    columns = tuple(Categorical(name, tuple(range(65_000))) for name in ("a", "b"))
    schema = Schema(columns, Label("y", (0, 1)))
    words = member_words(columns[0])
    both = Structure(
        np.array([0, 1, -1, -1, -1], np.int32), np.zeros(5, np.float32), np.zeros(5, np.uint8),
        np.array([1, 3, -1, -1, -1], np.int32), np.array([2, 4, -1, -1, -1], np.int32),
        np.array([0, words, *[2 * words] * 4], np.int32), np.ones(2 * words, np.uint64),
    )  # fmt: skip
    tree = Tree(both, np.ones((3, 1), np.float32))
    with pytest.raises(HedgerowError, match=r"4,225,\d+,\d+ values.*Nothing was"):
        explain(Ensemble((tree,), schema, _says("")))
