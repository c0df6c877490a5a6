"""`hedgerow party plans|approve|reject|withdraw|account`: people decide, and who may."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, table, tell
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.engines.site import Site
    from hedgerow.party.limits import Limits

SiteArgument = Annotated[Path, typer.Argument(metavar="SITE", help="The party's site folder.")]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="The run, how its name begins, or the plan's hash.")
]
DecidedBy = Annotated[
    str,
    typer.Option("--name", help="Who decides: an account of the site, if it has any; else you."),
]
Reason = Annotated[str, typer.Option("--reason", help="Why, for this site's ledger alone.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask again.")]


def site_at(path: Path) -> tuple[Site, Limits]:
    """A party's site, and the limits that hold there."""
    from hedgerow.deployment.start import Start
    from hedgerow.engines.site import Site

    site = Site.open(path, "party")
    return site, Start.remembered(site).in_force(site).limits


def plans(
    path: SiteArgument,
    decided: Annotated[
        bool, typer.Option("--decided", help="Instead: what was approved, rejected, withdrawn.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Show plans that wait for approval, in words: who asks for what, and what it costs."""
    from hedgerow.deployment.approvals import printable
    from hedgerow.deployment.service import ask_party

    site, allowed = site_at(path)
    found = ask_party(site, allowed, "decisions" if decided else "pending")
    if json:
        print_json(found)
        return
    if decided:
        _show_decisions(site.name, found)
        return
    for plan in found:
        show("\n".join(plan["words"]))
        run = printable(plan["run"][:12])
        show(
            f"Decide: hedgerow party approve {path} {run}, or hedgerow party reject {path} {run}\n"
        )
    if not found:
        show("No plan waits for approval.")


def _show_decisions(name: str, found: list[dict[str, Any]]) -> None:
    from hedgerow.deployment.approvals import cell

    if not found:
        show("Nothing was decided yet.")
        return
    shown = table(f"Decisions at {name}", "time (UTC)", "what", "run", "by", "reason", "told")
    for one in found:
        time = one["time"][:19].replace("T", " ")
        by = f"{one['name']} ({one['role']})" if one["role"] else one["name"]
        cells = (cell(one["run"], 12), cell(by), cell(one["reason"], 200), one["word"])
        shown.add_row(time, one["what"], *cells)
    results().print(shown)


def approve(
    path: SiteArgument,
    run: RunArgument,
    name: DecidedBy = "",
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Approve a plan that waits, after reading it in words. Nothing is spent by this."""
    _decide("approve", path, run, name, reason or "approved", yes)
    tell("It is approved, and on the ledger. Tell the coordinator to run the same command again.")


def reject(
    path: SiteArgument,
    run: RunArgument,
    word: Annotated[
        str,
        typer.Option(
            "--word",
            help="What the coordinator is told: rejected, or rejected-purpose, -cost, -method or "
            "-parties. It learns nothing else.",
        ),
    ] = "rejected",
    name: DecidedBy = "",
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Reject a plan that waits. The reason stays here; the coordinator gets one word."""
    _decide("reject", path, run, name, reason or "rejected", yes, word=word)
    tell(f"It is rejected, and on the ledger. The coordinator is told: {word}.")


def withdraw(
    path: SiteArgument,
    run: RunArgument,
    name: DecidedBy = "",
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Withdraw an approval: the run is answered no more. What was spent stays spent."""
    _decide("withdraw", path, run, name, reason or "withdrawn", yes)
    tell("The approval is withdrawn, and on the ledger. The run is answered no more.")


def _decide(
    what: str, path: Path, run: str, name: str, reason: str, yes: bool, **values: str
) -> None:
    """Show the plan, ask the person, and hand the decision to the party's process."""
    from hedgerow.deployment.service import ask_party

    site, allowed = site_at(path)
    if what != "withdraw":
        waiting = ask_party(site, allowed, "pending")
        chosen = [p for p in waiting if run in (p["hash"], p["run"])]
        chosen = chosen or [p for p in waiting if run and p["run"].startswith(run)]
        if len(chosen) == 1:  # else the process says what is wrong with the name
            show("\n".join(chosen[0]["words"]))
            run = chosen[0]["hash"]  # exactly what was shown is decided on
    given = _confirmed(f"{what.capitalize()} this plan", site, allowed, name, yes)
    ask_party(site, allowed, what, plan=run, reason=reason, **{"as": given}, **values)


def _confirmed(question: str, site: Site, allowed: Limits, name: str, yes: bool) -> str:
    """Ask the person at the terminal; then who decides: a name, or the account of the machine."""
    from hedgerow.deployment.service import ask_party

    if not yes:
        if not sys.stdin.isatty():
            raise SettingsError(
                "nobody is at the terminal to confirm; give --yes. Nothing was decided and "
                "nothing was spent."
            )
        typer.confirm(f"{question}?", abort=True)
    accounts = ask_party(site, allowed, "account", what="list")
    return name or ("" if accounts else getpass.getuser())


def settle(
    path: SiteArgument,
    runs: Annotated[
        int,
        typer.Option(
            "--runs",
            min=0,
            help="Lost runs that you know of, where no limit bounds their cost.",
        ),
    ] = 0,
    name: DecidedBy = "",
    reason: Reason = "",
    yes: Yes = False,
    json: options.Json = False,
) -> None:
    """Go on although the ledger has lost lines: books what they may have cost, at full limits."""
    from hedgerow.deployment.service import ask_party

    site, allowed = site_at(path)
    found = ask_party(site, allowed, "witnesses")
    booked = ask_party(site, allowed, "gap", runs=runs)
    for gap in found["gaps"]:
        if not gap["settled"]:
            time = gap["time"][:19].replace("T", " ")
            show(f"{gap['shown_by']} keeps a head of {time} UTC that this ledger does not have.")
    since = booked["since"][:19].replace("T", " ") or "the ledger's beginning"
    show(
        f"What was spent since {since} is lost. It is booked as {booked['bound']}: mu = "
        f"{booked['mu']:.4g}, which is at least what was lost if the limits were not raised since."
    )
    if not json:
        show("If there is a newer copy of the ledger, put that back instead.")
    given = _confirmed("Settle it so", site, allowed, name, yes)
    asked = {"reason": reason or "settled", "runs": runs, "as": given}
    settled = ask_party(site, allowed, "settle", **asked)
    if json:
        print_json(settled)
    after = "The party takes part again."
    if settled["start_again"]:
        after = "Others know a later start of this party: start it again, then it takes part again."
    tell(f"The gap is settled, and on the ledger. {after}")


AccountName = Annotated[str, typer.Argument(metavar="NAME", help="The person's name.")]


def account_list(path: SiteArgument, json: options.Json = False) -> None:
    """List the accounts of a site and their roles."""
    found = _account(path, "list")
    if json:
        print_json(found)
        return
    for one in found:
        show(f"{one['name']}: {one['role']}")
    if not found:
        show("No accounts: whoever owns the site folder decides.")


def account_add(
    path: SiteArgument,
    name: AccountName,
    role: Annotated[
        str, typer.Option("--role", help="operator, privacy-officer or reader.")
    ] = "reader",
) -> None:
    """Add an account, or give one another role. From the first account on, roles decide."""
    _account(path, "put", name=name, role=role)
    tell(f"{name} is {role} at this site. `hedgerow party account link` lets them sign in.")


def account_remove(path: SiteArgument, name: AccountName) -> None:
    """Remove an account; whoever is signed in with it is out at once."""
    _account(path, "remove", name=name)
    tell(f"{name} has no account at this site any more.")


def account_link(path: SiteArgument, name: AccountName) -> None:
    """Print a code that signs this account in once, within a day."""
    show(_account(path, "link", name=name)["code"])


def _account(path: Path, what: str, **values: str) -> Any:
    from hedgerow.deployment.service import ask_party

    site, allowed = site_at(path)
    return ask_party(site, allowed, "account", what=what, **values)


account_app = typer.Typer(
    no_args_is_help=True,
    help="People of a site and their roles: operator, privacy-officer, reader.",
    epilog='Example: hedgerow party account add hospital-a "Dr. Ada Koch" --role privacy-officer',
)
for _name, _command, _example in (
    ("list", account_list, "list hospital-a"),
    ("add", account_add, 'add hospital-a "Dr. Ada Koch" --role privacy-officer'),
    ("remove", account_remove, 'remove hospital-a "Dr. Ada Koch"'),
    ("link", account_link, 'link hospital-a "Dr. Ada Koch"'),
):
    account_app.command(_name, epilog=f"Example: hedgerow party account {_example}")(_command)
