"""Exact quantiles are for comparison, and every trace of a model made with them says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hedgerow import PrivateBoostingClassifier, local_federation
from hedgerow.cli.app import app
from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.errors import SettingsError
from hedgerow.methods.maddock.candidates.not_private import exact_cuts
from hedgerow.methods.registry import method_named, plan_for, with_exact_cuts
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import BoostingSettings, Privacy

NAME = "quantiles-not-private"
METHOD = "random-trees"
SCHEMA = Schema.from_bounds({"x": (0, 1000), "z": (-1, 1)}, classes=[0, 1], label="y")
CHOSEN = {"candidates": NAME, "n_trees": 4, "max_depth": 2, "n_bins": 8}
WORDS = "read from the rows without noise"


def table(n: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    x = rng.lognormal(0, 1.5, n)
    return {"x": x, "z": rng.uniform(-1, 1, n), "y": (x > 1).astype(int)}


def fitted(**parameters: Any) -> PrivateBoostingClassifier:
    columns = table()
    frame = np.column_stack([columns["x"], columns["z"]])
    model = PrivateBoostingClassifier(
        SCHEMA, epsilon=1.0, method=METHOD, random_state=3, settings=CHOSEN, **parameters
    )
    return model.fit(frame, columns["y"])


def test_exact_cuts_are_quantiles_of_the_pooled_rows() -> None:
    rows = rows_of(table(2000), SCHEMA)
    cuts = exact_cuts([rows], SCHEMA, 8)
    halves = [rows.take(np.arange(i, 2000, 2)) for i in (0, 1)]
    assert exact_cuts(halves, SCHEMA, 8) == cuts  # however the rows are spread
    for j, column in enumerate(cuts):
        edges = base_grid(SCHEMA)[j].edges[list(column)]
        shares = np.histogram(table(2000)["xz"[j]], [-np.inf, *edges, np.inf])[0] / 2000
        assert len(shares) == 8
        assert np.all(np.abs(shares - 1 / 8) < 0.06)  # cells of the grid are not finer


def test_a_fit_says_not_private_in_memory_and_in_its_file(tmp_path: Path) -> None:
    model = fitted()
    statement = model.statement_
    assert statement.guarantee == "not private"
    assert WORDS in statement.reason
    assert "NOT PRIVATE" in statement.words()
    model.model_.save(tmp_path / "m.hedge")
    read = Ensemble.load(tmp_path / "m.hedge")
    assert read == model.model_
    assert read.statement == statement
    assert read.record["settings"]["cuts"] == model.plan_.to_dict()["settings"]["cuts"]
    used = {
        float(t)
        for tree in read.trees
        for j, t in zip(tree.structure.feature, tree.structure.threshold, strict=True)
        if j == 0
    }
    assert used <= set(base_grid(SCHEMA)[0].edges[list(model.plan_.settings.cuts[0])].tolist())


def test_other_rows_make_another_plan_and_a_plan_survives_its_file(tmp_path: Path) -> None:
    plan = fitted().plan_
    plan.write(tmp_path / "plan.toml")
    read = Plan.read(tmp_path / "plan.toml")
    assert read == plan
    assert read.hash == plan.hash
    moved = replace(plan.settings, cuts=((1, 2), (3,)))
    assert replace(plan, settings=moved).hash != plan.hash


def test_parties_of_one_process_are_pooled() -> None:
    columns = table()
    frame = np.column_stack([columns["x"], columns["z"]])
    alone = fitted()
    several = PrivateBoostingClassifier(
        SCHEMA, epsilon=1.0, method=METHOD, random_state=3, settings=CHOSEN
    )
    several.fit(frame, columns["y"], parties=[f"p{i % 3}" for i in range(300)])
    assert several.plan_.settings.cuts == alone.plan_.settings.cuts
    assert several.statement_.guarantee == "not private"


def test_without_rows_there_is_no_plan() -> None:
    with pytest.raises(SettingsError, match=r"pooled rows of one process.*Nothing was asked"):
        plan_for(SCHEMA, Privacy(1.0, 1e-5), METHOD, settings=CHOSEN)
    rows = rows_of(table(), SCHEMA)
    with pytest.raises(SettingsError, match="pooled rows of one process"):
        PrivateBoostingClassifier(SCHEMA, method=METHOD, settings=CHOSEN).fit_federation(
            local_federation({"all": rows}, SCHEMA)
        )


def test_a_plan_that_lost_its_cuts_asks_nothing() -> None:
    plan = fitted().plan_
    bare = replace(plan, settings=replace(plan.settings, cuts=()))
    ledger = Ledger.in_memory()
    federation = local_federation({"all": rows_of(table(), SCHEMA)}, SCHEMA, ledger)
    with pytest.raises(SettingsError, match="Nothing was asked"):
        method_named(bare.method).grow(Gate(federation, bare, ledger))
    assert not ledger.lines(kind="charge")


@pytest.mark.parametrize("cuts", ["1,2", [1, 2], [[1.5]], [[-1]], [["a"]], 7])
def test_cuts_that_are_no_edges_are_refused(cuts: Any) -> None:
    with pytest.raises(SettingsError, match="list of edge numbers"):
        BoostingSettings(candidates=NAME, cuts=cuts)


def test_private_candidates_read_nothing() -> None:
    def never() -> Any:
        raise AssertionError("rows were read")

    given = {"candidates": "quantiles"}
    assert with_exact_cuts(SCHEMA, METHOD, given, never) == given


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=True)


def test_the_commands_carry_it(tmp_path: Path) -> None:
    import pandas

    schema, data, out = (str(tmp_path / name) for name in ("s.toml", "d.csv", "m.hedge"))
    SCHEMA.write(schema)
    pandas.DataFrame(table()).to_csv(data, index=False)
    options = ["--schema", schema, "--epsilon", "1", "--delta", "1e-5", "--trees", "4"]
    options += ["--method", METHOD, "--set", f"candidates={NAME}", "--bins", "8"]
    refused = run("plan", *options)
    assert refused.exit_code != 0
    assert "pooled rows" in str(refused.output) + str(refused.exception)
    command = ["train", *options, "--data", f"a={data}", "--out", out, "--json"]
    trained = run(*command)
    assert trained.exit_code == 0, trained.output
    facts = json.loads(trained.stdout)
    assert facts["statement"]["guarantee"] == "not private"
    assert WORDS in facts["statement"]["reason"]
    assert Plan.read(f"{out}.plan.toml").settings.cuts
    again = json.loads(run(*command).stdout)  # the same command resumes the same plan
    assert again["run"] == facts["run"]
    assert again["releases_asked"] == 0
    shown = run("statement", out)
    assert "NOT PRIVATE" in shown.output
