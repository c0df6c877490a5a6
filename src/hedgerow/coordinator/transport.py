"""Signed messages to parties and their replies: what is not theirs, or not to this, is dropped."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

from hedgerow.errors import FormatError
from hedgerow.protocol.engine import AskEach, Engine, HandOver, Reply
from hedgerow.protocol.identity import Identity, Roster
from hedgerow.protocol.messages import Message
from hedgerow.protocol.replies import ReceivedReply

log = logging.getLogger(__name__)
_ALWAYS = ("refusal", "need-trees")


class Transport:
    """The coordinator's way to the parties: signs what goes out, checks replies, counts both."""

    def __init__(self, engine: Engine, roster: Roster, coordinator: Identity) -> None:
        self.engine, self.roster, self._identity = engine, roster, coordinator
        self.round_trips = 0  # messages with their replies
        self.received, self.sent = Counter[str](), Counter[str]()  # bytes of each party

    def send(
        self, messages: Mapping[str, Message], wanted: str, seconds: float
    ) -> dict[str, ReceivedReply]:
        """Send each party its message; those that are the same object are signed once."""
        signed = {id(m): m.signed(self._identity) for m in set(messages.values())}
        self.round_trips += 1
        carry = self._handed_over if isinstance(self.engine, HandOver) else self._carried
        replies = carry({name: signed[id(m)] for name, m in messages.items()}, seconds)
        belonging = {}
        for name, reply in replies.items():
            if reply.request != messages[name].hash or reply.type not in (wanted, *_ALWAYS):
                log.warning("a reply from %s belongs to another message", name)
                continue
            belonging[name] = reply
        return belonging

    def _handed_over(
        self, messages: Mapping[str, Message], seconds: float
    ) -> dict[str, ReceivedReply]:
        """Within one process: no message has a way to travel, and none is read."""
        assert isinstance(self.engine, HandOver)
        sizes = {id(m): m.size for m in messages.values()}
        self.received.update({name: sizes[id(m)] for name, m in messages.items()})
        replies = self.engine.hand_over(messages)
        self.sent.update({name: reply.size for name, reply in replies.items()})
        return dict(replies)

    def _carried(self, messages: Mapping[str, Message], seconds: float) -> dict[str, ReceivedReply]:
        packed = {id(m): m.to_bytes() for m in set(messages.values())}
        data = {name: packed[id(message)] for name, message in messages.items()}
        self.received.update({name: len(message) for name, message in data.items()})
        replies: dict[str, ReceivedReply] = {}
        arrived = self._asked(data, seconds)
        for name in list(arrived):
            # What was read is let go: many parties have many answers.
            if (reply := self._read(name, arrived.pop(name))) is not None:
                replies[name] = reply
        return replies

    def _read(self, name: str, reply: Reply) -> Message | None:
        """What a party replied, if it came and is its own."""
        if reply.body is None:
            log.warning("no answer from %s: %s", name, reply.problem)
            return None
        self.sent[name] += len(reply.body)
        try:
            read = Message.from_bytes(reply.body)
        except FormatError:
            log.warning("unreadable answer from %s", name)
            return None
        if not read.is_signed_by(self.roster.keys[name]):
            log.warning("answer from %s is not signed with its pinned key", name)
            return None
        return read

    def _asked(self, data: Mapping[str, bytes], seconds: float) -> dict[str, Reply]:
        groups: dict[bytes, list[str]] = {}
        for name, message in data.items():
            groups.setdefault(message, []).append(name)
        if len(groups) > 1 and isinstance(self.engine, AskEach):
            return self.engine.ask_each(data, seconds)
        replies: dict[str, Reply] = {}
        for message, names in groups.items():
            replies |= self.engine.ask(names, message, seconds)
        return replies
