"""`hedgerow verify`: is a model what the ledgers of its makers say?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, table

Ledgers = Annotated[
    list[Path],
    typer.Option(
        "--ledger", metavar="PATH",
        help="The ledger of the coordinator or of a party. Repeatable: give all of them.",
    ),
]  # fmt: skip
SchemaAgreed = Annotated[
    Path | None, typer.Option("--schema", metavar="PATH", help="The schema that was agreed on.")
]
PlanAgreed = Annotated[
    Path | None, typer.Option("--plan", metavar="PATH", help="The plan that was agreed on.")
]
Start = Annotated[
    Path | None,
    typer.Option("--start", metavar="MODEL", help="The model that this one builds on, if it does."),
]
Manifest = Annotated[
    Path | None,
    typer.Option(
        "--manifest", metavar="PATH", help="Hashes of these files, noted at hand-over: compare."
    ),
]
WriteManifest = Annotated[
    Path | None,
    typer.Option(
        "--write-manifest", metavar="PATH", help="Note hashes of these files, if all holds."
    ),
]


def verify(
    model: options.ModelFile,
    ledger: Ledgers,
    schema: SchemaAgreed = None,
    plan: PlanAgreed = None,
    start: Start = None,
    manifest: Manifest = None,
    write_manifest: WriteManifest = None,
    json: options.Json = False,
) -> None:
    """Check a model against the ledgers of everybody who made it, without asking anybody.

    Ledgers add up and tell one story, releases are the sums of what parties sent, and the method
    makes this very model and statement of them. An error names the file. Exit code 1: something
    does not hold, or a party's ledger is missing.
    """
    from hedgerow.audit.verification import LIMITS, verify_model
    from hedgerow.audit.verification import write_manifest as note

    found = verify_model(model, ledger, schema, plan, start, manifest)
    if write_manifest is not None:
        given = (model, *ledger, schema, plan, start)
        note(write_manifest, [file for file in given if file is not None])
    if json:
        print_json(found.to_dict())
    else:
        shown = table(f"{model}: {found.promise}", "checked", "found")
        for finding in found.findings:
            shown.add_row(finding.check, finding.words)
        results().print(shown)
        if found.complete:
            show("Everything holds.", style="bold green")
        else:
            names = ", ".join(found.missing)
            show(f"NOT COMPLETE: no ledger of {names} was given; what is here holds.", style="red")
        show(LIMITS)
    if not found.complete:
        raise typer.Exit(1)
