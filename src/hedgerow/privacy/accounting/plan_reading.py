"""Plans read back from plain tables, such as TOML; everything in them is checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hedgerow.errors import FormatError, PlanError
from hedgerow.privacy.accounting.budget import (
    MAX_SLOTS,
    NO_ADAPTIVE_SLOTS,
    AdaptiveSlots,
    PlanBudget,
    Slot,
)
from hedgerow.privacy.accounting.gaussian_budget import GaussianBudget
from hedgerow.privacy.accounting.path_budget import PathBudget
from hedgerow.privacy.accounting.request import KEYS as REQUEST_KEYS
from hedgerow.privacy.accounting.request import Request
from hedgerow.privacy.accounting.rounds import Branches
from hedgerow.privacy.settings import Privacy, Settings, privacy_from, settings_from

FORMAT = 1
_KNOWN = (
    "format", "run", "schema", "unit", "method", "seed", "privacy", "settings", "slot", "rest",
    "branches", "max_weight", *REQUEST_KEYS,
)  # fmt: skip


class PlanFacts(NamedTuple):
    """What a table says of a plan, by the names of the plan's fields."""

    run: str
    schema_hash: str
    method: str
    settings: Settings
    seed: int
    budget: PlanBudget
    unit: str
    max_weight: float
    request: Request


def _adaptive_from(entry: Mapping[str, Any]) -> AdaptiveSlots:
    known = ("mu", "retry", "coordinates", "slots", "kinds")
    if sorted(entry) != sorted(known):
        raise PlanError(f"rest must have exactly these keys: {', '.join(known)}")
    kinds, numbers = entry["kinds"], (entry["coordinates"], entry["slots"])
    if not isinstance(kinds, (list, tuple)) or any(type(n) is not int for n in numbers):
        raise PlanError("rest must list kinds, and count slots and coordinates in whole numbers")
    mus = (float(entry["mu"]), float(entry["retry"]))
    adaptive = AdaptiveSlots(*mus, *numbers, tuple(str(kind) for kind in kinds))
    adaptive.check()  # a part that is there is not empty
    return adaptive


def _slots_from(entries: Sequence[Mapping[str, Any]]) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for entry in entries:
        repeat = entry.get("repeat", 1)
        if not isinstance(repeat, int) or not 1 <= repeat <= MAX_SLOTS - len(slots):
            raise PlanError(f"slot {entry.get('name')!r} repeats {repeat!r} times")
        slot = Slot(
            str(entry["name"]), str(entry["kind"]), float(entry["mu"]), int(entry["coordinates"])
        )
        slots.extend([slot] * repeat)
    return tuple(slots)


def _budget_from(document: Mapping[str, Any], privacy: Privacy) -> PlanBudget:
    slots, adaptive = _slots_from(document["slot"]), NO_ADAPTIVE_SLOTS
    if "rest" in document:
        adaptive = _adaptive_from(document["rest"])
    if "branches" in document:
        branches = Branches.from_dict(document["branches"])
        return PathBudget(slots, privacy, adaptive, branches=branches)
    return GaussianBudget(slots, privacy, adaptive)


def _cap_from(document: Mapping[str, Any]) -> float:
    cap: float = document.get("max_weight", 1.0)
    if type(cap) not in (int, float) or not 1 <= cap < math.inf:
        raise PlanError(f"max_weight is {cap!r}; it must be a number of at least 1")
    return cap  # as it is written, so that the plan keeps its hash


def plan_facts(document: Mapping[str, Any]) -> PlanFacts:
    """Check a table's format and keys, and read every part of it."""
    version = document.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise FormatError(
            f"plan format {version} is newer than this hedgerow reads ({FORMAT}); "
            f"install the hedgerow version that writes plan format {version}"
        )
    if version != FORMAT:
        raise PlanError(f"format is {version!r}; it must be {FORMAT}")
    unknown = [key for key in document if key not in _KNOWN]
    if unknown:
        raise PlanError(f"unknown key {unknown[0]!r}; known: {', '.join(_KNOWN)}")
    if not isinstance(document["seed"], int):
        raise PlanError(f"seed is {document['seed']!r}; it must be a whole number")
    return PlanFacts(
        run=str(document["run"]),
        schema_hash=str(document["schema"]),
        method=str(document["method"]),
        settings=settings_from(str(document["method"]), document["settings"]),
        seed=document["seed"],
        budget=_budget_from(document, privacy_from(document["privacy"])),
        unit=str(document["unit"]),
        max_weight=_cap_from(document),
        request=Request.from_dict(document),
    )
