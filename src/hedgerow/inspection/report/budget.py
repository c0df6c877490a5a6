"""Where the privacy budget went: all runs on the ledger, the queries of this run, its traffic."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.inspection.report.facts import Account, ReportFacts
from hedgerow.inspection.report.overview import Tile, counted
from hedgerow.model.changes import PRIVATE
from hedgerow.model.statement import Statement

N_COLOURS = 6  # of the queries of a run


@dataclass(frozen=True)
class Stretch:
    """A part of a bar; without a series it is what was not spent."""

    name: str
    share: float
    series: int | None
    rounds: str = ""
    values: str = ""


@dataclass(frozen=True)
class RunBudget:
    """The ledger's bar, the bar of this run, and what was sent."""

    account: tuple[Stretch, ...]
    account_lead: str
    run: tuple[Stretch, ...]
    run_lead: str
    tiles: tuple[Tile, ...]


def budget_of_run(facts: ReportFacts, statement: Statement) -> RunBudget | None:
    """Bars and tables; None for a model that paid nothing and has no ledger."""
    if not facts.parts and facts.account is None:
        return None
    account = facts.account
    return RunBudget(
        () if account is None else _account(account),
        "" if account is None else _account_lead(account),
        _run(facts),
        _run_lead(statement),
        _traffic(facts, statement.single_owner),
    )


def _account(account: Account) -> tuple[Stretch, ...]:
    return (
        Stretch("this run", account.own, 0),
        Stretch("other runs", account.others, 2),
        Stretch("left", account.left, None),
    )


def _account_lead(account: Account) -> str:
    runs = counted(account.runs, "run", "runs")
    have = "has" if account.runs == 1 else "have"
    delta = f" at delta = {account.delta:g}" if account.delta else ""
    lead = f"{runs} on these rows {have} reserved epsilon = {account.epsilon:.4g}{delta}"
    if account.budget is not None:
        lead += f", out of a privacy budget of {account.budget:g}"
    unit = "mu², which adds up over runs" if account.delta else "pure epsilon, which adds up"
    lead += f". The bar shows shares of {unit}."
    if not account.own:
        lead += " The run that trained this model is not on this ledger."
    return lead


def _run(facts: ReportFacts) -> tuple[Stretch, ...]:
    return tuple(
        Stretch(
            part.name,
            part.share,
            k % N_COLOURS if part.questions else None,
            f"{part.questions:,}" if part.questions else "",
            f"{part.n_values:,}" if part.n_values else "",
        )
        for k, part in enumerate(facts.parts)
    )


def _run_lead(statement: Statement) -> str:
    if statement.guarantee not in PRIVATE:
        return "What a private run of the same plan would spend on each query."
    unit = "pure epsilon" if statement.guarantee == "pure" else "mu²"
    return f"What this run spent on each query, as shares of its {unit}."


def _traffic(facts: ReportFacts, alone: bool) -> tuple[Tile, ...]:
    """Rounds and bytes; one owner with one table sends nothing to anybody."""
    if alone:
        values = f"{facts.n_values:,} noisy values" if facts.n_values else ""
        return (Tile("rounds", f"{facts.releases:,}", values),)
    tiles = [Tile("rounds", f"{facts.releases:,}", "one message to every party each")]
    if facts.n_values:
        size = size_text(8 * facts.n_values)
        tiles.append(Tile("noisy values", f"{facts.n_values:,}", f"{size} of answers per party"))
    if facts.sent is not None and facts.received is not None:
        bound = "at most, by the plan"
        tiles.append(Tile("sent by a party", size_text(facts.sent), bound))
        tiles.append(Tile("received by a party", size_text(facts.received), bound))
    return tuple(tiles)


def size_text(n_bytes: float) -> str:
    """A number of bytes for people.

    >>> size_text(980), size_text(123_400), size_text(5_600_000)
    ('980 B', '123 kB', '5.6 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes:.0f} B"
    return f"{n_bytes / 1e3:.0f} kB" if n_bytes < 1e6 else f"{n_bytes / 1e6:.1f} MB"
