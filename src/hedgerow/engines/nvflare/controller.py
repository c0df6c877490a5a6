"""The coordinator's end of the relay: `hedgerow train` at a local socket, parties by NVFlare."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.server_engine_spec import ServerEngineSpec
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from hedgerow import clock
from hedgerow.engines.nvflare.executor import FIELD, TOPIC
from hedgerow.engines.party_end import FILE, read_end
from hedgerow.engines.switchboard import CoordinatorEnd, Switchboard, listen
from hedgerow.protocol.engine import Reply

log = logging.getLogger(__name__)
POLL_SECONDS = 0.2
STARTING_SECONDS = 20.0  # for a site's job process that does not know the topic yet
_WORDS = {
    ReturnCode.TIMEOUT: "NVFlare did not bring its reply in time",
    ReturnCode.COMMUNICATION_ERROR: "NVFlare could not reach it",
    ReturnCode.TOPIC_UNKNOWN: "its job process runs, and its end of the relay does not",
}


class RelayController(Controller):
    """Carries what comes in at the socket that the server's own file names.

    Parameters
    ----------
    idle_seconds : the job ends itself when nothing was carried for so long
    """

    def __init__(self, idle_seconds: float = 600.0) -> None:
        super().__init__()
        self.idle_seconds = idle_seconds
        self._over = threading.Event()

    def start_controller(self, fl_ctx: FLContext) -> None:
        folder = Path(fl_ctx.get_workspace().get_site_config_dir())
        self._end = read_end(CoordinatorEnd, folder / FILE)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Listen until the job is aborted, or nobody has used it for a while."""
        messages = AuxMessages(fl_ctx.get_engine())
        with Switchboard(messages) as board, listen(self._end, board):
            self.log_info(fl_ctx, f"listening at {self._end.socket} for hedgerow train")
            while not abort_signal.triggered and not self._over.wait(POLL_SECONDS):
                if board.idle_seconds > self.idle_seconds:
                    self.log_info(fl_ctx, "nobody has used this relay for a while; it ends")
                    return

    def stop_controller(self, fl_ctx: FLContext) -> None:
        self._over.set()


class AuxMessages:
    """NVFlare's messages beside its tasks, from the server's job to the sites' jobs."""

    slack_seconds = 3.0

    def __init__(self, engine: ServerEngineSpec) -> None:
        self._engine = engine

    def nodes(self) -> Sequence[str]:
        return [client.name for client in self._engine.get_clients()]

    def carry(self, messages: Mapping[str, bytes], seconds: float) -> dict[str, Reply]:
        """Send, and again to job processes that are starting and do not know the topic yet."""
        deadline = clock.monotonic() + seconds
        starting = clock.monotonic() + min(seconds, STARTING_SECONDS)
        found: dict[str, Reply] = {}
        waiting = dict(messages)
        while waiting:
            replies = self._send(waiting, max(1.0, deadline - clock.monotonic()))
            again = clock.monotonic() + POLL_SECONDS < starting
            for name in list(waiting):
                code, data = _read(replies.get(name))
                if code == ReturnCode.TOPIC_UNKNOWN and again:
                    continue
                del waiting[name]
                words = _WORDS.get(code, f"NVFlare says {code}")
                found[name] = Reply(data, "" if data is not None else words)
            if waiting:
                clock.sleep(POLL_SECONDS)
        return found

    def _send(self, messages: Mapping[str, bytes], seconds: float) -> dict[str, Any]:
        """What NVFlare brought back, by node. Different messages go out at the same time."""
        # One name that the job does not know would make NVFlare send to nobody.
        known, groups = set(self.nodes()), dict[bytes, list[str]]()
        for name, data in messages.items():
            if name in known:
                groups.setdefault(data, []).append(name)
        found: dict[str, Any] = {}
        with ThreadPoolExecutor(max(1, len(groups)), "aux") as pool:
            sent = [
                pool.submit(self._send_one, names, data, seconds) for data, names in groups.items()
            ]
            for replies in sent:
                found |= replies.result()
        return found

    def _send_one(self, names: list[str], data: bytes, seconds: float) -> dict[str, Any]:
        request = Shareable()
        request[FIELD] = data
        with self._engine.new_context() as context:
            replies = self._engine.send_aux_request(
                names, TOPIC, request, seconds, context, optional=True
            )
        return dict(replies or {})


def _read(reply: Any) -> tuple[str, bytes | None]:
    if not isinstance(reply, Shareable):
        return ReturnCode.COMMUNICATION_ERROR, None
    code, data = reply.get_return_code(ReturnCode.OK), reply.get(FIELD)
    if code == ReturnCode.OK and not isinstance(data, bytes):
        code = ReturnCode.BAD_REQUEST_DATA
    return code, data if code == ReturnCode.OK else None
