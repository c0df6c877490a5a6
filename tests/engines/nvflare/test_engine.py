"""The engine over real processes: the same sums as every engine, and faults that cost nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from hedgerow.coordinator.federation import Federation, PartiesLost, Reply, Total
from hedgerow.coordinator.gate import Gate
from hedgerow.data.tables import Rows
from hedgerow.engines.local import local_federation
from hedgerow.engines.nvflare import delivery
from hedgerow.engines.nvflare.engine import NvflareEngine
from hedgerow.methods.maddock.boosting import grow
from hedgerow.methods.registry import plan_for
from hedgerow.party.party import Party
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.accounting.plan import make_plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy, Settings
from hedgerow.protocol.identity import Identity, Roster
from hedgerow.protocol.roles import RoleFactory
from hedgerow.queries import LabelSums, size_of
from hedgerow.queries.calibration import noise_for
from hedgerow.testing import check_federation, check_sessions, noise_off
from tests.conftest import MIXED, mixed_rows, mixed_table
from tests.engines.nvflare.sites import NAMES, Handler, Sites, echo, is_alive
from tests.slow import slow

ROWS = mixed_rows(mixed_table(60, seed=1))


def settle(engine: NvflareEngine) -> None:
    """Every party answers before the next fault."""
    replies = engine.ask(NAMES, b"there?", 60.0)
    assert {name: reply.body for name, reply in replies.items()} == dict.fromkeys(
        NAMES, b"echo there?"
    )


class Slow:
    """A party that takes its time; what it was asked and what it answered is kept."""

    def __init__(self, seconds: float, handler: Handler = echo) -> None:
        self.seconds, self.handler = seconds, handler
        self.asked: list[bytes] = []
        self.answered: list[bytes] = []
        self.begun = threading.Event()

    def __call__(self, message: bytes) -> bytes:
        self.asked.append(message)
        self.begun.set()
        time.sleep(self.seconds)
        self.answered.append(self.handler(message))
        return self.answered[-1]


def federation_of(
    sites: Sites,
    engine: NvflareEngine,
    parts: Sequence[Rows],
    trust: str,
    roles: Mapping[str, RoleFactory] | None = None,
) -> Federation:
    """Parties at the first sites, with new keys and ledgers and without noise."""
    coordinator = Identity()
    parties = {
        name: Party(name, part, MIXED, roles=roles)
        for name, part in zip(NAMES, parts, strict=False)
    }
    keys = tuple((name, party.identity.public) for name, party in parties.items())
    roster = Roster(keys, coordinator.public, 1, 3, trust)
    for name, party in parties.items():
        party.pin(roster)
        sites.handlers[name] = without_noise(party)
    return Federation(engine, MIXED, roster, coordinator)


def without_noise(party: Party) -> Handler:
    def handle(message: bytes) -> bytes:
        with noise_off():  # of this thread
            return party.handle(message)

    return handle


def test_every_engine_gives_the_same_exact_sum(sites: Sites, engine: NvflareEngine) -> None:
    with sites.answering(echo):
        check_federation(lambda p, trust: federation_of(sites, engine, p, trust), MIXED, ROWS)


def test_every_engine_carries_sessions_to_the_same_models(
    sites: Sites, engine: NvflareEngine
) -> None:
    def made(tables: Mapping[str, Rows], roles: Mapping[str, RoleFactory]) -> Federation:
        return federation_of(sites, engine, list(tables.values()), "coordinator", roles)

    with sites.answering(echo):
        check_sessions(made, MIXED, ROWS, NAMES[:3])


def test_one_party_three_here_and_three_behind_nvflare_give_one_model(
    sites: Sites, engine: NvflareEngine
) -> None:
    parts = [ROWS.take(np.arange(i, ROWS.n_rows, 3)) for i in range(3)]
    models = []
    for made, trust in (
        (lambda: local_federation({"p0": ROWS}, MIXED, trust="coordinator"), "coordinator"),
        (lambda: local_federation(dict(zip(NAMES, parts, strict=False)), MIXED), "parties"),
        (lambda: federation_of(sites, engine, parts, "parties"), "parties"),
    ):
        privacy = Privacy(1.0, 1e-5, trust, spare=1)  # type: ignore[arg-type]
        settings = {"n_trees": 3, "max_depth": 2}
        plan = plan_for(MIXED, privacy, "random-trees", settings, seed=1)
        with sites.answering(echo), noise_off():
            models.append(grow(Gate(made(), plan, Ledger.in_memory())))
    first = models[0].trees
    assert all(model.trees == first for model in models)
    assert [model.statement.simulated for model in models] == [True, True, False]


def masked_sum(sites: Sites, engine: NvflareEngine) -> tuple[Federation, Callable[[], Total]]:
    """Three parties under masks with an open plan, and a sum that can be asked."""
    query = LabelSums(len(MIXED.label.classes))
    privacy = Privacy(1.0, 1e-5, "parties")
    declared = DeclaredQuery("check", query.kind, 1.0, size_of(query))
    plan = make_plan(MIXED.hash, "check", Settings(), privacy, [declared], seed=0)
    parts = [ROWS.take(np.arange(i, ROWS.n_rows, 3)) for i in range(3)]
    federation = federation_of(sites, engine, parts, "parties")
    federation.open(plan)
    noise = noise_for(query, plan.slots[0].mu, plan, MIXED)
    return federation, lambda: federation.sum(query, noise, slot=0, attempt=1)


def test_ten_megabytes_go_both_ways(sites: Sites, engine: NvflareEngine) -> None:
    message = bytes(range(256)) * 40_000
    with sites.answering(lambda m: m[::-1]):
        replies = engine.ask(NAMES[:3], message, 60.0)
    assert all(reply.body == message[::-1] for reply in replies.values())


def test_a_party_that_computes_for_long_is_asked_once(sites: Sites, engine: NvflareEngine) -> None:
    slow = Slow(2 * delivery.WAIT_SECONDS + 0.5)
    with sites.answering(slow, "p1"):
        replies = engine.ask(NAMES, b"x", 60.0)
    assert {reply.body for reply in replies.values()} == {b"echo x"}
    assert slow.asked == [b"x"]


def test_a_late_reply_is_not_lost(sites: Sites, engine: NvflareEngine) -> None:
    with sites.answering(echo):
        federation, ask = masked_sum(sites, engine)
        slow = sites.handlers["p1"] = Slow(4.0, sites.handlers["p1"])
        federation.timeout_seconds = 2.0
        with pytest.raises(PartiesLost, match="p1"):
            ask()
        assert slow.begun.wait(60.0)
        again = engine.ask(["p1"], slow.asked[0], 60.0)
    assert len(slow.answered) == 2
    assert again["p1"].body == slow.answered[0] == slow.answered[1]


def test_a_killed_job_process_of_a_party_does_not_cost_the_sum(
    sites: Sites, engine: NvflareEngine
) -> None:
    found: list[Total] = []
    with sites.answering(echo):
        _, ask = masked_sum(sites, engine)
        slow = sites.handlers["p2"] = Slow(1.0, sites.handlers["p2"])
        asking = threading.Thread(target=lambda: found.append(ask()))
        asking.start()
        assert slow.begun.wait(60.0)
        coordinators = sites.job_process("coordinator")
        killed = sites.kill_job_process("p2")
        asking.join()
    assert found[0].parties == ("p0", "p1", "p2")
    assert len(slow.answered) == 2
    assert len(set(slow.asked)) == len(set(slow.answered)) == 1
    assert sites.job_process("p2") != killed
    assert sites.job_process("coordinator") == coordinators  # the same job, joined again


def test_a_killed_job_process_of_the_coordinator_is_replaced(
    sites: Sites, engine: NvflareEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    slow, found = Slow(1.0), dict[str, Reply]()
    with sites.answering(slow, "p2"):
        asking = threading.Thread(
            target=lambda: found.update(engine.ask(NAMES, b"x", 60.0)), daemon=True
        )
        asking.start()
        assert slow.begun.wait(60.0)
        sites.kill_job_process("coordinator")
        asking.join()
    assert {reply.body for reply in found.values()} == {b"echo x"}
    shown, told = capfd.readouterr()  # NVFlare prints nothing into our process
    assert [line for line in (shown + told).splitlines() if " hedgerow." not in line] == []


def test_a_party_whose_own_process_is_down_is_named(sites: Sites, engine: NvflareEngine) -> None:
    sites.close_door("p3")
    try:
        replies = engine.ask(NAMES, b"x", 10.0)
        again = engine.ask(NAMES, b"y", 60.0)
    finally:
        sites.open_door("p3")
    for found in (replies["p3"], again["p3"]):
        assert found.body is None
        assert "hedgerow party start" in found.problem
    assert replies["p0"].body == b"echo x"
    settle(engine)


@slow
def test_a_party_whose_site_restarts_rejoins(sites: Sites, engine: NvflareEngine) -> None:
    process = sites.processes["p4"]
    starts, pid, job = process.starts, process.pid, sites.job_process("p4")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await_end(job)  # it dies with its parent, and may answer until then
    replies = engine.ask(NAMES, b"x", 60.0)
    assert {reply.body for reply in replies.values()} == {b"echo x"}
    assert process.starts == starts + 1


def await_end(pid: int) -> None:
    deadline = time.monotonic() + 60.0
    while is_alive(pid):
        assert time.monotonic() < deadline, "a job's process outlived its parent"
        time.sleep(0.02)
