"""`hedgerow party`: run a party beside its data, and see and decide what it gives away."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.deciding import account_app, approve, plans, reject, settle, withdraw
from hedgerow.cli.screen import messages, print_json, results, show, table, tell
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.deployment.process import PartyProcess
    from hedgerow.deployment.start import Start
    from hedgerow.engines.site import Site
    from hedgerow.party.limits import Limits

SiteArgument = Annotated[Path, typer.Argument(metavar="SITE", help="The party's site folder.")]
PartyName = Annotated[
    str, typer.Option("--name", help="The party's name; by default the folder's.")
]
CRASH_LOOP_STARTS = 4  # in ten minutes
LimitsFile = Annotated[
    Path | None, typer.Option("--limits", help="Limits file (TOML); by default the site's own.")
]


def init(path: SiteArgument, name: PartyName = "", json: options.Json = False) -> None:
    """Make a party's site folder with its keys, and print its public card."""
    from hedgerow.cli.pinning import show_card
    from hedgerow.engines.site import COORDINATOR, Site

    name = name or path.resolve().name
    if name == COORDINATOR:
        raise SettingsError("a party cannot be called coordinator; name the folder otherwise")
    show_card(Site.create(path, name), json)


def card(path: SiteArgument, json: options.Json = False) -> None:
    """Print the party's public card again, and its phrase."""
    from hedgerow.cli.pinning import show_card
    from hedgerow.engines.site import Site

    show_card(Site.open(path, "party"), json)


def pin(
    path: SiteArgument,
    roster: options.RosterArgument,
    yes: options.Compared = False,
    json: options.Json = False,
) -> None:
    """Show a roster and every difference to the one before, and pin it after a person agreed.

    It holds at once, also for a party that runs; runs that were joined keep theirs.
    """
    from hedgerow.cli import pinning
    from hedgerow.engines.site import Site

    pinning.pin(Site.open(path, "party"), roster, yes, json)


def start(
    path: SiteArgument,
    roster: Annotated[
        Path | None, typer.Option("--roster", help="Pin this roster first, as `party pin` does.")
    ] = None,
    yes: options.Compared = False,
    data: Annotated[
        Path | None, typer.Option("--data", help="The table; remembered for the next start.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", help="Schema file; remembered for the next start.")
    ] = None,
    limits: LimitsFile = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id", help="The table has some of the schema's columns, and this one with row ids."
        ),
    ] = None,
    some_columns: Annotated[
        bool,
        typer.Option("--some-columns", help="The table has some of the schema's columns, no ids."),
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="End if no roster is pinned, instead of waiting.")
    ] = False,
    new_ledger: Annotated[
        bool, typer.Option("--new-ledger", help="The ledger is lost: forget what was spent.")
    ] = False,
    relay_socket: Annotated[
        Path | None, typer.Option("--relay-socket", help="A socket for another runtime's relay.")
    ] = None,
    relay_group: Annotated[
        str, typer.Option("--relay-group", help="The group whose accounts may open that socket.")
    ] = "",
    console_socket: Annotated[
        Path | None, typer.Option("--console-socket", help="Where the web console asks.")
    ] = None,
    console_group: Annotated[
        str, typer.Option("--console-group", help="The group whose accounts may open that socket.")
    ] = "",
    unconfined: Annotated[
        bool,
        typer.Option("--unconfined", help="Let the process use all files that its account may."),
    ] = False,
    verbose: options.Verbose = False,
) -> None:
    """Answer for this party, in the foreground until Ctrl-C; shows what is asked and what it costs.

    Limits are read at the start. Only masked or noisy sums leave the site, and what is done
    without an epsilon where the limits name it (see `hedgerow vertical`). Where the kernel can
    (Landlock), the process may write to its site folder alone, and read its table and Python.
    """
    from hedgerow.cli import pinning
    from hedgerow.deployment.sandbox import confine, is_confined
    from hedgerow.engines.site import Site

    if roster is not None and not is_confined():  # else it was pinned before it was
        pinning.pin(Site.open(path, "party"), roster, yes)
    relay = shared_socket("relay", relay_socket, relay_group)
    console = shared_socket("console", console_socket, console_group)
    why = "it was started with --unconfined"
    if not unconfined:
        sockets = [socket for socket in (relay_socket, console_socket) if socket is not None]
        why = "" if is_confined() else confine(path, data, schema, limits, sockets)
    from hedgerow.deployment.process import stopped_by_signals

    process = process_for(
        path, data, schema, limits, wait=not no_wait, new_ledger=new_ledger, id_column=id_column,
        some_columns=some_columns, relay=relay, unconfined=why, console_socket=console,
    )  # fmt: skip
    with stopped_by_signals(process):
        process.run()


def shared_socket(what: str, path: Path | None, group: str) -> tuple[Path, str] | None:
    if group and path is None:
        raise SettingsError(f"--{what}-group belongs to --{what}-socket; name the socket too")
    return None if path is None else (path.resolve(), group)


def process_for(
    path: Path,
    data: Path | None,
    schema: Path | None,
    limits: Path | None,
    wait: bool,
    dials: bool = True,
    new_ledger: bool = False,
    id_column: str | None = None,
    some_columns: bool = False,
    relay: tuple[Path, str] | None = None,
    unconfined: str = "",
    console_socket: tuple[Path, str] | None = None,
) -> PartyProcess:
    """The process behind `party start`, ready to run."""
    from hedgerow.deployment.process import PartyProcess
    from hedgerow.deployment.start import Start
    from hedgerow.deployment.terminal import PartyTerminal
    from hedgerow.engines.site import Site

    site = Site.open(path, "party")
    begin = Start.remembered(site).updated(data, schema, limits, id_column, some_columns)

    def terminal_for(allowed: Limits) -> PartyTerminal:
        return PartyTerminal(messages(), site.name, allowed)

    return PartyProcess(
        site, begin, terminal_for, dials, wait, new_ledger, relay, unconfined, console_socket
    )


def status(path: SiteArgument, json: options.Json = False) -> None:
    """Show whether it is connected, runs, what is left under each limit, and plans that wait.

    Code 5 if it does not run, is not connected, or has a problem.
    """
    from hedgerow.deployment.approvals import cell
    from hedgerow.deployment.service import ask_party

    site, _, allowed = _site_at(path)
    status_now = ask_party(site, allowed, "status")
    link = status_now["connection"]
    well = status_now["running"] and (link is None or link["connected"])
    well = well and not status_now["problem"] and not _is_crashing(status_now)
    if json:
        print_json(status_now)
        raise typer.Exit(0 if well else 5)
    where = status_now["federation"] or "no federation yet"
    show(f"Party {status_now['name']} of {where}: {status_now['state']}.")
    _show_connection(status_now)
    if status_now["fingerprint"]:
        show(f"Fingerprint: {status_now['fingerprint']}")
    if not status_now["pinned"]:
        show(f"No roster is pinned; run `hedgerow party pin {path} ROSTER`.")
    numbers = ("epsilon", "delta", "queries")
    runs = table("Runs", "run", "reserved (UTC)", "method", *numbers, right=numbers)
    for run in status_now["runs"]:
        asked = f"{run['charged_slots']} of at most {run['slots']}"
        cells = (cell(run["run"], 12), _time(run["time"]), cell(run["method"]))
        runs.add_row(*cells, f"{run['epsilon']:.4g}", f"{run['delta']:g}", asked)
    if status_now["runs"]:
        results().print(runs)
    _show_limits(status_now["limits"])
    for word, count in status_now["refused"].items():
        show(f"Refused {count} x {word}.")
    if status_now["pending"]:
        show(
            f"{len(status_now['pending'])} plans wait for approval: `hedgerow party plans {path}`."
        )
    raise typer.Exit(0 if well else 5)


def _show_connection(status_now: dict[str, Any]) -> None:
    """Whether it is connected, since when, to whom, and why not."""
    if (link := status_now["connection"]) is not None:
        since = options.utc_text(link["since"])
        if link["connected"]:
            also = f" {link['words']}." if link["words"] else ""
            software = link["software"]
            show(f"Connected to {link['address']} (hedgerow {software}) since {since} UTC.{also}")
        else:
            show(f"NOT CONNECTED to {link['address']} since {since} UTC: {link['words']}.")
    if status_now["confined"] is not None:
        free = "NOT confined: it may use all files that its account may"
        show("Confined to its site folder." if status_now["confined"] else f"{free}.")
    if status_now["problem"]:
        show(f"PROBLEM: {status_now['problem']}.")
    if _is_crashing(status_now):
        show(f"PROBLEM: started {status_now['recent_starts']} times in ten minutes: see its log.")


def _is_crashing(status_now: dict[str, Any]) -> bool:
    starts: int = status_now["recent_starts"]
    return starts >= CRASH_LOOP_STARTS


def log(path: SiteArgument, json: options.Json = False) -> None:
    """Show everything that was asked and charged, approved or refused, with UTC times."""
    from hedgerow.deployment.approvals import cell
    from hedgerow.deployment.service import ask_party

    site, _, allowed = _site_at(path)
    entries = ask_party(site, allowed, "log")
    if json:
        print_json(entries)
        return
    right = ("slot", "attempt", "mu")
    shown = table(f"Log of {site.name}", "time (UTC)", "what", "run", *right, "about", right=right)
    for entry in entries:
        shown.add_row(
            _time(entry["time"]),
            entry["what"],
            cell(entry["run"], 12),
            _text(entry["slot"]),
            _text(entry["attempt"]),
            f"{entry['mu']:.4f}" if "mu" in entry else "",
            cell(_about(entry)),
        )
    results().print(shown)


def _about(entry: dict[str, Any]) -> str:
    """The last column of the log."""
    if entry["what"] == "reserved":
        return f"epsilon = {entry['epsilon']:.4g} at delta = {entry['delta']:g}"
    if entry["what"] == "limits set":
        return f"{entry['source']}, {entry['hash'][:12]}"
    if entry["what"] == "refused more":
        return f"{entry['word']}, {entry['count']} not listed"
    if entry["what"] in ("approved", "rejected", "withdrawn"):
        return f"{entry.get('name', '')}: {entry.get('reason', '')}"
    if entry["what"] == "lines lost":
        return f"{entry['shown_by']} knows of them"
    if entry["what"] == "gap settled":
        return f"{entry['name']}: {entry['reason']}; booked {entry['bound']}"
    if entry["what"] == "account":
        return f"{entry['name']}: {entry.get('role', 'removed')}"
    if entry["what"] == "ledger lost":
        return f"what was spent is forgotten; {entry['kept']} lines kept"
    return str(entry.get("word") or entry.get("kind") or "")


def limits(
    path: SiteArgument,
    limits: LimitsFile = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the default limits, with comments, to change.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Show the limits in words, what is used of them and what is left; or write a limits file."""
    from hedgerow.deployment.limits_file import limits_in_words
    from hedgerow.deployment.service import ask_party

    if write:
        _write_limits(path, limits)
        return
    site, begin, allowed = _site_at(path, limits)
    status_now = ask_party(site, allowed, "status")
    words = limits_in_words(allowed)
    file = begin.limits_file(site)
    if json:
        print_json({"file": str(file or ""), "words": words, "limits": status_now["limits"]})
        return
    show(f"Limits of {site.name}, from {file or 'the defaults (there is no limits file)'}:")
    for text in words:
        show(f"  {text}")
    _show_limits(status_now["limits"])
    if status_now["running"]:
        tell("The process that runs uses the limits that it read at its start.")


def _site_at(path: Path, limits: Path | None = None) -> tuple[Site, Start, Limits]:
    from hedgerow.deployment.start import Start
    from hedgerow.engines.site import Site

    site = Site.open(path, "party")
    begin = Start.remembered(site).updated(None, None, limits)
    return site, begin, begin.in_force(site).limits


def _write_limits(path: Path, limits: Path | None) -> None:
    from hedgerow.deployment.approvals import write_private
    from hedgerow.deployment.limits_file import default_limits_text
    from hedgerow.engines.site import Site

    site = Site.open(path, "party")
    file = limits or site.folder / "limits.toml"
    if file.exists():
        raise SettingsError(
            f"{file} exists and was not changed. Edit it, or name another file with --limits."
        )
    write_private(file, default_limits_text())
    tell(f"Limits written to {file}. Change them, then start the party (again).")


def _show_limits(rows: list[dict[str, Any]]) -> None:
    numbers = ("limit", "at delta", "used", "left", "next run at most")
    shown = table("Epsilon", "of", *numbers, right=numbers)
    for row in rows:
        used = "" if row["used"] is None else f"{row['used']:.4g}"
        left = "" if row["left"] is None else f"{row['left']:.4g}"
        first = (row["limit"], f"{row['epsilon']:g}", f"{row['delta']:g}")
        shown.add_row(*first, used, left, f"{row['next_run']:.4g}")
    if rows:
        results().print(shown)
    else:
        show("Epsilon is not limited here.")


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def _text(value: int | None) -> str:
    return "" if value is None else str(value)


party_app = typer.Typer(
    no_args_is_help=True,
    help="Run a party beside its data; see and decide what it gives away.",
    epilog="Example: hedgerow party start hospital-a --data rows.parquet --schema schema.toml",
)
for _name, _command, _example in (
    ("init", init, "init hospital-a"),
    ("card", card, "card hospital-a"),
    ("pin", pin, "pin hospital-a roster.toml"),
    ("start", start, "start hospital-a --data rows.parquet --schema schema.toml"),
    ("status", status, "status hospital-a"),
    ("log", log, "log hospital-a --json"),
    ("limits", limits, "limits hospital-a --write"),
    ("plans", plans, "plans hospital-a"),
    ("approve", approve, 'approve hospital-a 5242dab9 --name "Dr. Ada Koch" --reason "study 12"'),
    ("reject", reject, "reject hospital-a 5242dab9 --word rejected-purpose"),
    ("withdraw", withdraw, "withdraw hospital-a 5242dab9"),
    ("settle", settle, 'settle hospital-a --reason "backup of Monday"'),
):
    party_app.command(_name, epilog=f"Example: hedgerow party {_example}")(_command)
party_app.add_typer(account_app, name="account")
