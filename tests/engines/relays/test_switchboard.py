"""Both ends of a relay over a runtime that is played here: no process, no network."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from hedgerow.coordinator.federation import Federation
from hedgerow.data.tables import Rows
from hedgerow.engines import switchboard
from hedgerow.engines.party_end import Answer, PartyEnd, Question, read_end
from hedgerow.engines.relay import RelayEngine
from hedgerow.engines.sockets import one_line
from hedgerow.engines.switchboard import CoordinatorEnd, Switchboard, listen
from hedgerow.errors import FormatError, SettingsError, SumFailed
from hedgerow.methods.registry import plan_for
from hedgerow.packing import pack
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol import messages
from hedgerow.protocol.engine import Reply
from hedgerow.protocol.roles import RoleFactory
from hedgerow.testing import check_federation, check_sessions
from tests.conftest import MIXED, mixed_rows, mixed_table
from tests.engines.relays.played import NAMES, PlayedParties, echo

ROWS = mixed_rows(mixed_table(60, seed=1))


class PlayedRuntime:
    """Nodes by name, each with a party's end; like a runtime it may lose messages."""

    slack_seconds = 0.0

    def __init__(self, ends: Mapping[str, PartyEnd]) -> None:
        self.ends = dict(ends)
        self.deaf: set[str] = set()
        self.carried: list[str] = []

    def nodes(self) -> Sequence[str]:
        return list(self.ends)

    def carry(self, messages: Mapping[str, bytes], seconds: float) -> dict[str, Reply]:
        self.carried += messages
        return {
            node: Reply(None, "it was lost\non its way")
            if node in self.deaf or node not in self.ends
            else Reply(self.ends[node].answer(data))
            for node, data in messages.items()
        }


@pytest.fixture
def parties(tmp_path: Path) -> Iterator[PlayedParties]:
    with PlayedParties(tmp_path) as made:
        yield made


@pytest.fixture
def runtime(parties: PlayedParties) -> PlayedRuntime:
    """Node numbers say nothing about parties."""
    return PlayedRuntime(
        {str(7 - i): PartyEnd(n, str(parties.sockets[n])) for i, n in enumerate(NAMES)}
    )


@pytest.fixture(autouse=True)
def short_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switchboard, "START_SECONDS", 0.5)


@contextmanager
def listening(folder: Path, runtime: PlayedRuntime) -> Iterator[Path]:
    path = folder / "relay.sock"
    with Switchboard(runtime) as board, listen(CoordinatorEnd(str(path)), board):
        yield path


@pytest.fixture
def relay(tmp_path: Path, runtime: PlayedRuntime) -> Iterator[Path]:
    with listening(tmp_path, runtime) as path:
        yield path


def engine_at(path: Path) -> RelayEngine:
    return RelayEngine(path, NAMES, "Start the relay.")


def test_a_relay_gives_the_same_exact_sums_as_every_engine(
    relay: Path, parties: PlayedParties
) -> None:
    def made(parts: Sequence[Rows], trust: str) -> Federation:
        return parties.federation(relay, parts, MIXED, trust)

    check_federation(made, MIXED, ROWS)


def test_a_relay_carries_sessions_to_the_same_models(relay: Path, parties: PlayedParties) -> None:
    def made(tables: Mapping[str, Rows], roles: Mapping[str, RoleFactory]) -> Federation:
        return parties.federation(relay, list(tables.values()), MIXED, "coordinator", roles)

    check_sessions(made, MIXED, ROWS, NAMES[:3])


def test_each_party_gets_its_own_message_whatever_its_node_is_called(relay: Path) -> None:
    replies = engine_at(relay).ask_each({name: name.encode() for name in NAMES}, 10.0)
    assert {name: reply.body for name, reply in replies.items()} == {
        name: echo(name.encode()) for name in NAMES
    }


def test_a_party_whose_process_is_down_is_named_and_the_others_answer(
    relay: Path, parties: PlayedParties
) -> None:
    parties.close("south")
    replies = engine_at(relay).ask(NAMES[:3], b"x", 10.0)
    parties.open("south")
    assert "hedgerow party start" in replies["south"].problem
    assert [replies[name].body for name in ("north", "west")] == [b"echo x"] * 2
    assert engine_at(relay).ask(["south"], b"y", 10.0)["south"].body == b"echo y"


def test_a_party_without_a_node_is_named_and_found_when_it_comes(
    tmp_path: Path, runtime: PlayedRuntime, parties: PlayedParties
) -> None:
    norths = runtime.ends.pop("7")
    with listening(tmp_path, runtime) as path:
        engine = engine_at(path)
        replies = engine.ask(NAMES[:2], b"x", 60.0)
        assert replies["south"].body == b"echo x"
        assert "no node of the runtime says" in replies["north"].problem
        runtime.ends["12"] = norths
        while engine.ask(["north"], b"x", 10.0)["north"].body is None:
            time.sleep(0.1)  # until it was looked for again


def test_a_node_that_claims_another_party_gains_nothing(
    relay: Path, parties: PlayedParties
) -> None:
    federation = parties.federation(relay, [ROWS, ROWS, ROWS], MIXED, "coordinator")
    parties.handlers["south"] = parties.handlers["north"]  # its socket leads to another party
    probe = messages.plain("ready", {"run": "r"})
    replies = federation.transport.send(dict.fromkeys(NAMES[:3], probe), "ready", 10.0)
    assert set(replies) == {"north", "west"}


def test_two_nodes_for_one_party_are_told_apart_by_nobody_and_refused(
    relay: Path, runtime: PlayedRuntime, parties: PlayedParties
) -> None:
    engine = engine_at(relay)
    assert engine.ask(["north"], b"x", 10.0)["north"].body == b"echo x"
    runtime.ends["99"] = PartyEnd("north", str(parties.sockets["west"]))
    problem = ""
    while not problem:  # until the second one was heard
        time.sleep(0.05)
        problem = engine.ask(["north"], b"x", 10.0)["north"].problem
    assert "several nodes say" in problem
    assert "99" in problem


def test_a_node_that_stands_for_another_party_now_is_not_believed(
    relay: Path, runtime: PlayedRuntime, parties: PlayedParties
) -> None:
    engine = engine_at(relay)
    assert engine.ask(["north"], b"x", 10.0)["north"].body == b"echo x"
    runtime.ends["7"] = PartyEnd("away", str(parties.sockets["north"]))
    assert "another party now" in engine.ask(["north"], b"x", 10.0)["north"].problem


def test_a_message_that_the_runtime_lost_is_reported_in_one_line(
    relay: Path, runtime: PlayedRuntime
) -> None:
    engine = engine_at(relay)
    assert engine.ask(["north"], b"x", 10.0)["north"].body == b"echo x"
    runtime.deaf.add("7")
    assert engine.ask(["north"], b"x", 10.0)["north"].problem == "it was lost on its way (node 7)"


def test_a_runtime_that_fails_inside_is_named(
    relay: Path, runtime: PlayedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_at(relay)
    assert engine.ask(["north"], b"x", 10.0)["north"].body == b"echo x"

    def fail(messages: Mapping[str, bytes], seconds: float) -> dict[str, Reply]:
        raise ConnectionError("gone")

    monkeypatch.setattr(runtime, "carry", fail)
    assert "ConnectionError" in engine.ask(["north"], b"x", 10.0)["north"].problem


def test_without_a_relay_the_reason_says_what_to_start(tmp_path: Path) -> None:
    replies = engine_at(tmp_path / "nobody.sock").ask(NAMES, b"x", 1.0)
    assert all("Start the relay." in reply.problem for reply in replies.values())


def test_parties_that_are_not_there_leave_a_sum_unasked(
    tmp_path: Path, runtime: PlayedRuntime, parties: PlayedParties
) -> None:
    runtime.ends.clear()
    privacy = Privacy(1.0, 1e-5, "parties")
    plan = plan_for(MIXED, privacy, "random-trees", {"n_trees": 1}, seed=1)
    with listening(tmp_path, runtime) as path:
        federation = parties.federation(path, [ROWS, ROWS, ROWS], MIXED, "parties")
        with pytest.raises(SumFailed, match="only 0 of 3 parties"):
            federation.open(plan)
    assert [ledger.lines(kind="reserve") for ledger in parties.ledgers.values()] == [[], [], []]


def test_what_a_relay_carries_is_read_back_or_refused() -> None:
    asked = Question(b"\x00body", 2.5)
    assert Question.from_bytes(asked.to_bytes()) == asked
    answer = Answer("north", b"bytes", "words")
    assert Answer.from_bytes(answer.to_bytes()) == answer
    newer = pack({"format": 2, "wait": 1.0}, {"body": np.zeros(0, np.uint8)})
    with pytest.raises(FormatError, match="the same version of hedgerow at both"):
        Question.from_bytes(newer)
    for reads in (Question.from_bytes, Answer.from_bytes):
        for data in (b"", b"garbage", asked.to_bytes()[:-1], answer.to_bytes() + b"x"):
            with pytest.raises(FormatError):
                reads(data)


def test_an_end_is_what_the_administrator_wrote(tmp_path: Path) -> None:
    file = tmp_path / "hedgerow.toml"
    with pytest.raises(SettingsError, match="the administrator of this machine writes it"):
        read_end(PartyEnd, file)
    file.write_text('format = 1\nparty = "north"\nsocket = "/run/north.sock"\n')
    assert read_end(PartyEnd, file) == PartyEnd("north", "/run/north.sock")
    file.write_text('format = 1\nparty = "No Name"\nsocket = "s"\n')
    with pytest.raises(SettingsError, match="the name of a party"):
        read_end(PartyEnd, file)
    file.write_text('format = 1\nsocket = "/run/train.sock"\nmode = 777\n')
    with pytest.raises(SettingsError, match="mode"):
        read_end(CoordinatorEnd, file)


def test_words_of_others_are_cut_to_a_line() -> None:
    assert one_line("a\nb\x1b[31m" + "c" * 1000) == "a b [31m" + "c" * 392
