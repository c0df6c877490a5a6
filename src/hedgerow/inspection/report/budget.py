"""Where the budget went: the ledger's bar, the parts of this run, rounds and bytes."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.inspection.report.facts import Account, Facts
from hedgerow.inspection.report.marks import table, tag, text
from hedgerow.model.statement import PRIVATE, Statement

_HINT = (
    "How much of a budget over several runs this is, is on the ledger: "
    "<code>hedgerow report --ledger FILE</code>."
)


def budget_section(facts: Facts, says: Statement) -> str:
    """Bars and tables; nothing to show for a model that paid nothing."""
    if not facts.parts and facts.account is None:
        return ""
    parts = [tag("h2", "Where the budget went")]
    if facts.account is not None:
        parts.append(_account(facts.account))
    else:
        parts.append(tag("p", _HINT, class_="lead"))
    if facts.parts:
        parts.append(_spent(facts, says))
    parts.append(_traffic(facts))
    return tag("section", *parts)


def _stack(parts: Sequence[tuple[str, float, str]]) -> str:
    """A bar of (name, share, colour)."""
    inside = "".join(
        tag("span", style=f"width:{100 * share:.2f}%;background:{colour}", title=name)
        for name, share, colour in parts
        if share > 0
    )
    told = ", ".join(f"{name} {100 * share:.0f} %" for name, share, _ in parts)
    return tag("div", inside, class_="stack", role="img", aria_label=told)


def _legend(parts: Sequence[tuple[str, float, str]]) -> str:
    return tag(
        "div",
        "".join(
            tag("span", tag("i", class_="key", style=f"background:{colour}"), text(told))
            for name, share, colour in parts
            if share > 0
            for told in [f"{name} {100 * share:.1f} %"]
        ),
        class_="legend",
        style="margin:.75rem 0 0",
    )


def _account(account: Account) -> str:
    parts = [
        ("this run", account.own, "var(--s1)"),
        ("other runs", account.others, "var(--s2)"),
        ("left", account.left, "var(--s7)"),
    ]
    runs = "1 run" if account.runs == 1 else f"{account.runs} runs"
    delta = f" at delta = {account.delta:g}" if account.delta else ""
    told = f"{runs} on these rows reserved epsilon = {account.epsilon:.4g}{delta}"
    if account.budget is not None:
        told += f", of a budget of {account.budget:g}"
    unit = "squares of mu, which add up" if account.delta else "pure epsilon, which adds up"
    note = f"{text(told)}. Parts are of {unit}."
    if not account.own:
        note += " The run that trained this model is not among them."
    inside = tag("p", note, style="margin:0 0 .75rem") + _stack(parts) + _legend(parts)
    return tag("div", inside, class_="card", style="margin:0 0 1rem")


def _spent(facts: Facts, says: Statement) -> str:
    colours = ["var(--s1)", "var(--s3)", "var(--s6)", "var(--s4)", "var(--s5)", "var(--s2)"]
    parts = []
    for k, part in enumerate(facts.parts):
        spare = part.questions == 0
        parts.append((part.name, part.share, "var(--s7)" if spare else colours[k % 6]))
    rows = []
    for part, (_, share, colour) in zip(facts.parts, parts, strict=True):
        key = tag("i", class_="key", style=f"background:{colour}")
        asked = f"{part.questions:,}" if part.questions else ""
        told = f"{part.numbers:,}" if part.numbers else ""
        rows.append((key + text(part.name), asked, told, f"{100 * share:.1f} %"))
    what = "pure epsilon of its questions" if says.guarantee == "pure" else "its budget (mu²)"
    if says.guarantee not in PRIVATE:
        what = "what a private run would have paid"
    head = ("asked about", "rounds", "noisy numbers", "part")
    inside = tag("p", f"This run, by {what}.", style="margin:0 0 .75rem") + _stack(parts)
    numbers = table(head, rows, (1, 2, 3))
    return tag("div", inside + tag("div", numbers, style="margin-top:.75rem"), class_="card")


def _traffic(facts: Facts) -> str:
    tiles = [("rounds of questions", f"{facts.releases:,}", "a message to every party")]
    if facts.numbers:
        size = size_text(8 * facts.numbers)
        tiles.append(("noisy numbers", f"{facts.numbers:,}", f"{size} of a party's answers"))
    if facts.sent is not None and facts.received is not None:
        told = "at most, by the plan"
        tiles.append(("sent by a party", size_text(facts.sent), told))
        tiles.append(("received by a party", size_text(facts.received), told))
    cards = "".join(
        tag("div", tag("span", name), tag("b", value), tag("small", more), class_="card tile")
        for name, value, more in tiles
    )
    return tag("div", cards, class_="tiles", style="margin-top:1rem")


def size_text(n_bytes: float) -> str:
    """A number of bytes for people.

    >>> size_text(980), size_text(123_400), size_text(5_600_000)
    ('980 B', '123 kB', '5.6 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes:.0f} B"
    return f"{n_bytes / 1e3:.0f} kB" if n_bytes < 1e6 else f"{n_bytes / 1e6:.1f} MB"
