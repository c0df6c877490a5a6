"""From cards to the roster that every site pins: who is in, who is trusted, the least sum."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.engines.cards import COORDINATOR, Card, PinnedRoster
from hedgerow.errors import SettingsError
from hedgerow.model.trust import TRUSTS
from hedgerow.protocol.identity import Roster, fingerprint

_NOTHING = "No roster was made."


def roster_of(
    cards: Sequence[Card],
    federation: str,
    trust: str = "parties",
    colluding: int = 1,
    minimum: int = 3,
) -> PinnedRoster:
    """A roster of one coordinator's card and the parties'; refused if no sum could ever be made."""
    found: dict[str, Card] = {}
    for card in cards:
        known = found.setdefault(card.name, card)
        if known.key != card.key:
            raise SettingsError(
                f"there are two different cards of {card.name}. {_NOTHING} Two parties need two "
                f"names; or ask {card.name} by telephone which phrase is right."
            )
    if COORDINATOR not in found:
        raise SettingsError(
            f"the coordinator's card is missing; give coordinator.card.toml too. {_NOTHING}"
        )
    coordinator = found.pop(COORDINATOR)
    keys = tuple(sorted((name, card.key) for name, card in found.items()))
    roster = Roster(keys, coordinator.key, colluding, minimum, trust)
    check_usable(roster)
    certificates = {name: card.certificate for name, card in found.items() if card.certificate}
    if coordinator.mutual_tls and (without := sorted(found.keys() - certificates.keys())):
        raise SettingsError(
            f"the coordinator wants certificates of parties, and the cards of {', '.join(without)} "
            f"have none. {_NOTHING} Ask them for new cards."
        )
    return PinnedRoster(
        federation, roster, coordinator.address, coordinator.certificate, certificates,
        coordinator.mutual_tls,
    )  # fmt: skip


def check_usable(roster: Roster) -> None:
    """Refuse a roster that no run could use, before anyone relies on it."""
    size = len(roster.parties)
    if roster.trust not in TRUSTS:
        raise SettingsError(
            f"trust is {roster.trust!r}; known: {', '.join(TRUSTS)}. Nothing was pinned."
        )
    if not size:
        raise SettingsError("a roster needs at least one party's card. Nothing was pinned.")
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
    """Everyone in a roster with the fingerprint of the key, as limits files name it."""
    keys = ((COORDINATOR, roster.coordinator), *roster.parties)
    return tuple((name, fingerprint(key)) for name, key in keys)
