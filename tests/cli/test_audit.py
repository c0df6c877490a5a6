"""`hedgerow audit`: made-up rows, a verdict as words, JSON, picture and exit code."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from hedgerow.audit import AuditResult
from hedgerow.errors import SettingsError
from hedgerow.testing import noise_off
from tests.cli.conftest import Call

PLAN = ("audit", "--schema", "schema.toml", "--epsilon", "4", "--delta", "1e-6")
SMALL = ("--method", "random-trees", "--trees", "4", "--canaries", "60", "--rows", "500")


def test_an_audit_says_what_was_promised_and_measured(call: Call, folder: Path) -> None:
    out = ("--out", "audit.json", "--picture", "audit.svg")
    told = call(*PLAN, *SMALL, *out)
    assert told.exit_code == 0, told.output
    assert "Nothing contradicts the promise" in told.stdout
    assert "60 canaries" in told.stdout
    found = AuditResult.load(folder / "audit.json")
    assert found.claimed_epsilon == 4.0
    assert found.holds
    ElementTree.parse(folder / "audit.svg")
    assert json.loads(call(*PLAN, *SMALL, "--json").stdout)["holds"] is True
    assert not list(folder.glob("*.ledger"))


def test_a_refuted_promise_is_an_exit_code(call: Call) -> None:
    with noise_off():
        told = call(*PLAN, *SMALL)
    assert told.exit_code == 1
    assert "VIOLATION" in told.stdout


def test_the_plan_and_the_evaluation_of_a_model_are_audited(
    call: Call, train: Call, folder: Path
) -> None:
    given = ("--epsilon", 8, "--delta", "1e-5", "--method", "random-trees", "--trees", 3)
    assert train(*given).exit_code == 0
    size = ("--canaries", "40", "--rows", "300")
    planned = call("audit", "--schema", "schema.toml", "--plan", "m.hedge.plan.toml",
                   "--parties", 3, *size, "--out", "m.hedge.audit.json")  # fmt: skip
    assert planned.exit_code == 0, planned.output
    assert "trust in the parties" in planned.stdout
    assert call("report", "m.hedge", "--out", "r.html").exit_code == 0
    assert "<h2>Audit</h2>" in (folder / "r.html").read_text("utf-8")
    measured = call("audit", "--evaluation", "m.hedge", "--epsilon", 1, *size, "--json")
    assert json.loads(measured.stdout)["method"] == "evaluation"


def test_the_black_box_looks_at_models_alone(call: Call) -> None:
    words = ("audit", "--schema", "schema.toml", "--epsilon", "1", "--method", "private-tree")
    told = call(*words, "--black-box", "--runs", 8, "--rows", 20)
    assert told.exit_code == 0, told.output
    assert "In 8 runs" in told.stdout


def test_what_is_not_audited_is_said(call: Call) -> None:
    for more, words in (
        (("--data", "a.csv"), "real rows are not audited"),
        (("--runs", "20"), "belongs to --black-box"),
        (("--plan", "none.toml"), "as it stands"),
        (("--picture", "audit.png", *SMALL), "ends in .svg"),
    ):
        told = call(*PLAN, *more)
        assert isinstance(told.exception, SettingsError)
        assert words in str(told.exception)
