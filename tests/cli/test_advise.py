"""`hedgerow advise`, and what `hedgerow plan` says about noise: nobody is asked."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hedgerow.errors import SettingsError
from tests.cli.conftest import Call

FACTS = ("--schema", "schema.toml", "--rows", "5000")
SMALL = ("--method", "random-trees", "--trees", "2", "--depth", "2", "--parties", "1")
SAMPLE = ("--sample", "a.csv", "--repeats", "1", "--epsilon", "0.1", "--epsilon", "50")


def test_public_facts_say_which_epsilon_gives_an_error(call: Call, folder: Path) -> None:
    words = ("advise", *FACTS, "--target-error", "0.2", "--out", "e.svg")
    told = json.loads(call(*words, "--json").stdout)
    assert told["curve"] is None
    assert 0.01 < told["epsilon_for_error"] < 100
    errors = [line["group_error"] for line in told["errors"]]
    assert errors == sorted(errors, reverse=True)
    assert {line["unit"] for line in told["errors"]} == {"log-odds"}
    shown = call(*words).stdout
    assert "gives a leaf weight a standard error of 0.2" in shown
    assert "AUC at epsilon 1, from 8 public tables with as much signal" in shown
    assert "Nobody was asked and nothing was spent" in shown
    ElementTree.parse(folder / "e.svg")
    assert not list(folder.glob("*.ledger"))


def test_a_sample_says_which_epsilon_reaches_a_target(call: Call, folder: Path) -> None:
    words = ("advise", *FACTS, *SMALL, *SAMPLE, "--target", "0.4", "--out", "c.svg")
    shown = call(*words)
    assert shown.exit_code == 0, shown.output
    assert "must be public or synthetic" in shown.stdout
    assert "The sample has 80 rows; noise was scaled" in shown.stdout
    assert "reaches auc = 0.4" in shown.stdout
    assert "AUC at epsilon 50, from your public sample (1 training" in shown.stdout
    ElementTree.parse(folder / "c.svg")
    told = json.loads(call(*words, "--json").stdout)
    assert [point["epsilon"] for point in told["curve"]["points"]] == [0.1, 50.0]
    assert [answer["epsilon"] for answer in told["answers"]] == [0.1, 50.0]
    assert not list(folder.glob("*.ledger"))
    beyond = call(*words[:-4], "--target", "0.9999").stdout
    assert "no epsilon that was tried reaches auc = 0.9999" in beyond


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--target", "0.8"), "need --sample"),
        (("--metric", "accuracy"), "need --sample"),
        (("--metric", "auc", "--method", "random-trees"), "for the method auto"),
        (("--epsilon", "0"), "above 0"),
        (("--out", "picture.pdf"), "ends in .svg"),
        ((*SMALL, "--sample", "a.csv", "--metric", "rmse"), "known: auc"),
        (("--method", "private-tree", "--out", "e.svg"), "nothing to draw"),
    ],
)
def test_questions_that_have_no_answer_are_refused(
    call: Call, more: tuple[str, ...], words: str
) -> None:
    error = call("advise", *FACTS, *more).exception
    assert isinstance(error, SettingsError)
    assert words in str(error)


def test_a_plan_says_what_its_noise_does(call: Call, folder: Path) -> None:
    plan = ("plan", "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6")
    assert "Give --rows N" in call(*plan).stdout
    assert json.loads(call(*plan, "--json").stdout)["expected"] is None
    shown = call(*plan, "--rows", "5000", "--picture", "p.svg", "--out", "plan.toml").stdout
    assert "error of a leaf weight, with 5,000 rows" in shown
    ElementTree.parse(folder / "p.svg")
    assert "5000" not in (folder / "plan.toml").read_text()
    told = json.loads(call(*plan, "--rows", "5000", "--json").stdout)
    assert 0 < told["expected"]["group"] < told["expected"]["row"]
    assert isinstance(call(*plan, "--picture", "p.svg").exception, SettingsError)


def test_a_plan_is_tried_out_on_a_sample(call: Call, folder: Path) -> None:
    plan = ("plan", "--schema", "schema.toml", "--epsilon", "5", "--delta", "1e-6", *SMALL)
    more = ("--rows", "5000", "--sample", "a.csv", "--repeats", "1", "--picture", "p.svg")
    done = call(*plan, *more)
    assert done.exit_code == 0, done.output
    assert "must be public or synthetic" in done.stdout
    assert "this plan" in (folder / "p.svg").read_text()
