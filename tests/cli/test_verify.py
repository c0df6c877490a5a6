"""`hedgerow verify`: words and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from hedgerow.errors import VerificationFailed
from tests.cli.conftest import Call

SMALL = (
    "--method", "random-trees", "--trees", "2", "--depth", "2", "--epsilon", "1", "--delta", "1e-5",
)  # fmt: skip
HERE = ("m.hedge", "--ledger", "m.hedge.ledger", "--schema", "schema.toml")


def test_a_trained_model_is_verified_and_a_changed_one_is_not(train: Call, call: Call) -> None:
    assert train(*SMALL).exit_code == 0
    said = call("verify", *HERE, "--write-manifest", "noted.json").stdout
    assert "Everything holds." in said
    assert "It cannot show" in said
    found = json.loads(call("verify", *HERE, "--manifest", "noted.json", "--json").stdout)
    assert found["complete"]
    assert {one["check"] for one in found["findings"]} >= {"manifest", "model", "sums"}
    model = Path("m.hedge")
    model.write_bytes(model.read_bytes()[:-1] + b"x")
    failed = call("verify", *HERE, "--manifest", "noted.json").exception
    assert isinstance(failed, VerificationFailed)
    assert failed.exit_code == 1
    assert "m.hedge is not the file that the manifest noted.json noted" in str(failed)


def test_a_ledger_that_is_not_there_is_named(train: Call, call: Call) -> None:
    assert train(*SMALL).exit_code == 0
    failed = call("verify", "m.hedge", "--ledger", "nothing.ledger").exception
    assert isinstance(failed, VerificationFailed)
    assert "nothing.ledger" in str(failed)
