"""The coordinator's end of the relay: `hedgerow train` at a local socket, parties by Flower."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp

from hedgerow import clock
from hedgerow.engines.flower import FIELD, RECORD
from hedgerow.engines.party_end import read_end
from hedgerow.engines.switchboard import CoordinatorEnd, Switchboard, listen
from hedgerow.errors import SettingsError
from hedgerow.protocol.engine import Reply

log = logging.getLogger(__name__)
FILE = "HEDGEROW_RELAY"  # in the environment of the SuperLink: the path of a file of ours
POLL_SECONDS = 0.1
IDLE_SECONDS = 600.0

app = ServerApp()


@app.main()
def relay(grid: Grid, context: Context) -> None:
    """Listen until the run is stopped, or nobody has used it for a while."""
    if not (file := os.environ.get(FILE)):
        raise SettingsError(
            f"{FILE} is not set where the SuperLink runs. Its administrator sets it to the path of "
            "a file that names the socket for `hedgerow train`."
        )
    end = read_end(CoordinatorEnd, Path(file))
    idle = float(str(context.run_config.get("idle-seconds", IDLE_SECONDS)))
    with Switchboard(GridMessages(grid)) as board, listen(end, board):
        log.info("listening at %s for hedgerow train", end.socket)
        while board.idle_seconds < idle:
            clock.sleep(POLL_SECONDS)


class GridMessages:
    """Flower's messages from a ServerApp to the ClientApps of its nodes."""

    slack_seconds = 40.0  # less than a `RelayEngine` waits; every message starts a process

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def nodes(self) -> Sequence[str]:
        return [str(node) for node in self._grid.get_node_ids()]

    def carry(self, messages: Mapping[str, bytes], seconds: float) -> dict[str, Reply]:
        """Push all of them, then pull until every reply is there or time is over."""
        deadline = clock.monotonic() + seconds
        sent = [_message(int(node), data, seconds) for node, data in messages.items()]
        ids = list(self._grid.push_messages(sent))
        if len(ids) != len(sent):  # it is longer than the SuperLink takes
            return dict.fromkeys(messages, Reply(None, "Flower did not take the message"))
        waiting = {id_: node for id_, node in zip(ids, messages, strict=True) if id_}
        found: dict[str, Reply] = {}
        while waiting and clock.monotonic() < deadline:
            for reply in self._grid.pull_messages(list(waiting)):
                node = waiting.pop(reply.metadata.reply_to_message_id, None)
                if node is not None:
                    found[node] = _carried(reply)
            if waiting:
                clock.sleep(POLL_SECONDS)
        late = Reply(None, "Flower did not bring its reply in time")
        return {node: found.get(node, late) for node in messages}


def _message(node: int, data: bytes, seconds: float) -> Message:
    content = RecordDict({RECORD: ConfigRecord({FIELD: data})})
    return Message(content, dst_node_id=node, message_type=MessageType.QUERY, ttl=seconds)


def _carried(reply: Message) -> Reply:
    if reply.has_error():
        return Reply(None, f"Flower says: {reply.error.reason}")
    data = reply.content[RECORD][FIELD] if RECORD in reply.content else None
    if not isinstance(data, bytes):
        return Reply(None, "its ClientApp said what is not readable")
    return Reply(data)
