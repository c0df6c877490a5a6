"""What commands share whose parties send each other messages in a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.parties import OtherSites, Patience, TablesHere, is_between_sites
from hedgerow.cli.screen import messages, results, table
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.coordinator.federation import Federation
    from hedgerow.data.schema import Schema
    from hedgerow.privacy.ledger.ledger import Ledger
    from hedgerow.protocol.roles import Agreement

EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="local (tables of this machine), grpc (parties at other sites; the default with "
        "--site) or relay:SOCKET.",
    ),
]
StepSeconds = Annotated[
    float, typer.Option("--step-seconds", help="How long a party may take for one step.")
]
Reported = Callable[[Mapping[str, bytes]], int]


@dataclass(frozen=True)
class SessionResult:
    """What came of a session."""

    reports: Mapping[str, Sequence[bytes]]
    simulated: bool
    facts: dict[str, Any]


def parties_for(
    command: str,
    here: type[TablesHere],
    engine: str,
    data: list[str] | None,
    site: Path | None,
    seconds: float,
) -> TablesHere | OtherSites:
    """The parties of a session: tables here, or other sites."""
    if is_between_sites(engine, site):
        return OtherSites(site, data or (), Patience(seconds, 0.0), engine)
    if engine != "local":
        raise SettingsError(
            f"unknown engine {engine!r} for {command}; known: local, grpc, relay:SOCKET"
        )
    return here(data or ())


def further_settings(texts: list[str], own: Mapping[str, Any]) -> dict[str, Any]:
    """Settings given as NAME=VALUE, and those that have an option of their own."""
    import json

    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name in own:
            raise SettingsError(f"--set {text!r} is not NAME=VALUE, or has an option of its own")
        try:
            values[name] = json.loads(value)
        except (ValueError, RecursionError):
            values[name] = value
    return values | {name: value for name, value in own.items() if value is not None}


def show_disclosures(agreement: Agreement) -> None:
    """A table of what each party will be able to see."""
    shown = table("What is shown without an epsilon", "to", "about", "what", "measured by")
    for one in agreement.disclosures:
        shown.add_row(one.seen_by, one.about, one.what, one.measured_by)
    results().print(shown)


def run_session(
    schema: Schema,
    parties: TablesHere | OtherSites,
    agreement: Agreement,
    ledger: Ledger,
    seconds: float,
    total: int,
    reported: Reported,
) -> SessionResult:
    """Carry a session to its end; `reported` says how much further its reports bring it."""
    from rich.progress import Progress

    from hedgerow.coordinator import sessions
    from hedgerow.deployment.roles import role_factories

    console, steps = messages(), 0
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    with bar, parties.for_session(schema, ledger, role_factories()) as federation:
        task = bar.add_task(agreement.role, total=total)

        def observe(found: sessions.Reported) -> None:
            nonlocal steps
            steps = found.step
            bar.advance(task, reported(found.reports))

        reports = sessions.Session(federation, agreement, ledger, observe, seconds).run()
        facts = {"steps": steps, **_facts(agreement, ledger, federation)}
        return SessionResult(reports, federation.simulated, facts)


def _facts(agreement: Agreement, ledger: Ledger, federation: Federation) -> dict[str, Any]:
    return {
        "ledger": str(ledger.path),
        "run": agreement.run,
        "parties": list(agreement.parties),
        "settings": dict(agreement.settings),
        "disclosures": [dict(one.__dict__) for one in agreement.disclosures],
        "bytes_to_parties": federation.bytes_to_parties,
        "bytes_from_parties": federation.bytes_from_parties,
    }
