"""The ledger to take away: as CSV, and as a PDF report for an ethics board. No value about rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fpdf import FPDF
from fpdf.enums import XPos, YPos
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from hedgerow import __version__, clock
from hedgerow.data.cards import printable
from hedgerow.deployment.console.web import Console, Fields, eps, utc

COLUMNS = ("seq", "time", "what", "run", "slot", "attempt", "words", "hash")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would compute what begins like this
_FONTS = Path("/usr/share/fonts/truetype/dejavu")
MOST_RUNS = 400  # of a report; the newest


def ledger_csv(console: Console, request: Request, wanted: Fields) -> Response:
    """All wanted lines in order, a piece at a time."""
    first = console.ask(request, "lines", after=0, **wanted).value  # refused before it begins

    def pieces() -> Iterator[str]:
        yield _csv([COLUMNS])
        lines = first
        while lines:
            yield _csv([[line[column] for column in COLUMNS] for line in lines])
            lines = console.ask(request, "lines", after=lines[-1]["seq"], **wanted).value

    name = f"{console.title}-ledger.csv"
    return StreamingResponse(pieces(), media_type="text/csv", headers=_attached(name))


def _csv(rows: Any) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([[_cell(value) for value in row] for row in rows])
    return text.getvalue()


def _cell(value: object) -> str:
    text = "" if value is None else printable(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _attached(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


def ledger_pdf(console: Console, request: Request) -> Response:
    """What was spent, for whom and what for, with the head of the ledger that says so."""
    verified = console.ask(request, "verify").value
    budget = console.ask(request, "budget").value
    decisions = console.ask(request, "decided").value
    refusals = console.ask(request, "refusals").value
    report = _Report(f"Privacy ledger of {console.title}")
    report.facts(verified, budget)
    report.runs(budget)
    report.decisions(decisions)
    report.refusals(refusals["counts"])
    name = f"{console.title}-ledger.pdf"
    content = bytes(report.output())
    return Response(content, media_type="application/pdf", headers=_attached(name))


class _Report(FPDF):
    """A4 pages of headings, sentences and tables."""

    def __init__(self, title: str) -> None:
        super().__init__(format="A4")
        self._family = "Helvetica"
        if (_FONTS / "DejaVuSans.ttf").is_file() and (_FONTS / "DejaVuSans-Bold.ttf").is_file():
            self._family = "DejaVu"
            self.add_font("DejaVu", "", _FONTS / "DejaVuSans.ttf")
            self.add_font("DejaVu", "B", _FONTS / "DejaVuSans-Bold.ttf")
        self.set_title(title)
        self.set_creator(f"hedgerow {__version__}")
        self.set_creation_date(clock.utc_now())
        self.set_margins(18, 16, 18)
        self.set_auto_page_break(True, 18)
        self.add_page()
        self.set_font(self._family, "B", 17)
        self._line(title, 10)
        now = clock.utc_now().strftime("%Y-%m-%d %H:%M")
        self._sentence(f"Written {now} UTC by hedgerow {__version__}. All times are UTC.")

    def footer(self) -> None:
        self.set_y(-13)
        self.set_font(self._family, "", 8)
        self.cell(0, 6, f"page {self.page_no()}", align="R")

    def facts(self, verified: dict[str, Any], budget: dict[str, Any]) -> None:
        self._heading("What the ledger adds up to")
        self._sentence(
            f"The chain of {verified['lines']:,} lines was walked and added up again at "
            f"{utc(verified['time'])}: every answer was charged first, and no run drew more than "
            f"it reserved. Last line: {verified['hash']}"
        )
        self._sentence(
            f"{verified['runs']:,} runs reserved epsilon = {eps(budget['total'])} in total, at "
            f"delta = {budget['delta']:g}. Runs compose by the squares of their noise, so this is "
            "less than the sum of their epsilons. What was reserved counts, used or not."
        )
        self._table(
            ("limit", "epsilon", "at delta", "used", "left"),
            [(row["limit"], eps(row["epsilon"]), f"{row['delta']:g}", eps(row["used"]),
              eps(row["left"])) for row in budget["limits"]],
            (5, 2, 2, 2, 2),
        )  # fmt: skip

    def runs(self, budget: dict[str, Any]) -> None:
        self._heading("Runs")
        runs = budget["runs"][:MOST_RUNS]
        if len(runs) < budget["n_runs"]:
            self._sentence(f"The newest {len(runs)} of {budget['n_runs']:,} runs.")
        self._table(
            ("reserved", "run", "asked by", "purpose", "method", "epsilon", "delta"),
            [(utc(run["time"])[:16], run["run"], run["asker"], run["purpose"], run["method"],
              eps(run["epsilon"]), f"{run['delta']:g}") for run in runs],
            (3, 4, 3, 5, 3, 2, 2),
        )  # fmt: skip

    def decisions(self, decisions: list[dict[str, Any]]) -> None:
        self._heading("What people decided")
        self._table(
            ("time", "decision", "run", "by", "reason"),
            [(utc(one["time"])[:16], one["what"], one["run"], one["name"], one["reason"])
             for one in decisions],
            (3, 2, 4, 3, 6),
        )  # fmt: skip

    def refusals(self, counts: list[dict[str, Any]]) -> None:
        self._heading("What was refused")
        self._table(
            ("word", "times", "what it means"),
            [(row["word"], f"{row['count']:,}", row["words"]) for row in counts],
            (3, 1, 7),
        )

    def _heading(self, text: str) -> None:
        self.ln(3)
        self.set_font(self._family, "B", 12)
        self._line(text, 8)

    def _line(self, text: str, height: float) -> None:
        self.cell(0, height, self._clean(text), new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def _sentence(self, text: str) -> None:
        self.set_font(self._family, "", 9)
        words = self._clean(text)
        self.multi_cell(0, 4.6, words, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
        self.ln(1.5)

    def _table(self, head: tuple[str, ...], rows: list[Any], widths: tuple[int, ...]) -> None:
        if not rows:
            self._sentence("None.")
            return
        self.set_font(self._family, "", 7.5)
        with self.table(col_widths=widths, line_height=4.2, text_align="LEFT", padding=0.8) as made:
            for cells in (head, *rows):
                made.row([self._clean(str(cell)) for cell in cells])
        self.ln(2)

    def _clean(self, text: str) -> str:
        """Letters that the font has; the built-in one has those of Western Europe alone."""
        text = printable(text)
        if self._family == "Helvetica":
            text = text.encode("latin-1", "replace").decode("latin-1")
        return text
