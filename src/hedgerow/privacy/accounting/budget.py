"""What the slots of a plan may cost together: the interface of every kind of budget.

A `GaussianBudget` gives slots a mu, a `PathBudget` the paths of trees a pure epsilon. Whoever
plans, charges, verifies or shows a plan asks its budget, and never which kind it is. A budget is
frozen; what a run has spent of it so far is kept by its `Accountant`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar, Protocol, Self

from hedgerow.errors import PlanError
from hedgerow.privacy.accounting.accountant import Accountant, Price
from hedgerow.privacy.accounting.gaussian import sigma_floor
from hedgerow.privacy.accounting.paths import Priced
from hedgerow.privacy.accounting.rounds import Draw
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.settings import Privacy

MAX_SLOTS = 200_000  # a party holds them in memory, for every run that it has opened
MAX_NUMBERS = 1 << 22  # of one question; a party's memory may not depend on what is asked
LEAST_MU = 1e-9  # of a slot; less is no answer, and noise too wide to draw


@dataclass(frozen=True)
class DeclaredQuery:
    """What a method will ask: a kind of query, its part of mu^2, how many numbers."""

    name: str
    kind: str
    share: float
    coordinates: int
    repeat: int = 1


@dataclass(frozen=True)
class Slot:
    """One charge that the plan allows: at most `coordinates` numbers at privacy parameter mu.

    In a `PathBudget` mu is 0: what a slot costs is settled during the run, on the paths of a tree.
    """

    name: str
    kind: str
    mu: float
    coordinates: int


@dataclass(frozen=True)
class AdaptiveSlots:
    """Slots after the listed ones whose prices are settled during the run.

    What they cost together is fixed: squares of mu add up to at most `mu`^2, whatever earlier
    releases made of them. That is a Gaussian privacy filter: adaptively chosen Gaussian mechanisms
    whose squared parameters add up to at most mu^2 are mu-Gaussian private (Smith and Thakurta
    2022; Koskela, Tobaben and Honkela 2022). A further attempt at such a slot costs at most
    `retry`.
    """

    mu: float = 0.0
    retry: float = 0.0
    coordinates: int = 0  # numbers of all these slots together
    slots: int = 0  # at most so many
    kinds: tuple[str, ...] = ()

    def check(self) -> None:
        fits = (
            LEAST_MU <= self.retry <= self.mu < float("inf")
            and 1 <= self.slots <= MAX_SLOTS
            and 1 <= self.coordinates <= MAX_NUMBERS * self.slots
            and bool(self.kinds)
        )
        if not fits:
            raise PlanError(
                "the part of the plan that is priced during the run is not described correctly. "
                "Nothing was asked. Make the plan again."
            )

    def words(self) -> list[str]:
        """What people are told of them."""
        if self == NO_ADAPTIVE_SLOTS:
            return []
        return [
            f"at most {self.slots:,} queries priced during the run: {', '.join(self.kinds)}; "
            f"{self.coordinates:,} values and mu = {self.mu:.4f} in all"
        ]

    def to_dict(self) -> dict[str, Any]:
        return {} if self == NO_ADAPTIVE_SLOTS else {"rest": asdict(self)}


NO_ADAPTIVE_SLOTS = AdaptiveSlots()


class Question(Protocol):
    """What a budget wants to know of a query: its kind, and what nodes of a tree would pay."""

    @property
    def kind(self) -> str: ...

    def priced(self) -> Priced | None: ...


@dataclass(frozen=True)
class PlanBudget(ABC):
    """The promise of a plan, and slots that cost no more than it."""

    slots: tuple[Slot, ...]
    privacy: Privacy
    adaptive: AdaptiveSlots = NO_ADAPTIVE_SLOTS  # slots that follow, priced during the run

    mechanism: ClassVar[str]  # the noise that its slots pay for
    mu_means: ClassVar[str]  # what people are told that `mu` is

    def __post_init__(self) -> None:
        if not 1 <= self.n_slots <= MAX_SLOTS:
            raise PlanError(f"a plan has 1 to {MAX_SLOTS} slots, this one {self.n_slots}")
        if self.adaptive != NO_ADAPTIVE_SLOTS:
            self.adaptive.check()
        self._check()
        for slot, _ in self.repeated:
            if not 1 <= slot.coordinates <= MAX_NUMBERS:
                raise PlanError(
                    f"slot {slot.name!r} asks for {slot.coordinates} numbers; at most "
                    f"{MAX_NUMBERS} fit into one question. Nothing was asked. Use smaller batches."
                )
        if self.epsilon > self.privacy.epsilon * (1 + 1e-9):
            raise PlanError(
                f"the slots cost epsilon = {self.epsilon:.6g}, more than the promised "
                f"{self.privacy.epsilon:g}. Nothing was asked. Make the plan again."
            )

    @classmethod
    def of(cls, budget: PlanBudget) -> Self:
        """The budget as the kind that a method needs; PlanError if the plan has another."""
        if not isinstance(budget, cls):
            raise PlanError(
                f"the method needs a plan with a {cls.__name__}, and this one has a "
                f"{type(budget).__name__}. Nothing was asked. Make the plan again."
            )
        return budget

    @abstractmethod
    def _check(self) -> None:
        """Raise PlanError where slots and promise do not belong to this kind of budget."""

    @property
    def n_slots(self) -> int:
        """How many slots there can be, those priced during the run included."""
        return len(self.slots) + self.adaptive.slots

    @cached_property
    def repeated(self) -> tuple[tuple[Slot, int], ...]:
        """Listed slots in order, each with how often it is repeated: a plan has few that differ."""
        return tuple((slot, len(list(group))) for slot, group in groupby(self.slots))

    def kinds(self) -> set[str]:
        """Kinds of queries that may be asked."""
        return {slot.kind for slot, _ in self.repeated} | set(self.adaptive.kinds)

    @property
    @abstractmethod
    def mu(self) -> float:
        """Total privacy parameter of all slots and spare attempts; what a pure epsilon books as."""

    @property
    @abstractmethod
    def coordinates(self) -> int:
        """All numbers whose discreteness is paid for, spares included."""

    @property
    @abstractmethod
    def released(self) -> int:
        """The most numbers that are released."""

    @cached_property
    def epsilon(self) -> float:
        """The ceiling that the plan reserves, at its own delta."""
        return self._epsilon()

    @abstractmethod
    def _epsilon(self) -> float: ...

    @abstractmethod
    def epsilon_at(self, delta: float) -> float:
        """What the plan costs whoever counts at another delta, exactly."""

    @property
    @abstractmethod
    def pure_epsilon(self) -> float:
        """What holds without any delta; infinite where noise is Gaussian."""

    @abstractmethod
    def epsilon_of_less_noise(self, ratio: float) -> float:
        """The epsilon of the same plan with noise that is `ratio` times narrower."""

    @property
    def floor(self) -> int:
        """log2 of the least sigma, in grid steps, that Gaussian noise is drawn with."""
        return sigma_floor(self.mu)

    @abstractmethod
    def slot(self, index: int, kind: str, mu: float) -> Slot | None:
        """The slot that a question of this kind draws: listed, or priced now; None if neither."""

    @abstractmethod
    def nodes(self, question: Question, part: float = 1.0) -> Priced | None:
        """What a question charges the nodes of its tree, at a part of its price; None if it does
        not pay by node. PlanError if it should and does not say what."""

    @abstractmethod
    def retry(self, index: int, mu: float, question: Question) -> tuple[float, float]:
        """What a further attempt at a slot may pay: its mu, and the part of what its nodes pay."""

    @abstractmethod
    def accountant(self, charges: Iterable[Line] = ()) -> Accountant:
        """What refuses charges that the slots do not cover; it knows these already."""

    @property
    def sampled(self) -> bool:
        """Whether some slots are asked about a sample of the rows."""
        return False

    def draw_of(self, slot: int) -> Draw | None:
        """The sample that a slot is asked about; None for all rows."""
        return None

    def path_costs(self, charges: Iterable[Line]) -> dict[int, float]:
        """What each path drew in a run of one tree, by the place of its end; else nothing."""
        return {}

    def reserved(self) -> dict[str, Any]:
        """What a ledger's reservation says of the cost."""
        return {
            "mu": self.mu, "coordinates": self.coordinates, "epsilon": self.epsilon,
            "delta": self.privacy.delta,
        }  # fmt: skip

    def groups(self) -> list[dict[str, Any]]:
        """Listed slots, equal neighbours as one with `repeat`."""
        return [
            {
                "name": slot.name, "kind": slot.kind, "mu": slot.mu,
                "coordinates": slot.coordinates, "repeat": repeat,
            }
            for slot, repeat in self.repeated
        ]  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The budget's tables of a plan file, beside `privacy`."""
        return {"slot": self.groups(), **self.adaptive.to_dict()}

    @abstractmethod
    def price_words(self, price: Price) -> str:
        """What an answered question cost, for whoever watches."""

    @abstractmethod
    def price_of_each(self, group: dict[str, Any]) -> tuple[str, str]:
        """What a group of listed slots costs: mu of each, and their part of mu^2."""

    def each_in_words(self, group: dict[str, Any]) -> str:
        """The same for a sentence about the group; empty where `notes` say it."""
        return ""

    def notes(self) -> list[str]:
        """Sentences about prices that a table of slots does not tell."""
        return []
