"""Who is trusted: the coordinator, the parties (secure aggregation), or nobody (local noise).

One class a trust. It owns all that follows from it: which part of the noise a party adds, how much
noise a sum has in the end, the smallest set of parties that may be summed, what is visible, and its
words in a statement. Plans, rosters and statements store its name.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.model.statement import Statement


class Trust(ABC):
    """What one choice of whom to trust means everywhere."""

    name: ClassVar[str]
    exact_sums: ClassVar[bool] = False  # the coordinator sees them, and adds the noise at the gate
    masked: ClassVar[bool] = False  # answers are masked: nobody reads a sum of one party alone
    local: ClassVar[bool] = False  # every row has noise of its own, and row counts are visible
    change: ClassVar[str] = "add or remove"  # what neighbouring tables differ by, one unit
    # How far apart two neighbouring answers are, in lengths of what one unit adds. Where counts
    # are visible a unit can only be replaced: two answers, each at most that long.
    distance: ClassVar[int] = 1
    seen: ClassVar[str]  # what of a party becomes visible, in words

    def share(self, honest: int, n_rows: int) -> float:
        """The part of the prescribed variance that one party adds; nothing at the party: 0."""
        return 0.0

    def growth(self, n_parties: int, colluding: int, n_rows: int) -> float:
        """How many times the prescribed deviation the noise of a sum has in the end."""
        return 1.0

    def row_noise(self, n_rows: float) -> float:
        """How many times as much noise a sum has because of its rows, whoever adds it."""
        return 1.0

    def least_set(self, minimum: int, colluding: int, n_parties: int) -> int:
        """The smallest set of a roster's parties that may be summed."""
        return 1

    @abstractmethod
    def promise(self, says: Statement, of: str, numbers: str, counted: str) -> str:
        """The guarantee in words."""

    def assumptions(self, says: Statement) -> str:
        """What the promise takes for granted, beyond the ledger."""
        return ""


class InCoordinator(Trust):
    """Central: the coordinator sees exact sums and adds the noise at the gate."""

    name = "coordinator"
    exact_sums = True
    seen = "the coordinator sees this party's exact sums"

    def promise(self, says: Statement, of: str, numbers: str, counted: str) -> str:
        who = "The coordinator is trusted: it sees exact sums and adds the noise."
        if says.single_owner:
            who = "Noise is added to every sum of the table before anything is made of it."
        return (
            f"Whoever sees this {of} learns about one {says.unit} no more than {numbers} "
            f"allows ({says.shown_neighbours}), {counted}. {who}"
        )


class InParties(Trust):
    """Distributed: sums are masked, and every party adds its share of the noise.

    Each of the S parties of a sum adds a variance of sigma^2 / (S - c), so that any S - c of them
    add up to what the slot prescribes, whatever the c others leak, omit or lie about. All together
    add S / (S - c) times as much.
    """

    name = "parties"
    masked = True
    seen = "nobody sees a sum of this party alone"

    def share(self, honest: int, n_rows: int) -> float:
        return 1.0 / honest

    def growth(self, n_parties: int, colluding: int, n_rows: int) -> float:
        return float((n_parties / (n_parties - colluding)) ** 0.5)

    def least_set(self, minimum: int, colluding: int, n_parties: int) -> int:
        # More than half of the roster, so that any two sets share a party. It answers an attempt
        # by one message ever, so no attempt has two sums.
        return max(minimum, colluding + 1, n_parties // 2 + 1)

    def promise(self, says: Statement, of: str, numbers: str, counted: str) -> str:
        return (
            f"Whoever sees all that the coordinator and at most {says.colluding} of the "
            f"{len(says.parties)} parties saw learns about one {says.unit} of any other party no "
            f"more than {numbers} allows ({says.neighbours}), {counted}. Sums are masked and "
            f"every party adds its own share of the noise; no sum is over fewer than "
            f"{says.minimum_parties} parties."
        )

    def assumptions(self, says: Statement) -> str:
        text = (
            "; X25519, HKDF and ChaCha20 are sound; all but "
            f"{says.colluding} parties in each sum run unmodified hedgerow"
        )
        if says.minimum_parties < 3:
            text += (
                ". With fewer than three parties each of them can subtract its own part from a "
                "sum, and is held back by the other's noise share alone"
            )
        return text


class InNobody(Trust):
    """Local differential privacy: every row has noise of its own, drawn at once by its party."""

    name = "nobody"
    local = True
    change = "replace"
    distance = 2
    seen = "the coordinator sees this party's noisy sums and its number of rows"

    def share(self, honest: int, n_rows: int) -> float:
        return float(n_rows)

    def growth(self, n_parties: int, colluding: int, n_rows: int) -> float:
        return float(n_rows**0.5)

    def row_noise(self, n_rows: float) -> float:
        return self.distance * math.sqrt(max(n_rows, 1.0))

    def promise(self, says: Statement, of: str, numbers: str, counted: str) -> str:
        if says.single_owner:
            return (
                f"Whoever sees every noisy sum of the table learns about one {says.unit} of it no "
                f"more than {numbers} allows ({says.shown_neighbours}), {counted}. The noise of "
                "all rows is added before anything leaves the table. The row count is visible."
            )
        return (
            f"Whoever sees every message of a party learns about one {says.unit} of it no more "
            f"than {numbers} allows ({says.neighbours}), {counted}. Nobody is trusted beyond "
            "the party that holds the rows: each adds the noise of all its rows before "
            "anything leaves. Row counts are visible."
        )


TRUSTS: dict[str, Trust] = {t.name: t for t in (InCoordinator(), InParties(), InNobody())}


def trust_named(name: str) -> Trust:
    """The trust of that name; SettingsError if there is none."""
    if name not in TRUSTS:
        raise SettingsError(f"trust is {name!r}; choose one of {', '.join(TRUSTS)}")
    return TRUSTS[name]


def usual_trust(n_parties: int) -> str:
    """Whom to trust if nobody says: the parties where there are several."""
    return InParties.name if n_parties > 1 else InCoordinator.name
