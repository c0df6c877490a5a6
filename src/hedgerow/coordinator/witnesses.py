"""The coordinator's part in witnessed ledgers: it carries what parties show and leave each other.

It can withhold and cannot forge: every head and every show is signed, for this handshake. Parties
of one process have no need of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from hedgerow.coordinator.transport import Transport
from hedgerow.errors import FormatError
from hedgerow.protocol.handshake import joining_message
from hedgerow.protocol.identity import Announcement
from hedgerow.protocol.messages import Message, plain
from hedgerow.protocol.replies import ReceivedReply
from hedgerow.protocol.witnesses import (
    LEAVE,
    LEFT,
    SHOW,
    head_from,
    is_signed,
    shows_in,
)

log = logging.getLogger(__name__)


def asking_to_show(run: str, announced: Mapping[str, Announcement]) -> Message:
    """To all: what do you keep of the others' ledgers?"""
    return joining_message(SHOW, run, announced)


def joining_with_shows(
    type_: str,
    run: str,
    announced: Mapping[str, Announcement],
    shown: Mapping[str, ReceivedReply],
) -> dict[str, Message]:
    """To each: everybody's announcement, and what the others showed it."""
    values: dict[str, Mapping[str, Any]] = {name: reply.values for name, reply in shown.items()}
    return {
        name: joining_message(type_, run, announced, shows_in(values, name))
        for name in sorted(announced)
    }


def leave_heads(
    transport: Transport, run: str, joined: Mapping[str, ReceivedReply], seconds: float
) -> None:
    """To all: keep these heads. Whoever misses it keeps the earlier ones."""
    heads = [head for name, reply in sorted(joined.items()) if (head := _head(name, reply))]
    if not heads:
        return
    leaving = plain(LEAVE, {"run": run, "heads": heads})
    left = transport.send(dict.fromkeys(sorted(joined), leaving), LEFT, seconds)
    if missing := [n for n in joined if n not in left or left[n].type != LEFT]:
        log.warning("heads of ledgers were not kept by %s", ", ".join(sorted(missing)))


def _head(name: str, reply: ReceivedReply) -> dict[str, Any] | None:
    """What a party left, if it is its own; one that is not would make the others refuse all."""
    entry = reply.values.get("head")
    if entry is None:
        return None
    try:
        head = head_from(entry)
    except FormatError:
        return None
    return dict(entry) if head.party == name and is_signed(head) else None
