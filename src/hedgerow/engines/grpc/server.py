"""The coordinator's port. Each party holds one stream here; messages go out and replies come back.

Before the hello a stream may say one short frame, within seconds; afterwards one message at a time,
which must be a reply that is owed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import grpc

from hedgerow import clock
from hedgerow.engines.grpc import METHOD
from hedgerow.engines.grpc import hello as hellos
from hedgerow.engines.grpc.certificate import certificate_hash
from hedgerow.engines.grpc.deliveries import Deliveries, PartyStream
from hedgerow.engines.grpc.hello import Binding, Members, PartyHello, Stranger, Verdict
from hedgerow.engines.grpc.pieces import LONGEST_FRAME
from hedgerow.engines.grpc.strangers import SilentConnections, Strangers, host_of
from hedgerow.errors import FormatError, HedgerowError
from hedgerow.protocol.engine import Reply
from hedgerow.protocol.identity import Identity

log = logging.getLogger(__name__)
HELLO_SECONDS = 5.0  # for a stream to say who it is
SPARE_THREADS = 10  # beside one for every party
STOP_SECONDS = 5.0  # for streams to end
LOOK_SECONDS = 1.0  # between looks at connections that say nothing
MOST_PARTIES = 1000
IDLE_MS = 5_000  # for a connection without a stream: strangers could hold all the files there are
OPTIONS = (
    ("grpc.max_receive_message_length", LONGEST_FRAME),  # what anybody can make us allocate
    ("grpc.max_metadata_size", 2**14),
    ("grpc.max_concurrent_streams", 1),  # of one connection
    ("grpc.so_reuseport", 0),  # or a second coordinator would share the port in silence
    ("grpc.server_handshake_timeout_ms", 3_000),  # gRPC's own is two minutes
    ("grpc.max_connection_idle_ms", IDLE_MS),
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 10_000),  # 5 s would drop healthy parties on slow lines
    ("grpc.http2.ping_timeout_ms", 10_000),  # without it a hung peer is noticed after a minute
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.http2.bdp_probe", 0),
)


@dataclass(frozen=True)
class Peer:
    """What the coordinator knows of one party that is, or was, connected."""

    name: str
    connected: bool
    since: float  # UTC
    address: str
    boot: int
    software: str
    remarks: str
    why: str = ""  # it is not connected
    starts: int = 1  # new processes of the party that were seen in the last ten minutes


class Server:
    """Listens until it is closed. Use it in `with`, or close it.

    Parameters
    ----------
    listen : host:port of this machine
    certificate, key : PEM, of this site
    identity : the coordinator's signing key
    members : whom it lets in
    boots : the newest start that was seen of each key; `note_boot` is told when one is newer
    """

    def __init__(
        self,
        listen: str,
        certificate: str,
        key: str,
        identity: Identity,
        members: Members,
        boots: Mapping[str, int] | None = None,
        note_boot: Callable[[str, int], None] = lambda key, boot: None,
    ) -> None:
        self._identity, self._members = identity, members
        self._certificate, self._key = certificate, key
        self._hash = certificate_hash(certificate)
        self._boots, self._note_boot = dict(boots or {}), note_boot
        self._deliveries, self._strangers = Deliveries(), Strangers()
        self._lock = threading.Lock()
        self._peers: dict[str, Peer] = {}
        self._starts: dict[str, list[float]] = {}
        self._refused: dict[str, tuple[str, str]] = {}  # by name: from where, and why
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(MOST_PARTIES + SPARE_THREADS, "stream")
        self._server, self.port = self._bind(listen)
        self._listen = f"{listen.rpartition(':')[0]}:{self.port}"
        self._silent = SilentConnections(self.port, self._strangers)
        self._server.start()
        self._looking = threading.Thread(target=self._look, name="strangers", daemon=True)
        self._looking.start()

    def ask_each(self, messages: Mapping[str, bytes], timeout_seconds: float) -> dict[str, Reply]:
        """Carry each party its message; see `Deliveries`."""
        return self._deliveries.ask_each(messages, timeout_seconds)

    def connected(self) -> dict[str, int]:
        """Parties that are connected now, with the boot counter of the process that is."""
        return {name: stream.hello.boot for name, stream in self._deliveries.streams().items()}

    def status(self) -> list[dict[str, Any]]:
        """Every party of the roster: who is there, since when, and what is wrong."""
        with self._lock:
            peers, refused = dict(self._peers), dict(self._refused)
        absent = "it has not connected since the coordinator was started"
        names = self._members.roster.names
        known = [peers.get(n, Peer(n, False, 0.0, "", 0, "", "", absent)) for n in names]
        return [
            asdict(
                replace(one, address=refused[one.name][0], why=f"refused: {refused[one.name][1]}")
                if one.name in refused and not one.connected
                else one
            )
            for one in known
        ]

    @property
    def turned_away(self) -> int:
        """Strangers since the start."""
        return self._strangers.total

    def accept(self, members: Members) -> None:
        """Another roster holds from now on; whoever is not in it is disconnected.

        If the certificates of parties change, the port is opened anew and all dial again.
        """
        with self._lock:
            before, self._members = self._members, members
        for stream in self._deliveries.streams().values():
            if members.roster.keys.get(stream.name) != stream.hello.key:
                stream.close("its key is not in the roster any more")
        if members.certificates != before.certificates:
            self._server.stop(None).wait(STOP_SECONDS)
            self._server, _ = self._bind(self._listen)
            self._server.start()

    def close(self) -> None:
        self._over.set()
        for stream in self._deliveries.streams().values():
            stream.close("the coordinator was stopped")
        self._server.stop(1.0).wait(STOP_SECONDS)
        self._pool.shutdown(wait=False)
        self._looking.join(STOP_SECONDS)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _bind(self, listen: str) -> tuple[Any, int]:
        """A gRPC server and its port.

        Its credentials are never replaced. Since gRPC listens with several threads (1.76 and 1.85
        were tried), `dynamic_ssl_server_credentials` frees the ones before while another thread
        still makes a handshake of them (grpc/grpc#36693), and the process dies.
        """
        pinned = self._members.certificates
        credentials = grpc.ssl_server_credentials(
            [(self._key.encode(), self._certificate.encode())],
            "\n".join(pinned.values()).encode() if pinned is not None else None,
            require_client_auth=pinned is not None,
        )
        server = grpc.server(self._pool, options=OPTIONS, handlers=[_Handler(self._serve)])
        try:
            return server, int(server.add_secure_port(listen, credentials))
        except RuntimeError as error:
            raise HedgerowError(
                f"cannot listen at {listen}: a coordinator may be running already, or something "
                "else uses the port, or this machine does not have the address. Nothing was "
                "started. Stop whatever uses it, or make the site folder with another --listen."
            ) from error

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._silent.look()

    def _serve(self, frames: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """One stream, from the challenge until it ends; runs in a thread of its own."""
        peer = context.peer()
        if not self._strangers.enter(peer):
            self._strangers.turned_away(host_of(peer), "it opens too many streams at once")
            context.abort(grpc.StatusCode.UNAVAILABLE, "")
        self._silent.spoke(peer)
        timer = threading.Timer(HELLO_SECONDS, context.cancel)
        timer.daemon = True
        timer.start()
        try:
            binding = Binding(hellos.new_challenge(), self._hash, self._identity.public)
            yield binding.challenge.encode("ascii")
            hello, verdict = self._hear(next(frames, b""), binding, context)
            timer.cancel()
            if not verdict.welcome:  # noted first: whoever has heard it is gone
                self._log_refusal(hello.name, host_of(peer), verdict.words)
            yield hellos.to_frame(verdict)
            if not verdict.welcome:
                return
            stream = self._admit(hello, verdict, frames, context)
        except Stranger as error:
            self._strangers.turned_away(host_of(peer), str(error))
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "")
        except Exception as error:  # a stream that broke off; gRPC has no class of its own for it
            self._strangers.turned_away(host_of(peer), f"no hello came ({type(error).__name__})")
            raise
        finally:
            timer.cancel()
            self._strangers.leave(peer)
        yield from stream.outgoing()

    def _hear(self, frame: bytes, binding: Binding, context: Any) -> tuple[PartyHello, Verdict]:
        """Who speaks, and whether it may; Stranger if that is nobody of ours."""
        if context.auth_context().get("ssl_tls_version") not in (None, [b"TLSv1.3"]):
            raise Stranger("it does not speak TLS 1.3")
        if not frame:
            raise Stranger("it said no hello")
        try:
            hello = hellos.read_hello(frame)
        except FormatError as error:
            raise Stranger("its hello is not readable") from error
        members = self._members
        why = members.judge(hello, binding)
        if members.certificates is not None:  # that it verified is not enough: it must be the one
            shown = context.auth_context().get("x509_pem_cert", [b""])[0].decode("ascii", "replace")
            if shown.strip() != members.certificates.get(hello.name, "").strip():
                raise Stranger(f"it shows another certificate than that of {hello.name}")
        why = why or self._check_start(hello)  # last: it puts the start on record
        remarks = hellos.remarks(clock.timestamp(), hello.time, members.roster.hash, hello.roster)
        words = why or "; ".join(filter(None, (self._older_start(hello), remarks)))
        verdict = Verdict(not why, words, members.roster.hash)
        return hello, verdict.signed(self._identity, hello, binding)

    def _log_refusal(self, name: str, host: str, words: str) -> None:
        """Once for each reason: a party that is refused dials again every few seconds."""
        with self._lock:
            known = self._refused.get(name) == (host, words)
            self._refused[name] = (host, words)
        if not known:
            log.warning("refused %s at %s: %s", name, host, words)

    def _check_start(self, hello: PartyHello) -> str:
        """Refuse a process of a party that is older than the one that is connected, or its copy.

        Where no other one is connected, an older start is let in: its ledger was restored, and the
        others have to show it what it has lost.
        """
        with self._lock:
            newest = self._boots.get(hello.key, 0)
            stream = self._deliveries.streams().get(hello.name)
            if hello.boot < newest and stream is not None:
                return (
                    f"start {newest} of {hello.name} was seen before and is connected, and this is "
                    f"start {hello.boot}: an older copy of its site folder runs. Stop it"
                )
            if (
                hello.boot == newest
                and stream is not None
                and stream.hello.instance != hello.instance
            ):
                return (
                    f"start {newest} of {hello.name} is connected from another process already: "
                    "its site folder was copied. Run one of them only"
                )
            if hello.boot > newest:
                self._boots[hello.key] = hello.boot
                self._starts.setdefault(hello.name, []).append(clock.monotonic())
                self._note_boot(hello.key, hello.boot)
        return ""

    def _older_start(self, hello: PartyHello) -> str:
        newest = self._boots.get(hello.key, 0)
        if hello.boot >= newest:
            return ""
        return (
            f"start {newest} of {hello.name} was seen before, and this is start {hello.boot}: its "
            "ledger was restored, and the next run says what it has lost"
        )

    def _admit(
        self, hello: PartyHello, verdict: Verdict, frames: Iterator[bytes], context: Any
    ) -> PartyStream:
        address = host_of(context.peer())
        stream = PartyStream(hello, self._deliveries, context)
        with self._lock:
            recent = [t for t in self._starts.get(hello.name, ()) if clock.monotonic() - t < 600]
            self._starts[hello.name] = recent
            self._refused.pop(hello.name, None)
            self._peers[hello.name] = Peer(
                hello.name, True, clock.timestamp(), address, hello.boot, hello.software,
                verdict.words, "", len(recent),
            )  # fmt: skip
            self._deliveries.connected(stream)
        if not context.add_callback(partial(self._ended, stream)):
            self._ended(stream)
        stream.start(frames)
        also = f"; {verdict.words}" if verdict.words else ""
        log.info("%s connected from %s (start %d)%s", hello.name, address, hello.boot, also)
        return stream

    def _ended(self, stream: PartyStream) -> None:
        """A stream is over, however it ended."""
        stream.close("its stream ended: its process or its network is gone")
        with self._lock:
            if not self._deliveries.ended(stream):
                return
            self._peers[stream.name] = replace(
                self._peers[stream.name],
                connected=False,
                since=clock.timestamp(),
                why=stream.why,
            )
        log.info("%s is gone: %s", stream.name, stream.why)


class _Handler(grpc.GenericRpcHandler):
    """The one method that there is, on plain bytes."""

    def __init__(self, serve: Callable[[Iterator[bytes], Any], Iterator[bytes]]) -> None:
        self._method = grpc.stream_stream_rpc_method_handler(serve)

    def service(self, handler_call_details: Any) -> Any:
        return self._method if handler_call_details.method == METHOD else None
