"""What is promised, to whom, and how it is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hedgerow.errors import SettingsError
from hedgerow.model.trust import TRUSTS, Trust
from hedgerow.privacy.settings.fields import Choice, Number, Whole, setting

ACCOUNTINGS = ("exact", "renyi", "pure")
_EPSILON, _DELTA = Number(0, 1e7, above=True), Number(0, 0.5, above=True)


@dataclass(frozen=True)
class Privacy:
    """What is promised, to whom, and how it is counted.

    `colluding` is the number c of parties that may leak, omit or lie; `minimum_parties` the
    smallest set that is ever summed (0 = the default, three and at least c + 2); `spare` the
    attempts that are paid in advance for drop-outs.
    """

    epsilon: float = field(metadata={"kind": _EPSILON, "meaning": "privacy loss that is allowed"})
    delta: float = field(
        metadata={
            "kind": _DELTA,
            "meaning": "its slack; well below 1 / rows; 0 with pure accounting",
        }
    )
    trust: str = setting(
        "coordinator",
        Choice(tuple(TRUSTS)),
        "who is trusted: coordinator, parties or nobody",
    )
    accounting: str = setting(
        "exact", Choice(ACCOUNTINGS), "how the cost is counted: exact, renyi or pure"
    )
    colluding: int = setting(1, Whole(1, 10_000), "parties that may leak, omit or lie")
    minimum_parties: int = setting(
        0,
        Whole(0, 10_000),
        "the smallest set that is summed; 0 = 3, and at least colluding + 2",
    )
    spare: int = setting(0, Whole(0, 1000), "attempts paid in advance for drop-outs")

    def __post_init__(self) -> None:
        for entry in fields(self):
            if entry.name != "delta":
                entry.metadata["kind"].checked(entry.name, getattr(self, entry.name))
        if self.accounting == "pure":
            self._check_pure()
        else:
            _DELTA.checked("delta", self.delta)
        if self.minimum_parties == 0:
            object.__setattr__(self, "minimum_parties", max(3, self.colluding + 2))
        if self.trusted.masked and self.minimum_parties <= self.colluding:
            raise SettingsError(
                f"minimum_parties is {self.minimum_parties} and {self.colluding} may collude; "
                "at least one more party than may collude must be in every sum"
            )

    @property
    def trusted(self) -> Trust:
        """What follows from the trust."""
        return TRUSTS[self.trust]

    def _check_pure(self) -> None:
        if self.delta != 0 or isinstance(self.delta, bool):
            raise SettingsError(
                f"delta is {self.delta!r}, and pure accounting has none; set delta = 0"
            )
        if self.trusted.local:
            raise SettingsError(
                "pure epsilon is promised where the coordinator or the parties are trusted; under "
                "trust in nobody every row would need Laplace noise of its own, whose sum is not "
                'drawn here. Set trust to "parties" or "coordinator"'
            )

    def to_dict(self) -> dict[str, Any]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


def spare_for(n_parties: int) -> int:
    """Attempts paid in advance: one process loses nobody, larger federations sometimes do."""
    return 0 if n_parties <= 1 else 1 if n_parties <= 5 else 2


def privacy_from(values: Mapping[str, Any]) -> Privacy:
    """Privacy settings from a plain table, refusing unknown names."""
    known = [entry.name for entry in fields(Privacy)]
    for name in values:
        if name not in known:
            raise SettingsError(f"unknown privacy setting {name!r}; known: {', '.join(known)}")
    for name in ("epsilon", "delta"):
        if name not in values:
            raise SettingsError(f"the privacy setting {name!r} is missing")
    return Privacy(**values)
