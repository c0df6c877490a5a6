"""What every request passes before a page sees it, and what every reply carries.

Only the console's own hosts are served (a page that rebinds a name to this machine is not), bodies
are short, forms come from our own pages, nobody frames them, and what is refused is logged.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hedgerow.deployment.approvals import printable

LONGEST_BODY = 262_144  # bytes; the longest form is a pasted roster
LONGEST_HEAD = 16_384  # bytes of all headers
LONGEST_PATH = 400
METHODS = ("GET", "HEAD", "POST")
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # the origin of our own forms must arrive
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), interest-cohort=()",
    "cache-control": "no-store",
}
Log = Callable[..., None]


@dataclass(frozen=True)
class Door:
    """Whom the console serves: by which hosts, over TLS or not, with which secret of forms."""

    hosts: frozenset[str]  # host:port as browsers write them, in small letters
    tls: bool
    cookie: str
    log: Log
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def form_token(self, session: str) -> str:
        """What a form must carry: known to pages of this session, and to nobody else."""
        return hmac.new(self.secret, session.encode(), hashlib.sha256).hexdigest()

    def has_token(self, session: str, given: str) -> bool:
        return hmac.compare_digest(self.form_token(session).encode(), given.encode())


class Guard:
    """Refuses requests that no page of ours sends; adds headers to every reply."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        reply = _Reply(scope, send, self._door)
        problem = self._problem(scope)
        if problem is not None:
            status, words = problem
            reply.why = words
            await PlainTextResponse(f"{words}\n", status)(scope, receive, reply.send)
            return
        body = _Body(receive)
        try:
            await self._app(scope, body.receive, reply.send)
        except _TooLong:
            reply.why = f"a body of more than {LONGEST_BODY:,} bytes"
            if not reply.begun:
                refusal = PlainTextResponse("The request is too long.\n", 413)
                await refusal(scope, receive, reply.send)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._door.hosts:
            return 421, "This console is not served under that name."
        if sum(len(name) + len(value) for name, value in scope["headers"]) > LONGEST_HEAD:
            return 431, "The request is too long."
        if scope["method"] not in METHODS:
            return 405, "Only pages and forms are served."
        if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST_PATH:
            return 414, "The address is too long."
        lengths = headers.getlist("content-length")
        if any(not length.isdigit() or int(length) > LONGEST_BODY for length in lengths):
            return 413, "The request is too long."
        if scope["method"] == "POST":
            return self._foreign(headers)
        return None

    def _foreign(self, headers: Headers) -> tuple[int, str] | None:
        """A form that another site sends, or that a frame of one does."""
        scheme = "https" if self._door.tls else "http"
        origins = {f"{scheme}://{host}" for host in self._door.hosts}
        origin = headers.get("origin")
        if origin is None and (referer := headers.get("referer")):
            parts = urlsplit(referer)
            origin = f"{parts.scheme}://{parts.netloc}"
        if origin is None or origin.lower() not in origins:
            return 403, "The form did not come from a page of this console."
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return 403, "The form did not come from a page of this console."
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            return 415, "Only plain forms are read."
        return None


class _TooLong(Exception):
    """A body that goes on beyond what was allowed."""


class _Body:
    """Counts what arrives; a length in the header may be missing or wrong."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._size = receive, 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > LONGEST_BODY:
            raise _TooLong
        return message


class _Reply:
    """Adds headers, and logs what was refused."""

    def __init__(self, scope: Scope, send: Send, door: Door) -> None:
        self._scope, self._send, self._door = scope, send, door
        self.begun, self.why = False, ""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if self._door.tls:
                headers["strict-transport-security"] = "max-age=31536000"
            if message["status"] >= 400:
                self._log(message["status"])
        await self._send(message)

    def _log(self, status: int) -> None:
        scope: Mapping[str, Any] = self._scope
        path = printable(scope["raw_path"].decode("latin-1"), 120)
        client = scope.get("client") or ("", 0)
        why = self.why or str(scope.get("state", {}).get("why", ""))
        self._door.log(
            f"refused {printable(scope['method'], 10)} {path}: {status} {printable(why, 200)}",
            about="refused", status=status, client=str(client[0]),
        )  # fmt: skip


def note_why(request: Request, words: str) -> None:
    """Say in the log why a request was refused."""
    request.scope.setdefault("state", {})["why"] = words
