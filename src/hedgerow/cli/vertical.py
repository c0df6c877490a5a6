"""`hedgerow vertical`: parties that hold different columns of the same people."""

from __future__ import annotations

import json as json_text
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.data_sets import open_ledger
from hedgerow.cli.files import check_writable, write_text
from hedgerow.cli.parties import engine_of
from hedgerow.cli.screen import print_json, results, show, size_text, table, tell
from hedgerow.cli.sessions import (
    EngineName,
    SessionResult,
    StepSeconds,
    run_session,
    show_disclosures,
)
from hedgerow.cli.train import nothing_spent
from hedgerow.cli.vertical_parties import (
    FILE,
    SharesHere,
    ids_of,
    known_model,
    settings_of,
    vertical_parties,
)
from hedgerow.cli.vertical_time import show_time, time_of
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.methods.fedxgboost.settings import VerticalSettings
    from hedgerow.model.statement import Statement
    from hedgerow.protocol.roles import Agreement, Store

SITE_FOLDERS = "each party's site folder"
vertical_app = typer.Typer(
    no_args_is_help=True,
    help="Train and predict over parties that hold different columns of the same people.",
    epilog="Example: hedgerow vertical train --schema schema.toml --data bank=bank.csv "
    "--data shop=shop.csv --id customer --active bank --out model",
)
IdColumn = Annotated[
    str | None,
    typer.Option("--id", help="The column with row ids, in every table; never part of the model."),
]
Owners = Annotated[
    list[str] | None,
    typer.Option("--owner", metavar="PARTY=COL,COL", help="Who holds which columns, by party."),
]
Active = Annotated[
    str | None,
    typer.Option("--active", help="The party with the labels; by default whose table has them."),
]
Agreed = Annotated[
    bool,
    typer.Option("--agreed-ids", help="All have the same rows in the same order."),
]
Protection = Annotated[
    str | None,
    typer.Option("--protection", help="paillier (default), ldp, smm-1, smm-2 or none."),
]


def train(
    schema: options.SchemaFile,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the parties' parts (local engine).")
    ] = None,
    data: options.DataFiles = None,
    id_column: IdColumn = None,
    active: Active = None,
    owner: Owners = None,
    agreed_ids: Agreed = False,
    protection: Protection = None,
    trees: Annotated[int | None, typer.Option("--trees", help="Number of trees.")] = None,
    depth: Annotated[int | None, typer.Option("--depth", help="Depth of a tree.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", help="Part of a leaf's step.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="Of all labels together; protection ldp.")
    ] = None,
    allow_unsafe: Annotated[
        bool, typer.Option("--allow-unsafe", help="Take a protection that does not protect.")
    ] = False,
    merge: Annotated[
        Path | None,
        typer.Option("--merge", help="One model file of all parts; every owner has to agree."),
    ] = None,
    further: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A further setting; docs/vertical.md."),
    ] = None,
    engine: EngineName = "local",
    site: options.SiteFolder = None,
    ledger: options.LedgerIn = None,
    data_name: options.DataName = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say how long paillier will take, and end.")
    ] = False,
    step_seconds: StepSeconds = 3600.0,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Train over columns of several parties (FedXGBoost). Only ldp has an epsilon, for labels.

    What each party will see is printed before anything is sent, and kept in every ledger; with
    paillier also about how long it will take, by a few encryptions on this machine. Every party
    keeps its own part of the model: in its site folder, or here in a folder of its own.
    """
    from hedgerow.data.schema import Schema
    from hedgerow.methods.fedxgboost.run import agreement_for

    own: dict[str, Any] = {
        "protection": protection, "n_trees": trees, "max_depth": depth, "epsilon": epsilon,
        "learning_rate": learning_rate, "merge": merge is not None, "allow_unsafe": allow_unsafe,
    }  # fmt: skip
    engine = engine_of(engine, site)
    with nothing_spent():
        parties = vertical_parties(engine, data, site, step_seconds, id_column, out)
        own["ids"] = ids_of(engine, id_column, agreed_ids)
        public = Schema.read(schema)
        if merge is not None:
            check_writable(merge)
        parties.check(public)
        settings = settings_of(public, parties, active, owner or [], further or [], own)
        agreement = agreement_for(public, settings, secrets.token_hex(8))
        time = time_of(public, settings, parties, wanted=estimate)
        if estimate:
            show_time(time, json)
            return
        beside = None if out is None else _folder(out) / "ledger"
        opened = open_ledger(options.LedgerOptions(ledger, data_name), parties, beside)
    if not json:
        show_disclosures(agreement)
        show_time(time, json)
    with opened:
        result = run_session(
            public, parties, agreement, opened, step_seconds, settings.n_trees, len
        )
    here = (out or Path()) if isinstance(parties, SharesHere) else None
    statement = _written(result, here, merge, agreement, settings)
    if not json:
        _show(result.facts, agreement, settings, statement)
        _show_files(here, merge)
        return
    told = {} if time is None else {"estimate": time.to_dict()}
    facts = {**result.facts, "model": agreement.run, **told}
    print_json({**facts, "statement": statement.to_dict()})


def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder of a local model, or a run's name.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="CSV file for the predictions (local engine).")
    ] = None,
    data: options.DataFiles = None,
    id_column: IdColumn = None,
    agreed_ids: Agreed = False,
    schema: Annotated[
        Path | None, typer.Option("--schema", help="Schema file (other sites).")
    ] = None,
    engine: EngineName = "local",
    site: options.SiteFolder = None,
    ledger: options.LedgerIn = None,
    data_name: options.DataName = None,
    step_seconds: StepSeconds = 3600.0,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Predict jointly: the active party asks the others which way rows go, and has the result.

    Between sites predictions stay with the active party: `hedgerow vertical collect` writes them.
    """
    from dataclasses import replace

    from hedgerow.methods.fedxgboost.run import prediction_agreement

    engine = engine_of(engine, site)
    with nothing_spent():
        folder = Path(model) if engine == "local" else None
        parties = vertical_parties(engine, data, site, step_seconds, id_column, folder)
        if engine == "local" and out is None:
            raise SettingsError("--out is missing: a CSV file for the predictions")
        if engine != "local" and out is not None:
            raise SettingsError(
                "--out has no place with --site: predictions stay with the active party, "
                "whose site writes them with `hedgerow vertical collect`"
            )
        if out is not None:
            check_writable(out)
        run, settings, public = known_model(model, parties, schema)
        settings = replace(settings, ids=ids_of(engine, id_column, agreed_ids))
        agreement = prediction_agreement(public, settings, run, secrets.token_hex(8))
        parties.check(public)
        opened = open_ledger(options.LedgerOptions(ledger, data_name), parties)
    if not json:
        show_disclosures(agreement)
    with opened:
        result = run_session(public, parties, agreement, opened, step_seconds, 1, len)
    facts = {**result.facts, "model": run}
    if out is not None:
        from hedgerow.deployment.store import FolderStore

        store = FolderStore(Path(model) / settings.active)
        facts |= {"rows": _write_predictions(store, agreement.run, out), "out": str(out)}
    if json:
        print_json(facts)
    elif out is not None:
        tell(f"{facts['rows']:,} predictions written to {out}.")
    else:
        tell(
            f"Predictions are in the site folder of {settings.active}. There: hedgerow vertical "
            f"collect SITE {agreement.run} --out predictions.csv"
        )


def collect(
    site: Annotated[Path, typer.Argument(metavar="SITE", help="The active party's site folder.")],
    run: Annotated[str, typer.Argument(metavar="RUN", help="The prediction's run.")],
    out: Annotated[Path, typer.Option("--out", help="CSV file for the predictions.")],
    json: options.Json = False,
) -> None:
    """Write predictions that the active party's site has kept as CSV."""
    from hedgerow.deployment.store import FolderStore
    from hedgerow.engines.site import Site

    check_writable(out)
    rows = _write_predictions(FolderStore.of(Site.open(site, "party")), run, out)
    if json:
        print_json({"rows": rows, "out": str(out), "run": run})
    else:
        tell(f"{rows:,} predictions written to {out}.")


def _folder(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SettingsError(f"{out} cannot be a folder for the model: {reason}") from error
    return out


def _written(
    result: SessionResult, here: Path | None, merge: Path | None, agreement: Agreement,
    settings: VerticalSettings,
) -> Statement:  # fmt: skip
    """What is promised of the model; what is wanted of it here is written."""
    from dataclasses import replace

    from hedgerow.methods.fedxgboost.run import merged_from_reports
    from hedgerow.methods.fedxgboost.statements import statement_for

    if here is not None:
        about = {"run": agreement.run, "settings": settings.to_dict()}
        write_text(here / FILE, json_text.dumps(about, indent=2) + "\n")
    scope = f"run {agreement.run}"  # it is on a ledger that stays
    statement = statement_for(agreement, settings, result.simulated, scope)
    if merge is not None:
        replace(merged_from_reports(result.reports), statement=statement).save(merge)
    return statement


def _write_predictions(store: Store, run: str, out: Path) -> int:
    from hedgerow.cli.predict import predictions_csv
    from hedgerow.data.schema import Schema
    from hedgerow.methods.fedxgboost.model import predictions_name
    from hedgerow.model.ensemble import predictions_of
    from hedgerow.packing import unpack

    data = store.get(predictions_name(run))
    if data is None:
        raise SettingsError(f"no predictions of a run {run!r} are kept here; nothing was written")
    values, arrays = unpack(data)
    public = Schema.from_dict(values["schema"])
    predictions = predictions_of(public, arrays["scores"])
    write_text(out, predictions_csv(public, predictions, values["ids"]))
    return len(arrays["scores"])


def _show(
    facts: Mapping[str, Any], agreement: Agreement, settings: VerticalSettings, statement: Statement
) -> None:
    from dataclasses import replace

    show(replace(statement, disclosures=()).words())  # the disclosures were shown before
    shown = table(f"Run {agreement.run}", "what", "value", right=("value",))
    shown.add_row("trees", str(settings.n_trees))
    shown.add_row("protection", settings.protection)
    shown.add_row("steps", f"{facts['steps']:,}")
    shown.add_row("sent by all parties", size_text(facts["bytes_from_parties"]))
    results().print(shown)


def _show_files(here: Path | None, merge: Path | None) -> None:
    tell(f"Parts of the model written to {here or SITE_FOLDERS}.")
    if merge is not None:
        tell(f"Merged model written to {merge}.")


vertical_app.command(
    "train",
    epilog="Example: hedgerow vertical train --schema schema.toml --data bank=bank.csv --data "
    "shop=shop.csv --id customer --active bank --protection ldp --epsilon 2 --out model",
)(train)
vertical_app.command(
    "predict",
    epilog="Example: hedgerow vertical predict model --data bank=new-bank.csv --data "
    "shop=new-shop.csv --id customer --out predictions.csv",
)(predict)
vertical_app.command(
    "collect",
    epilog="Example: hedgerow vertical collect trial/bank 9f86d081884c7d65 --out predictions.csv",
)(collect)
