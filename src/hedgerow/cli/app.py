"""The command `hedgerow`: registers every command and turns errors into exit codes.

Nothing heavy is imported here or at the top of a command's file: `hedgerow --help` stays quick.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from hedgerow import __version__
from hedgerow.cli import (
    advise,
    audit,
    console,
    coordinator,
    demo,
    draft,
    evaluate,
    explain,
    export,
    federation,
    ledger,
    methods,
    options,
    party,
    plan,
    predict,
    report,
    runs,
    similarity,
    statement,
    train,
    tree,
    verify,
    vertical,
    warm,
)
from hedgerow.cli import schema as schema_commands
from hedgerow.cli.screen import clean, start_logging
from hedgerow.errors import HedgerowError

app = typer.Typer(
    name="hedgerow",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: hedgerow demo",
)
schema_app = typer.Typer(
    no_args_is_help=True,
    help="Check, show, draft and confirm the public description of a table.",
    epilog="Example: hedgerow schema check schema.toml --data north.csv",
)
ledger_app = typer.Typer(
    no_args_is_help=True,
    help="List, show and verify what was spent.",
    epilog="Example: hedgerow ledger show --data north.csv",
)
_TRAIN = (
    "hedgerow train --schema schema.toml --data north.csv --data south.csv --data west.parquet "
    "--epsilon 1 --delta 1e-6 --out model.hedge; one owner's table on a Dask cluster: "
    "hedgerow train --engine dask --scheduler tls://head:8786 --tls-ca ca.pem --tls-cert me.pem "
    "--tls-key key.pem --schema schema.toml --data 'folder/*.parquet' --epsilon 1 --delta 1e-8 "
    "--out model.hedge"
)
_SIMILARITY = (
    "hedgerow similarity --schema schema.toml --data north.csv --data south.csv --out model.hedge"
)
_EVALUATE = (
    "hedgerow evaluate model.hedge --data north.csv --data south.csv --data west.parquet "
    "--epsilon 0.1; exact, not private: hedgerow evaluate model.hedge --data test.csv"
)
_ADVISE = (
    "hedgerow advise --schema schema.toml --rows 20000 --target-error 0.1; on a public sample: "
    "hedgerow advise --schema schema.toml --rows 20000 --sample public.csv --target 0.85 "
    "--out curve.svg"
)
_VERIFY = (
    "hedgerow verify model.hedge --ledger coordinator/ledger.sqlite --ledger "
    "hospital-a/ledger.sqlite --ledger hospital-b/ledger.sqlite"
)
_AUDIT = (
    "hedgerow audit --schema schema.toml --epsilon 1 --delta 1e-6 --out model.hedge.audit.json "
    "--picture audit.svg; the models alone: "
    "hedgerow audit --schema schema.toml --epsilon 1 --delta 1e-6 --black-box --runs 500"
)
_PLAN = "hedgerow plan --schema schema.toml --epsilon 1 --delta 1e-6 --parties 3 --out plan.toml"
for group, name, command, example in (
    (app, "demo", demo.demo, "hedgerow demo --out demo-output --epsilon 1"),
    (app, "plan", plan.plan, _PLAN),
    (app, "advise", advise.advise, _ADVISE),
    (app, "train", train.train, _TRAIN),
    (
        app,
        "predict",
        predict.predict,
        "hedgerow predict model.hedge --data new.csv --out predictions.csv",
    ),
    (app, "evaluate", evaluate.evaluate, _EVALUATE),
    (app, "export", export.export, "hedgerow export model.hedge --to xgboost --out model.json"),
    (app, "similarity", similarity.similarity, _SIMILARITY),
    (app, "explain", explain.explain, "hedgerow explain model.hedge --column age"),
    (app, "audit", audit.audit, _AUDIT),
    (app, "report", report.report, "hedgerow report model.hedge --out report.html"),
    (app, "tree", tree.tree, "hedgerow tree model.hedge --svg tree.svg"),
    (app, "statement", statement.statement, "hedgerow statement model.hedge"),
    (app, "verify", verify.verify, _VERIFY),
    (app, "methods", methods.methods, "hedgerow methods --json"),
    (app, "runs", runs.runs, "hedgerow runs trial/coordinator"),
    (app, "console", console.console, "hedgerow console hospital-a --account 'Anna Meyer'"),
    (app, "warm", warm.warm, "hedgerow warm --method auto"),
    (
        schema_app,
        "check",
        schema_commands.check,
        "hedgerow schema check schema.toml --data north.csv",
    ),
    (
        schema_app,
        "draft",
        draft.draft,
        "hedgerow schema draft --data sample.csv --label sick --out schema.toml",
    ),
    (schema_app, "confirm", draft.confirm, "hedgerow schema confirm schema.toml --by 'A. Meyer'"),
    (schema_app, "show", schema_commands.show, "hedgerow schema show schema.toml"),
    (ledger_app, "list", ledger.list_, "hedgerow ledger list"),
    (ledger_app, "show", ledger.show, "hedgerow ledger show --data north.csv"),
    (ledger_app, "verify", ledger.verify, "hedgerow ledger verify --data north.csv"),
):
    group.command(name, epilog=f"Example: {example}")(options.with_groups(command))
app.add_typer(schema_app, name="schema")
app.add_typer(ledger_app, name="ledger")
app.add_typer(federation.federation_app, name="federation")
app.add_typer(coordinator.coordinator_app, name="coordinator")
app.add_typer(party.party_app, name="party")
app.add_typer(vertical.vertical_app, name="vertical")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"hedgerow {__version__}")
        raise typer.Exit


@app.callback()
def hedgerow(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    verbose: options.Verbose = False,
) -> None:
    """Boosted trees across organisations that may not share their rows, privately."""


def main() -> None:
    """Run a command. An error raised on purpose becomes one message and its exit code."""
    # Threads that wait for each other in a busy loop starve on a machine that is shared.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    start_logging(verbose=False)
    try:
        app()
    except HedgerowError as error:
        typer.echo(f"{typer.style('Error:', fg='red')} {clean(str(error))}", err=True)
        sys.exit(error.exit_code)
