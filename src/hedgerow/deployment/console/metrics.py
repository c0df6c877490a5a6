"""`/healthz` and `/metrics` for monitoring: a token is needed; nothing in them is about rows."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hedgerow.deployment.approvals import write_private
from hedgerow.deployment.console.client import NotAnswered, SiteDown
from hedgerow.deployment.console.security import note_why
from hedgerow.deployment.console.web import Console, as_json

FILE = "metrics-token"
Samples = Sequence[tuple[Mapping[str, str], float]]


def read_token(folder: Path) -> str:
    """The token of monitoring, made at the first call; whoever reads the file may ask."""
    file = folder / FILE
    if not file.exists():
        write_private(file, secrets.token_urlsafe(32) + "\n")
    return file.read_text("ascii").strip()


def metrics_routes(console: Console, token: str) -> list[Route]:
    def allowed(request: Request) -> bool:
        given = request.headers.get("authorization", "").encode()
        if hmac.compare_digest(given, f"Bearer {token}".encode()):
            return True
        note_why(request, "monitoring without its token")
        return False

    def healthz(request: Request) -> Response:
        if not allowed(request):
            return PlainTextResponse("A token is needed.\n", 401)
        try:
            facts = console.client.health()
        except (SiteDown, NotAnswered) as error:
            return as_json({"healthy": False, "why": str(error)}, 503)
        why = unhealthy(facts)
        told = {"healthy": not why, "why": why, "state": facts["state"], "time": facts["time"]}
        return as_json(told, 503 if why else 200)

    def metrics(request: Request) -> Response:
        if not allowed(request):
            return PlainTextResponse("A token is needed.\n", 401)
        try:
            facts = console.client.health()
        except (SiteDown, NotAnswered):
            facts = None
        text = "".join(exposition(facts))
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    return [Route("/healthz", healthz), Route("/metrics", metrics)]


def unhealthy(facts: Mapping[str, Any]) -> str:
    """Why a site is not well; "" if it is."""
    if facts["state"] != "running":
        return str(facts["state"])
    if facts["connected"] is False:
        return "not connected"
    return str(facts["problem"])


def exposition(facts: Mapping[str, Any] | None) -> Iterator[str]:
    """What Prometheus reads; without an answer of the site's process only that there is none."""
    up: Samples = [({}, float(facts is not None))]
    yield from _metric("up", "Whether the site's process answers.", up)
    if facts is None:
        return
    yield from _metric("healthy", "Whether it runs, connected and without a problem.",
                       [({}, float(not unhealthy(facts)))])  # fmt: skip
    if facts["connected"] is not None:
        connected: Samples = [({}, float(facts["connected"]))]
        yield from _metric("connected", "Whether it is connected to its federation.", connected)
    for name, key, words in (
        ("last_heard_timestamp_seconds", "last_heard", "When the last message came."),
        ("runs_total", "runs", "Runs that were reserved."),
        ("rounds_total", "rounds", "Queries that were charged."),
        ("plans_waiting", "pending", "Plans that wait for a person."),
        ("parties_connected", "parties_connected", "Parties that are connected."),
        ("parties", "parties", "Parties of the roster."),
        ("strangers_total", "strangers", "Connections that were turned away since the start."),
    ):
        if facts.get(key) is not None:
            yield from _metric(name, words, [({}, float(facts[key]))])
    yield from _metric("refusals_total", "What was refused, by word.",
                       [({"word": w}, float(n)) for w, n in facts["refused"].items()])  # fmt: skip
    for name, key, words in (
        ("epsilon_limit", "epsilon", "A limit on epsilon."),
        ("epsilon_used", "used", "What is used of it."),
        ("epsilon_left", "left", "What is left of it."),
        ("epsilon_next_run", "next_run", "The dearest run that still fits under it."),
    ):
        rows = [row for row in facts["limits"] if row[key] is not None]
        samples = [({"limit": row["limit"]}, float(row[key])) for row in rows]
        yield from _metric(name, words, samples)
    days = [({"what": one["what"]}, float(one["days"])) for one in facts["expires"]]
    yield from _metric("days_left", "Days until something ends by itself.", days)


def _metric(name: str, words: str, samples: Samples) -> Iterator[str]:
    if not samples:
        return
    kind = "counter" if name.endswith("_total") else "gauge"
    yield f"# HELP hedgerow_{name} {words}\n# TYPE hedgerow_{name} {kind}\n"
    for labels, value in samples:
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"hedgerow_{name}{'{' + inner + '}' if inner else ''} {value:.12g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
