"""`hedgerow similarity`: boosting by similar rows of other parties. It has no epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.parties import OtherHouses, Patience, TablesHere
from hedgerow.cli.screen import messages, print_json, results, show, size_text, table, tell
from hedgerow.cli.train import DataFiles, KitFolder, LedgerIn, ModelOut, nothing_spent
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.exchange import Agreement
    from hedgerow.federation.base import Federation
    from hedgerow.model.ensemble import Ensemble
    from hedgerow.privacy.ledger import Ledger
    from hedgerow.schema import Schema

EngineName = Annotated[
    str,
    typer.Option(
        "--engine", help="local (tables of this machine) or nvflare (parties in other houses)."
    ),
]
Further = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A further setting; see docs/simfl.md."),
]
StepSeconds = Annotated[
    float, typer.Option("--step-seconds", help="How long a party may take for one step.")
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
        parties = _parties(engine, data, kit, step_seconds)
        public, agreement = _agreed(schema, parties, own, further or [])
        stored_in = ledger or parties.ledger_path(out.with_name(out.name + ".ledger"))
        opened = _opened(parties, public, out, stored_in)
    if not json:
        _show_disclosures(agreement)
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


def _parties(
    engine: str, data: list[str] | None, kit: Path | None, seconds: float
) -> TablesHere | OtherHouses:
    if engine == "nvflare":
        return OtherHouses(kit, data or (), Patience(seconds, 0.0))
    if engine != "local":
        raise SettingsError(f"unknown engine {engine!r} for similarity; known: local, nvflare")
    if kit is not None:
        raise SettingsError("--kit belongs to --engine nvflare; leave it out or name the engine")
    return TablesHere(data or ())


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
    for text in further:
        name, equals, value = text.partition("=")
        if not equals or name in own:
            raise SettingsError(f"--set {text!r} is not NAME=VALUE, or has an option of its own")
        values[name] = _value(value)
    values |= {name: value for name, value in own.items() if value is not None}
    settings = SimilaritySettings.from_dict(values)
    if len(parties.names) < 2:
        raise SettingsError(
            f"there is {len(parties.names)} party; similarity needs others. Give --data at least "
            "twice."
        )
    return public, agreement_for(public, parties.names, settings, secrets.token_hex(8))


def _value(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text


def _opened(
    parties: TablesHere | OtherHouses, schema: Schema, out: Path, stored_in: Path
) -> Ledger:
    from hedgerow.cli.files import check_writable
    from hedgerow.privacy.ledger import Ledger

    parties.check(schema)
    check_writable(out)
    return Ledger.open(stored_in)


def _show_disclosures(agreement: Agreement) -> None:
    shown = table("What is shown without an epsilon", "to", "about", "what", "measured by")
    for one in agreement.disclosures:
        shown.add_row(one.seen_by, one.about, one.what, one.measured_by)
    results().print(shown)


def _run(
    schema: Schema,
    parties: TablesHere | OtherHouses,
    agreement: Agreement,
    ledger: Ledger,
    out: Path,
    seconds: float,
) -> tuple[Ensemble, dict[str, Any]]:
    from rich.progress import Progress

    from hedgerow.deployment.programs import program_factories
    from hedgerow.federation.exchanging import Conversation, Reported
    from hedgerow.similarity.run import model_of

    console, steps = messages(), 0
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    with bar, parties.talking(schema, ledger, program_factories()) as federation:
        task = bar.add_task("trees", total=int(agreement.settings["n_trees"]))

        def observe(found: Reported) -> None:
            nonlocal steps
            steps = found.step
            bar.advance(task, len(found.reports))

        talk = Conversation(federation, agreement, ledger, observe, seconds)
        reports = talk.run()
        model = model_of(reports, schema, agreement, federation.simulated)
        model.save(out)
        return model, {"steps": steps, **_facts(agreement, ledger, federation, out)}


def _facts(
    agreement: Agreement, ledger: Ledger, federation: Federation, out: Path
) -> dict[str, Any]:
    return {
        "model": str(out),
        "ledger": str(ledger.path),
        "run": agreement.run,
        "parties": list(agreement.parties),
        "settings": dict(agreement.settings),
        "disclosures": [dict(one.__dict__) for one in agreement.disclosures],
        "bytes_to_parties": federation.bytes_to_parties,
        "bytes_from_parties": federation.bytes_from_parties,
    }
