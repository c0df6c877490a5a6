"""What a runtime's processes and the files of others may say: read, or refused in words."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import clock
from hedgerow.deployment.coordinator import _read_boots
from hedgerow.engines import sockets
from hedgerow.engines.cards import read_card, read_roster
from hedgerow.engines.party_end import Answer, PartyEnd, Question
from hedgerow.engines.relay import RelayEngine, RelayService
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import LONGEST_MESSAGE, MOST_WORDS, Listener, Unreachable, call
from hedgerow.errors import FormatError, HedgerowError, SettingsError
from hedgerow.packing import pack
from hedgerow.protocol.engine import Reply
from tests.engines.grpc.rig import until

TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
NUMBERS = st.integers(-(10**400), 10**400) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
ARRAYS = st.dictionaries(
    st.sampled_from(["body", "all", "a", "b"]), st.binary(max_size=9).map(
        lambda data: np.frombuffer(data, np.uint8)
    ), max_size=3,
)  # fmt: skip


class Silent:
    """A carrier that knows nobody."""

    def ask_each(self, messages: Mapping[str, bytes], timeout_seconds: float) -> dict[str, Reply]:
        assert 0 <= timeout_seconds <= 3600
        return {name: Reply(None, "nobody is there") for name in messages}

    def connected(self) -> Mapping[str, int] | None:
        return None


def read_or_refuse(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except FormatError:
        return None


@given(wait=JSON, arrays=ARRAYS)
def test_whatever_a_runtime_carries_to_a_party_is_read_or_refused(wait: Any, arrays: Any) -> None:
    data = pack({"format": 1, "wait": wait}, arrays)
    asked = read_or_refuse(lambda: Question.from_bytes(data))
    if asked is not None:
        assert 0 <= asked.wait_seconds <= 3600
    nobody = PartyEnd("a", "/nowhere/party.sock")
    answer = read_or_refuse(lambda: nobody.answer(data))
    assert (answer is None) == (asked is None)


@given(party=JSON, problem=JSON, arrays=ARRAYS)
def test_whatever_comes_back_from_a_node_is_read_or_refused(
    party: Any, problem: Any, arrays: Any
) -> None:
    data = pack({"format": 1, "party": party, "problem": problem}, arrays)
    answer = read_or_refuse(lambda: Answer.from_bytes(data))
    assert answer is None or (answer.party, answer.problem) == (party, problem)


@given(what=st.sampled_from(["ask", "who", ""]), names=JSON, timeout=JSON, arrays=ARRAYS)
def test_whatever_is_asked_of_a_carrier_is_answered_or_refused(
    what: str, names: Any, timeout: Any, arrays: Any
) -> None:
    values = {"format": 1, "what": what, "names": names, "timeout": timeout}
    read_or_refuse(lambda: RelayService(Silent()).handle(pack(values, arrays)))


@given(boots=JSON, problems=JSON)
def test_whatever_a_carrier_says_is_believed_or_refused_in_words(boots: Any, problems: Any) -> None:
    said = pack({"format": 1, "boots": boots, "problems": problems})
    engine = RelayEngine(Path("/nowhere/carrier.sock"), ["a"], "Start it.")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hedgerow.engines.relay.call", lambda *_: said)
        reply = engine.ask(["a"], b"x", 1.0)["a"]
        assert reply.body is None
        assert reply.problem.isprintable()
        assert len(reply.problem) <= MOST_WORDS
        try:
            there = engine.connected()
        except HedgerowError:
            return
        assert there is None or set(there) <= {"a"}


def as_toml(values: Any) -> bool:
    try:
        tomli_w.dumps(values)
    except (TypeError, ValueError, AttributeError):
        return False
    return True


CARD_KEYS = ("format", "name", "key", "certificate", "address", "mutual_tls", "signature")
ROSTER_KEYS = (
    "format", "federation", "trust", "colluding", "minimum_parties", "mutual_tls", "coordinator",
    "party",
)  # fmt: skip


@given(data=st.data())
def test_whatever_is_handed_over_as_a_card_or_roster_is_read_or_refused(data: Any) -> None:
    keys, read = data.draw(st.sampled_from([(CARD_KEYS, read_card), (ROSTER_KEYS, read_roster)]))
    values = st.fixed_dictionaries(
        {"format": st.just(2)}, optional=dict.fromkeys(keys[1:], JSON | st.just("a"))
    )
    written = data.draw(values.filter(as_toml))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "handed-over.toml"
        file.write_bytes(tomli_w.dumps(written).encode("utf-8", "surrogatepass"))
        with pytest.raises((FormatError, SettingsError)):  # nobody guesses a signature or a key
            read(file)


@given(JSON)
def test_a_damaged_note_of_starts_is_named_or_read(values: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), "coordinator")
        (site.folder / "boots.json").write_text(json.dumps(values))
        boots = read_or_refuse(lambda: _read_boots(site))
        assert boots is None or all(type(boot) is int for boot in boots.values())


def test_a_socket_that_was_exchanged_for_a_link_opens_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others may write to the folder, one of them puts a link to the party's key there."""
    import grp

    key, path = tmp_path / "signing-key.pem", tmp_path / "relay.sock"
    key.write_text("secret")
    key.chmod(0o600)
    share = sockets._share

    def exchanged(at: Path, group: str) -> None:
        at.unlink()
        at.symlink_to(key)
        share(at, group)

    monkeypatch.setattr(sockets, "_share", exchanged)
    group = grp.getgrgid(os.getgid()).gr_name
    with pytest.raises(SettingsError, match="somebody put something else in its place"):
        Listener(path, bytes.upper, group)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text() == "secret"


@contextmanager
def saying(path: Path, *said: bytes) -> Iterator[socket.socket]:
    """A connection of the relay's group that says this and then waits."""
    with (
        sockets._short(path) as address,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection,
    ):
        connection.settimeout(30.0)
        connection.connect(address)
        for part in said:
            connection.sendall(part)
        yield connection


def was_closed(connection: socket.socket) -> bool:
    """Whether the other side ends it, which may take a while on a busy machine."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def left_in(listener: Listener) -> int:
    """How many bytes connections may still take."""
    return listener._room._left


def head(size: int) -> bytes:
    return struct.pack("<Q", size)


def test_a_message_longer_than_any_may_be_is_refused_by_its_length(tmp_path: Path) -> None:
    path = tmp_path / "relay.sock"
    with Listener(path, bytes.upper) as listener:
        with saying(path, head(LONGEST_MESSAGE + 1)) as connection:
            assert was_closed(connection)
        with saying(path, head(LONGEST_MESSAGE)):
            until(lambda: left_in(listener) == LONGEST_MESSAGE)
        until(lambda: left_in(listener) == 2 * LONGEST_MESSAGE)


def test_all_messages_of_a_relays_group_together_take_twice_the_longest(tmp_path: Path) -> None:
    """Whoever may open the socket of a relay could else fill the memory of the party's machine."""
    path, longest = tmp_path / "relay.sock", 2**16
    with Listener(path, bytes.upper, longest=longest) as listener:
        with ExitStack() as stack:
            said = head(longest), bytes(longest // 2)
            half = [stack.enter_context(saying(path, *said)) for _ in range(2)]
            until(lambda: left_in(listener) == 0)
            for _ in range(20):
                with saying(path, head(longest)) as further:
                    assert was_closed(further)
            with pytest.raises(Unreachable):
                call(path, b"whoever else asks is told so at once", 30.0)
            half[0].sendall(bytes(longest // 2))
            answer = head(longest) + bytes(longest)
            assert sockets._exactly(half[0], len(answer), clock.monotonic() + 30.0) == answer
            until(lambda: left_in(listener) == longest)
            assert call(path, b"then there is room", 30.0) == b"THEN THERE IS ROOM"
        until(lambda: left_in(listener) == 2 * longest)


def test_replies_that_nobody_reads_are_in_memory_twice_at_most(tmp_path: Path) -> None:
    path, longest = tmp_path / "relay.sock", 2**22  # more than a socket holds of it
    answered, lock = list[int](), threading.Lock()

    def long_answer(message: bytes) -> bytes:
        with lock:
            answered.append(1)
        return bytes(longest)

    with Listener(path, long_answer, longest=longest), ExitStack() as stack:
        waiting = [stack.enter_context(saying(path, head(1), b"x")) for _ in range(2)]
        for connection in waiting:
            assert connection.recv(8) == head(longest)  # its reply is on its way
        for _ in range(5):
            with saying(path, head(0)) as further:
                assert was_closed(further)
        assert len(answered) == 7
