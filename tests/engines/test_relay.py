"""The socket between whoever drives a run and whatever carries: the same sums, honest about who is
there, and bounded in time."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.tables import Rows
from hedgerow.engines import relay
from hedgerow.engines.relay import RelayEngine, RelayService
from hedgerow.engines.sockets import MOST_CONNECTIONS, Listener, Unreachable, call
from hedgerow.errors import LedgerWriteFailed, SettingsError, SumFailed
from hedgerow.methods.registry import METHODS, plan_for
from hedgerow.party.party import Party
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol import messages
from hedgerow.protocol.engine import Reply
from hedgerow.protocol.identity import Identity, Roster
from hedgerow.protocol.messages import Message
from hedgerow.testing import check_federation, noise_off
from tests.conftest import MIXED, mixed_rows, mixed_table

NAMES = ("p0", "p1", "p2", "p3", "p4")
ROWS = mixed_rows(mixed_table(60, seed=1))


class Here:
    """A carrier to parties of this process, some of which may be away."""

    def __init__(self) -> None:
        self.parties: dict[str, Party] = {}
        self.away: set[str] = set()
        self.asked: list[tuple[str, ...]] = []
        self.knows = True

    def ask_each(self, messages: Mapping[str, bytes], timeout_seconds: float) -> dict[str, Reply]:
        self.asked.append(tuple(messages))
        self.types = {Message.from_bytes(m).type for m in messages.values()}
        return {name: self._reply(name, message) for name, message in messages.items()}

    def _reply(self, name: str, message: bytes) -> Reply:
        if name in self.away:
            return Reply(None, "it is not connected: its stream ended")
        with noise_off():
            return Reply(self.parties[name].handle(message))

    def connected(self) -> Mapping[str, int] | None:
        there = {name: party.boot for name, party in self.parties.items() if name not in self.away}
        return there if self.knows else None


@pytest.fixture
def carrier(tmp_path: Path) -> Iterator[Here]:
    made = Here()
    with Listener(tmp_path / "carrier.sock", RelayService(made).handle):
        yield made


def federation_of(
    carrier: Here, folder: Path, parts: Sequence[Rows], trust: str, without: Sequence[str] = ()
) -> Federation:
    coordinator = Identity()
    carrier.parties = {n: Party(n, part, MIXED) for n, part in zip(NAMES, parts, strict=False)}
    keys = tuple((name, party.identity.public) for name, party in carrier.parties.items())
    roster = Roster(keys, coordinator.public, 1, 3, trust)
    for party in carrier.parties.values():
        party.pin(roster)
    engine = RelayEngine(folder / "carrier.sock", roster.names, "Start it.", without)
    assert engine.await_parties(0.0) == []
    return Federation(engine, MIXED, roster, coordinator)


def test_every_engine_gives_the_same_exact_sum(carrier: Here, tmp_path: Path) -> None:
    for carrier.knows in (True, False):
        check_federation(lambda p, trust: federation_of(carrier, tmp_path, p, trust), MIXED, ROWS)


def trained(carrier: Here, federation: Federation) -> Gate:
    privacy = Privacy(50.0, 1e-5, "parties", spare=3)
    plan = plan_for(MIXED, privacy, "random-trees", {"n_trees": 4, "max_depth": 2}, seed=1)
    gate = Gate(federation, plan, Ledger.in_memory())
    with noise_off():
        METHODS[plan.method].grow(gate)
    return gate


def four(carrier: Here, folder: Path, **more: Sequence[str]) -> Federation:
    parts = [ROWS.take(np.arange(i, ROWS.n_rows, 4)) for i in range(4)]
    return federation_of(carrier, folder, parts, "parties", **more)


def test_nobody_is_probed_where_the_engine_knows_who_is_there(
    carrier: Here, tmp_path: Path
) -> None:
    gate = trained(carrier, federation := four(carrier, tmp_path))
    assert len(carrier.asked) == federation.rounds + 3  # opening, showing, joining
    assert gate.attendance == {
        "over": [{"parties": list(NAMES[:4]), "releases": federation.rounds}],
        "lost": [],
        "absent": {},
    }


def test_a_lost_party_is_named_costs_one_attempt_and_is_taken_back(
    carrier: Here, tmp_path: Path
) -> None:
    federation = four(carrier, tmp_path)
    real, lost = carrier._reply, []

    def reply(name: str, message: bytes) -> Reply:
        asked = Message.from_bytes(message)
        slot = asked.ask.slot if asked.type == "ask" else -1
        if slot == 1 and name == "p1" and not lost:
            lost.append(slot)
            carrier.away.add("p1")
        if slot == 3:
            carrier.away.clear()
        return real(name, message)

    carrier._reply = reply  # type: ignore[method-assign]
    gate = trained(carrier, federation)
    (loss,) = gate.attendance["lost"]
    assert (loss["slot"], loss["party"]) == (1, "p1")
    assert "its stream ended" in loss["why"]
    over = {len(one["parties"]): one["releases"] for one in gate.attendance["over"]}
    assert over == {4: 2, 3: 3}  # slots 0 and 4; slots 1 to 3 without it
    assert sum("p1" in names for names in carrier.asked) <= 10


def test_a_party_lost_while_heads_are_shown_is_left_out(carrier: Here, tmp_path: Path) -> None:
    federation, real = four(carrier, tmp_path), carrier._reply

    def reply(name: str, message: bytes) -> Reply:
        if name == "p1" and Message.from_bytes(message).type == "show":
            carrier.away.add("p1")
        return real(name, message)

    carrier._reply = reply  # type: ignore[method-assign]
    gate = trained(carrier, federation)
    assert gate.attendance["over"] == [{"parties": ["p0", "p2", "p3"], "releases": 5}]
    assert gate.attendance["lost"] == []


def test_a_party_can_be_left_out(carrier: Here, tmp_path: Path) -> None:
    gate = trained(carrier, four(carrier, tmp_path, without=["p3"]))
    assert [one["parties"] for one in gate.attendance["over"]] == [["p0", "p1", "p2"]]
    assert "left out" in gate.attendance["absent"]["p3"]
    assert all("p3" not in names for names in carrier.asked)


@pytest.mark.parametrize("knows", [True, False])
def test_a_party_that_cannot_write_its_ledger_is_named_in_the_record_and_to_whoever_looks(
    carrier: Here, tmp_path: Path, knows: bool
) -> None:
    carrier.knows, told = knows, list[dict[str, str]]()
    federation, real = four(carrier, tmp_path), carrier._reply
    federation.tell_absent = lambda absent: told.append(dict(absent))

    def full(*_: object, **__: object) -> Line:
        raise LedgerWriteFailed("planted")

    def reply(name: str, message: bytes) -> Reply:
        asked = Message.from_bytes(message)
        if name == "p2" and asked.type == "ask" and asked.ask.slot == 1:
            carrier.parties["p2"]._ledger.append = full  # type: ignore[method-assign]
        return real(name, message)

    carrier._reply = reply  # type: ignore[method-assign]
    gate = trained(carrier, federation)
    (loss,) = gate.attendance["lost"]
    assert (loss["slot"], loss["party"]) == (1, "p2")
    why = "cannot write its ledger, most likely because its disk is full"
    assert why in loss["why"]
    assert why in gate.attendance["absent"]["p2"]
    assert [list(absent) for absent in told] == [["p2"]]


def test_a_party_of_another_version_is_named_with_both_versions(
    carrier: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation, real = four(carrier, tmp_path), carrier._reply

    def reply(name: str, message: bytes) -> Reply:
        if name not in ("p0", "p1"):
            return real(name, message)
        with monkeypatch.context() as older:
            older.setattr(messages, "VERSION", 5)
            return real(name, message)

    carrier._reply = reply  # type: ignore[method-assign]
    both = rf"p0 \(it speaks version 5 of the messages, and {messages.VERSION} is spoken here"
    with pytest.raises(SumFailed, match=both):
        trained(carrier, federation)


def test_too_few_parties_stop_a_run_before_anything_is_charged(
    carrier: Here, tmp_path: Path
) -> None:
    federation = four(carrier, tmp_path)
    carrier.away = {"p0", "p1"}
    why = r"only 2 of 4 parties are there and a sum needs 3; missing: p0 \(it is not connected"
    with pytest.raises(SumFailed, match=why):
        trained(carrier, federation)


def test_who_is_there_comes_with_replies_and_is_asked_again_a_moment_later(
    carrier: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, now, asked = four(carrier, tmp_path).engine, [100.0], list[str]()
    assert isinstance(engine, RelayEngine)
    monkeypatch.setattr(relay.clock, "monotonic", lambda: now[0])
    looks = carrier.connected

    def counted() -> Mapping[str, int] | None:
        asked.append("who")
        return looks()

    monkeypatch.setattr(carrier, "connected", counted)
    monkeypatch.setattr(carrier, "ask_each", lambda m, _: dict.fromkeys(m, Reply(b"y")))
    engine.ask(NAMES[:1], b"x", 5.0)
    there = {name: party.boot for name, party in carrier.parties.items()}
    assert len(asked) == 1  # with the reply
    assert engine.connected() == there
    assert len(asked) == 1
    carrier.away.add(NAMES[3])
    now[0] += relay.FRESH_SECONDS + 0.01
    assert engine.connected() == {n: boot for n, boot in there.items() if n != NAMES[3]}
    assert len(asked) == 2


def test_a_carrier_that_does_not_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = RelayEngine(tmp_path / "none.sock", ["a"], "Start it with: hedgerow x.")
    with pytest.raises(Unreachable, match=r"nothing carries messages at .*Start it with"):
        engine.await_parties(0.0)
    monkeypatch.setattr(relay, "RESTART_SECONDS", 0.0)
    with pytest.raises(Unreachable, match="run the same command again"):
        engine.connected()
    reply = engine.ask(["a"], b"x", 1.0)["a"]
    assert reply.body is None
    assert "Start it with: hedgerow x." in reply.problem


@pytest.mark.parametrize("request_", [b"", b"x" * 50, b"\x02\0\0\0{}"])
def test_a_request_that_is_none_breaks_that_connection_alone(
    carrier: Here, tmp_path: Path, request_: bytes
) -> None:
    with pytest.raises(Unreachable):
        call(tmp_path / "carrier.sock", request_, 5.0)
    assert RelayEngine(tmp_path / "carrier.sock", ["a"], "").connected() == {}


def test_a_socket_for_relays_is_open_to_its_group_alone(tmp_path: Path) -> None:
    import grp

    group = grp.getgrgid(os.getgid()).gr_name
    with Listener(tmp_path / "relay.sock", bytes.upper, group):
        mode = (tmp_path / "relay.sock").stat().st_mode
        assert stat.S_IMODE(mode) == 0o660
        assert call(tmp_path / "relay.sock", b"abc", 5.0) == b"ABC"
    with pytest.raises(SettingsError, match=r"cannot be given to the group .*Nothing was started"):
        Listener(tmp_path / "other.sock", bytes.upper, "no-such-group")
    assert not (tmp_path / "other.sock").exists()


def test_connections_that_say_nothing_are_bounded(tmp_path: Path) -> None:
    import socket

    from hedgerow.engines import sockets

    with Listener(tmp_path / "a.sock", bytes.upper), sockets._short(tmp_path / "a.sock") as path:
        idle = []
        for _ in range(MOST_CONNECTIONS + 5):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            one.connect(path)
            idle.append(one)
        assert idle[-1].recv(1) == b""  # closed at once
        for one in idle:
            one.close()
