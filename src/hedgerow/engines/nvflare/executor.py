"""A party's end of the relay: NVFlare's messages to the party's own process, and back."""

from __future__ import annotations

from pathlib import Path

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from hedgerow.engines.party_end import FILE, PartyEnd, read_end
from hedgerow.errors import FormatError

TOPIC, FIELD = "hedgerow", "data"  # of the messages that both ends send


class RelayExecutor(Executor):
    """Hands each message to the party's process, at the socket that the site's own file names."""

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        if event_type == EventType.START_RUN:
            folder = Path(fl_ctx.get_workspace().get_site_config_dir())
            self._end = read_end(PartyEnd, folder / FILE)
            fl_ctx.get_engine().register_aux_message_handler(TOPIC, self._handle)

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """NVFlare's tasks are not used: a round of them takes two seconds."""
        return make_reply(ReturnCode.TASK_UNKNOWN)

    def _handle(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
        data = request.get(FIELD)
        if not isinstance(data, bytes):
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        try:
            answer = self._end.answer(data)
        except FormatError:
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        reply = make_reply(ReturnCode.OK)
        reply[FIELD] = answer
        return reply
