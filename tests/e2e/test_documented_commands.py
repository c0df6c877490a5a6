"""Every command that README and the pages about federations write is run by a test."""

from __future__ import annotations

import grp
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.runtimes import NoRuntime
from pyarrow import csv as arrow_csv
from pyarrow import parquet
from pyarrow import table as arrow_table

from hedgerow.deployment.warming import PARTY_METHODS, warm
from hedgerow.engines.switchboard import CoordinatorEnd, Switchboard, listen
from hedgerow.model.ensemble import Ensemble
from tests.e2e import test_people, test_ten_commands
from tests.e2e.documented import Machines, commands_of, documented, same
from tests.e2e.test_sites import SCHEMA, table
from tests.engines.relays.stock_flower import LINES as FLOWER
from tests.slow import slow

PARTIES = ("hospital-a", "hospital-b", "hospital-c")
INIT = "hedgerow coordinator init COORDINATOR"
START = (
    "hedgerow party start PARTY --roster roster.toml --data rows.parquet --schema schema.toml "
    "--relay-socket /run/hedgerow/PARTY.sock --relay-group flare"
)
TRAIN = (
    "hedgerow train --engine relay:/run/hedgerow/train.sock --site COORDINATOR "
    "--schema schema.toml --epsilon 1 --delta 1e-6 --out model.hedge"
)
TRIALS = (
    "hedgerow federation try --schema schema.toml --data 'parts/*.csv' --epsilon 1 --delta 1e-6",
    "hedgerow federation try --schema schema.toml --data north.csv --data river.csv "
    "--data summit.csv --epsilon 1 --delta 1e-6",
)
RELAYED = {INIT, START, TRAIN}


def test_no_page_has_a_command_that_no_test_runs() -> None:
    run = {*test_ten_commands.COMMANDS, *test_people.LINES, *RELAYED, *TRIALS, *FLOWER}
    assert documented() - run == set(), "documented, and run by no test"
    assert run - documented() == set(), "run as documented, and on no page"


def test_commands_are_found_in_fences_tables_and_text() -> None:
    page = "`hedgerow party\nstatus SITE` | `hedgerow vertical` |\n```text\nA=1 flwr run a b-c\n```"
    assert commands_of(page) == ["flwr run a b-c", "hedgerow party status PARTY"]
    assert same("hedgerow train --site SITE") == "hedgerow train --site COORDINATOR"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    warm(PARTY_METHODS, ("binary",))
    made = Machines(tmp_path, ("coordinator", *PARTIES))
    try:
        yield made
    finally:
        made.close()


@slow
def test_a_relay_is_set_up_by_the_documented_commands(machines: Machines) -> None:
    """The runtime in between is left out: test_stock.py has NVFlare and Flower."""
    group = grp.getgrgid(os.getgid()).gr_name

    def meant(line: str) -> str:
        return line.replace("/run/hedgerow", str(machines.folder)).replace("flare", group)

    machines.run("coordinator", INIT)
    for seed, name in enumerate(PARTIES):
        machines.run(name, test_ten_commands.INIT_PARTY)
        machines.send(machines.at(name) / name / f"{name}.card.toml", "coordinator")
        SCHEMA.write(machines.at(name) / "schema.toml")
        parquet.write_table(table(seed), machines.at(name) / "rows.parquet")
    SCHEMA.write(machines.at("coordinator") / "schema.toml")
    machines.run("coordinator", test_ten_commands.ROSTER, "--yes")
    for name in PARTIES:
        machines.send(machines.at("coordinator") / "roster.toml", name)
        machines.start(name, meant(START), "--yes")
    sockets = {name: machines.folder / f"{name}.sock" for name in PARTIES}
    end = CoordinatorEnd(str(machines.folder / "train.sock"), group)
    with Switchboard(NoRuntime(sockets)) as board, listen(end, board):
        machines.run("coordinator", meant(TRAIN), "--wait-seconds", "120")
    model = Ensemble.load(machines.at("coordinator") / "model.hedge")
    assert (model.statement.parties, model.statement.simulated) == (PARTIES, False)
    assert {meant(line) for line in RELAYED} <= {*machines.commands}


@slow
@pytest.mark.parametrize("line", TRIALS)
def test_a_federation_is_tried_by_the_documented_command(machines: Machines, line: str) -> None:
    here = machines.at("coordinator")
    SCHEMA.write(here / "schema.toml")
    (here / "parts").mkdir()
    for seed, name in enumerate(("north", "river", "summit")):
        for file in (here / f"{name}.csv", here / "parts" / f"{name}.csv"):
            arrow_csv.write_csv(table(seed), file)
    found = machines.json("coordinator", line)
    assert {owner["charges"] for owner in found["ledgers"].values()} == {found["rounds"]}
    assert (here / "model.hedge").exists()


@slow
@pytest.mark.parametrize("kind", ["similarity", "vertical"])
def test_runs_without_an_epsilon_are_tried_too(machines: Machines, kind: str) -> None:
    here = machines.at("coordinator")
    if kind == "similarity":
        SCHEMA.write(here / "schema.toml")
        tables = [table(seed).slice(0, 300) for seed in range(3)]
        further = ["--kind", "similarity"]
    else:
        from tests.methods.fedxgboost.tables import OWNERS, schema_of, whole

        schema_of().write(here / "schema.toml")
        everything, tables = whole(300), []
        for party in sorted({*OWNERS.values()}):
            own = [name for name, owner in OWNERS.items() if owner == party] + ["id"]
            own += ["label"] if party == "bank" else []
            tables.append(arrow_table({name: everything[name] for name in own}))
        further = ["--kind", "vertical", "--id", "id"]
    for number, one in enumerate(tables):
        parquet.write_table(one, here / f"{number}.parquet")
    line = "hedgerow federation try --schema schema.toml --data '?.parquet'"
    found = machines.json("coordinator", line, *further)
    assert len(found["ledgers"]) == len(tables) + 1
    assert Ensemble.load(here / "model.hedge").statement.guarantee == "none"
