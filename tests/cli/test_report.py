"""`hedgerow report`: the page of a model with its ledger and its evaluation."""

from __future__ import annotations

import json
from pathlib import Path

from hedgerow import Ensemble
from hedgerow.report import report_html
from tests.cli.conftest import Call
from tests.test_report import evaluation_of


def test_the_command_writes_the_page(call: Call, train: Call, folder: Path) -> None:
    assert train("--epsilon", 8, "--delta", "1e-5", "--budget-epsilon", 10).exit_code == 0
    model = Ensemble.load(folder / "m.hedge")
    evaluation_of(model).save(folder / "e.json")
    made = call("report", "m.hedge", "--evaluation", "e.json", "--out", "r.html", "--json")
    assert made.exit_code == 0
    facts = json.loads(made.stdout)["facts"]
    assert facts["model"] == model.hash
    assert facts["account"]["budget"] == 10.0  # of the ledger beside the model
    assert facts["received"] > facts["sent"] > 0
    page = (folder / "r.html").read_text("utf-8")
    assert "of a budget of 10" in page
    assert "AUC" in page


def test_without_a_ledger_the_page_says_where_it_is(call: Call, train: Call, folder: Path) -> None:
    assert train("--epsilon", 8, "--delta", "1e-5").exit_code == 0
    (folder / "m.hedge.ledger").rename(folder / "elsewhere.ledger")
    assert call("report", "m.hedge", "--out", "r.html").exit_code == 0
    page = (folder / "r.html").read_text("utf-8")
    assert page == report_html(Ensemble.load(folder / "m.hedge"))
    assert "--ledger FILE" in page
    absent = call("report", "m.hedge", "--ledger", "no.ledger")
    assert "no ledger at no.ledger" in str(absent.exception)
