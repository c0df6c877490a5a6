"""Relays through stock deployments with TLS, started here: NVFlare 2.9 and Flower 1.41.

They run where HEDGEROW_SLOW is set; what they found last is in benchmarks/results/runtimes.json.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from hedgerow.coordinator.federation import Federation
from hedgerow.data.tables import Rows
from hedgerow.engines.relay import RelayEngine
from hedgerow.protocol.roles import RoleFactory
from hedgerow.testing import check_sessions
from tests.conftest import MIXED
from tests.engines.relays.played import PlayedParties
from tests.engines.relays.processes import end_processes, start_process
from tests.engines.relays.stock_flower import StockFlower, make_environment
from tests.engines.relays.stock_nvflare import StockNvflare
from tests.engines.relays.trained import PARTS, ROWS, THREE, trained, trained_here
from tests.slow import slow

pytestmark = [slow, pytest.mark.timeout(900)]


@dataclass
class Deployment:
    """A runtime that carries to parties which are played here."""

    runtime: str
    parties: PlayedParties
    socket: Path

    def engine(self) -> RelayEngine:
        return RelayEngine(self.socket, THREE, "Start the relay.")


@pytest.fixture(scope="module", params=["nvflare", "flower"])
def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp(request.param)
    stock: StockNvflare | StockFlower
    with PlayedParties(folder, THREE) as parties:
        if request.param == "nvflare":
            stock = StockNvflare(folder / "stock", THREE, parties.sockets)
        else:
            programs = make_environment(folder / "environment")
            stock = StockFlower(folder / "stock", programs, THREE, parties.sockets)
        with stock:
            stock.submit()
            yield Deployment(request.param, parties, stock.socket)


def test_a_stock_runtime_gives_the_same_model_and_ledgers_that_agree(
    deployment: Deployment,
) -> None:
    parties = deployment.parties
    federation = parties.federation(deployment.socket, PARTS, MIXED, "parties")
    found, expected = trained(federation, parties.ledgers), trained_here()
    assert found.trees == expected.trees
    assert found.charges == expected.charges
    assert (found.simulated, expected.simulated) == (False, True)


def test_a_stock_runtime_carries_sessions_to_the_same_models(deployment: Deployment) -> None:
    """SimFL and vertical boosting; Flower needs seconds for each of their steps."""

    def made(tables: Mapping[str, Rows], roles: Mapping[str, RoleFactory]) -> Federation:
        tables_in_order = [tables[name] for name in THREE]
        played = deployment.parties
        return played.federation(deployment.socket, tables_in_order, MIXED, "coordinator", roles)

    check_sessions(made, MIXED, ROWS, THREE, short=deployment.runtime == "flower")


def test_ten_megabytes_go_both_ways(deployment: Deployment) -> None:
    message = bytes(range(256)) * 40_000
    deployment.parties.handlers.update(dict.fromkeys(THREE, lambda m: m[::-1]))
    replies = deployment.engine().ask(THREE, message, 60.0)
    assert {name: reply.problem for name, reply in replies.items()} == dict.fromkeys(THREE, "")
    assert all(reply.body == message[::-1] for reply in replies.values())


def test_each_party_gets_its_own_message(deployment: Deployment) -> None:
    deployment.parties.handlers.update({name: lambda m: m + b"!" for name in THREE})
    replies = deployment.engine().ask_each({name: name.encode() for name in THREE}, 60.0)
    assert {n: reply.body for n, reply in replies.items()} == {n: f"{n}!".encode() for n in THREE}


def test_a_party_whose_own_process_is_down_is_named(deployment: Deployment) -> None:
    parties = deployment.parties
    parties.handlers.update(dict.fromkeys(THREE, lambda m: m))
    parties.close("south")
    try:
        replies = deployment.engine().ask(THREE, b"x", 30.0)
    finally:
        parties.open("south")
    assert "hedgerow party start" in replies["south"].problem
    assert [replies[name].body for name in ("north", "west")] == [b"x", b"x"]


def test_nvflare_runs_no_relay_where_a_site_has_not_allowed_it(tmp_path: Path) -> None:
    with PlayedParties(tmp_path, THREE) as parties:
        stock = StockNvflare(tmp_path / "stock", THREE, parties.sockets)
        stock.forbid("site-3")
        with stock:
            stock.submit()
            replies = RelayEngine(stock.socket, THREE, "Start it.").ask(THREE, b"x", 60.0)
            said = stock.logs()
    assert replies["west"].body is None
    assert "is not in allow_list" in said


def test_the_example_trains_over_nvflare_with_real_parties(tmp_path: Path) -> None:
    script = Path(__file__).parents[3] / "examples" / "higgs_over_nvflare" / "run.sh"
    log = tmp_path / "example.log"
    environment = {
        **os.environ,
        "PATH": str(Path(sys.executable).parent) + ":" + os.environ["PATH"],
    }
    process = start_process(["bash", str(script), str(tmp_path / "out")], log, environment)
    try:
        code = process.wait(600.0)
    finally:
        end_processes([process])
    said = " ".join(log.read_text("utf-8").split())
    assert code == 0, said
    assert "epsilon = 1, delta = 1e-06" in said
    assert (tmp_path / "out" / "model.hedge").exists()
