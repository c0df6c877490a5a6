"""`hedgerow ledger list|show|verify`: what was reserved, charged, released; is it all there."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, table
from hedgerow.cli.screen import show as say

if TYPE_CHECKING:
    from hedgerow.privacy.ledger.ledger import Ledger
    from hedgerow.privacy.ledger.line import Line

LedgerNamed = Annotated[
    str | None,
    typer.Argument(
        metavar="[LEDGER]",
        help="A ledger file, or a name of `hedgerow ledger list`; else HEDGEROW_LEDGER, or the "
        "only one.",
    ),
]
CountedFiles = Annotated[
    list[str] | None,
    typer.Option("--data", metavar="PATH", help="Instead: the ledger that counts this table."),
]


def list_(json: options.Json = False) -> None:
    """List the ledgers of this user: the data set, its files, and what was spent of its budget."""
    from hedgerow.cli.data_sets import data_sets, ledgers_folder
    from hedgerow.errors import HedgerowError
    from hedgerow.privacy.ledger.ledger import Ledger
    from hedgerow.privacy.ledger.store import COORDINATOR

    entries: list[dict[str, Any]] = []
    for known in data_sets():
        about = {"name": known.name, "ledger": str(known.path), "files": list(known.files)}
        try:
            with Ledger.open(known.path, create=False) as opened:
                total = _total(opened, COORDINATOR, [_run(line, opened) for line in _runs(opened)])
            entries.append({**about, **total, "problem": None})
        except HedgerowError as error:  # one that is damaged does not hide the others
            entries.append({**about, "problem": str(error)})
    if json:
        print_json({"folder": str(ledgers_folder()), "ledgers": entries})
        return
    numbers = ("runs", "epsilon", "delta", "budget", "next run at most")
    shown = table(f"Ledgers in {ledgers_folder()}", "data set", "files", *numbers, right=numbers)
    for entry in entries:
        cells = (entry["name"], "\n".join(entry["files"]))
        if entry["problem"]:
            shown.add_row(*cells, "damaged", "", "", "", "")
            continue
        next_run, budget = entry["next_run_epsilon"], entry["budget_epsilon"]
        shown.add_row(
            *cells,
            str(entry["runs"]),
            f"{entry['epsilon']:.4g}",
            f"{entry['delta']:g}",
            "none set" if budget is None else _budget_text(entry),
            "no limit" if next_run is None else f"{next_run:.4g}",
        )
    results().print(shown)
    for problem in (entry["problem"] for entry in entries if entry["problem"]):
        say(problem, style="red")


def _runs(ledger: Ledger) -> list[Line]:
    from hedgerow.privacy.ledger.store import COORDINATOR

    return ledger.lines(COORDINATOR, "reserve")


def show(ledger: LedgerNamed = None, data: CountedFiles = None, json: options.Json = False) -> None:
    """Show every run and owner: reserved epsilon, slots charged and released, budget left."""
    from hedgerow.cli.data_sets import ledger_given
    from hedgerow.privacy.ledger.ledger import Ledger
    from hedgerow.privacy.ledger.store import COORDINATOR

    place = ledger_given(ledger, data)
    with Ledger.open(place, create=False) as opened:
        lines = opened.lines(kind="reserve")
        order = list(dict.fromkeys(line.run for line in lines))
        lines.sort(key=lambda line: (order.index(line.run), line.owner != COORDINATOR))
        runs = [_run(line, opened) for line in lines]
        owners = dict.fromkeys(line.owner for line in opened.lines() if line.kind != "boot")
        first = sorted(owners, key=lambda owner: owner != COORDINATOR)
        totals = [_total(opened, owner, runs) for owner in first]
    if json:
        print_json({"ledger": str(place), "runs": runs, "totals": totals})
        return
    numbers = ("epsilon", "delta", "charged", "released")
    shown = table(f"Runs of {place}", "run", "reserved (UTC)", "owner", *numbers, right=numbers)
    for run in runs:
        cells = (run["run"][:8], run["time"][:16].replace("T", " "), run["owner"])
        charged = f"{run['charged']} of {run['slots']}"
        released = "" if run["released"] is None else str(run["released"])
        shown.add_row(*cells, f"{run['epsilon']:.4g}", f"{run['delta']:g}", charged, released)
    drawn = [run for run in runs if run["branches"]]
    sums = ("runs", "epsilon", "delta", "budget", "left", "next run at most")
    added = table("Totals", "owner", *sums, right=sums)
    for total in totals:
        budget, left = total["budget_epsilon"], total["left_epsilon"]
        added.add_row(
            total["owner"],
            str(total["runs"]),
            f"{total['epsilon']:.4g}",
            f"{total['delta']:g}",
            "none set" if budget is None else f"{_budget_text(total)} at {total['delta']:g}",
            "no limit" if left is None else f"{left:.4g}",
            "no limit" if left is None else f"{total['next_run_epsilon']:.4g}",
        )
    console = results()
    console.print(shown)
    for run in drawn:
        costs = run["branches"].values()
        say(
            f"Run {run['run'][:8]}, {run['owner']}: {len(costs)} branches drew pure epsilon = "
            f"{min(costs):.4g} to {max(costs):.4g}."
        )
    console.print(added)


def verify(
    ledger: LedgerNamed = None, data: CountedFiles = None, json: options.Json = False
) -> None:
    """Walk the hash chain and add every charge up again; an error names the first bad line.

    Beside a party that runs, too. Prints the ledger's head, to be noted elsewhere, and witnesses.
    """
    from hedgerow.cli.data_sets import ledger_given
    from hedgerow.privacy.ledger.ledger import Ledger
    from hedgerow.privacy.ledger.verify import verify as verified
    from hedgerow.privacy.ledger.witnesses import witnesses_of

    place = ledger_given(ledger, data)
    with Ledger.open(place, create=False) as opened:
        owners = verified(opened)
        witnesses = {one.owner: witnesses_of(opened, one.owner) for one in owners if one.witnessed}
        n_lines, head = opened.last()
    if json:
        facts = {"ledger": str(place), "lines": n_lines, "head": head, "witnesses": witnesses}
        print_json({**facts, "verified": True})
        return
    charges = sum(owner.charges for owner in owners)
    say(
        f"{place}: {n_lines:,} lines are unchanged and in order; {charges:,} charges of "
        f"{len(owners)} owners add up."
    )
    say(f"Head: line {n_lines:,}, {head}")
    for owner, found in witnesses.items():
        _say_witnesses(owner, found)


def _say_witnesses(owner: str, found: dict[str, Any]) -> None:
    """What others know of this ledger, what it keeps of theirs, and lines that are lost."""
    if (left := found["left"]) is not None:
        by = ", ".join(left["shown_by"]) or "nobody"
        say(
            f"{owner} left head {left['count']} (up to line {left['line']:,}) with the others at "
            f"{_minute(left['time'])} UTC, in run {left['run'][:12]}; earlier ones were shown by "
            f"{by}."
        )
    for kept in found["kept"]:
        say(
            f"{owner} keeps head {kept['count']} of {kept['party']}, of {_minute(kept['time'])} "
            f"UTC: {kept['commitment'][:16]}..."
        )
    for gap in found["gaps"]:
        state = "settled" if gap["settled"] else "NOT SETTLED"
        say(
            f"LOST LINES ({state}): {gap['shown_by']} keeps head {gap['count']} of {owner}, of "
            f"{_minute(gap['time'])} UTC, which this ledger does not have.",
            style="red",
        )


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


def _run(line: Line, ledger: Ledger) -> dict[str, Any]:
    from hedgerow.privacy.accounting.plan import Plan
    from hedgerow.privacy.ledger.store import COORDINATOR

    values = line.values
    plan = Plan.from_dict(values["plan"], f"line {line.seq}")
    charges = ledger.lines(line.owner, "charge", line.run)
    kinds = Counter(entry.kind for entry in ledger.lines(owner=line.owner, run=line.run))
    return {
        "run": line.run,
        "owner": line.owner,
        "time": line.time,
        "method": plan.method,
        "epsilon": values["epsilon"],
        "delta": values["delta"],
        "slots": plan.n_slots,  # at most
        # Of a run of one tree: what each path of it drew, by the place of its end.
        "branches": plan.budget.path_costs(charges),
        "charged": kinds["charge"],
        # Releases are the coordinator's; a party only answers.
        "released": kinds["release"] if line.owner == COORDINATOR else None,
    }


def _budget_text(total: dict[str, Any]) -> str:
    share = total["budget_pure"]
    return f"{total['budget_epsilon']:g}" + (f" ({share:g} pure)" if share is not None else "")


def _total(ledger: Ledger, owner: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    from hedgerow.privacy.ledger.spending import budget_of, counts_as_gaussians, spending

    budget, spent = budget_of(ledger, owner), spending(ledger, owner)
    deltas = [run["delta"] for run in runs if run["owner"] == owner]
    delta = budget.delta if budget else max(deltas, default=1e-6)
    epsilon = spent.epsilon(delta, as_gaussians=counts_as_gaussians(budget))
    return {
        "owner": owner,
        "runs": spent.runs,
        "epsilon": epsilon,
        "delta": delta,
        "budget_epsilon": budget.epsilon if budget else None,
        "budget_pure": budget.pure if budget else None,
        "left_epsilon": max(0.0, budget.epsilon - epsilon) if budget else None,
        "next_run_epsilon": spent.room(budget) if budget else None,
    }
