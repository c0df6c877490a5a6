"""Messages on their way to several parties: who still owes a reply, and who needs the bytes."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping

from hedgerow import clock
from hedgerow.coordinator.federation import Reply
from hedgerow.engines.nvflare.envelopes import Outcome, Round

WAIT_SECONDS = 2.0  # a party that computes longer is asked again how it goes
GRACE_SECONDS = 3.0  # without progress, after which a party counts as not reached in a round
AGAIN_SECONDS = 10.0  # that parties get at least after the job was replaced
BYTES_A_SECOND = 5e6  # that a machine unpacks at least; longer messages get more grace
_PROBLEMS = {
    "silent": "it was not reached within the time-out",
    "absent": "it is not connected",
    "working": "it was still computing at the time-out",
    "unknown": "its engine was restarted and there was no time left",
    "down": "its engine runs, but its `hedgerow party start` does not answer",
}


class Delivery:
    """The bytes go out once; then parties are asked how it goes, unless they need them again."""

    def __init__(
        self,
        messages: Mapping[str, bytes],
        timeout_seconds: float,
        doubtful: Collection[str] = (),
    ) -> None:
        self.id = secrets.token_hex(8)
        self._messages, self._doubtful = messages, doubtful  # those that were lost before
        self._timeout, self._deadline = timeout_seconds, clock.monotonic() + timeout_seconds
        self._longest = max((len(message) for message in messages.values()), default=0)
        self._states = dict.fromkeys(messages, "unknown")
        self._replies: dict[str, bytes] = {}
        self._given_up: set[str] = set()
        self._since: dict[str, float] = {}

    @property
    def seconds_left(self) -> float:
        return self._deadline - clock.monotonic()

    @property
    def waiting(self) -> tuple[str, ...]:
        owed = (n for n in self._states if n not in self._replies and n not in self._given_up)
        return tuple(owed)

    @property
    def states(self) -> Mapping[str, str]:
        """How it stands with each party, in the words of `Outcome`."""
        return self._states

    def unreached(self, seconds: float) -> tuple[str, ...]:
        """Parties that have not been heard of for so long."""
        limit = clock.timestamp() - seconds
        return tuple(n for n in self.waiting if self._since.get(n, limit + 1) <= limit)

    def unreached_since(self, name: str) -> float:
        return self._since.get(name, 0.0)

    def round(self) -> Round:
        """The next thing to send: a message to those who need it, else a question to the rest.

        Parties with the same message get it at once. While others still need theirs, nobody is
        waited for: they are to compute at the same time.
        """
        lacking = [n for n in self.waiting if self._states[n] == "unknown"]
        body = self._messages[lacking[0]] if lacking else b""
        need = tuple(n for n in lacking if self._messages[n] == body)
        computing = need or any(self._states[n] == "working" for n in self.waiting)
        wait = min(WAIT_SECONDS, max(0.1, self.seconds_left)) if computing else 0.0
        wait = 0.0 if len(need) < len(lacking) else wait
        grace = GRACE_SECONDS + self._longest / BYTES_A_SECOND
        return Round(self.id, need or self.waiting, body, wait, grace)

    def take(self, outcomes: Mapping[str, Outcome]) -> bool:
        """Note what came of a round; whether any party got further."""
        further = False
        for name, outcome in outcomes.items():
            state = outcome.state
            further |= state in ("done", "working", "unknown")
            if state == "done":
                self._replies[name] = outcome.body
                self._longest = max(self._longest, len(outcome.body))
            if state == "down" and name in self._doubtful:
                self._given_up.add(name)
            if state in ("done", "working", "unknown", "down"):
                self._since.pop(name, None)
            else:
                self._since.setdefault(name, clock.timestamp())
            self._states[name] = state
        return further

    def send_again(self) -> None:
        """The job was replaced: whoever has not replied needs the bytes again, and some time."""
        self._deadline = max(self._deadline, clock.monotonic() + min(self._timeout, AGAIN_SECONDS))
        for name in self.waiting:
            self._states[name] = "unknown"

    def give_up(self, name: str, state: str) -> None:
        """Do not wait for this party."""
        self._states[name] = state
        self._given_up.add(name)

    def reply(self, name: str) -> Reply:
        if name in self._replies:
            return Reply(self._replies[name])
        state = self._states[name]
        return Reply(None, _PROBLEMS.get(state, f"the engine could not reach it ({state})"))
