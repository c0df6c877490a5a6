"""`hedgerow vertical`: parties that hold different columns of the same people."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.files import check_writable, write_text
from hedgerow.cli.parties import OtherHouses, TablesHere
from hedgerow.cli.screen import print_json, results, show, size_text, table, tell
from hedgerow.cli.talking import (
    EngineName,
    StepSeconds,
    converse,
    further_settings,
    opened_ledger,
    parties_for,
    show_disclosures,
)
from hedgerow.cli.train import DataFiles, KitFolder, LedgerIn, nothing_spent
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.exchange import Agreement, ProgramFactory, Shelf
    from hedgerow.federation.base import Federation
    from hedgerow.privacy.ledger import Ledger
    from hedgerow.schema import Schema
    from hedgerow.vertical.settings import VerticalSettings

vertical_app = typer.Typer(
    no_args_is_help=True,
    help="Train and predict over parties that hold different columns of the same people.",
    epilog="Example: hedgerow vertical train --schema schema.toml --data bank=bank.csv "
    "--data shop=shop.csv --id customer --active bank --out model",
)
IdColumn = Annotated[
    str | None,
    typer.Option("--id", help="Id column, in every table; without it rows must be in one order."),
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
    typer.Option("--agreed-ids", help="All have the same ids in the same order: compare a hash."),
]
Protection = Annotated[
    str | None,
    typer.Option("--protection", help="paillier (default), ldp, smm-1, smm-2 or none."),
]
FILE = "model.json"  # in the folder of a model: what all parties know of it


class SharesHere(TablesHere):
    """Parties of this process whose tables have different columns."""

    id_column: str | None = None
    folder: Path | None = None

    def check(self, schema: Schema) -> None:
        from hedgerow.tables import share_of

        self._tables = {
            name: share_of(path, schema, self.id_column, source=str(path))
            for name, path in self._sources.items()
        }

    def columns(self, schema: Schema) -> dict[str, tuple[str, ...]]:
        """Which of the schema's columns each table has."""
        return {
            name: tuple(schema.names[j] for j in rows.columns or ())
            for name, rows in self._tables.items()
        }

    def with_labels(self) -> tuple[str, ...]:
        return tuple(name for name, rows in self._tables.items() if len(rows.target))

    @contextmanager
    def talking(
        self, schema: Schema, ledger: Ledger, programs: Mapping[str, ProgramFactory]
    ) -> Iterator[Federation]:
        from hedgerow.deployment.shelf import FolderShelf
        from hedgerow.federation.local import local_federation

        assert self.folder is not None
        shelves: dict[str, Shelf] = {name: FolderShelf(self.folder / name) for name in self.names}
        trust = {"trust": "coordinator", "programs": programs, "shelves": shelves}
        yield local_federation(self._tables, schema, ledger, **trust)  # type: ignore[arg-type]


def train(
    schema: options.SchemaFile,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the parties' parts (local engine).")
    ] = None,
    data: DataFiles = None,
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
    kit: KitFolder = None,
    ledger: LedgerIn = None,
    step_seconds: StepSeconds = 3600.0,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Train over columns of several parties (FedXGBoost). Only ldp has an epsilon, for labels.

    What each party will see is printed before anything is sent, and kept in every ledger. Every
    party keeps its own part of the model: in its kit, or here in a folder of its own.
    """
    from hedgerow.schema import Schema

    own: dict[str, Any] = {
        "protection": protection, "n_trees": trees, "max_depth": depth,
        "learning_rate": learning_rate, "epsilon": epsilon, "merge": merge is not None,
        "allow_unsafe": allow_unsafe, "ids": "agreed" if agreed_ids or not id_column else "psi",
    }  # fmt: skip
    with nothing_spent():
        parties = _parties(engine, data, kit, step_seconds, id_column, out)
        if engine == "nvflare" and not agreed_ids:
            own["ids"] = "psi"
        public = Schema.read(schema)
        if merge is not None:
            check_writable(merge)
        beside = (out or Path()) / "ledger"
        opened = opened_ledger(parties, public, ledger or parties.ledger_path(beside))
        settings = _settings(public, parties, active, owner or [], further or [], own)
        agreement = _agreement(public, settings)
    if not json:
        show_disclosures(agreement)
    with opened:
        talked = converse(
            public, parties, agreement, opened, step_seconds, settings.n_trees, _progress
        )
    facts = {**talked.facts, "model": agreement.run}
    if isinstance(parties, SharesHere):
        assert out is not None
        about = {"run": agreement.run, "settings": settings.to_dict()}
        write_text(out / FILE, json_text.dumps(about, indent=2) + "\n")
    statement = _merged(talked.reports, merge, agreement, settings, talked.simulated)
    if json:
        print_json({**facts, "statement": statement.to_dict()})
        return
    show(statement.words())
    _show(facts, agreement, settings)
    where = str(out) if isinstance(parties, SharesHere) else "each party's kit"
    tell(f"Parts of the model written to {where}.")
    if merge is not None:
        tell(f"Merged model written to {merge}.")


def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder of a local model, or a run's name.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="CSV file for the predictions (local engine).")
    ] = None,
    data: DataFiles = None,
    id_column: IdColumn = None,
    agreed_ids: Agreed = False,
    schema: Annotated[
        Path | None, typer.Option("--schema", help="Schema file (engine nvflare).")
    ] = None,
    engine: EngineName = "local",
    kit: KitFolder = None,
    step_seconds: StepSeconds = 3600.0,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Predict jointly: the active party asks the others which way rows go, and has the result.

    Between houses predictions stay with the active party: `hedgerow vertical collect` writes them.
    """
    from dataclasses import replace

    from hedgerow.vertical.run import prediction_agreement

    with nothing_spent():
        folder = Path(model) if engine == "local" else None
        parties = _parties(engine, data, kit, step_seconds, id_column, folder)
        if engine == "local" and out is None:
            raise SettingsError("--out is missing: a CSV file for the predictions")
        if out is not None:
            check_writable(out)
        run, settings, public = _known(model, parties, schema)
        ids = "psi" if (id_column or engine == "nvflare") and not agreed_ids else "agreed"
        settings = replace(settings, ids=ids)
        opened = opened_ledger(parties, public, parties.ledger_path(Path(model) / "ledger"))
        agreement = prediction_agreement(public, settings, run, _name())
    if not json:
        show_disclosures(agreement)
    with opened:
        talked = converse(public, parties, agreement, opened, step_seconds, 1, len)
    facts = {**talked.facts, "model": run}
    if isinstance(parties, SharesHere):
        from hedgerow.deployment.shelf import FolderShelf

        shelf = FolderShelf(Path(model) / settings.active)
        facts["rows"] = _write_predictions(shelf, agreement.run, out or Path())
        facts["out"] = str(out)
    if json:
        print_json(facts)
        return
    where = (
        str(out) if out is not None else f"the kit of {settings.active}: hedgerow vertical collect"
    )
    tell(f"Predictions of run {agreement.run} are in {where}.")


def collect(
    kit: Annotated[Path, typer.Argument(metavar="KIT", help="The active party's kit.")],
    run: Annotated[str, typer.Argument(metavar="RUN", help="The prediction's run.")],
    out: Annotated[Path, typer.Option("--out", help="CSV file for the predictions.")],
    json: options.Json = False,
) -> None:
    """Write predictions that the active party's house has kept as CSV."""
    from hedgerow.deployment.shelf import FolderShelf
    from hedgerow.federation.kit import Kit

    check_writable(out)
    rows = _write_predictions(FolderShelf.of(Kit.open(kit, "party")), run, out)
    if json:
        print_json({"rows": rows, "out": str(out), "run": run})
    else:
        tell(f"{rows:,} predictions written to {out}.")


def _parties(
    engine: str, data: list[str] | None, kit: Path | None, seconds: float, id_column: str | None,
    folder: Path | None,
) -> TablesHere | OtherHouses:  # fmt: skip
    parties = parties_for("vertical", SharesHere, engine, data, kit, seconds)
    if isinstance(parties, SharesHere):
        if folder is None:
            raise SettingsError("--out is missing: a folder for the parties' parts of the model")
        folder.mkdir(parents=True, exist_ok=True)
        parties.id_column, parties.folder = id_column, folder
    elif id_column is not None:
        raise SettingsError("--id belongs to `hedgerow party start` with --engine nvflare")
    return parties


def _settings(
    schema: Schema, parties: TablesHere | OtherHouses, active: str | None, owner: list[str],
    further: list[str], own: dict[str, Any],
) -> VerticalSettings:  # fmt: skip
    from hedgerow.vertical.settings import VerticalSettings

    owners: dict[str, str] = {}
    for text in owner:
        name, equals, columns = text.partition("=")
        if not equals or name not in parties.names:
            raise SettingsError(
                f"--owner {text!r} is not PARTY=COL,COL with one of {parties.names}"
            )
        owners |= dict.fromkeys((c.strip() for c in columns.split(",")), name)
    if isinstance(parties, SharesHere):
        owners = {**_found_owners(schema, parties, owners), **owners}
        active = active or _found_active(parties)
    if active is None or active not in parties.names:
        raise SettingsError(f"--active is {active!r}; it must be one of {', '.join(parties.names)}")
    values = further_settings(further, {**own, "owners": owners, "active": active})
    settings = VerticalSettings.from_dict(values)
    if idle := sorted(set(parties.names) - set(settings.parties)):
        raise SettingsError(
            f"{idle[0]} holds no column of the schema; leave it out. Nothing was sent."
        )
    return settings


def _found_owners(schema: Schema, parties: SharesHere, given: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, columns in parties.columns(schema).items():
        for column in columns:
            if column in found and column not in given:
                raise SettingsError(
                    f"column {column!r} is in the tables of {found[column]} and {name}. Nothing "
                    f"was sent. Say whose is used with --owner {name}={column}."
                )
            found.setdefault(column, name)
    return found


def _found_active(parties: SharesHere) -> str:
    having = parties.with_labels()
    if len(having) != 1:
        raise SettingsError(
            f"labels are in {len(having)} tables; say which party is active with --active. Nothing "
            "was sent."
        )
    return having[0]


def _agreement(schema: Schema, settings: VerticalSettings) -> Agreement:
    from hedgerow.vertical.run import agreement_for

    return agreement_for(schema, settings, _name())


def _name() -> str:
    import secrets

    return secrets.token_hex(8)


def _progress(reports: Mapping[str, bytes]) -> int:
    """Trees that were finished in a step."""
    return len(reports)


def _merged(
    reports: Any,
    merge: Path | None,
    agreement: Agreement,
    settings: VerticalSettings,
    simulated: bool,
) -> Any:
    from hedgerow.vertical.run import merged_from_reports
    from hedgerow.vertical.statements import statement_for

    if merge is not None:
        model = merged_from_reports(reports)
        model.save(merge)
        return model.statement
    return statement_for(agreement, settings, simulated)


def _known(
    model: str, parties: TablesHere | OtherHouses, schema: Path | None
) -> tuple[str, VerticalSettings, Schema]:
    """The run that made a model, its settings and schema."""
    from hedgerow.errors import FormatError
    from hedgerow.privacy.ledger import COORDINATOR, Ledger
    from hedgerow.schema import Schema
    from hedgerow.vertical.model import Part
    from hedgerow.vertical.settings import VerticalSettings

    if isinstance(parties, SharesHere):
        file = Path(model) / FILE
        try:
            known = json_text.loads(file.read_text("utf-8"))
            run, settings = str(known["run"]), VerticalSettings.from_dict(known["settings"])
            part = Part.from_bytes((Path(model) / settings.active / run).read_bytes())
        except (OSError, ValueError, KeyError) as error:
            raise FormatError(
                f"{model} is no folder of a vertical model; give the --out of `hedgerow vertical "
                "train`"
            ) from error
        return run, settings, part.schema
    if schema is None:
        raise SettingsError("--schema is missing: the schema that the model was trained with")
    public = Schema.read(schema)
    with Ledger.open(parties.ledger_path(Path())) as ledger:
        lines = ledger.lines(COORDINATOR, "disclose", model)
    if not lines or not str(lines[0].values["agreement"]["program"]).startswith("fedxgboost-"):
        raise SettingsError(
            f"this house has trained no vertical model in a run {model!r}. Nothing was sent. "
            "`hedgerow vertical train` prints the run."
        )
    agreed = lines[0].values["agreement"]
    if agreed["schema"] != public.hash:
        raise SettingsError(f"{schema} is not the schema that run {model} was trained with")
    return model, VerticalSettings.from_dict(agreed["settings"]), public


def _write_predictions(shelf: Any, run: str, out: Path) -> int:
    from hedgerow.cli.predict import predictions_csv
    from hedgerow.model.ensemble import predictions_of
    from hedgerow.packing import unpack
    from hedgerow.schema import Schema

    data = shelf.get(f"predicted-{run}")
    if data is None:
        raise SettingsError(f"no predictions of a run {run!r} are kept here; nothing was written")
    values, arrays = unpack(data)
    public = Schema.from_dict(values["schema"])
    predictions = predictions_of(public, arrays["scores"])
    write_text(out, predictions_csv(public, predictions, values["ids"]))
    return len(arrays["scores"])


def _show(facts: Mapping[str, Any], agreement: Agreement, settings: VerticalSettings) -> None:
    shown = table(f"Run {agreement.run}", "what", "value", right=("value",))
    shown.add_row("trees", str(settings.n_trees))
    shown.add_row("protection", settings.protection)
    shown.add_row("steps", f"{facts['steps']:,}")
    shown.add_row("sent by all parties", size_text(facts["bytes_from_parties"]))
    results().print(shown)


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
