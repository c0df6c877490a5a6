"""`hedgerow runs`: the runs that a coordinator started, and what became of them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, table


def runs(
    path: Annotated[Path, typer.Argument(metavar="SITE", help="The coordinator's site folder.")],
    json: options.Json = False,
) -> None:
    """List runs: running, waiting for approval, finished, stopped or refused, with the reason."""
    from hedgerow.deployment.approvals import cell
    from hedgerow.deployment.runs import list_runs
    from hedgerow.engines.site import Site

    records = list_runs(Site.open(path, "coordinator"))
    if json:
        print_json([asdict(record) for record in records])
        return
    if not records:
        show("No run was started from this site folder.")
        return
    shown = table("Runs", "run", "method", "epsilon", "state", "changed (UTC)", "reason")
    for record in records:
        shown.add_row(
            cell(record.run),
            cell(record.method),
            f"{record.epsilon:g}",
            cell(record.state),
            cell(record.changed[:19].replace("T", " ")),
            cell(record.reason, 400),
        )
    results().print(shown)
