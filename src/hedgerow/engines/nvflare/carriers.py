"""The two ends inside NVFlare's job processes. They move bytes and keep nothing on disk.

The coordinator's end takes an envelope (see `envelopes.py`) at a socket file of its kit and passes
the message on to the parties' ends; a party's end hands it to the party's own process through a
socket file of that kit, and brings the reply back. Neither reads a message.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from pathlib import Path
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal
from nvflare.apis.workspace import Workspace

from hedgerow import clock
from hedgerow.engines.nvflare import envelopes
from hedgerow.engines.nvflare.envelopes import Outcome, Round
from hedgerow.engines.nvflare.hardening import AUX_TOPIC
from hedgerow.engines.nvflare.room import kit_of_room
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Listener, Unreachable, call

log = logging.getLogger(__name__)
ABANDONED_SECONDS = 20.0  # without an engine, after which the job ends itself
PARTY_SECONDS = 3600.0  # the longest that a party may compute on one message
_UNREACHED = {ReturnCode.TIMEOUT: "silent", ReturnCode.COMMUNICATION_ERROR: "absent"}
_KEPT = 2  # replies that a party's end keeps for a coordinator that asks again


class CoordinatorCarrier(Controller):
    """Carries each envelope to the parties' ends, until it is told to finish."""

    def __init__(self) -> None:
        super().__init__()
        self._finished = threading.Event()

    def start_controller(self, fl_ctx: FLContext) -> None:
        self._kit = _kit_of(fl_ctx)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Listen for as long as an engine uses this kit."""
        self._job = str(fl_ctx.get_job_id())
        seen = clock.monotonic()
        with Listener(self._kit.carrier_socket, self._handle):
            while not abort_signal.triggered and not self._finished.wait(0.2):
                if engine_is_alive(self._kit):
                    seen = clock.monotonic()
                elif clock.monotonic() - seen > ABANDONED_SECONDS:
                    log.warning("no engine has used this job for a while; it ends")
                    return

    def stop_controller(self, fl_ctx: FLContext) -> None:
        self._finished.set()

    def _handle(self, envelope: bytes) -> bytes:
        if envelope == envelopes.FINISH:
            self._finished.set()
            return b""
        if envelope == envelopes.HELLO:
            return self._job.encode("utf-8")
        return envelopes.pack_outcomes(self._carry(Round.from_bytes(envelope)))

    def _carry(self, asked: Round) -> dict[str, Outcome]:
        # One name that this job does not know would make NVFlare send to nobody.
        known = [name for name in asked.names if self._engine.get_client_from_name(name)]
        if not known:
            return dict.fromkeys(asked.names, Outcome("absent"))
        request = Shareable()
        request.update({"id": asked.id, "wait": asked.wait_seconds, "body": asked.body})
        with self._engine.new_context() as context:
            replies = self._engine.send_aux_request(
                targets=known,
                topic=AUX_TOPIC,
                request=request,
                timeout=asked.wait_seconds + asked.grace_seconds,
                fl_ctx=context,
                optional=True,
            )
        return {name: _outcome((replies or {}).get(name)) for name in asked.names}


class PartyCarrier(Executor):
    """Hands each message to the party's own process, once, and keeps the reply for a repeat."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._errands: dict[str, _Errand] = {}

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        if event_type == EventType.START_RUN:
            self._socket = _kit_of(fl_ctx).party_socket
            fl_ctx.get_engine().register_aux_message_handler(AUX_TOPIC, self._handle)

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """NVFlare's tasks are not used."""
        return make_reply(ReturnCode.TASK_UNKNOWN)

    def _handle(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
        # Only the coordinator's job gets here: `doors.refusal` has seen its certificate.
        name, wait, body = request.get("id"), request.get("wait"), request.get("body")
        if not (isinstance(name, str) and isinstance(wait, float) and isinstance(body, bytes)):
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        errand = self._errand(name, body)
        state = "unknown" if errand is None else errand.state(wait)
        reply = make_reply(ReturnCode.OK)
        reply["state"] = state
        if errand is not None and state == "done":
            reply["body"] = errand.reply
        return reply

    def _errand(self, name: str, body: bytes) -> _Errand | None:
        """The errand of this id; a message without a body only asks how it goes."""
        with self._lock:
            known = self._errands.get(name)
            if known is not None and known.state(0.0) == "down":
                body = known.body  # the party's own process may be back
            elif known is not None or not body:
                return known
            self._errands.pop(name, None)
            while len(self._errands) >= _KEPT:
                del self._errands[next(iter(self._errands))]
            self._errands[name] = _Errand(self._socket, body)
            return self._errands[name]


class _Errand:
    """One message on its way to the party's own process."""

    def __init__(self, path: Path, body: bytes) -> None:
        self.body, self.reply = body, b""
        self._failed = False
        self._done = threading.Event()
        threading.Thread(target=self._run, args=(path,), daemon=True).start()

    def state(self, wait_seconds: float) -> str:
        if not self._done.wait(wait_seconds):
            return "working"
        return "down" if self._failed else "done"

    def _run(self, path: Path) -> None:
        try:
            self.reply = call(path, self.body, PARTY_SECONDS)
            self.body = b""
        except Unreachable:
            self._failed = True
        finally:
            self._done.set()


def engine_is_alive(kit: Site) -> bool:
    """Whether a process holds the lock of the engine in the coordinator's kit."""
    try:
        descriptor = os.open(kit.folder / "engine.lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _kit_of(fl_ctx: FLContext) -> Site:
    """The kit that this process runs from: told by NVFlare's workspace, never by a job."""
    workspace: Workspace = fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT)
    return kit_of_room(Path(workspace.get_root_dir()))


def _outcome(reply: Any) -> Outcome:
    if reply is None:
        return Outcome("absent")
    code = reply.get_return_code()
    if code != ReturnCode.OK:
        return Outcome(_UNREACHED.get(code, f"failed: {code}"))
    body = reply.get("body", b"")
    state = reply.get("state")
    if not isinstance(state, str) or not isinstance(body, bytes):
        return Outcome("failed: unreadable reply")
    return Outcome(state, body)
