"""`hedgerow federation`: the roster of all sites, and a trial of everything on one machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, table, tell
from hedgerow.errors import SettingsError

_ADDRESS = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")


def check_address(option: str, text: str) -> None:
    """Refuse what is not host:port."""
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[1]) < 65536:
        raise SettingsError(
            f"{option} {text!r} is not of the form host:port, such as train.example.org:8002"
        )


def roster(
    cards: Annotated[
        list[Path], typer.Argument(metavar="CARD...", help="The cards of all sites (.card.toml).")
    ],
    out: Annotated[
        Path, typer.Option("--out", help="Where the roster goes, to hand to every site.")
    ] = Path("roster.toml"),
    site: Annotated[
        Path | None, typer.Option("--site", help="Pin it at the coordinator's site here as well.")
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="What the federation is called.")
    ] = "federation",
    trust: Annotated[
        str, typer.Option("--trust", help="coordinator, parties or nobody.")
    ] = "parties",
    colluding: Annotated[
        int, typer.Option("--colluding", help="How many parties may leak, omit or lie.")
    ] = 1,
    minimum_parties: Annotated[
        int, typer.Option("--minimum-parties", help="The smallest set that is ever summed.")
    ] = 3,
    yes: options.Compared = False,
    json: options.Json = False,
) -> None:
    """Make the roster of all sites from their cards; each site then pins it.

    Compare the phrase of every card with its owner by telephone first.
    """
    from hedgerow.cli import pinning
    from hedgerow.deployment.roster import roster_of
    from hedgerow.engines.cards import read_card
    from hedgerow.engines.site import Site, write_file

    read = [read_card(file) for file in cards]
    home = None if site is None else Site.open(site, "coordinator")
    if home is not None:
        read.append(home.card())
    agreed = roster_of(read, name, trust, colluding, minimum_parties)
    if not json:
        shown = table("Cards", "site", "phrase, as its owner reads it over the telephone")
        for card in read:
            shown.add_row(card.name, card.phrase)
        results().print(shown)
    write_file(out, agreed.to_toml(), 0o644)
    if home is not None:
        pinning.pin(home, out, yes, json)
    elif json:
        print_json(pinning.roster_facts(agreed, out))
    if not json:
        if home is None:
            show(f"Phrase of this roster, the same at every site:\n  {agreed.phrase}")
        tell(
            f"Roster written to {out}. Hand it to every site: `hedgerow party pin SITE {out.name}`."
        )


def try_out(
    schema: options.SchemaFile,
    data: Annotated[
        list[str],
        typer.Option(
            "--data", metavar="PATH", help="A party's table, or a pattern such as 'parts/*.csv'."
        ),
    ],
    parties: Annotated[
        int, typer.Option("--parties", help="How many parties; one table is then split.")
    ] = 0,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-6,
    method: options.Method = None,
    kind: Annotated[
        str, typer.Option("--kind", help="sums (private methods), similarity or vertical.")
    ] = "sums",
    id_column: Annotated[
        str, typer.Option("--id", help="With --kind vertical: the column with row ids.")
    ] = "",
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Keep everything here; else it is removed.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Where the model goes (.hedge).")] = Path(
        "model.hedge"
    ),
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """The whole thing on one machine: keys, cards, a roster, real processes over TLS, one run."""
    from hedgerow.deployment.trial import Trial

    trial = Trial(
        schema, data, parties, epsilon or 1.0, delta or 1e-6, method, folder, out, kind, id_column
    )
    facts = trial.run(tell)
    if json:
        print_json(facts)
        return
    shown = table("What happened", "step", "seconds", right=("seconds",))
    for step, seconds in facts["seconds"].items():
        shown.add_row(step, f"{seconds:.1f}")
    results().print(shown)
    numbers = ("charges", "epsilon")
    owners = table("Ledgers, each at its own site", "site", *numbers, right=numbers)
    for site, ledger_facts in facts["ledgers"].items():
        owners.add_row(site, str(ledger_facts["charges"]), f"{ledger_facts['epsilon']:.4g}")
    results().print(owners)
    show(facts["words"])
    tell(
        f"Model written to {out}. "
        + (f"Site folders and ledgers stay in {folder}." if folder else "")
    )


federation_app = typer.Typer(
    no_args_is_help=True,
    help="The roster of a federation, and a trial of everything on one machine.",
    epilog="Example: hedgerow federation roster *.card.toml --site coordinator",
)
for _name, _command, _example in (
    ("roster", roster, "hedgerow federation roster *.card.toml --site coordinator"),
    (
        "try",
        try_out,
        "hedgerow federation try --schema schema.toml --data 'parts/*.parquet' --epsilon 1",
    ),
):
    federation_app.command(_name, epilog=f"Example: {_example}")(_command)
