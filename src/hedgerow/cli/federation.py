"""`hedgerow federation`: a folder for every site, the roster all pin, a trial on one machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, table, tell
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.engines.site import Site
    from hedgerow.protocol.identity import Roster

SiteArgument = Annotated[Path, typer.Argument(metavar="SITE", help="A site folder.")]
FolderArgument = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="The folder of `hedgerow federation new`.")
]
_ADDRESS = re.compile(r"([A-Za-z0-9.-]+):(\d{1,5})")


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the federation is called.")],
    coordinator: Annotated[
        str, typer.Option("--coordinator", metavar="HOST:PORT", help="Where parties will dial.")
    ],
    party: Annotated[list[str], typer.Option("--party", help="A party's name; repeatable.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="A new folder; by default the name.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Make a site folder for the coordinator and one for every party, each with its archive."""
    from hedgerow.engines.nvflare.provision import new_federation

    host, port = address_of(coordinator)
    folder = out or Path(name)
    sites = new_federation(folder, name, host, port, party)
    if json:
        print_json({"folder": str(folder), "sites": {n: str(path) for n, path in sites.items()}})
        return
    shown = table(f"Federation {name}", "site", "folder", "archive to hand over")
    for site, path in sites.items():
        shown.add_row(site, str(path), str(folder / f"{site}.zip"))
    results().print(shown)
    show(
        f"Hand each archive to its site by a safe way, and keep {folder / 'provision'} closed: "
        "it holds the root key of the transport certificates. No privacy rests on them, but on "
        "the signing keys that sites make themselves.\n"
        "Next, at every site: `hedgerow party key SITE` (here: `hedgerow coordinator key "
        f"{sites['coordinator']}`), exchange the key cards, then `hedgerow federation pin`."
    )


def add(
    folder: FolderArgument,
    party: Annotated[str, typer.Argument(metavar="PARTY", help="The new party's name.")],
    json: options.Json = False,
) -> None:
    """Make the site folder of one more party; every site then pins a new roster."""
    from hedgerow.engines.nvflare.provision import add_party

    site = add_party(folder, party)
    if json:
        print_json({"site": str(site), "archive": str(folder / f"{party}.zip")})
        return
    show(
        f"Site folder of {party} in {site}, archive {folder / f'{party}.zip'}. It makes its key "
        "with `hedgerow party key`; then every site pins a new roster with `hedgerow federation "
        "pin`."
    )


def renew(folder: FolderArgument, json: options.Json = False) -> None:
    """Make new transport certificates for every site, as archives to unpack there."""
    from hedgerow.engines.nvflare.provision import renew as renewed

    archives = renewed(folder)
    if json:
        print_json({site: str(path) for site, path in archives.items()})
        return
    shown = table("New certificates", "site", "archive to hand over")
    for site, path in archives.items():
        shown.add_row(site, str(path))
    results().print(shown)
    show(
        "Each site unpacks its archive over its folder and starts again. Keys, rosters, limits "
        "and ledgers stay as they are; old certificates work until they expire."
    )


def address_of(text: str) -> tuple[str, int]:
    """Host and port.

    >>> address_of("train.example.org:8002")
    ('train.example.org', 8002)
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[2]) < 65536:
        raise SettingsError(
            f"--coordinator {text!r} is not of the form host:port, such as train.example.org:8002"
        )
    return match[1], int(match[2])


def pin(
    path: SiteArgument,
    cards: Annotated[
        list[Path] | None, typer.Argument(metavar="[CARD]...", help="Key cards (.key.toml).")
    ] = None,
    roster: Annotated[
        Path | None, typer.Option("--roster", help="Accept this roster instead of making one.")
    ] = None,
    trust: Annotated[
        str, typer.Option("--trust", help="coordinator, parties or nobody.")
    ] = "parties",
    colluding: Annotated[
        int, typer.Option("--colluding", help="How many parties may leak, omit or lie.")
    ] = 1,
    minimum_parties: Annotated[
        int, typer.Option("--minimum-parties", help="The smallest set that is ever summed.")
    ] = 3,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where a new roster goes, to hand to the others.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="The fingerprints were compared by telephone.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Make a roster from key cards and pin it, or pin the roster that another site made.

    Every site pins the same roster. Compare the fingerprints with their owners by telephone first.
    """
    from hedgerow.deployment.roster import check_usable, collect, people, roster_fingerprint
    from hedgerow.engines.site import Site, read_card, read_roster, roster_text, write_file

    site = Site.open(path)
    if (roster is None) == (not cards):
        raise SettingsError("give key cards to make a roster, or --roster to accept one")
    if roster is not None:
        agreed = read_roster(roster, site.federation)
        check_usable(agreed)
    else:
        key_cards = [read_card(card) for card in cards or ()]
        agreed, _ = collect(site, key_cards, trust, colluding, minimum_parties)
    if json and not yes:
        raise SettingsError("--json asks nothing: add --yes once the fingerprints were compared")
    if not json:
        _compare(site, agreed, yes)
    site.pin(agreed)
    written = None
    if roster is None:
        written = out or site.path / "roster.toml"
        write_file(written, roster_text(agreed, site.federation), 0o644)
    if json:
        print_json(
            {
                "site": str(site.path),
                "roster": str(written or roster),
                "fingerprint": roster_fingerprint(agreed),
                "parties": dict(people(agreed)),
                "trust": agreed.trust,
            }
        )
        return
    tell(f"Pinned in {site.path}.")
    if written:
        tell(
            f"Hand {written} to every site; each runs `hedgerow federation pin SITE --roster "
            f"{written.name}` and compares the roster's fingerprint."
        )


def _compare(site: Site, roster: Roster, yes: bool) -> None:
    """Show who would be trusted, and ask whether the fingerprints were compared."""
    from hedgerow.deployment.roster import people, roster_fingerprint

    shown = table(f"Roster of {site.federation}", "site", "fingerprint of its signing key")
    for name, print_of_key in people(roster):
        shown.add_row(name + (" (this site)" if name == site.name else ""), print_of_key)
    results().print(shown)
    show(
        f"Trust: {roster.trust}. Up to {roster.colluding} of the parties may collude with the "
        f"coordinator; a sum has at least {roster.least_set} parties.\n"
        f"Fingerprint of the whole roster: {roster_fingerprint(roster)}"
    )
    if not yes:
        typer.confirm("Did you compare these with their owners by telephone?", abort=True, err=True)


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
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Keep everything here; else it is removed.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Where the model goes (.hedge).")] = Path(
        "model.hedge"
    ),
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """The whole thing on one machine: site folders, certificates, keys, real processes, one run."""
    from hedgerow.deployment.trial import Trial

    trial = Trial(schema, data, parties, epsilon or 1.0, delta or 1e-6, method, folder, out)
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
    help="Set up a federation: a folder for every site, the pinned roster, a trial on one machine.",
    epilog="Example: hedgerow federation new trial --coordinator train.example.org:8002 "
    "--party hospital-a --party hospital-b --party hospital-c",
)
for _name, _command, _example in (
    (
        "new",
        new,
        "hedgerow federation new trial --coordinator train.example.org:8002 --party hospital-a "
        "--party hospital-b --party hospital-c",
    ),
    ("add", add, "hedgerow federation add trial hospital-d"),
    ("renew", renew, "hedgerow federation renew trial"),
    (
        "pin",
        pin,
        "hedgerow federation pin trial/coordinator hospital-a.key.toml hospital-b.key.toml "
        "hospital-c.key.toml",
    ),
    (
        "try",
        try_out,
        "hedgerow federation try --schema schema.toml --data 'parts/*.parquet' --epsilon 1",
    ),
):
    federation_app.command(_name, epilog=f"Example: {_example}")(_command)
