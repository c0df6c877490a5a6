"""The console's side of the site's socket: one question, one answer, or why there is none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.engines.sockets import Unreachable, call
from hedgerow.errors import HedgerowError

TIMEOUT_SECONDS = 60.0  # the party may be busy with a question
QUICK_SECONDS = 5.0


class SiteDown(HedgerowError):
    """The site's process does not answer."""


class NotAnswered(HedgerowError):
    """The site's process refused: `why` is "session", "role" or "failed"."""

    def __init__(self, why: str, words: str) -> None:
        super().__init__(words)
        self.why = why


@dataclass(frozen=True)
class Answer:
    """What the site's process said, and to whom."""

    value: Any
    name: str = ""
    role: str = ""


@dataclass(frozen=True)
class SiteClient:
    """Asks the process behind a socket; holds nothing but its path."""

    socket: Path

    def ask(self, question: str, session: str = "", **told: Any) -> Answer:
        """Ask as the person of a session; also says who that is."""
        who = self._call("who", session)
        try:
            answer = self._call(question, session, **told)
        except NotAnswered as error:
            if error.why == "session":  # there is one, so it is the role
                raise NotAnswered("role", str(error)) from error
            raise
        return Answer(answer, str(who["name"]), str(who["role"]))

    def sign_in(self, code: str) -> str:
        """A session for whoever has the code of a link."""
        return str(self._call("sign-in", code=code)["session"])

    def sign_out(self, session: str) -> None:
        self._call("sign-out", session)

    def health(self) -> dict[str, Any]:
        """What monitoring may know without a session."""
        found: dict[str, Any] = self._call("health")
        return found

    def _call(self, question: str, session: str = "", **told: Any) -> Any:
        message = json.dumps({"question": question, "session": session, **told}).encode()
        seconds = QUICK_SECONDS if question == "health" else TIMEOUT_SECONDS
        try:
            reply = json.loads(call(self.socket, message, seconds))
        except (Unreachable, OSError) as error:
            raise SiteDown("the site's process does not answer") from error
        if isinstance(reply, dict) and "error" in reply:
            raise NotAnswered("session" if reply.get("denied") else "failed", reply["error"])
        return reply
