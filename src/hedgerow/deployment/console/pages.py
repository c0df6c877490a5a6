"""The pages of a party: its state, budget, ledger, roster and limits, refusals; and signing in."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from hedgerow.deployment.console.charts import budget_chart
from hedgerow.deployment.console.client import Answer, NotAnswered
from hedgerow.deployment.console.downloads import ledger_csv, ledger_pdf
from hedgerow.deployment.console.security import note_why
from hedgerow.deployment.console.web import Console, Fields, environment, form, style_sheet

PARTY_PAGES = (
    ("/", "Party"),
    ("/budget", "Budget"),
    ("/plans", "Plans"),
    ("/ledger", "Ledger"),
    ("/standing", "Roster and limits"),
    ("/refusals", "Refusals"),
)


def party_routes(console: Console) -> list[Route]:
    pages = PartyPages(console)
    return [
        Route("/", pages.party),
        Route("/budget", pages.budget),
        Route("/plans", pages.plans),
        Route("/plans/{hash}", pages.plan, methods=["GET"]),
        Route("/plans/{hash}", form(console, pages.decided), methods=["POST"]),
        Route("/standing", pages.standing, methods=["GET"]),
        Route("/standing", form(console, pages.compared), methods=["POST"]),
        *ledger_routes(console),
        Route("/refusals", pages.refusals),
    ]


class PartyPages:
    """One method a page."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def party(self, request: Request) -> Response:
        answer = self._console.ask(request, "party")
        rows = None
        if answer.role == "operator":
            rows = self._console.ask(request, "rows").value
        return self._console.page(request, "party.html", answer, rows=rows)

    def budget(self, request: Request) -> Response:
        told = {key: number(request, key) for key in ("epsilon", "delta")}
        answer = self._console.ask(request, "budget", **told)
        chart = budget_chart(answer.value)
        return self._console.page(request, "budget.html", answer, chart=chart, told=told)

    def plans(self, request: Request) -> Response:
        return self._console.page(request, "plans.html", self._console.ask(request, "plans"))

    def plan(self, request: Request) -> Response:
        answer = self._console.ask(request, "plans")
        hash_ = request.path_params["hash"]
        waiting = [plan for plan in answer.value["waiting"] if plan["hash"] == hash_]
        if not waiting:
            return self._console.refused(
                request, 404, "This plan does not wait", "It was decided on, its last day is over, "
                "or the address is wrong. The page of plans has everything that was decided.",
            )  # fmt: skip
        return self._console.page(request, "plan.html", answer, plan=waiting[0])

    def decided(self, request: Request, fields: Fields) -> Response:
        what = fields.get("decision", "")
        if what not in ("approve", "reject", "withdraw"):
            words = "Choose whether to approve or to reject the plan. Nothing was decided."
            return self._console.refused(request, 400, "Nothing was chosen", words)
        told = {"plan": request.path_params["hash"], "reason": fields.get("reason", "")}
        if what == "reject":
            told["word"] = fields.get("word", "rejected")
        self._console.ask(request, what, **told)
        return RedirectResponse("/plans", 303)

    def standing(self, request: Request) -> Response:
        return self._console.page(request, "standing.html", self._console.ask(request, "standing"))

    def compared(self, request: Request, fields: Fields) -> Response:
        answer = self._console.ask(request, "standing", roster=fields.get("roster", ""))
        return self._console.page(request, "standing.html", answer)

    def refusals(self, request: Request) -> Response:
        answer = self._console.ask(request, "refusals")
        refused = self._console.recently_refused()
        return self._console.page(request, "refusals.html", answer, refused=refused)


def ledger_routes(console: Console) -> list[Route]:
    """The ledger's page and downloads, of parties and coordinators alike."""

    def ledger(request: Request) -> Response:
        wanted = filters(request)
        before = whole(request, "before")
        answer = console.ask(request, "ledger", before=before, **wanted)
        return shown(request, answer, wanted, before)

    def verify(request: Request, _: Fields) -> Response:
        verified = console.ask(request, "verify").value
        return shown(request, console.ask(request, "ledger"), filters(request), 0, verified)

    def shown(
        request: Request, answer: Answer, wanted: Fields, before: int, verified: Any = None
    ) -> Response:
        witnesses = console.ask(request, "witnesses").value if console.is_party else None
        gap = None
        if witnesses and not all(one["settled"] for one in witnesses["gaps"]):
            gap = console.ask(request, "gap").value
        return console.page(
            request, "ledger.html", answer, wanted=wanted, before=before, verified=verified,
            witnesses=witnesses, gap=gap,
        )  # fmt: skip

    def settle(request: Request, fields: Fields) -> Response:
        if fields.get("sure") != "yes":
            words = "Say that you know what it spends. Nothing was settled and nothing was spent."
            return console.refused(request, 400, "Not confirmed", words)
        console.ask(request, "settle", reason=fields.get("reason", ""))
        return RedirectResponse("/ledger", 303)

    def csv(request: Request) -> Response:
        return ledger_csv(console, request, filters(request))

    def pdf(request: Request) -> Response:
        return ledger_pdf(console, request)

    return [
        Route("/ledger", ledger, methods=["GET"]),
        Route("/ledger/verify", form(console, verify), methods=["POST"]),
        Route("/ledger/settle", form(console, settle), methods=["POST"]),
        Route("/ledger.csv", csv),
        Route("/ledger.pdf", pdf),
    ]


def entrance_routes(console: Console) -> list[Route]:
    """Signing in and out, and the files of every page."""

    def entrance(request: Request) -> Response:
        return console.page(request, "enter.html", problem="")

    def enter(request: Request, fields: Fields) -> Response:
        try:
            session = console.client.sign_in(fields.get("code", "").strip())
        except NotAnswered as error:
            note_why(request, "a wrong link")
            return console.page(request, "enter.html", status=401, problem=str(error))
        reply = RedirectResponse("/", 303)
        reply.set_cookie(
            console.door.cookie, session, httponly=True, samesite="strict",
            secure=console.door.tls, path="/",
        )  # fmt: skip
        return reply

    def leave(request: Request, _: Fields) -> Response:
        console.client.sign_out(console.session(request))
        reply = RedirectResponse("/enter", 303)
        reply.delete_cookie(console.door.cookie, path="/")
        return reply

    def css(_: Request) -> Response:
        return Response(style_sheet(), media_type="text/css")

    def script(_: Request) -> Response:
        text = environment().get_template("console.js").render()
        return Response(text, media_type="text/javascript")

    def icon(_: Request) -> Response:
        text = environment().get_template("icon.svg").render()
        return Response(text, media_type="image/svg+xml")

    return [
        Route("/enter", entrance, methods=["GET"]),
        Route("/enter", form(console, enter, signed_in=False), methods=["POST"]),
        Route("/leave", form(console, leave), methods=["POST"]),
        Route("/console.css", css),
        Route("/console.js", script),
        Route("/icon.svg", icon),
    ]


def filters(request: Request) -> Fields:
    """Which lines of the ledger are wanted, as the form above them says it."""
    told = {key: request.query_params.get(key, "")[:100] for key in ("kind", "run")}
    for key in ("since", "until"):
        told[key] = day(request, key)
    return told


def day(request: Request, key: str) -> str:
    """A date of the address; "" if there is none."""
    try:
        return date.fromisoformat(request.query_params.get(key, "")).isoformat()
    except ValueError:
        return ""


def whole(request: Request, key: str) -> int:
    text = request.query_params.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def number(request: Request, key: str) -> float | None:
    """A number of the address; None if there is none that can be one."""
    try:
        value = float(request.query_params.get(key, ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
