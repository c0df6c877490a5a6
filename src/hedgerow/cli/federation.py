"""`hedgerow federation`: kits for every house, the roster that all pin, a trial on one machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, table, tell
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.engines.site import Kit
    from hedgerow.protocol.identity import Roster

KitArgument = Annotated[Path, typer.Argument(metavar="KIT", help="The folder of a kit.")]
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
    """Make a kit for the coordinator and one for every party, each with its archive."""
    from hedgerow.engines.nvflare.provision import new_federation

    host, port = address_of(coordinator)
    folder = out or Path(name)
    kits = new_federation(folder, name, host, port, party)
    if json:
        print_json({"folder": str(folder), "kits": {n: str(path) for n, path in kits.items()}})
        return
    shown = table(f"Federation {name}", "house", "kit", "archive to hand over")
    for house, path in kits.items():
        shown.add_row(house, str(path), str(folder / f"{house}.zip"))
    results().print(shown)
    show(
        f"Hand each archive to its house over a safe way, and keep {folder / 'provision'} closed: "
        "it holds the root key of the transport certificates. No privacy rests on them, but on "
        "the signing keys that houses make themselves.\n"
        "Next, in every house: `hedgerow party key KIT` (here: `hedgerow coordinator key "
        f"{kits['coordinator']}`), exchange the key cards, then `hedgerow federation pin`."
    )


def add(
    folder: FolderArgument,
    party: Annotated[str, typer.Argument(metavar="PARTY", help="The new party's name.")],
    json: options.Json = False,
) -> None:
    """Make the kit of one more party; every house then pins a new roster."""
    from hedgerow.engines.nvflare.provision import add_party

    made = add_party(folder, party)
    if json:
        print_json({"kit": str(made), "archive": str(folder / f"{party}.zip")})
        return
    show(
        f"Kit of {party} in {made}, archive {folder / f'{party}.zip'}. It makes its key with "
        "`hedgerow party key`; then every house pins a new roster with `hedgerow federation pin`."
    )


def renew(folder: FolderArgument, json: options.Json = False) -> None:
    """Make new transport certificates for every house, as archives to unpack over the kits."""
    from hedgerow.engines.nvflare.provision import renew as renewed

    made = renewed(folder)
    if json:
        print_json({house: str(path) for house, path in made.items()})
        return
    shown = table("New certificates", "house", "archive to hand over")
    for house, path in made.items():
        shown.add_row(house, str(path))
    results().print(shown)
    show(
        "Each house unpacks its archive over its kit and starts again. Keys, rosters, limits and "
        "ledgers stay as they are; old certificates work until they expire."
    )


def address_of(text: str) -> tuple[str, int]:
    """Host and port.

    >>> address_of("train.example.org:8002")
    ('train.example.org', 8002)
    """
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[2]) < 65536:
        raise SettingsError(
            f"--coordinator {text!r} is not of the form host:port, such as train.example.org:8002"
        )
    return found[1], int(found[2])


def pin(
    kit: KitArgument,
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
    """Make a roster from key cards and pin it, or pin the roster that another house made.

    Every house pins the same roster. Compare the fingerprints with their owners by telephone first.
    """
    from hedgerow.deployment.roster import check_usable, collect, people, roster_fingerprint
    from hedgerow.engines.site import Kit, read_card, read_roster, roster_text, write_file

    house = Kit.open(kit)
    if (roster is None) == (not cards):
        raise SettingsError("give key cards to make a roster, or --roster to accept one")
    if roster is not None:
        agreed = read_roster(roster, house.federation)
        check_usable(agreed)
    else:
        found = [read_card(card) for card in cards or ()]
        agreed, _ = collect(house, found, trust, colluding, minimum_parties)
    if json and not yes:
        raise SettingsError("--json asks nothing: add --yes once the fingerprints were compared")
    if not json:
        _compare(house, agreed, yes)
    house.pin(agreed)
    written = None
    if roster is None:
        written = out or house.path / "roster.toml"
        write_file(written, roster_text(agreed, house.federation), 0o644)
    if json:
        print_json(
            {
                "kit": str(house.path),
                "roster": str(written or roster),
                "fingerprint": roster_fingerprint(agreed),
                "parties": dict(people(agreed)),
                "trust": agreed.trust,
            }
        )
        return
    tell(f"Pinned in {house.path}.")
    if written:
        tell(
            f"Hand {written} to every house; each runs `hedgerow federation pin KIT --roster "
            f"{written.name}` and compares the roster's fingerprint."
        )


def _compare(kit: Kit, roster: Roster, yes: bool) -> None:
    """Show who would be trusted, and ask whether the fingerprints were compared."""
    from hedgerow.deployment.roster import people, roster_fingerprint
    from hedgerow.party.limits import least_parties

    shown = table(f"Roster of {kit.federation}", "house", "fingerprint of its signing key")
    for name, found in people(roster):
        shown.add_row(name + (" (this kit)" if name == kit.name else ""), found)
    results().print(shown)
    show(
        f"Trust: {roster.trust}. Up to {roster.colluding} of the parties may collude with the "
        f"coordinator; a sum has at least {least_parties(roster)} parties.\n"
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
    """The whole thing on one machine: kits, certificates, keys, real processes, one run."""
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
    owners = table("Ledgers, each in its own house", "house", *numbers, right=numbers)
    for house, found in facts["ledgers"].items():
        owners.add_row(house, str(found["charges"]), f"{found['epsilon']:.4g}")
    results().print(owners)
    show(facts["words"])
    tell(f"Model written to {out}. " + (f"Kits and ledgers stay in {folder}." if folder else ""))


federation_app = typer.Typer(
    no_args_is_help=True,
    help="Set up a federation of houses: kits, the pinned roster, a trial on one machine.",
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
