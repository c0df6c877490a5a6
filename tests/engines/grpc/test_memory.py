"""What large messages cost: the coordinator's process as a whole, and what either end keeps."""

from __future__ import annotations

import os
import subprocess
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hedgerow.deployment.trial import free_port, hedgerow, pin_everywhere
from hedgerow.engines.grpc.client import Link, Target, _Outbox
from hedgerow.engines.grpc.deliveries import Deliveries, PartyStream
from hedgerow.engines.grpc.pieces import pieces_of
from hedgerow.engines.relay import RelayEngine
from hedgerow.engines.site import COORDINATOR, Site
from tests.engines.grpc.rig import NAMES, Rig, until
from tests.engines.grpc.test_hello import hello_of

# 160 MB are there before any message: Python with NumPy, Numba, gRPC. Then a message is in memory
# twice at most, and so are all replies together, so 3 x 10 MB take up to 80 MB more.
MOST_MB = 300.0
LARGE = 8_000_000


@pytest.mark.parametrize(("n", "size", "breaks"), [(3, 10_000_000, 6), (50, 100_000, 0)])
def test_the_coordinators_process_stays_below_300_mb(
    tmp_path: Path, n: int, size: int, breaks: int
) -> None:
    """Also where streams break off in the middle of messages."""
    names, address = [f"p{i}" for i in range(n)], f"127.0.0.1:{free_port()}"
    site = Site.create(tmp_path / COORDINATOR, COORDINATOR, address)
    sites = {COORDINATOR: site, **{name: Site.create(tmp_path / name, name) for name in names}}
    pin_everywhere(sites)
    target = Target(address, site.certificate()[1], site.roster())
    links = [Link(m, sites[m].identity(), 1, lambda m: m[::-1], lambda: target) for m in names]
    with (tmp_path / "log").open("wb") as log:
        command = hedgerow(["coordinator", "start", str(site.path)])
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for link in links:
            link.start()
        engine, message = RelayEngine(site.carrier_socket, names, ""), os.urandom(size)
        assert engine.await_parties(300.0) == []
        for turn in range(max(breaks, 4)):
            for i, link in enumerate(links if turn < breaks else ()):
                threading.Timer(0.05 * (i + 1) + 0.03 * turn, link.redial).start()
            replies = engine.ask(names, message, 300.0)
            assert all(reply.body == message[::-1] for reply in replies.values())
        status = Path(f"/proc/{process.pid}/status").read_text("ascii")
        assert int(status.partition("VmHWM:")[2].split()[0]) / 1024 < MOST_MB
    finally:
        for link in links:
            link.stop()
        process.terminate()
        process.wait(60)


def kept_bytes(action: Callable[[], object]) -> int:
    """How much of the memory that something took is still in use after it was done."""
    tracemalloc.start()  # counts from here on
    try:
        action()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_nothing_of_a_message_is_kept_once_it_was_answered(rig: Rig) -> None:
    message = bytes(LARGE)
    with rig.answering(lambda asked: asked[::-1]):
        rig.ask(NAMES, b"first", 60.0)

        def ask() -> None:
            rig.ask(NAMES, message, 60.0)
            # The last piece may be kept at either end. Threads of gRPC let go when they run again.
            until(lambda: tracemalloc.get_traced_memory()[0] < LARGE / 2)

        kept_bytes(ask)


class BreaksOff:
    """Frames of half a message, then an error that is kept, as gRPC keeps those of streams."""

    def __init__(self) -> None:
        self.kept: list[Exception] = []

    def __iter__(self) -> Iterator[bytes]:
        yield from list(pieces_of(1, bytes(2 * LARGE)))[: LARGE // 2**18]
        self.kept.append(RuntimeError("the network is gone"))
        raise self.kept[0]


class NoContext:
    def cancel(self) -> None:
        pass


def test_a_reply_that_breaks_off_is_not_kept_with_its_error(rig: Rig) -> None:
    deliveries, frames = Deliveries(), BreaksOff()
    stream: Any = PartyStream(hello_of(rig, "p0"), deliveries, NoContext())
    deliveries.connected(stream)
    waiting = threading.Thread(
        target=deliveries.ask_each, args=({"p0": b"question"}, 60.0), daemon=True
    )
    waiting.start()
    until(lambda: deliveries.wants("p0", 1))
    assert kept_bytes(lambda: stream._read(iter(frames))) < LARGE / 4
    assert len(frames.kept) == 1
    deliveries.replied("p0", 1, b"at last")
    waiting.join(60.0)


def test_a_question_that_breaks_off_is_not_kept_with_its_error(rig: Rig) -> None:
    frames = BreaksOff()
    link = Link("p0", rig.identities["p0"], 1, bytes.upper, rig.target)

    def listen() -> None:
        with pytest.raises(RuntimeError, match="the network is gone"):
            link._listen(frames, _Outbox())

    assert kept_bytes(listen) < LARGE / 4
    assert len(frames.kept) == 1
