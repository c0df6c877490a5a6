"""`hedgerow coordinator`: the engine of the site that drives runs, in the foreground."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, show, tell

SiteArgument = Annotated[
    Path, typer.Argument(metavar="SITE", help="The coordinator's site folder.")
]


def start(path: SiteArgument, verbose: options.Verbose = False) -> None:
    """Let parties connect. Runs in the foreground until Ctrl-C; `hedgerow train` uses it."""
    from hedgerow.engines.nvflare.processes import EngineProcess
    from hedgerow.engines.site import Site
    from hedgerow.protocol.identity import fingerprint

    site = Site.open(path, "coordinator")
    card = site.write_card()
    tell(f"Coordinator of {site.federation}. Key: {fingerprint(site.identity().public)} ({card})")
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    with EngineProcess(site) as engine:
        tell(f"Parties dial {site.address}. Ctrl-C ends it; runs can be resumed later.")
        while not over.wait(0.5):
            engine.watch()
    tell("Stopped.")


def key(path: SiteArgument, json: options.Json = False) -> None:
    """Show the coordinator's fingerprint and write its key card; makes a missing key."""
    from hedgerow.engines.site import Site
    from hedgerow.protocol.identity import fingerprint

    site = Site.open(path, "coordinator")
    card, print_of_key = site.write_card(), fingerprint(site.identity().public)
    if json:
        print_json({"name": site.name, "fingerprint": print_of_key, "card": str(card)})
        return
    show(f"{site.name}: {print_of_key}")
    tell(f"Key card written to {card}: hand it to every party.")


coordinator_app = typer.Typer(
    no_args_is_help=True,
    help="Run the site that drives training runs.",
    epilog="Example: hedgerow coordinator start trial/coordinator",
)
for _name, _command, _example in (
    ("start", start, "hedgerow coordinator start trial/coordinator"),
    ("key", key, "hedgerow coordinator key trial/coordinator"),
):
    coordinator_app.command(_name, epilog=f"Example: {_example}")(_command)
