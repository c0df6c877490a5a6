"""A party's end of the relay: Flower's messages to the party's own process, and back.

Flower starts a process for every message, so nothing is kept here between two of them.
"""

from __future__ import annotations

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from hedgerow.data.documents import Document
from hedgerow.engines.flower import FIELD, RECORD
from hedgerow.engines.party_end import PartyEnd
from hedgerow.errors import FormatError, SettingsError

app = ClientApp()
_NODE = Document("node's configuration (`flower-supernode --node-config`)", SettingsError)


@app.query()
def answer(message: Message, context: Context) -> Message:
    """Hand it to the party's process, at the socket that the SuperNode's own configuration names.

    What comes with the run (`context.run_config`) is its submitter's, and is not looked at.
    """
    told = {
        key.removeprefix("hedgerow-"): value
        for key, value in context.node_config.items()
        if key.startswith("hedgerow-")
    }
    data = message.content[RECORD][FIELD]
    if not isinstance(data, bytes):
        raise FormatError("what a relay carried is not readable")
    reply = ConfigRecord({FIELD: _NODE.read(PartyEnd, told).answer(data)})
    return Message(content=RecordDict({RECORD: reply}), reply_to=message)
