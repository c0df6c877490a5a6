"""Signed messages to parties and their replies: what is not theirs, or not to this, is dropped."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

from hedgerow.errors import FormatError
from hedgerow.protocol.engine import Engine, Reply
from hedgerow.protocol.identity import Identity, Roster
from hedgerow.protocol.messages import Message, read_message
from hedgerow.protocol.replies import Said

log = logging.getLogger(__name__)
_ALWAYS = ("refusal", "need-trees")


class Post:
    """The coordinator's letter box: signs what goes out, checks what comes back, counts both."""

    def __init__(self, engine: Engine, roster: Roster, coordinator: Identity) -> None:
        self.engine, self.roster, self._identity = engine, roster, coordinator
        self.exchanges = 0  # messages with their replies
        self.received, self.sent = Counter[str](), Counter[str]()  # bytes of each party

    def send(self, messages: Mapping[str, Message], wanted: str, seconds: float) -> dict[str, Said]:
        """Send each party its message; those that are the same object are signed once."""
        signed = {id(m): self._signed(m) for m in set(messages.values())}
        data = {name: signed[id(message)] for name, message in messages.items()}
        self.exchanges += 1
        self.received.update({name: len(one) for name, one in data.items()})
        replies: dict[str, Said] = {}
        came = self._asked(data, seconds)
        for name in list(came):
            # What was read is let go: many parties have many answers.
            read = self._read(name, came.pop(name))
            if read is None:
                continue
            if read.request != messages[name].hash or read.type not in (wanted, *_ALWAYS):
                log.warning("a reply from %s belongs to another message", name)
                continue
            replies[name] = read
        return replies

    def _signed(self, message: Message) -> bytes:
        signed = message.signed(self._identity)
        data = signed.to_bytes()
        if self.engine.simulated:  # parties of this process are handed what they would read
            read_message.give(data, signed)
        return data

    def _read(self, name: str, reply: Reply) -> Said | None:
        """What a party said, if it came and is its own."""
        if reply.said is not None:  # by a party of this process: there was no way to travel
            self.sent[name] += reply.said.size
            return reply.said
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
        each = getattr(self.engine, "ask_each", None)
        if len(groups) > 1 and each is not None:
            found: dict[str, Reply] = each(data, seconds)
            return found
        replies: dict[str, Reply] = {}
        for message, names in groups.items():
            replies |= self.engine.ask(names, message, seconds)
        return replies
