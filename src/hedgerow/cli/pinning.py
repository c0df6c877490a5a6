"""What commands share that show cards and rosters, and pin a roster after a person has compared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hedgerow.cli.screen import print_json, results, show, table, tell
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.engines.cards import PinnedRoster
    from hedgerow.engines.site import Site


def show_card(site: Site, json: bool) -> None:
    """Print the card of a site and the phrase that people compare."""
    file, card = site.write_card(), site.card()
    if json:
        facts = {"name": site.name, "site": str(site.path), "card": str(file)}
        print_json({**facts, "phrase": card.phrase})
        return
    print(card.to_toml())
    tell(f"This card is {file}, and public: send it. Its phrase, to read over the telephone:")
    tell(f"  {card.phrase}")


def pin(site: Site, file: Path, yes: bool, json: bool = False) -> PinnedRoster:
    """Show a roster and what is new in it, ask, and pin it."""
    from hedgerow.deployment.roster import check_usable
    from hedgerow.engines.cards import read_roster

    agreed = read_roster(file)
    check_usable(agreed.roster)
    before = site.pinned() if site.is_pinned else None
    if before is not None and before.hash == agreed.hash:
        changes = ["This roster is pinned already."]
    else:
        changes = [] if before is None else agreed.differences(before)
    if not json:
        _show_roster(site, agreed, changes)
    if not yes and (before is None or before.hash != agreed.hash):
        if json or not sys.stdin.isatty():
            raise SettingsError(
                "nobody is at the terminal to confirm; compare the phrase by telephone, then give "
                "--yes. Nothing was pinned."
            )
        typer.confirm("Did you compare the phrase with the others by telephone?", abort=True)
    site.pin(agreed)
    if json:
        print_json({**roster_facts(agreed, file), "site": str(site.path), "changes": changes})
    else:
        tell(f"Pinned in {site.path}. It holds at once; runs that were joined keep theirs.")
    return agreed


def roster_facts(agreed: PinnedRoster, file: Path) -> dict[str, Any]:
    roster = agreed.roster
    return {
        "roster": str(file), "federation": agreed.federation, "phrase": agreed.phrase,
        "parties": list(roster.names), "trust": roster.trust, "colluding": roster.colluding,
        "minimum_parties": roster.minimum, "address": agreed.address,
    }  # fmt: skip


def _show_roster(site: Site, agreed: PinnedRoster, changes: list[str]) -> None:
    from hedgerow.deployment.roster import people

    roster = agreed.roster
    shown = table(f"Roster of {agreed.federation}", "site", "fingerprint of its signing key")
    for name, print_of_key in people(roster):
        shown.add_row(name + (" (this site)" if name == site.name else ""), print_of_key)
    results().print(shown)
    dialled = f"Parties dial {agreed.address}." if agreed.address else "Relays carry messages."
    show(
        f"Trust: {roster.trust}. Up to {roster.colluding} of the parties may collude with the "
        f"coordinator; a sum has at least {roster.least_set} parties. {dialled}"
    )
    for text in changes:
        show(f"Changed: {text}" if len(changes) > 1 or "already" not in text else text)
    show(f"Phrase of this roster, the same at every site:\n  {agreed.phrase}")
