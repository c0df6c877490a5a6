"""The engine over real TLS: the same sums as every engine, and faults that cost nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

import numpy as np

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.tables import Rows
from hedgerow.engines.local import local_federation
from hedgerow.methods.maddock.boosting import grow
from hedgerow.methods.registry import plan_for
from hedgerow.party.party import Party
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.engine import Reply
from hedgerow.protocol.identity import Identity, Roster
from hedgerow.protocol.roles import RoleFactory
from hedgerow.testing import check_federation, check_sessions, noise_off
from tests.conftest import MIXED, mixed_rows, mixed_table
from tests.engines.grpc.rig import NAMES, Handler, Rig, echo

ROWS = mixed_rows(mixed_table(60, seed=1))
ONE = threading.Lock()  # compiled loops of one process run one at a time; sites have one each


def without_noise(party: Party) -> Handler:
    def handle(message: bytes) -> bytes:
        with ONE, noise_off():  # of this thread
            return party.handle(message)

    return handle


def federation_of(
    rig: Rig, parts: Sequence[Rows], trust: str, roles: Mapping[str, RoleFactory] | None = None
) -> Federation:
    """Parties at the first streams, with new keys and ledgers and without noise."""
    coordinator = Identity()
    named = zip(NAMES, parts, strict=False)
    parties = {name: Party(name, part, MIXED, roles=roles) for name, part in named}
    keys = tuple((name, party.identity.public) for name, party in parties.items())
    roster = Roster(keys, coordinator.public, 1, 3, trust)
    for name, party in parties.items():
        party.pin(roster)
        rig.handlers[name] = without_noise(party)
    return Federation(rig, MIXED, roster, coordinator)


def test_every_engine_gives_the_same_exact_sum(rig: Rig) -> None:
    with rig.answering(echo):
        check_federation(lambda parts, trust: federation_of(rig, parts, trust), MIXED, ROWS)


def test_every_engine_carries_sessions_to_the_same_models(rig: Rig) -> None:
    def made(tables: Mapping[str, Rows], roles: Mapping[str, RoleFactory]) -> Federation:
        return federation_of(rig, list(tables.values()), "coordinator", roles)

    with rig.answering(echo):
        check_sessions(made, MIXED, ROWS, NAMES[:3])


def test_one_party_three_here_and_three_over_grpc_give_one_model(rig: Rig) -> None:
    parts = [ROWS.take(np.arange(i, ROWS.n_rows, 3)) for i in range(3)]
    models = []
    for made, trust in (
        (lambda: local_federation({"p0": ROWS}, MIXED, trust="coordinator"), "coordinator"),
        (lambda: local_federation(dict(zip(NAMES, parts, strict=False)), MIXED), "parties"),
        (lambda: federation_of(rig, parts, "parties"), "parties"),
    ):
        privacy = Privacy(1.0, 1e-5, trust, spare=1)  # type: ignore[arg-type]
        plan = plan_for(MIXED, privacy, "random-trees", {"n_trees": 3, "max_depth": 2}, seed=1)
        with rig.answering(echo), noise_off():
            models.append(grow(Gate(made(), plan, Ledger.in_memory())))
    assert all(model.trees == models[0].trees for model in models)
    assert [model.statement.simulated for model in models] == [True, True, False]


def test_ten_megabytes_go_both_ways(rig: Rig) -> None:
    message = bytes(range(256)) * 40_000
    with rig.answering(lambda m: m[::-1]):
        replies = rig.ask(NAMES[:3], message, 60.0)
    assert all(reply.body == message[::-1] for reply in replies.values())


def test_empty_and_different_messages_reach_their_own_parties(rig: Rig) -> None:
    messages = {name: name.encode() * i for i, name in enumerate(NAMES)}
    replies = rig.ask_each(messages, 30.0)
    assert {n: r.body for n, r in replies.items()} == {n: echo(m) for n, m in messages.items()}


def test_a_message_under_way_is_sent_again_on_the_next_stream(rig: Rig) -> None:
    begun, free, asked = threading.Event(), threading.Event(), list[bytes]()

    def slow(message: bytes) -> bytes:
        asked.append(message)
        begun.set()
        free.wait(30)
        return echo(message)

    found: dict[str, Reply] = {}
    with rig.answering(slow, "p2"):
        asking = threading.Thread(target=lambda: found.update(rig.ask(NAMES, b"x", 60.0)))
        asking.start()
        assert begun.wait(30)
        rig.reconnect("p2")
        free.set()
        asking.join(30)
    assert {reply.body for reply in found.values()} == {b"echo x"}
    assert asked == [b"x", b"x"]  # the party stores what it answered; here it is asked twice


def test_a_party_that_never_connected_costs_no_time(rig: Rig) -> None:
    before = time.monotonic()
    reply = rig.ask(["stranger"], b"x", 60.0)["stranger"]
    assert reply.body is None
    assert "has not connected since the coordinator was started" in reply.problem
    assert time.monotonic() - before < 30  # of the 60 it had


def test_a_party_that_fails_inside_or_is_late_is_named_and_the_next_message_reaches_it(
    rig: Rig,
) -> None:
    free = threading.Event()

    def late(message: bytes) -> bytes:
        free.wait(30)
        return b"late"

    with rig.answering(late, "p1"):
        replies = rig.ask(NAMES, b"x", 0.5)
        free.set()
    assert replies["p1"] == Reply(None, "it is connected and did not reply in time")
    assert replies["p0"].body == b"echo x"

    def broken(message: bytes) -> bytes:
        raise RuntimeError("planted")

    with rig.answering(broken, "p1"):
        assert rig.ask(["p1"], b"x", 0.5)["p1"].body is None
    assert rig.ask(["p1"], b"y", 30.0)["p1"].body == b"echo y"
