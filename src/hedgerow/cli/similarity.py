"""`hedgerow similarity`: boosting by similar rows of other parties. It has no epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.files import check_writable
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
from hedgerow.cli.train import DataFiles, KitFolder, LedgerIn, ModelOut, nothing_spent
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.exchange import Agreement
    from hedgerow.model.ensemble import Ensemble
    from hedgerow.privacy.ledger import Ledger
    from hedgerow.schema import Schema

Further = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A further setting; see docs/simfl.md."),
]
Trees = Annotated[int | None, typer.Option("--trees", help="Trees of all parties together.")]
Depth = Annotated[int | None, typer.Option("--depth", help="Depth of a tree.")]
Rate = Annotated[float | None, typer.Option("--learning-rate", help="Part of a leaf's step.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Seeds hash functions, public to all.")]


def similarity(
    schema: options.SchemaFile,
    out: ModelOut,
    data: DataFiles = None,
    engine: EngineName = "local",
    kit: KitFolder = None,
    trees: Trees = None,
    depth: Depth = None,
    learning_rate: Rate = None,
    seed: Seed = None,
    further: Further = None,
    ledger: LedgerIn = None,
    step_seconds: StepSeconds = 600.0,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Train by similar rows of other parties (SimFL). NOT differentially private.

    What each party will see is printed before anything is sent, and kept in every ledger.
    """
    own = {"n_trees": trees, "max_depth": depth, "learning_rate": learning_rate, "seed": seed}
    with nothing_spent():
        parties = parties_for("similarity", TablesHere, engine, data, kit, step_seconds)
        public, agreement = _agreed(schema, parties, own, further or [])
        stored_in = ledger or parties.ledger_path(out.with_name(out.name + ".ledger"))
        check_writable(out)
        opened = opened_ledger(parties, public, stored_in)
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


def _agreed(
    schema: Path, parties: TablesHere | OtherHouses, own: dict[str, Any], further: list[str]
) -> tuple[Schema, Agreement]:
    import secrets

    from hedgerow.rng import fresh_seed
    from hedgerow.schema import Schema
    from hedgerow.similarity.run import agreement_for
    from hedgerow.similarity.settings import SimilaritySettings

    public = Schema.read(schema)
    values: dict[str, Any] = {"seed": fresh_seed()}
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
    parties: TablesHere | OtherHouses,
    agreement: Agreement,
    ledger: Ledger,
    out: Path,
    seconds: float,
) -> tuple[Ensemble, dict[str, Any]]:
    from hedgerow.similarity.run import model_of

    trees = int(agreement.settings["n_trees"])
    talked = converse(schema, parties, agreement, ledger, seconds, trees, len)
    model = model_of(talked.reports, schema, agreement, talked.simulated)
    model.save(out)
    return model, {"model": str(out), **talked.facts}
