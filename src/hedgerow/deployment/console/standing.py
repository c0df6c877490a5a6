"""What a party has agreed to and what it allows: rosters and limits, with their differences."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hedgerow.deployment.limits_file import InForce, limits_in_words
from hedgerow.deployment.roster import check_usable, people
from hedgerow.deployment.start import Start
from hedgerow.deployment.status import limits_used
from hedgerow.engines.cards import PinnedRoster, read_roster
from hedgerow.engines.site import Site
from hedgerow.errors import HedgerowError
from hedgerow.privacy.ledger.ledger import Ledger

MOST_ROSTERS = 50


def roster_and_limits(
    site: Site, start: Start, in_force: InForce, ledger: Ledger, proposed: str = ""
) -> dict[str, Any]:
    """The roster in force and those before, the limits in force and the file as it is now."""
    return {
        "roster": roster_facts(site.pinned()) if site.is_pinned else None,
        "history": roster_history(site),
        "proposed": compare(site, proposed) if proposed.strip() else None,
        "limits": _limits(site, start, in_force, ledger),
    }


def roster_history(site: Site) -> list[dict[str, Any]]:
    """Every roster that was pinned, the newest first, with what changed to the one before."""
    found, before = list[dict[str, Any]](), None
    for file in sorted((site.folder / "rosters").glob("*.toml"))[-MOST_ROSTERS:]:
        with suppress(HedgerowError):
            agreed = read_roster(file)
            changes = agreed.differences(before) if before else ["The first roster of this site."]
            found.append({"time": _time_of(file), "hash": agreed.hash, "changes": changes})
            before = agreed
    return found[::-1]


def compare(site: Site, text: str) -> dict[str, Any]:
    """A roster that somebody sent: what would change if it were pinned. Nothing is pinned."""
    with tempfile.TemporaryDirectory(prefix="compared-", dir=site.folder) as folder:
        file = Path(folder) / "roster.toml"
        file.write_text(text, "utf-8")
        try:
            agreed = read_roster(file)
            check_usable(agreed.roster)
        except HedgerowError as error:
            return {"problem": str(error).replace(str(file), "the roster"), "changes": []}
    own = site.identity().public
    problem = ""
    if own not in (*agreed.roster.keys.values(), agreed.roster.coordinator):
        problem = f"The roster does not have the key of {site.name}: it cannot be pinned here."
    changes = agreed.differences(site.pinned()) if site.is_pinned else ["No roster is pinned yet."]
    return {**roster_facts(agreed), "problem": problem, "changes": changes}


def roster_facts(agreed: PinnedRoster) -> dict[str, Any]:
    """Who takes part and who is trusted."""
    roster = agreed.roster
    return {
        "federation": agreed.federation,
        "hash": agreed.hash,
        "phrase": agreed.phrase,
        "trust": roster.trust,
        "colluding": roster.colluding,
        "least": roster.least_set,
        "address": agreed.address,
        "people": [{"name": name, "fingerprint": mark} for name, mark in people(roster)],
    }


def _limits(site: Site, start: Start, in_force: InForce, ledger: Ledger) -> dict[str, Any]:
    words = limits_in_words(in_force.limits)
    facts: dict[str, Any] = {
        "words": words,
        "hash": in_force.hash,
        "file": str(start.limits_file(site) or ""),
        "history": [
            {"time": line.time, "hash": line.values["hash"], "source": line.values["source"]}
            for line in ledger.lines(site.name, "limits")[::-1][:MOST_ROSTERS]
        ],
        "changed": None,
    }
    try:
        now = start.in_force(site)
    except HedgerowError as error:
        return {**facts, "changed": {"problem": str(error), "gone": [], "new": [], "limits": []}}
    if now.hash != in_force.hash:
        later = limits_in_words(now.limits)
        facts["changed"] = {
            "problem": "",
            "gone": [text for text in words if text not in later],
            "new": [text for text in later if text not in words],
            "limits": limits_used(ledger, site.name, now.limits),
        }
    return facts


def _time_of(file: Path) -> str:
    """When a roster was pinned, as its name says."""
    stamp = file.name[:15]
    date, time = stamp[:8], stamp[9:]
    return f"{date[:4]}-{date[4:6]}-{date[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}+00:00"
