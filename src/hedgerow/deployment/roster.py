"""From key cards to a roster that every site pins: who is in, who is trusted, the least sum."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.engines.site import COORDINATOR, Card, Site
from hedgerow.errors import SettingsError
from hedgerow.model.trust import TRUSTS
from hedgerow.packing import digest
from hedgerow.protocol.identity import Roster, fingerprint


def collect(
    site: Site, cards: Sequence[Card], trust: str, colluding: int, minimum: int
) -> tuple[Roster, tuple[tuple[str, str], ...]]:
    """A roster of all cards and of this site's own key; and (name, fingerprint) of everyone in it.

    Refuses a roster under which no sum could ever be made.
    """
    own = Card(site.federation, site.name, site.identity().public)
    found: dict[str, str] = {own.name: own.key}
    for card in cards:
        if card.federation != site.federation:
            raise SettingsError(
                f"the key card of {card.name} is for the federation {card.federation!r}, and this "
                f"site folder for {site.federation!r}. Nothing was pinned."
            )
        if found.setdefault(card.name, card.key) != card.key:
            raise SettingsError(
                f"there are two different keys for {card.name}. Nothing was pinned. Ask "
                f"{card.name} by telephone which fingerprint is right."
            )
    if COORDINATOR not in found:
        raise SettingsError("the coordinator's key card is missing; give coordinator.key.toml too")
    coordinator = found.pop(COORDINATOR)
    roster = Roster(tuple(sorted(found.items())), coordinator, colluding, minimum, trust)
    check_usable(roster)
    return roster, people(roster)


def check_usable(roster: Roster) -> None:
    """Refuse a roster that no run could use, before anyone relies on it."""
    size = len(roster.parties)
    if roster.trust not in TRUSTS:
        raise SettingsError(
            f"trust is {roster.trust!r}; known: {', '.join(TRUSTS)}. Nothing was pinned."
        )
    if not size:
        raise SettingsError("a roster needs at least one party's key card. Nothing was pinned.")
    if roster.colluding < 1 or roster.minimum < 1:
        raise SettingsError(
            f"colluding is {roster.colluding} and the minimum {roster.minimum}; both are at least "
            "1, because every party knows its own share of the noise. Nothing was pinned."
        )
    if roster.trusted.masked and roster.least_set > size:
        raise SettingsError(
            f"{size} parties can never make a sum of at least {roster.least_set}. Nothing was "
            "pinned. Add parties, or lower --minimum-parties openly: with two parties each "
            "is protected from the other by one share of noise alone."
        )


def people(roster: Roster) -> tuple[tuple[str, str], ...]:
    """Everyone in a roster with the fingerprint that is compared by telephone."""
    keys = ((COORDINATOR, roster.coordinator), *roster.parties)
    return tuple((name, fingerprint(key)) for name, key in keys)


def roster_fingerprint(roster: Roster) -> str:
    """One short text that agrees exactly where the whole roster agrees."""
    return fingerprint(digest("hedgerow pinned roster 1", roster.hash))
