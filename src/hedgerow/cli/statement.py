"""`hedgerow statement`: what a model promises about the rows it was trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, table

if TYPE_CHECKING:
    from hedgerow.model.statement import Statement

Group = Annotated[
    list[int] | None,
    Option(
        "--group", min=2, max=10**9, metavar="N",
        help="So many units that come or go together, beside 2, 5 and 10: those of one party, say, "
        "if their number is public. Repeatable.",
    ),
]  # fmt: skip


def statement(model: options.ModelFile, group: Group = None, json: options.Json = False) -> None:
    """Print a model's guarantee: the numbers, who is trusted, and what is not covered."""
    from hedgerow.model.changes import GROUPS, leaving_words
    from hedgerow.model.ensemble import Ensemble

    promised = Ensemble.load(model).statement
    groups = tuple(sorted({*GROUPS, *(group or ())}))
    leaving = leaving_words(promised)
    if json:
        changes = [change.to_dict() for change in promised.changes(groups)]
        print_json(
            {**promised.to_dict(), "words": promised.words(), "changes": changes,
             "after_leaving": leaving}
        )  # fmt: skip
        return
    show(promised.words())
    _show_changes(promised, groups)
    if leaving:
        show(leaving)


def _show_changes(promised: Statement, groups: tuple[int, ...]) -> None:
    """What the promise is for one unit, for a changed label or value, and for groups."""
    changes = promised.changes(groups)
    if not changes:
        return
    at = f" at delta = {promised.delta:g}" if promised.delta else ""
    head = ["if the table differs by", "epsilon", "best guess"]
    rows = [list(change.cells()) for change in changes]
    if promised.ledger_runs:
        whole = promised.of_the_ledger
        together = f"epsilon of all {promised.ledger_runs} runs"
        if whole.delta != promised.delta:
            together += f" (delta = {whole.delta:g})"
        head.append(together)
        for row, change in zip(rows, whole.changes(groups), strict=True):
            row.append(change.cells()[1])
    shown = table(f"What changes, and what then holds{at}", *head, right=tuple(head[1:]))
    for row in rows:
        shown.add_row(*row)
    results().print(shown)
