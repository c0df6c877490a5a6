"""`hedgerow export`: from a model file to a file for another library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hedgerow.export import FORMATS
from tests.cli.conftest import Call

SMALL = ("--method", "random-trees", "--trees", 3, "--depth", 2, "--epsilon", 5, "--delta", "1e-5")


def test_every_format_is_written_and_described(call: Call, train: Call, folder: Path) -> None:
    assert train(*SMALL).exit_code == 0
    for name in FORMATS:
        out = folder / f"model.{name}"
        done = call("export", "m.hedge", "--to", name, "--out", out.name)
        assert done.exit_code == 0, done.output
        assert (done.stdout, out.exists()) == ("", True)
        assert f"written to {out.name}." in done.stderr
        assert "'stage', 'site', 'code' are given as codes" in done.stderr
    words = ("export", "m.hedge", "--to", "treelite", "--out", "o", "--json")
    found = json.loads(call(*words).stdout)
    assert (found["format"], found["out"], found["covers"]) == ("treelite", "o", "released")
    assert found["statement"]["epsilon"] == 5
    assert found["trees"] >= 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "pickle", "--out", "x"), "known: xgboost, onnx, sklearn, treelite"),
        (("--to", "onnx", "--out", "nowhere/x"), "does not exist; make it. Nothing was spent."),
    ],
)
def test_mistakes_are_told(words: tuple[str, ...], message: str, call: Call, train: Call) -> None:
    assert train(*SMALL).exit_code == 0
    assert message in str(call("export", "m.hedge", *words).exception)
    assert "no model at" in str(
        call("export", "absent.hedge", "--to", "onnx", "--out", "x").exception
    )
