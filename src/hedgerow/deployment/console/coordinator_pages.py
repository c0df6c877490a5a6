"""The pages of a coordinator: sites, runs with their releases, models; stopping and resuming."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from hedgerow.deployment.console.pages import PartyPages, ledger_routes
from hedgerow.deployment.console.web import Console, Fields, form

COORDINATOR_PAGES = (
    ("/", "Sites"),
    ("/runs", "Runs"),
    ("/budget", "Budget"),
    ("/ledger", "Ledger"),
    ("/standing", "Roster"),
    ("/refusals", "Refusals"),
)


def coordinator_routes(console: Console) -> list[Route]:
    shared, pages = PartyPages(console), CoordinatorPages(console)
    return [
        Route("/", pages.sites),
        Route("/runs", pages.runs),
        Route("/runs/{run}", pages.run, methods=["GET"]),
        Route("/runs/{run}", form(console, pages.driven), methods=["POST"]),
        Route("/runs/{run}/model", pages.model),
        Route("/runs/{run}/report.html", pages.report),
        Route("/budget", shared.budget),
        Route("/standing", shared.standing, methods=["GET"]),
        Route("/standing", form(console, shared.compared), methods=["POST"]),
        *ledger_routes(console),
        Route("/refusals", shared.refusals),
    ]


class CoordinatorPages:
    """One method a page."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def sites(self, request: Request) -> Response:
        return self._console.page(request, "sites.html", self._console.ask(request, "sites"))

    def runs(self, request: Request) -> Response:
        return self._console.page(request, "runs.html", self._console.ask(request, "runs"))

    def run(self, request: Request) -> Response:
        answer = self._console.ask(request, "run", run=request.path_params["run"])
        return self._console.page(request, "run.html", answer)

    def driven(self, request: Request, fields: Fields) -> Response:
        """Stop or resume, after a person said that they mean it."""
        run, what = request.path_params["run"], fields.get("what", "")
        if what not in ("stop", "resume") or fields.get("sure") != "yes":
            words = "Say that you mean it. Nothing was started, stopped or spent."
            return self._console.refused(request, 400, "Not confirmed", words)
        self._console.ask(request, what, run=run)
        return RedirectResponse(request.url.path, 303)

    def model(self, request: Request) -> Response:
        answer = self._console.ask(request, "model", run=request.path_params["run"])
        return self._console.page(request, "model.html", answer)

    def report(self, request: Request) -> Response:
        """As a file to keep: its page has a style of its own, which this one does not allow."""
        text = self._console.ask(request, "report", run=request.path_params["run"]).value
        named = {"content-disposition": 'attachment; filename="report.html"'}
        return Response(text, media_type="text/html", headers=named)
