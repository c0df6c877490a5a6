"""Parties that hold different columns, as separate processes over TLS."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from hedgerow.deployment.limits_file import default_limits_text
from hedgerow.deployment.trial import Sites, hedgerow
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger
from tests.methods.fedxgboost.tables import OWNERS, schema_of, whole

PARTIES = ("bank", "phone", "shop")


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    folder = tmp_path_factory.mktemp("vertical")
    schema_of().write(folder / "schema.toml")
    table, tables = whole(400), {}
    for party in PARTIES:
        names = [name for name, owner in OWNERS.items() if owner == party] + ["id"]
        names += ["label"] if party == "bank" else []
        tables[party] = folder / f"{party}.parquet"
        parquet.write_table(pa.table({name: table[name] for name in names}), tables[party])
    limits = folder / "limits.toml"
    limits.write_text(default_limits_text().replace("# roles = ", "roles = "))
    further = ("--id", "id")
    made = Sites.make(folder, tables, folder / "schema.toml", limits=limits, further=further)
    with made as running:
        yield running


def run(words: list[str]) -> dict[str, Any]:
    done = subprocess.run(hedgerow(["vertical", *words, "--json"]), stdout=subprocess.PIPE)
    assert done.returncode == 0
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_sites_give_the_model_and_predictions_of_one_process(sites: Sites, tmp_path: Path) -> None:
    site = sites.by_name["coordinator"]
    folder = site.path.parent.parent
    common = ["--schema", str(folder / "schema.toml"), "--trees", "1", "--depth", "2"]
    common += ["--set", "key_bits=1024"]
    tables = [word for n in PARTIES for word in ("--data", f"{n}={folder / n}.parquet")]
    owners: list[str] = []
    for party in PARTIES:
        columns = ",".join(name for name, owner in OWNERS.items() if owner == party)
        owners += ["--owner", f"{party}={columns}"]
    engine = ["--site", str(site.path)]
    apart, here = str(tmp_path / "apart.hedge"), str(tmp_path / "here.hedge")
    facts = run(["train", *engine, *common, *owners, "--active", "bank", "--merge", apart])
    run(["train", *tables, "--id", "id", *common, "--out", str(tmp_path / "m"), "--merge", here])
    one, two = Ensemble.load(apart), Ensemble.load(here)
    # The common order of ids is drawn anew in every run; sums do not depend on it.
    assert one.trees == two.trees
    assert (one.statement.guarantee, one.statement.simulated) == ("none", False)
    done = run(["predict", facts["run"], *engine, "--schema", str(folder / "schema.toml")])
    out = tmp_path / "predicted.csv"
    bank = str(sites.by_name["bank"].path)
    run(["collect", bank, done["run"], "--out", str(out)])
    lines = out.read_text("utf-8").splitlines()
    found = {line.split(",")[0]: float(line.split(",")[2]) for line in lines[1:]}
    table = whole(400)
    expected = dict(zip(table["id"], one.predict(table)[:, 1].tolist(), strict=True))
    assert found == pytest.approx(expected, rel=1e-8)
    sites.stop()  # a running site has its ledger to itself
    for name in ("coordinator", *PARTIES):
        with Ledger.open(sites.by_name[name].ledger_path, create=False) as ledger:
            heads, kept = (ledger.lines(name, kind) for kind in ("head", "witness"))
            agreed = [line.values["agreement"] for line in ledger.lines(kind="disclose")]
        roles = [agreement["program"] for agreement in agreed]
        assert roles == ["fedxgboost-paillier-merged", "fedxgboost-predict"]
        if name in PARTIES:  # sessions are witnessed as runs are
            assert len(heads) == 2
            assert len(kept) == 2 * (len(PARTIES) - 1)
