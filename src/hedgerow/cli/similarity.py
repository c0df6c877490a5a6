"""`hedgerow similarity`: boosting by similar rows of other parties. It has no epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.data_sets import ledger_place, open_ledger
from hedgerow.cli.files import check_writable
from hedgerow.cli.parties import OtherSites, TablesHere
from hedgerow.cli.screen import print_json, results, show, size_text, table, tell
from hedgerow.cli.sessions import (
    EngineName,
    StepSeconds,
    further_settings,
    parties_for,
    run_session,
    show_disclosures,
)
from hedgerow.cli.train import nothing_spent
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.data.schema import Schema
    from hedgerow.model.ensemble import Ensemble
    from hedgerow.privacy.ledger.ledger import Ledger
    from hedgerow.protocol.roles import Agreement

Further = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A further setting; see docs/simfl.md."),
]
Trees = Annotated[int | None, typer.Option("--trees", help="Trees of all parties together.")]
Depth = Annotated[int | None, typer.Option("--depth", help="Depth of a tree.")]
Rate = Annotated[float | None, typer.Option("--learning-rate", help="Part of a leaf's step.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Seeds hash functions, public to all.")]

Keep = Annotated[
    bool, typer.Option("--keep", help="Parties keep hashes and similar rows for a later run.")
]
Continues = Annotated[
    str | None,
    typer.Option("--continues", metavar="RUN", help="Look at rows added since this run alone."),
]
StoreFolder = Annotated[
    Path | None,
    typer.Option(
        "--store", help="Where tables of this machine keep it; sites use their own folders."
    ),
]


def similarity(
    schema: options.SchemaFile,
    out: options.ModelOut,
    data: options.DataFiles = None,
    engine: EngineName = "local",
    site: options.SiteFolder = None,
    trees: Trees = None,
    depth: Depth = None,
    learning_rate: Rate = None,
    seed: Seed = None,
    further: Further = None,
    keep: Keep = False,
    continues: Continues = None,
    store: StoreFolder = None,
    ledger: options.LedgerIn = None,
    data_name: options.DataName = None,
    step_seconds: StepSeconds = 600.0,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Train by similar rows of other parties (SimFL). NOT differentially private.

    What each party will see is printed before anything is sent, and kept in every ledger.
    """
    own: dict[str, Any] = {
        "n_trees": trees,
        "max_depth": depth,
        "learning_rate": learning_rate,
        "seed": seed,
    }
    own |= {"keep": keep or None, "continues": continues}
    with nothing_spent():
        parties = parties_for("similarity", TablesHere, engine, data, site, step_seconds)
        _give_store(parties, store, keep or continues is not None)
        chosen = options.LedgerOptions(ledger, data_name)
        stored_in = ledger_place(chosen, parties)
        before = _settings_of(continues, stored_in)
        public, agreement = _agreed(schema, parties, before, own, further or [])
        check_writable(out)
        parties.check(public)
        opened = open_ledger(chosen, parties, out.with_name(out.name + ".ledger"))
    if not json:
        show_disclosures(agreement)
    with opened:
        model, facts = _run(public, parties, agreement, opened, out, step_seconds)
    if json:
        print_json({**facts, "statement": model.statement.to_dict()})
        return
    show(model.statement.words())
    shown = table(f"Run {agreement.run}", "what", "value", right=("value",))
    shown.add_row("trees", str(len(model.trees)))
    shown.add_row("steps", f"{facts['steps']:,}")
    n = len(agreement.parties)
    shown.add_row("sent by a party", size_text(facts["bytes_from_parties"] / n))
    shown.add_row("received by a party", size_text(facts["bytes_to_parties"] / n))
    results().print(shown)
    tell(f"Model written to {out}.")


def _give_store(parties: TablesHere | OtherSites, folder: Path | None, needed: bool) -> None:
    """Tables of this machine keep things in a folder that is named."""
    if not isinstance(parties, TablesHere):
        if folder is not None:
            raise SettingsError("--store has no place with --site: sites use their own folders")
        return
    if needed and folder is None:
        raise SettingsError("--keep and --continues need --store FOLDER for tables of this machine")
    parties.folder = folder


def _settings_of(run: str | None, stored_in: Path) -> dict[str, Any]:
    """What hash functions of the continued run followed from, as the ledger has it."""
    from hedgerow.privacy.ledger.ledger import Ledger

    if run is None:
        return {}
    lines = []
    if stored_in.exists():
        with Ledger.open(stored_in, create=False) as ledger:
            lines = ledger.lines(kind="disclose", run=run)
    if not lines:
        raise SettingsError(
            f"the ledger {stored_in} has no run {run!r}. Nothing was sent. Give --ledger with that "
            "of the run to continue, or leave --continues out."
        )
    settings = lines[0].values["agreement"]["settings"]
    return {name: settings[name] for name in ("seed", "n_hashes", "window")}


def _agreed(
    schema: Path,
    parties: TablesHere | OtherSites,
    before: dict[str, Any],
    own: dict[str, Any],
    further: list[str],
) -> tuple[Schema, Agreement]:
    import secrets

    from hedgerow.data.rng import fresh_seed
    from hedgerow.data.schema import Schema
    from hedgerow.methods.simfl.run import agreement_for
    from hedgerow.methods.simfl.settings import SimilaritySettings

    public = Schema.read(schema)
    values: dict[str, Any] = {"seed": fresh_seed(), **before}
    values |= further_settings(further, own)
    settings = SimilaritySettings.from_dict(values)
    if len(parties.names) < 2:
        raise SettingsError(
            f"there is {len(parties.names)} party; similarity needs others. Give --data at least "
            "twice."
        )
    return public, agreement_for(public, parties.names, settings, secrets.token_hex(8))


def _run(
    schema: Schema,
    parties: TablesHere | OtherSites,
    agreement: Agreement,
    ledger: Ledger,
    out: Path,
    seconds: float,
) -> tuple[Ensemble, dict[str, Any]]:
    from hedgerow.methods.simfl.run import model_of

    trees = int(agreement.settings["n_trees"])
    result = run_session(schema, parties, agreement, ledger, seconds, trees, len)
    model = model_of(result.reports, schema, agreement, result.simulated)
    model.save(out)
    return model, {"model": str(out), **result.facts}
