"""Plans: what will be asked and how much each slot may cost, fixed before the first question.

A slot fixes its mu, not its sigma: what is asked may depend on earlier releases, what it may cost
may not. Spare attempts are inside the calibration.
"""

from __future__ import annotations

import math
import re
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from hedgerow.errors import FormatError, PlanError, SettingsError
from hedgerow.packing import canonical_json, digest
from hedgerow.privacy.accounting.gaussian import epsilon_of, mu_of, sigma_floor
from hedgerow.privacy.accounting.pure import Branches, OnPaths, composed, composed_delta, pure_mu
from hedgerow.privacy.settings import Privacy, Settings

FORMAT = 1
MAX_SLOTS = 1_000_000
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
MAX_NUMBERS = 1 << 22  # of one question; a party's memory may not depend on what is asked
EVALUATION = "evaluation"  # the method of a plan that measures a model and grows none
LEAST_MU = 1e-9  # of a slot; less is no answer, and noise too wide to draw
TOP = (
    "format", "run", "schema", "unit", "method", "seed", "privacy", "settings", "slot", "rest",
    "branches",
)  # fmt: skip


@dataclass(frozen=True)
class Wish:
    """What a method would like to ask: a kind of query, its part of mu^2, how many numbers."""

    name: str
    kind: str
    share: float
    coordinates: int
    repeat: int = 1


@dataclass(frozen=True)
class Later:
    """What a method settles during the run: its part of mu^2, the most that a retry may take."""

    share: float
    retry: float
    coordinates: int
    slots: int
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Slot:
    """One charge that the plan allows: at most `coordinates` numbers at privacy parameter mu.

    In a pure plan mu is 0: what a slot costs is settled during the run, within the `Branches`.
    """

    name: str
    kind: str
    mu: float
    coordinates: int


@dataclass(frozen=True)
class Rest:
    """Slots after the listed ones whose prices are settled during the run.

    What they cost together is fixed: squares of mu add up to at most `mu`^2, whatever earlier
    releases made of them. That is a Gaussian privacy filter: adaptively chosen Gaussian mechanisms
    whose squared parameters add up to at most mu^2 are mu-Gaussian private (Smith and Thakurta
    2022; Koskela, Tobaben and Honkela 2022). A further attempt at such a slot costs at most
    `retry`.
    """

    mu: float
    retry: float
    coordinates: int  # numbers of all these slots together
    slots: int  # at most so many
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A complete plan; two plans with the same hash ask the same for the same price."""

    run: str
    schema_hash: str
    method: str
    settings: Settings
    privacy: Privacy
    seed: int
    slots: tuple[Slot, ...]
    unit: str = "row"  # what is protected, as `Unit.text` of the schema says it
    rest: Rest | None = None  # slots that follow, priced during the run
    branches: Branches | None = None  # what tree paths may cost; in pure plans, and only there

    def __post_init__(self) -> None:
        if not _RUN.fullmatch(self.run):
            raise PlanError(
                f"the run {self.run!r} has no usable name: it becomes a file's name, so use 1 to "
                "80 letters, digits, hyphens, dots and underscores, a letter or digit first"
            )
        if not 1 <= self.n_slots <= MAX_SLOTS:
            raise PlanError(f"a plan has 1 to {MAX_SLOTS} slots, this one {self.n_slots}")
        if self.rest is not None:
            _check_rest(self.rest)
        self._check_branches()
        for slot in self.slots:
            if self.branches is None and not LEAST_MU <= slot.mu < math.inf:
                raise PlanError(
                    f"slot {slot.name!r} has mu = {slot.mu}; it must be at least {LEAST_MU:g}. "
                    "Nothing was asked. Raise epsilon or plan fewer trees."
                )
            if not 1 <= slot.coordinates <= MAX_NUMBERS:
                raise PlanError(
                    f"slot {slot.name!r} asks for {slot.coordinates} numbers; at most "
                    f"{MAX_NUMBERS} fit into one question. Nothing was asked. Use smaller batches."
                )
        promised = self.privacy.epsilon * (1 + 1e-9)
        if self.epsilon > promised:
            raise PlanError(
                f"the slots cost epsilon = {self.epsilon:.6g}, more than the promised "
                f"{self.privacy.epsilon:g}. Nothing was asked. Make the plan again."
            )

    def _check_branches(self) -> None:
        accounting, paths = self.privacy.accounting, self.branches is not None
        if (accounting == "pure" and not paths) or (paths and accounting == "renyi"):
            raise PlanError(
                "pure accounting goes with rounds of pure questions, and Renyi's with Gaussian "
                "ones. Nothing was asked. Make the plan again."
            )
        if self.branches is not None:
            if self.privacy.trusted.local:  # however it is counted: see `Privacy`
                raise PlanError(
                    "pure questions are asked where the coordinator or the parties are trusted, "
                    "and the plan trusts nobody. Nothing was asked. Make the plan again."
                )
            self.branches.check(len(self.slots))
            if self.rest is not None or any(slot.mu != 0 for slot in self.slots):
                raise PlanError("a slot of pure questions has no mu. Nothing was asked.")

    @property
    def measures(self) -> bool:
        """Whether the model that the plan names is measured, not built on."""
        return self.method == EVALUATION

    @property
    def n_slots(self) -> int:
        """How many slots there can be, those priced during the run included."""
        return len(self.slots) + (self.rest.slots if self.rest else 0)

    @cached_property
    def mu(self) -> float:
        """Total privacy parameter of all slots and spare attempts; what a pure epsilon books as."""
        if self.branches is not None:
            return self._pure_mu(self.branches)
        squares, attempts = [slot.mu**2 for slot in self.slots], [slot.mu for slot in self.slots]
        if self.rest is not None:
            squares.append(self.rest.mu**2)
            attempts.append(self.rest.retry)
        return math.sqrt(math.fsum(squares) + self.privacy.spare * max(attempts) ** 2)

    @property
    def coordinates(self) -> int:
        """All numbers whose discreteness is paid for, spares included; none in a pure plan."""
        if self.branches is not None:
            return 0
        sizes = [slot.coordinates for slot in self.slots]
        if self.rest is not None:
            sizes.append(self.rest.coordinates)
        return sum(sizes) + self.privacy.spare * max(sizes)

    def slot(self, index: int, kind: str, mu: float) -> Slot | None:
        """The slot that a question of this kind draws: listed, or priced now; None if neither."""
        if index < len(self.slots):
            return self.slots[index] if self.slots[index].kind == kind else None
        if self.rest is None or kind not in self.rest.kinds or not LEAST_MU <= mu <= self.rest.mu:
            return None
        return Slot("later", kind, mu, min(self.rest.coordinates, MAX_NUMBERS))

    def kinds(self) -> set[str]:
        """Kinds of queries that may be asked."""
        return {slot.kind for slot in self.slots} | set(self.rest.kinds if self.rest else ())

    @cached_property
    def epsilon(self) -> float:
        """The ceiling that the plan reserves, at its own delta."""
        p = self.privacy
        if self.branches is not None:
            return self._composed(self.branches, p.delta)
        return epsilon_of(self.mu, p.delta, self.coordinates, p.accounting)

    def epsilon_at(self, delta: float) -> float:
        """What the plan costs whoever counts at another delta, exactly."""
        if self.branches is not None:
            return self._composed(self.branches, delta)
        return math.inf if delta == 0 else epsilon_of(self.mu, delta, self.coordinates)

    @property
    def pure_epsilon(self) -> float:
        """What holds without any delta; infinite where noise is Gaussian."""
        return math.inf if self.branches is None else self.branches.epsilon(self.privacy.spare)

    def _composed(self, branches: Branches, delta: float) -> float:
        # Further attempts cost at most r together and may come anywhere. Let them alone be answered
        # from the other table: that changes every chance by a factor of e^r at most, and what is
        # left are the rounds. So epsilon grows by r, and delta by the factor e^r.
        again = self.privacy.spare * branches.retry
        return composed(branches.costs(), delta * math.exp(-again)) + again

    def _pure_mu(self, branches: Branches) -> float:
        """As one pure epsilon; or, where nothing is asked again, round by round if that is less."""
        whole = pure_mu(branches.epsilon(self.privacy.spare))
        if self.privacy.spare:
            return whole
        rounds = math.fsum(n * pure_mu(cost) ** 2 for cost, n in branches.costs())
        return min(whole, math.sqrt(rounds))

    @property
    def guarantee(self) -> Literal["pure", "epsilon-delta"]:
        return "pure" if self.privacy.accounting == "pure" else "epsilon-delta"

    @property
    def floor(self) -> int:
        return sigma_floor(self.mu)

    @cached_property
    def hash(self) -> str:
        return digest("hedgerow plan 1", canonical_json(self.to_dict()))

    def record(self) -> dict[str, Any]:
        """What a model keeps of the plan that it was grown by."""
        return {
            "method": self.method,
            "run": self.run,
            "plan": self.hash,
            "settings": self.settings.to_dict(),
            "rounds": len(self.slots),
        }

    @cached_property
    def table(self) -> dict[str, Any]:
        """`to_dict`, made once for many parties; not to be written to."""
        return self.to_dict()

    def to_dict(self) -> dict[str, Any]:
        slots: list[dict[str, Any]] = []
        for slot in self.slots:
            entry = {
                "name": slot.name, "kind": slot.kind, "mu": slot.mu,
                "coordinates": slot.coordinates,
            }  # fmt: skip
            if slots and {k: v for k, v in slots[-1].items() if k != "repeat"} == entry:
                slots[-1]["repeat"] += 1
            else:
                slots.append({**entry, "repeat": 1})
        rest: dict[str, Any] = {}
        if self.rest is not None:
            rest["rest"] = asdict(self.rest)
        if self.branches is not None:
            rest["branches"] = self.branches.to_dict()
        return {
            "format": FORMAT,
            "run": self.run,
            "schema": self.schema_hash,
            "unit": self.unit,
            "method": self.method,
            "seed": self.seed,
            "privacy": self.privacy.to_dict(),
            "settings": self.settings.to_dict(),
            "slot": slots,
            **rest,
        }

    @staticmethod
    def from_dict(document: Mapping[str, Any], source: str = "plan") -> Plan:
        from hedgerow.privacy.accounting.plan_reading import plan_from

        try:
            return plan_from(document)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            if isinstance(error, (PlanError, SettingsError, FormatError)):
                raise type(error)(f"{source}: {error}") from error
            raise PlanError(f"{source} is not a readable plan: {error!r}") from error

    @staticmethod
    def read(path: str | PathLike[str]) -> Plan:
        file = Path(path)
        try:
            document = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise PlanError(f"no plan file at {file}; `hedgerow plan` writes one") from error
        except (OSError, ValueError, RecursionError) as error:
            raise PlanError(f"cannot read {file} as a plan: {error}") from error
        return Plan.from_dict(document, str(file))

    def write(self, path: str | PathLike[str]) -> None:
        import tomli_w

        Path(path).write_text(tomli_w.dumps(self.to_dict()), encoding="utf-8")


def make_plan(
    schema_hash: str,
    method: str,
    settings: Settings,
    privacy: Privacy,
    wishes: Sequence[Wish],
    seed: int,
    run: str | None = None,
    unit: str = "row",
    later: Later | OnPaths | None = None,
) -> Plan:
    """Give each wish its mu so that all slots and spares cost exactly (epsilon, delta)."""
    if isinstance(later, OnPaths):
        listed = tuple(
            Slot(w.name, w.kind, 0.0, w.coordinates) for w in wishes for _ in range(w.repeat)
        )
        facts = (schema_hash, method, settings, privacy, seed, listed, unit)
        branches = _branches_for(later, privacy)
        return Plan(run or secrets.token_hex(8), *facts, branches=branches)
    wishes = [wish for wish in wishes if wish.share > 0 and wish.repeat > 0]
    if not wishes and later is None:
        raise PlanError("the method asks nothing; there is nothing to plan")
    spare = privacy.spare
    sizes = [w.coordinates for w in wishes for _ in range(w.repeat)]
    shares = [w.share for w in wishes for _ in range(w.repeat)]
    retries = list(shares)
    if later is not None:
        sizes.append(later.coordinates)
        shares.append(later.share)
        retries.append(later.retry)
    coordinates = sum(sizes) + spare * max(sizes)
    total = mu_of(privacy.epsilon, privacy.delta, coordinates, privacy.accounting)
    whole = math.fsum(shares) + spare * max(retries)

    def mu(share: float) -> float:
        return total * math.sqrt(share / whole) * (1 - 1e-12)

    slots = tuple(
        Slot(w.name, w.kind, mu(w.share), w.coordinates) for w in wishes for _ in range(w.repeat)
    )
    rest = None
    if later is not None:
        kinds = tuple(sorted(later.kinds))
        rest = Rest(mu(later.share), mu(later.retry), later.coordinates, later.slots, kinds)
    run = run or secrets.token_hex(8)
    return Plan(run, schema_hash, method, settings, privacy, seed, slots, unit, rest)


def _branches_for(later: OnPaths, privacy: Privacy) -> Branches:
    """The dearest rounds that cost no more than the promise."""
    whole = math.fsum(part for _, part, _ in later.rounds)
    low = privacy.epsilon / (whole * (1 + privacy.spare * later.retry)) * (1 - 1e-12)
    if privacy.accounting == "pure":
        return later.branches(low)

    def fits(unit: float) -> bool:
        tried = later.branches(unit)
        again = privacy.spare * tried.retry
        left = privacy.epsilon - again
        spent = composed_delta(tried.costs(), left) * math.exp(again)
        return left > 0 and spent <= privacy.delta * (1 - 1e-9)

    high = 2 * low
    while fits(high) and high < 1e6:
        low, high = high, 2 * high
    for _ in range(24):  # to a ten-millionth
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return later.branches(low)


def _check_rest(rest: Rest) -> None:
    fits = (
        LEAST_MU <= rest.retry <= rest.mu < math.inf
        and 1 <= rest.slots <= MAX_SLOTS
        and 1 <= rest.coordinates <= MAX_NUMBERS * rest.slots
        and bool(rest.kinds)
    )
    if not fits:
        raise PlanError(
            "the part of the plan that is priced during the run is not described correctly. "
            "Nothing was asked. Make the plan again."
        )
