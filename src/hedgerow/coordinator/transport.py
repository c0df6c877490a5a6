"""Signed messages to parties and their replies: what is not theirs, or not to this, is dropped."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

from hedgerow.errors import FormatError
from hedgerow.protocol.engine import AskEach, Engine, HandOver, Reply, TracksConnections
from hedgerow.protocol.identity import Identity, Roster
from hedgerow.protocol.messages import Message, OtherVersion
from hedgerow.protocol.replies import ReceivedReply

log = logging.getLogger(__name__)
_ALWAYS = ("refusal", "need-trees")


class Transport:
    """The coordinator's way to the parties: signs what goes out, checks replies, counts both."""

    def __init__(self, engine: Engine, roster: Roster, coordinator: Identity) -> None:
        self.roster, self._identity = roster, coordinator
        self.engine = engine
        self.round_trips = 0  # messages with their replies
        self.received, self.sent = Counter[str](), Counter[str]()  # bytes of each party
        self.problems: dict[str, str] = {}  # by party: why it gave no answer when asked last
        self._logged: dict[str, str] = {}  # the same, as it was logged: once for each reason

    @property
    def engine(self) -> Engine:
        """What carries the messages."""
        return self._engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self._engine = engine
        # What an engine can do it can do all along, and asking for it takes a while.
        self._direct = engine if isinstance(engine, HandOver) else None
        self._tracks = engine if isinstance(engine, TracksConnections) else None

    @property
    def hands_over(self) -> bool:
        """Whether messages stay in this process and are handed over as objects."""
        return self._direct is not None

    def connected(self) -> Mapping[str, int] | None:
        """Parties that are connected, by the engine; None if it cannot know."""
        return None if self._tracks is None else self._tracks.connected()

    def send(
        self, messages: Mapping[str, Message], wanted: str, seconds: float
    ) -> dict[str, ReceivedReply]:
        """Send each party its message; those that are the same object are signed once.

        Those that are handed over within this process are signed if anybody wants their bytes.
        """
        direct = self._direct
        sign = Message.signed if direct is None else Message.handed_over_by
        signed = {id(m): sign(m, self._identity) for m in set(messages.values())}
        self.round_trips += 1
        self.problems = {n: why for n, why in self.problems.items() if n not in messages}
        sent = {name: signed[id(m)] for name, m in messages.items()}
        replies = self._carried(sent, seconds) if direct is None else self._handed(direct, sent)
        belonging = {}
        for name, reply in replies.items():
            if reply.request != messages[name].hash or reply.type not in (wanted, *_ALWAYS):
                self.problem(name, "its reply belongs to another message")
                continue
            belonging[name] = reply
            if reply.type != "refusal":
                self._logged.pop(name, None)
        return belonging

    def _handed(
        self, engine: HandOver, messages: Mapping[str, Message]
    ) -> dict[str, ReceivedReply]:
        """Within one process: no message has a way to travel, and none is read."""
        self.received.update({name: m.size_for(name) for name, m in messages.items()})
        replies = engine.hand_over(messages)
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
            self.problem(name, reply.problem)
            return None
        self.sent[name] += len(reply.body)
        try:
            read = Message.from_bytes(reply.body)
        except OtherVersion as error:
            self.problem(name, str(error))
            return None
        except FormatError:
            self.problem(name, "its reply is not readable")
            return None
        if not read.is_signed_by(self.roster.keys[name]):
            self.problem(name, "its reply is not signed with its pinned key")
            return None
        return read

    def problem(self, name: str, words: str) -> None:
        """Note why a party gave no answer."""
        self.problems[name] = words
        if self._logged.get(name) != words:
            self._logged[name] = words
            log.warning("no answer from %s: %s", name, words)

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
