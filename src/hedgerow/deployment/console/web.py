"""What all pages share: templates, the session in a cookie, forms, and a page for every refusal."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hedgerow import __version__, clock
from hedgerow.data.cards import printable
from hedgerow.deployment.console.client import Answer, NotAnswered, SiteClient, SiteDown
from hedgerow.deployment.console.security import Door, note_why
from hedgerow.deployment.logs import SiteLog, recent
from hedgerow.inspection.drawing import style

Fields = dict[str, str]
MOST_FIELDS = 20
STATUS = {"session": 401, "role": 403, "failed": 409}


@dataclass(frozen=True)
class Console:
    """The site that is shown, and whom the console serves."""

    client: SiteClient
    door: Door
    title: str  # of the site, such as "hospital-a"
    pages: tuple[tuple[str, str], ...]  # of the menu: path and name
    start_command: str  # that starts the site's process
    log: SiteLog
    is_party: bool

    def session(self, request: Request) -> str:
        return request.cookies.get(self.door.cookie, "")

    def ask(self, request: Request, question: str, **told: Any) -> Answer:
        """Ask the site's process as the person of this session."""
        if not (session := self.session(request)):
            raise NotAnswered("session", "nobody is signed in here")
        return self.client.ask(question, session, **told)

    def page(
        self,
        request: Request,
        template: str,
        answer: Answer | None = None,
        status: int = 200,
        **context: Any,
    ) -> Response:
        """A template as a page; what was answered is its `facts`."""
        text = environment().get_template(template).render(
            console=self,
            path=request.url.path,
            token=self.door.form_token(self.session(request)),
            person=answer,
            facts=None if answer is None else answer.value,
            version=__version__,
            now=clock.utc_now().isoformat(timespec="seconds"),
            **context,
        )  # fmt: skip
        return Response(text, status, media_type="text/html")

    def recently_refused(self) -> list[dict[str, Any]]:
        """Requests that this console refused, the newest first."""
        return recent(Path(self.log.baseFilename), "refused")

    def refused(self, request: Request, status: int, heading: str, words: str) -> Response:
        """A page that says why something did not happen."""
        note_why(request, words)
        return self.page(request, "refused.html", None, status, heading=heading, words=words)


Handler = Callable[[Request, Fields], Response]


def form(console: Console, handler: Handler, signed_in: bool = True) -> Callable[
    [Request], Awaitable[Response]
]:  # fmt: skip
    """An endpoint for a form: its fields are read and its token checked before the handler."""

    async def endpoint(request: Request) -> Response:
        fields = fields_of(await request.body())
        session = console.session(request)
        if signed_in and not session:
            return console.refused(request, 401, "Please sign in", "Nobody is signed in here.")
        if signed_in and not console.door.has_token(session, fields.get("token", "")):
            return console.refused(
                request, 403, "This form is too old",
                "It was not made by this console for this session. Nothing was done. Go back, load "
                "the page again, and send it once more.",
            )  # fmt: skip
        return await run_in_threadpool(handler, request, fields)

    return endpoint


def fields_of(body: bytes) -> Fields:
    """The fields of a form, each once; what is no form has none."""
    try:
        text = body.decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        return {}


def when_refused(console: Console) -> dict[Any, Callable[[Request, Exception], Response]]:
    """Pages for everything that can go wrong."""

    def down(request: Request, _: Exception) -> Response:
        words = (
            f"The process of {console.title} does not answer, so nothing can be shown or decided. "
            f"Nothing is lost and nothing is spent. Its operator starts it: {console.start_command}"
        )
        return console.refused(request, 503, f"{console.title} is not running", words)

    def not_answered(request: Request, error: Exception) -> Response:
        assert isinstance(error, NotAnswered)
        if error.why == "session" and request.method in ("GET", "HEAD"):
            return RedirectResponse("/enter", 303)
        headings = {"session": "Please sign in again", "role": "Your role may not do this",
                    "failed": "This was not done"}  # fmt: skip
        words = _sentence(str(error))
        return console.refused(request, STATUS[error.why], headings[error.why], words)

    def missing(request: Request, _: Exception) -> Response:
        return console.refused(request, 404, "There is no such page", "The address is wrong.")

    def wrong_way(request: Request, _: Exception) -> Response:
        words = "This address takes a form from its own page, or shows a page, not the other way."
        return console.refused(request, 405, "Not like this", words)

    def failed(request: Request, error: Exception) -> Response:
        note_why(request, f"failed inside: {type(error).__name__}")
        words = "The console failed inside; its log says where. Nothing was decided by this page."
        return console.refused(request, 500, "Something went wrong here", words)

    return {SiteDown: down, NotAnswered: not_answered, 404: missing, 405: wrong_way, 500: failed}


def _sentence(words: str) -> str:
    words = words[:1].upper() + words[1:]
    return words if words.endswith((".", "!", "?")) else f"{words}."


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("hedgerow.deployment.console"),
        autoescape=True,  # names, purposes and reasons come from other people
        undefined=StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else printable(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"utc": utc, "day": lambda value: utc(value)[:10], "eps": eps, "ago": ago}
    return made


@cache
def style_sheet() -> str:
    """One style sheet for all pages and pictures, light and dark."""
    return environment().get_template("console.css").render(
        light=_variables(style.LIGHT),
        dark=_variables(style.DARK),
        rules=Markup(style.RULES),
    )  # fmt: skip


def _variables(palette: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in palette.items())


def utc(value: object) -> str:
    """A moment as people read it, in UTC.

    >>> utc("2026-03-01T10:02:03.120+00:00"), utc(0.0), utc(None)
    ('2026-03-01 10:02:03', '1970-01-01 00:00:00', '')
    """
    if isinstance(value, (int, float)):
        value = datetime.fromtimestamp(value, UTC).isoformat()
    return "" if value is None else str(value)[:19].replace("T", " ")


def ago(value: object) -> str:
    """How long ago a moment was.

    >>> ago(None)
    'never'
    """
    if value is None:
        return "never"
    moment = value if isinstance(value, (int, float)) else datetime.fromisoformat(
        str(value)).timestamp()  # fmt: skip
    seconds = max(0.0, clock.timestamp() - moment)
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return "just now"


def eps(value: object) -> str:
    """A number with four digits that say something.

    >>> eps(1.23456), eps(None), eps(1e-6)
    ('1.235', '', '1e-06')
    """
    return "" if value is None else f"{float(str(value)):.4g}"


def as_json(values: Any, status: int = 200) -> Response:
    return Response(json.dumps(values), status, media_type="application/json")
