"""`hedgerow report`: the page of a model with its ledger and its evaluation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hedgerow import Ensemble
from hedgerow.inspection.report import report_html
from tests.cli.conftest import Call
from tests.inspection.test_report import evaluation_of


def test_the_command_writes_the_page(call: Call, train: Call, folder: Path) -> None:
    assert train("--epsilon", 8, "--delta", "1e-5", "--budget-epsilon", 10).exit_code == 0
    model = Ensemble.load(folder / "m.hedge")
    evaluation_of(model).save(folder / "e.json")
    with_it = call("report", "m.hedge", "--evaluation", "e.json", "--out", "r.html", "--json")
    stated = (folder / "r.html").read_text("utf-8")
    (folder / "e.json").rename(folder / "m.hedge.evaluation.json")
    made = call("report", "m.hedge", "--out", "r.html", "--json")
    assert (folder / "r.html").read_text("utf-8") == stated
    assert made.stdout == with_it.stdout
    assert made.exit_code == 0
    facts = json.loads(made.stdout)["facts"]
    assert facts["model"] == model.hash
    assert facts["account"]["budget"] == 10.0  # of the ledger beside the model
    assert facts["received"] > facts["sent"] > 0
    page = (folder / "r.html").read_text("utf-8")
    assert "out of a privacy budget of 10" in page
    assert "AUC" in page


def test_an_evaluation_of_another_model_is_left_out_or_refused(
    call: Call, train: Call, folder: Path
) -> None:
    assert train("--epsilon", 8, "--delta", "1e-5").exit_code == 0
    other = replace(evaluation_of(Ensemble.load(folder / "m.hedge")), model="0" * 64)
    other.save(folder / "m.hedge.evaluation.json")
    made = call("report", "m.hedge", "--out", "r.html")
    assert "is of another model and was left out" in made.stderr
    assert "Not measured" in (folder / "r.html").read_text("utf-8")
    named = call("report", "m.hedge", "--evaluation", "m.hedge.evaluation.json")
    assert "give the evaluation of this model" in str(named.exception)


def test_without_a_ledger_the_page_says_where_it_is(call: Call, train: Call, folder: Path) -> None:
    assert train("--epsilon", 8, "--delta", "1e-5").exit_code == 0
    (folder / "m.hedge.ledger").rename(folder / "elsewhere.ledger")
    assert call("report", "m.hedge", "--out", "r.html").exit_code == 0
    page = (folder / "r.html").read_text("utf-8")
    assert page == report_html(Ensemble.load(folder / "m.hedge"))
    assert "--ledger FILE" in page
    absent = call("report", "m.hedge", "--ledger", "no.ledger")
    assert "no ledger at no.ledger" in str(absent.exception)
