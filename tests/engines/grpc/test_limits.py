"""What a peer may cost: garbage before and after the hello, silence, long messages, a busy port."""

from __future__ import annotations

import logging
import socket
import struct
import threading
from contextlib import ExitStack, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.engines.grpc import hello as hellos
from hedgerow.engines.grpc.deliveries import Deliveries
from hedgerow.engines.grpc.pieces import PIECE_BYTES, Assembler, pieces_of
from hedgerow.engines.grpc.strangers import MOST_LINES, MOST_WAITING, Strangers
from hedgerow.errors import FormatError, HedgerowError
from hedgerow.protocol.engine import Reply
from tests.engines.grpc.raw_http2 import RawHttp2
from tests.engines.grpc.rig import NAMES, RawStream, Rig, until
from tests.engines.grpc.test_hello import binding_of, hello_of


@given(st.integers(0, 3), st.integers(-2, 2), st.integers(0, 2**64 - 1))
def test_a_message_comes_back_from_its_pieces(n_pieces: int, more: int, number: int) -> None:
    message = bytes(max(0, n_pieces * PIECE_BYTES + more))
    frames = list(pieces_of(number, message))
    assembler = Assembler()
    assert [assembler.add(frame) for frame in frames[:-1]] == [None] * (len(frames) - 1)
    assert assembler.add(frames[-1]) == (number, message)


def piece(flag: int, number: int, part: bytes) -> bytes:
    return struct.pack("<BQ", flag, number) + part


FULL = bytes(PIECE_BYTES)


@pytest.mark.parametrize(
    "frames",
    [
        [b""],
        [b"\0" * 8],
        [piece(2, 1, b"")],
        [piece(0, 1, b"short")],
        [piece(1, 1, FULL + b"x")],
        [piece(0, 1, FULL), piece(1, 2, b"")],
        [piece(0, 1, FULL)] * 5,
    ],
)
def test_pieces_that_are_not_allowed_are_refused(frames: list[bytes]) -> None:
    assembler = Assembler(longest=4 * PIECE_BYTES)
    with pytest.raises(FormatError):
        list(map(assembler.add, frames))


def test_a_reply_that_nobody_waits_for_is_not_kept() -> None:
    assembler = Assembler(lambda number: number == 7)
    for frame in pieces_of(6, bytes(3 * PIECE_BYTES)):
        assert assembler.add(frame) is None
        assert not assembler._message
    assert assembler.add(piece(1, 7, b"x")) == (7, b"x")


@given(st.binary(max_size=300))
def test_any_hello_is_read_or_refused(frame: bytes) -> None:
    with suppress(FormatError):
        hellos.read_hello(frame)


FRAMES = st.binary(max_size=60) | st.sampled_from(
    [bytes(hellos.LONGEST_HELLO + 1), b"[" * 4000, b'{"name": ' * 400, bytes(2**20)]
)


@settings(max_examples=25, deadline=None)
@given(st.lists(FRAMES, min_size=1, max_size=3))
def test_garbage_before_the_hello_ends_that_stream_alone(rig: Rig, frames: list[bytes]) -> None:
    stream = RawStream(rig)
    for frame in frames:
        stream.say(frame)
    assert stream.hear() is None
    stream.close()
    assert sorted(rig.server.connected()) == list(NAMES)


@settings(max_examples=25, deadline=None)
@given(frames=st.lists(FRAMES, min_size=1, max_size=3))
def test_garbage_after_the_hello_ends_that_stream_alone(frames: list[bytes]) -> None:
    rig = _one_for_all()
    stream = RawStream(rig)
    rig.boot += 1  # type: ignore[attr-defined]
    hello = hello_of(rig, "p0", boot=rig.boot)  # type: ignore[attr-defined]
    stream.say(hellos.to_frame(hello.signed(rig.identities["p0"], binding_of(rig, stream))))
    assert stream.hear() is not None
    for frame in frames:
        stream.say(frame)
    stream.say(piece(9, 0, b""))  # whatever they were, this one is not allowed
    assert stream.hear() is None
    stream.close()
    assert rig.ask(["p1"], b"x", 30.0)["p1"].body == b"echo x"


_RIGS: list[Rig] = []


def _one_for_all() -> Rig:
    if not _RIGS:
        made = Rig(("p0", "p1", "p2"))
        made.boot = 0  # type: ignore[attr-defined]
        made.connect("p1")
        _RIGS.append(made)
    return _RIGS[0]


@pytest.fixture(scope="module", autouse=True)
def _closed_at_the_end() -> object:
    yield
    while _RIGS:
        _RIGS.pop().close()


def test_silent_and_garbage_connections_do_no_harm_and_are_counted(rig: Rig) -> None:
    """Neither holds up a party: not the one that says nothing, nor fifty that say nonsense."""
    before = rig.server.turned_away
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(socket.create_connection(("127.0.0.1", rig.port)))
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", rig.port)) as garbage:
                garbage.sendall(b"GET / HTTP/1.0\r\n\r\n")
        rig.reconnect("p3")
        assert rig.ask(NAMES, b"x", 30.0)["p3"].body == b"echo x"
        until(lambda: rig.server.turned_away >= before + 20)  # the silent ones at least


def test_a_stream_that_says_nothing_is_ended(rig: Rig) -> None:
    stream = RawStream(rig)
    assert stream.hear() is None  # after some seconds
    stream.close()


def test_strangers_are_logged_at_a_bounded_rate(caplog: pytest.LogCaptureFixture) -> None:
    strangers = Strangers()
    with caplog.at_level(logging.WARNING):
        for i in range(5000):
            strangers.turned_away(f"10.0.{i % 7}.1", "a reason")
    # A server of an earlier test may still turn somebody away.
    mine = [record for record in caplog.records if "10.0." in record.getMessage()]
    assert len(mine) == MOST_LINES
    assert strangers.total == 5000


def test_a_busy_port_is_an_error_with_a_way_out(rig: Rig) -> None:
    with pytest.raises(HedgerowError, match=r"cannot listen at .*Nothing was started"):
        rig.listen(f"127.0.0.1:{rig.port}")


def test_connections_that_open_no_stream_are_closed(rig: Rig) -> None:
    """TLS and HTTP/2 without a stream: kept, they use up the files that a process may open."""
    stranger = RawHttp2(rig.port)
    for _ in stranger.frames():
        pass  # until it is closed
    stranger.close()
    assert stranger.settled  # it spoke HTTP/2, and was not taken for garbage
    assert rig.ask(NAMES, b"x", 30.0)["p3"].body == b"echo x"


class Recorded:
    """A stream as deliveries see it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent: list[int] = []

    def send(self, number: int, message: bytes) -> None:
        self.sent.append(number)

    def close(self, reason: str) -> None:
        pass


def test_a_party_cannot_reply_for_another() -> None:
    deliveries, streams = Deliveries(), {name: Recorded(name) for name in ("p0", "p1")}
    for stream in streams.values():
        deliveries.connected(stream)  # type: ignore[arg-type]
    replies: dict[str, Reply] = {}
    asking = threading.Thread(
        target=lambda: replies.update(deliveries.ask_each({"p0": b"x", "p1": b"y"}, 60.0))
    )
    asking.start()
    until(lambda: streams["p0"].sent and streams["p1"].sent)
    (first,), (second,) = streams["p0"].sent, streams["p1"].sent
    assert [deliveries.wants("p1", n) for n in (first, second)] == [False, True]
    deliveries.replied("p0", first, b"0")
    deliveries.replied("p1", first, b"in the name of p0")
    deliveries.replied("p1", second, b"1")
    asking.join(30.0)
    assert {name: reply.body for name, reply in replies.items()} == {"p0": b"0", "p1": b"1"}


def test_a_long_hello_is_not_looked_at(rig: Rig) -> None:
    frame = hellos.to_frame(hello_of(rig))
    assert hellos.read_hello(frame + b" ").name == "p0"
    with pytest.raises(FormatError, match="too long"):
        hellos.read_hello(frame + b" " * hellos.LONGEST_HELLO)


def test_one_network_has_no_more_hellos_under_way_than_one_address() -> None:
    strangers = Strangers()
    for origin in ("ipv4:10.0.0.7:{}", "ipv6:%5B2001:db8::{:x}%5D:4000"):
        peers = [origin.format(1000 + i) for i in range(20)]
        assert [strangers.enter(peer) for peer in peers].count(True) == MOST_WAITING
        assert strangers.enter("ipv6:%5B2001:db8:0:1::1%5D:5")  # another network may
        strangers.leave("ipv6:%5B2001:db8:0:1::1%5D:5")
        for peer in peers[:MOST_WAITING]:
            strangers.leave(peer)
        assert strangers.enter(peers[0])
        strangers.leave(peers[0])
