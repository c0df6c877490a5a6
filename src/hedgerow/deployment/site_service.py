"""Questions at the console's socket of any site: who has signed in, and what that role may ask.

A request names a question and carries a session; names and roles come from the site's accounts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from hedgerow.deployment.accounts import Accounts, Action, Caller, NotAllowed, Sessions
from hedgerow.engines.site import Site
from hedgerow.errors import HedgerowError

LONGEST_REQUEST = 100_000  # bytes of JSON
Given = Mapping[str, Any]
Question = tuple[Action, Callable[[Given, Caller], Any]]


class SiteService:
    """Signs people in, checks roles, and answers one request as JSON with JSON.

    Parameters
    ----------
    site : whose accounts count
    questions : by name, what a role must be allowed to do and what answers
    health : what monitoring may know without a session
    """

    def __init__(
        self,
        site: Site,
        questions: Mapping[str, Question],
        health: Callable[[], Any] | None = None,
    ) -> None:
        self.accounts = Accounts(site)
        self.sessions = Sessions(self.accounts)
        self._questions, self._health = dict(questions), health

    def handle_console(self, message: bytes) -> bytes:
        """A request of somebody who must have a session."""
        return answered(message, self._of_session)

    def answer(self, given: Given, caller: Caller) -> Any:
        """The answer to a question of somebody whose role is known."""
        question = given.get("question")
        if question not in self._questions:
            raise HedgerowError(f"the site's process answers: {', '.join(self._questions)}")
        action, answer = self._questions[str(question)]
        caller.check(action)
        return answer(given, caller)

    def _of_session(self, given: Given) -> Any:
        session = str(given.get("session", ""))
        if given.get("question") == "health" and self._health is not None:
            return self._health()
        if given.get("question") == "sign-in":
            token, caller = self.sessions.sign_in(str(given.get("code", "")))
            return {"session": token, **asdict(caller)}
        caller = self.sessions.caller(session)
        if given.get("question") == "sign-out":
            self.sessions.sign_out(session)
            return {}
        if given.get("question") == "who":
            return asdict(caller)
        return self.answer(given, caller)


def answered(message: bytes, answer: Callable[[Given], Any]) -> bytes:
    try:
        given = json.loads(message) if len(message) <= LONGEST_REQUEST else None
        if not isinstance(given, dict):
            raise ValueError("no table")
        return json.dumps(answer(given)).encode()
    except HedgerowError as error:
        told = {"error": str(error), "denied": isinstance(error, NotAllowed)}
        return json.dumps(told).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return json.dumps({"error": "the request is not readable", "denied": False}).encode()
