"""Plans: what will be asked and how much it may cost, fixed before the first question.

What is asked may depend on earlier releases; what it may cost, the plan's budget, may not.
"""

from __future__ import annotations

import re
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from hedgerow.data.cards import Card, Shown
from hedgerow.errors import FormatError, PlanError, SettingsError
from hedgerow.packing import canonical_json, digest
from hedgerow.privacy.accounting.budget import DeclaredQuery, PlanBudget, Slot
from hedgerow.privacy.accounting.gaussian_budget import AdaptiveQueries
from hedgerow.privacy.accounting.path_budget import PathQueries
from hedgerow.privacy.accounting.plan_reading import FORMAT, plan_facts
from hedgerow.privacy.accounting.request import NO_REQUEST, Request
from hedgerow.privacy.settings import Privacy, Settings, settings_table

_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
EVALUATION = "evaluation"  # the method of a plan that measures a model and grows none


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """A complete plan; two plans with the same hash ask the same for the same price."""

    run: str
    schema_hash: str
    method: str
    settings: Settings
    seed: int
    budget: PlanBudget
    unit: str = "row"  # what is protected, as `Unit.text` of the schema says it
    max_weight: float = 1.0  # how often one row can count, as the schema says it
    request: Request = NO_REQUEST  # who asks, what for and until when

    def __post_init__(self) -> None:
        if not _RUN.fullmatch(self.run):
            raise PlanError(
                f"the run {self.run!r} has no usable name: it becomes a file's name, so use 1 to "
                "80 letters, digits, hyphens, dots and underscores, a letter or digit first"
            )

    @property
    def privacy(self) -> Privacy:
        """What is promised, to whom, and how it is counted."""
        return self.budget.privacy

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What is asked for certain; slots priced during the run follow."""
        return self.budget.slots

    @property
    def n_slots(self) -> int:
        """How many slots there can be, those priced during the run included."""
        return self.budget.n_slots

    @property
    def mu(self) -> float:
        """Total privacy parameter of all slots and spare attempts; what a pure epsilon books as."""
        return self.budget.mu

    @property
    def epsilon(self) -> float:
        """The ceiling that the plan reserves, at its own delta."""
        return self.budget.epsilon

    @property
    def measures(self) -> bool:
        """Whether the model that the plan names is measured, not built on."""
        return self.method == EVALUATION

    @property
    def guarantee(self) -> Literal["pure", "epsilon-delta"]:
        return "pure" if self.privacy.accounting == "pure" else "epsilon-delta"

    @cached_property
    def hash(self) -> str:
        return digest("hedgerow plan 1", canonical_json(self.to_dict()))

    def record(self) -> dict[str, Any]:
        """What a model keeps of the plan that it was grown by."""
        return {
            "method": self.method,
            "run": self.run,
            "plan": self.hash,
            "settings": settings_table(self.settings),
            "rounds": len(self.slots),
        }

    def _card(self) -> Card:
        privacy = self.privacy
        facts = (
            ("method", self.method),
            ("guarantee", self.guarantee),
            ("epsilon", privacy.epsilon),
            ("delta", privacy.delta or ""),
            ("unit", self.unit),
            ("a row counts at most", "" if self.max_weight == 1 else f"{self.max_weight:g} times"),
            ("trust", privacy.trust),
            ("slots", self.n_slots),
            *self.request.to_dict().items(),
            ("run", self.run),
        )
        rows = tuple((slot.name, slot.coordinates, slot.mu) for slot in self.slots)
        later = self.n_slots - len(self.slots)
        notes = (f"At most {later:,} more slots are priced during the run.",) if later else ()
        return Card("Plan", facts, ("query", "noisy values", "mu"), rows, notes)

    @cached_property
    def table(self) -> dict[str, Any]:
        """`to_dict`, made once for many parties; not to be written to."""
        return self.to_dict()

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "run": self.run,
            "schema": self.schema_hash,
            "unit": self.unit,
            # Plans without weights stay what they were, byte by byte.
            **({"max_weight": self.max_weight} if self.max_weight != 1 else {}),
            "method": self.method,
            "seed": self.seed,
            **self.request.to_dict(),
            "privacy": self.privacy.to_dict(),
            "settings": settings_table(self.settings),
            **self.budget.to_dict(),
        }

    @staticmethod
    def from_dict(document: Mapping[str, Any], source: str = "plan") -> Plan:
        try:
            return Plan(*plan_facts(document))
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
    declared: Sequence[DeclaredQuery],
    seed: int,
    run: str | None = None,
    unit: str = "row",
    adaptive: AdaptiveQueries | PathQueries | None = None,
    max_weight: float = 1.0,
    request: Request = NO_REQUEST,
) -> Plan:
    """A plan whose slots and spares cost exactly what is promised."""
    budget = (adaptive or AdaptiveQueries()).budget(declared, privacy)
    run = run or secrets.token_hex(8)
    return Plan(run, schema_hash, method, settings, seed, budget, unit, max_weight, request)
