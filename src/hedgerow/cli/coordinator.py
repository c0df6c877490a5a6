"""`hedgerow coordinator`: the site that drives runs, and its port."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, table, tell

SiteArgument = Annotated[
    Path, typer.Argument(metavar="SITE", help="The coordinator's site folder.")
]


def init(
    path: SiteArgument,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where parties will dial.")
    ] = "",
    bind: Annotated[
        str,
        typer.Option(
            "--bind", metavar="HOST:PORT", help="Where to listen, if not on every address."
        ),
    ] = "",
    mutual_tls: Annotated[
        bool, typer.Option("--mutual-tls", help="Parties show certificates of their own too.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Make the coordinator's site folder with its keys, and print its public card.

    Without --listen there is no port: another runtime's relay carries the messages.
    """
    from hedgerow.cli.federation import check_address
    from hedgerow.cli.pinning import show_card
    from hedgerow.engines.site import COORDINATOR, Site

    for option, text in (("--listen", listen), ("--bind", bind)):
        if text:
            check_address(option, text)
    show_card(Site.create(path, COORDINATOR, listen, bind, mutual_tls), json)


def card(path: SiteArgument, json: options.Json = False) -> None:
    """Print the coordinator's public card again, and its phrase."""
    from hedgerow.cli.pinning import show_card
    from hedgerow.engines.site import Site

    show_card(Site.open(path, "coordinator"), json)


def pin(
    path: SiteArgument,
    roster: options.RosterArgument,
    yes: options.Compared = False,
    json: options.Json = False,
) -> None:
    """Show a roster and every difference to the one before, and pin it after a person agreed."""
    from hedgerow.cli import pinning
    from hedgerow.engines.site import Site

    pinning.pin(Site.open(path, "coordinator"), roster, yes, json)


def start(
    path: SiteArgument,
    console_socket: Annotated[
        Path | None, typer.Option("--console-socket", help="Where the web console asks.")
    ] = None,
    console_group: Annotated[
        str, typer.Option("--console-group", help="The group whose accounts may open that socket.")
    ] = "",
    verbose: options.Verbose = False,
) -> None:
    """Let parties connect. Runs in the foreground until Ctrl-C; `hedgerow train` uses it."""
    import logging

    from hedgerow.cli.party import shared_socket
    from hedgerow.deployment.coordinator import CoordinatorProcess
    from hedgerow.deployment.process import stopped_by_signals
    from hedgerow.engines.site import Site
    from hedgerow.protocol.identity import fingerprint

    site = Site.open(path, "coordinator")
    logging.getLogger("hedgerow.engines.grpc").setLevel(logging.INFO)  # who comes and goes
    tell(f"Coordinator of {site.federation or 'a federation'}. Its card: {site.card_file}")
    tell(f"Fingerprint of its signing key: {fingerprint(site.identity().public)}")
    socket = shared_socket("console", console_socket, console_group)
    process = CoordinatorProcess(site, tell, socket)
    with stopped_by_signals(process):
        process.run()
    tell("Stopped.")


def status(path: SiteArgument, json: options.Json = False) -> None:
    """Show who is connected, since when, and what is wrong. Code 5 unless all is well."""
    from hedgerow.deployment.coordinator import ask_status
    from hedgerow.engines.site import Site

    found = ask_status(Site.open(path, "coordinator"))
    well = found["running"] and not any(party["problems"] for party in found["parties"])
    if json:
        print_json(found)
    else:
        _show_status(found, path)
    raise typer.Exit(0 if well else 5)


def _show_status(found: dict[str, Any], path: Path) -> None:
    if not found["running"]:
        show(f"The coordinator does not run. Start it: hedgerow coordinator start {path}")
        return
    show(f"Coordinator of {found['federation']} at {found['address']}.")
    shown = table(
        "Parties", "party", "connected", "since (UTC)", "from", "hedgerow", "what is wrong"
    )
    for party in found["parties"]:
        since = options.utc_text(party["since"]) if party["since"] else ""
        state = "yes" if party["connected"] else "NO"
        wrong = "; ".join(party["problems"])
        shown.add_row(party["name"], state, since, party["address"], party["software"], wrong)
    results().print(shown)
    show(f"Phrase of the roster: {found['phrase']}")
    if found["strangers"]:
        show(f"Strangers turned away since the start: {found['strangers']}.")


def account(
    path: SiteArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The person's name.")] = "",
    role: Annotated[
        str, typer.Option("--role", help="Add it, as operator, privacy-officer or reader.")
    ] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Remove it.")] = False,
) -> None:
    """List the accounts of this site's console; add, change or remove one."""
    from hedgerow.deployment.accounts import Accounts
    from hedgerow.engines.site import Site

    accounts = Accounts(Site.open(path, "coordinator"))
    if remove:
        accounts.remove(name)
    elif role:
        accounts.put(name, role)
    for one in accounts.everyone():
        show(f"{one.name}: {one.role}")


coordinator_app = typer.Typer(
    no_args_is_help=True,
    help="Run the site that drives training runs.",
    epilog="Example: hedgerow coordinator start coordinator",
)
for _name, _command, _example in (
    ("init", init, "init coordinator --listen train.example.org:8002"),
    ("card", card, "card coordinator"),
    ("pin", pin, "pin coordinator roster.toml"),
    ("start", start, "start coordinator"),
    ("status", status, "status coordinator"),
    ("account", account, "account coordinator 'Jo Lead' --role operator"),
):
    coordinator_app.command(_name, epilog=f"Example: hedgerow coordinator {_example}")(_command)
