"""Plans read back from plain tables, such as TOML; everything in them is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedgerow.errors import FormatError, PlanError
from hedgerow.privacy.accounting.plan import FORMAT, MAX_SLOTS, TOP, Plan, Rest, Slot
from hedgerow.privacy.accounting.pure import Branches
from hedgerow.privacy.settings import Settings, privacy_from, with_values


def _rest_from(entry: Mapping[str, Any]) -> Rest:
    known = ("mu", "retry", "coordinates", "slots", "kinds")
    if sorted(entry) != sorted(known):
        raise PlanError(f"rest must have exactly these keys: {', '.join(known)}")
    kinds, numbers = entry["kinds"], (entry["coordinates"], entry["slots"])
    if not isinstance(kinds, (list, tuple)) or any(type(n) is not int for n in numbers):
        raise PlanError("rest must list kinds, and count slots and coordinates in whole numbers")
    mus = (float(entry["mu"]), float(entry["retry"]))
    return Rest(*mus, *numbers, tuple(str(kind) for kind in kinds))


def plan_from(document: Mapping[str, Any]) -> Plan:
    version = document.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise FormatError(
            f"plan format {version} is newer than this hedgerow reads ({FORMAT}); "
            f"install the hedgerow version that writes plan format {version}"
        )
    if version != FORMAT:
        raise PlanError(f"format is {version!r}; it must be {FORMAT}")
    unknown = [key for key in document if key not in TOP]
    if unknown:
        raise PlanError(f"unknown key {unknown[0]!r}; known: {', '.join(TOP)}")
    slots: list[Slot] = []
    for entry in document["slot"]:
        repeat = entry.get("repeat", 1)
        if not isinstance(repeat, int) or not 1 <= repeat <= MAX_SLOTS - len(slots):
            raise PlanError(f"slot {entry.get('name')!r} repeats {repeat!r} times")
        slot = Slot(
            str(entry["name"]), str(entry["kind"]), float(entry["mu"]), int(entry["coordinates"])
        )
        slots.extend([slot] * repeat)
    if not isinstance(document["seed"], int):
        raise PlanError(f"seed is {document['seed']!r}; it must be a whole number")
    return Plan(
        run=str(document["run"]),
        schema_hash=str(document["schema"]),
        method=str(document["method"]),
        settings=with_values(Settings(), document["settings"]),
        privacy=privacy_from(document["privacy"]),
        seed=document["seed"],
        slots=tuple(slots),
        unit=str(document["unit"]),
        rest=_rest_from(document["rest"]) if "rest" in document else None,
        branches=Branches.from_dict(document["branches"]) if "branches" in document else None,
    )
