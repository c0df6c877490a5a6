"""A party's stream to the coordinator: dialled, held, and dialled again whenever it ends."""

from __future__ import annotations

import logging
import queue
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc

from hedgerow import clock
from hedgerow.engines.grpc import METHOD, SERVER_NAME
from hedgerow.engines.grpc import hello as hellos
from hedgerow.engines.grpc.certificate import certificate_hash
from hedgerow.engines.grpc.dialling import CONNECT_SECONDS, TOLD_NOTHING, is_loopback, words_of
from hedgerow.engines.grpc.hello import Binding, PartyHello, Unwelcome, Verdict
from hedgerow.engines.grpc.pieces import LONGEST_FRAME, Assembler, pieces_of
from hedgerow.errors import FormatError
from hedgerow.protocol.identity import Identity, Roster

log = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0
STEADY_SECONDS = 10.0  # a stream that lasted so long is dialled again without a pause
MOST_QUEUED = 2  # messages that wait while the party computes; then the coordinator waits
OPTIONS = (
    ("grpc.max_receive_message_length", LONGEST_FRAME),
    ("grpc.ssl_target_name_override", SERVER_NAME),
    ("grpc.use_local_subchannel_pool", 1),  # every attempt is a connection of its own
    ("grpc.enable_retries", 0),
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.bdp_probe", 0),
)


@dataclass(frozen=True)
class Target:
    """Where a party dials and whom it expects there."""

    address: str
    certificate: str  # PEM
    roster: Roster
    own: tuple[str, str] | None = None  # key and certificate to show, where both sides have one


@dataclass(frozen=True)
class LinkState:
    """Whether a party is connected, since when, to whom, and why not."""

    connected: bool
    since: float  # UTC
    address: str
    words: str  # why not; or what both sides should know
    software: str = ""  # of the coordinator
    attempts: int = 0  # that failed in a row


class Link:
    """Keeps a party connected until it is stopped.

    Parameters
    ----------
    name, identity, boot : of the party's process
    handle : answers one message; called by one thread
    target : where to dial; asked again before every attempt
    tell : called with a line for the operator when the state changes
    """

    def __init__(
        self,
        name: str,
        identity: Identity,
        boot: int,
        handle: Callable[[bytes], bytes],
        target: Callable[[], Target],
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._name, self._identity, self._boot = name, identity, boot
        self._handle, self._target, self._tell = handle, target, tell
        self._instance = secrets.token_hex(16)
        self._state = LinkState(False, clock.timestamp(), "", "not dialled yet")
        self._over, self._again = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._call: Any = None
        self._work: queue.Queue[tuple[int, bytes, _Outbox] | None] = queue.Queue(MOST_QUEUED)
        self._threads = [
            threading.Thread(target=run, name=run.__name__, daemon=True)
            for run in (self._dial, self._answer)
        ]

    @property
    def state(self) -> LinkState:
        return self._state

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def redial(self) -> None:
        """End the stream and dial again at once: what is pinned has changed."""
        self._again.set()
        self._hang_up()

    def stop(self) -> None:
        self._over.set()
        self._again.set()
        self._hang_up()
        with suppress(queue.Full):
            self._work.put_nowait(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join(5.0)

    def _hang_up(self) -> None:
        with self._lock:
            if self._call is not None:
                self._call.cancel()

    def _dial(self) -> None:
        pause, failed = FIRST_PAUSE_SECONDS, 0
        while not self._over.is_set():
            self._again.clear()
            target, began = self._target(), clock.monotonic()
            try:
                why = self._hold(target)
            except Unwelcome as error:
                why = str(error)
            except grpc.RpcError as error:
                why = words_of(error, target.address)
            except Exception as error:  # nothing may end the party's only way to the others
                log.error("the stream failed inside: %s", type(error).__name__)
                why = f"the stream failed inside ({type(error).__name__})"
            if self._over.is_set():
                return
            lasted = clock.monotonic() - began > STEADY_SECONDS
            failed = 0 if lasted else failed + 1
            pause = FIRST_PAUSE_SECONDS if lasted else min(2 * pause, LONGEST_PAUSE_SECONDS)
            self._became(LinkState(False, self._since(), target.address, why, "", failed))
            self._again.wait(pause * (0.5 + secrets.randbelow(1000) / 1000))

    def _since(self) -> float:
        return clock.timestamp() if self._state.connected else self._state.since

    def _became(self, state: LinkState) -> None:
        before, self._state = self._state, state
        if (before.connected, before.words) == (state.connected, state.words):
            return
        if state.connected:
            also = f" {state.words}." if state.words else ""
            self._tell(f"connected to the coordinator at {state.address}.{also}")
        else:
            self._tell(f"not connected: {state.words}. Dialling again until it answers.")

    def _hold(self, target: Target) -> str:
        """Dial, say hello, and answer until the stream ends; returns why it ended."""
        outbox = _Outbox()
        with grpc.secure_channel(
            target.address, _credentials(target), [*OPTIONS, _proxy_option(target.address)]
        ) as channel:
            call = channel.stream_stream(METHOD)(outbox.frames())
            with self._lock:
                self._call = call
            timer = threading.Timer(CONNECT_SECONDS, call.cancel)
            timer.daemon = True
            timer.start()
            try:
                verdict = self._greet(call, outbox, target)
                timer.cancel()
                state = LinkState(
                    True, clock.timestamp(), target.address, verdict.words, verdict.software
                )
                self._became(state)
                self._listen(call, outbox)
            finally:
                timer.cancel()
                outbox.close()
                call.cancel()
                with self._lock:
                    self._call = None
        return "the coordinator ended the stream"

    def _greet(self, call: Any, outbox: _Outbox, target: Target) -> Verdict:
        challenge = hellos.read_challenge(_next(call))
        binding = Binding(
            challenge, certificate_hash(target.certificate), target.roster.coordinator
        )
        nonce = secrets.token_hex(hellos.NONCE_BYTES)
        hello = PartyHello(
            self._name, self._identity.public, self._boot, self._instance, target.roster.hash,
            nonce,
        ).signed(self._identity, binding)  # fmt: skip
        outbox.put(hellos.to_frame(hello))
        verdict = hellos.read_verdict(_next(call), hello, binding)
        remarks = hellos.remarks(
            clock.timestamp(), verdict.time, target.roster.hash, verdict.roster
        )
        return Verdict(**{**verdict.__dict__, "words": remarks})

    def _listen(self, call: Any, outbox: _Outbox) -> None:
        assembler = Assembler()
        try:
            for frame in call:
                if (entry := assembler.add(frame)) is not None:
                    self._queue(*entry, outbox)
                del entry  # or the message would be kept until the next one begins
        except FormatError as error:
            raise Unwelcome(f"the coordinator sent what is not allowed: {error}") from error
        finally:
            assembler.clear()  # see `Assembler`

    def _queue(self, number: int, message: bytes, outbox: _Outbox) -> None:
        """Wait for a place in line; the coordinator sends no more until there is one."""
        while not self._over.is_set() and not outbox.closed:
            with suppress(queue.Full):
                self._work.put((number, message, outbox), timeout=0.5)
                return

    def _answer(self) -> None:
        """The party's answers, one after another, whatever becomes of the stream meanwhile."""
        while (entry := self._work.get()) is not None and not self._over.is_set():
            number, message, outbox = entry
            if not outbox.closed:  # else it is sent again on the next stream
                try:
                    outbox.answer(number, self._handle(message))
                except Exception as error:
                    log.error("a message could not be answered: %s", type(error).__name__)
            del entry, message, outbox  # nothing of it is kept until the next one


class _Outbox:
    """What a party sends on one stream."""

    def __init__(self) -> None:
        self._line: queue.SimpleQueue[bytes | tuple[int, bytes] | None] = queue.SimpleQueue()
        self.closed = False

    def put(self, frame: bytes) -> None:
        self._line.put(frame)

    def answer(self, number: int, reply: bytes) -> None:
        self._line.put((number, reply))

    def close(self) -> None:
        self.closed = True
        self._line.put(None)

    def frames(self) -> Iterator[bytes]:
        while (entry := self._line.get()) is not None and not self.closed:
            if isinstance(entry, bytes):
                yield entry
            else:
                yield from pieces_of(*entry)
            del entry  # or the reply would be kept until the next one


def _next(call: Any) -> bytes:
    """The next frame; Unwelcome if the stream ended without one."""
    frame = next(call, None)
    if frame is None:
        raise Unwelcome(TOLD_NOTHING)
    return bytes(frame)


def _credentials(target: Target) -> Any:
    roots = target.certificate.encode()
    if target.own is None:
        return grpc.ssl_channel_credentials(roots)
    key, certificate = target.own
    return grpc.ssl_channel_credentials(roots, key.encode(), certificate.encode())


def _proxy_option(address: str) -> tuple[str, int]:
    """Proxies of the environment are used (https_proxy), but not for this machine itself."""
    return ("grpc.enable_http_proxy", 0 if is_loopback(address) else 1)
