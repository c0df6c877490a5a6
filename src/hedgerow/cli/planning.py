"""Plans from what was given, and whether an existing plan says the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.options import flag_of, privacy_names
from hedgerow.errors import PlanError, SettingsError
from hedgerow.privacy.settings import Settings

if TYPE_CHECKING:
    from hedgerow.data.schema import Schema
    from hedgerow.privacy.accounting.plan import Plan


def values_of(plan: Plan) -> dict[str, Any]:
    """Everything that a plan fixes, by the names that options use."""
    return {
        "method": plan.method,
        "seed": plan.seed,
        **plan.privacy.to_dict(),
        **plan.settings.to_dict(),
    }


def differences(plan: Plan, given: Mapping[str, Any]) -> list[str]:
    """What was given and stands differently in a plan, in words."""
    planned = values_of(plan)
    return [
        f"{flag_of(name)} is {value}, the plan has {planned[name]}"
        for name, value in given.items()
        if planned[name] != value
    ]


def make_plan(
    schema: Schema, given: Mapping[str, Any], n_parties: int, base: Plan | None = None
) -> Plan:
    """A new plan: what was given, else what a base plan says, else the method's defaults."""
    from hedgerow.methods.registry import METHODS, check_party_count, method_named, plan_for
    from hedgerow.model.trust import usual_trust
    from hedgerow.privacy.settings import privacy_from

    values = {**_carried(base, given), **given}
    chosen = method_named(values.get("method", "auto"))
    alone = chosen.accountings == ("pure",)
    if alone or (chosen.can_be_pure and not values.get("delta")):  # there is no delta to ask for
        values = {"delta": 0.0, "accounting": "pure", **values}
    for name in ("epsilon", "delta"):
        if name not in values:
            raise SettingsError(
                f"{name} is not set: give --{name}, the environment variable "
                f"HEDGEROW_{name.upper()}, or a plan with --plan. Nothing was asked."
            )
    values.setdefault("trust", chosen.trust or usual_trust(n_parties))
    promised = {name: values.pop(name) for name in privacy_names() if name in values}
    privacy = privacy_from(promised)
    check_party_count(privacy, n_parties)
    method, seed = values.pop("method", "auto"), values.pop("seed", None)
    if base is not None:
        used = METHODS[method_named(method).name].uses
        values = {name: v for name, v in values.items() if name in used or name in given}
    return plan_for(schema, privacy, method, values, seed)


def with_pooled_cuts(
    schema: Schema, given: Mapping[str, Any], sources: Mapping[str, Path]
) -> dict[str, Any]:
    """What was given; with candidates that are not private, their cuts from all tables."""
    from hedgerow.data.tables import rows_of
    from hedgerow.methods.registry import with_exact_cuts

    if given.get("candidates") != "quantiles-not-private":
        return dict(given)
    values = {name: v for name, v in given.items() if name in Settings.__dataclass_fields__}
    tables = (rows_of(path, schema) for path in sources.values())
    cuts = with_exact_cuts(schema, given.get("method", "auto"), values, lambda: tables)
    return {**given, **cuts}


def settle_plan(
    schema: Schema, given: Mapping[str, Any], n_parties: int, source: Path | None, beside: Path
) -> Plan:
    """The plan of a training command: the one beside the model if there is one, so that the
    same command resumes its run; else the plan file, changed by what was given; else a new one.

    Raises PlanError if the plan beside the model says something else than the command.
    """
    from hedgerow.methods.registry import check_party_count
    from hedgerow.privacy.accounting.plan import Plan

    base = None if source is None else _read(source, schema)
    changed = base is None or bool(differences(base, given))
    if not beside.exists():
        plan = make_plan(schema, given, n_parties, base) if changed else base
    else:
        plan = Plan.read(beside)
        _check_same(plan, schema, beside, given if base is None else {**values_of(base), **given})
        if base is not None and not changed and plan.hash != base.hash:
            raise _another(beside, f"{source} is another plan (run {base.run}, not {plan.run})")
    assert plan is not None
    check_party_count(plan.privacy, n_parties)
    return plan


def _read(source: Path, schema: Schema) -> Plan:
    from hedgerow.privacy.accounting.plan import Plan

    plan = Plan.read(source)
    if plan.schema_hash != schema.hash:
        raise PlanError(
            f"{source} was made for another schema. Nothing was asked. Give the schema it was made "
            "with, or make a plan for this one with `hedgerow plan`."
        )
    return plan


def _check_same(plan: Plan, schema: Schema, beside: Path, wanted: Mapping[str, Any]) -> None:
    if plan.schema_hash != schema.hash:
        raise _another(beside, "it was made for another schema")
    found = differences(plan, wanted)
    if found:
        raise _another(beside, "; ".join(found))


def _another(beside: Path, what: str) -> PlanError:
    return PlanError(
        f"{beside} belongs to a run that was planned differently: {what}. Nothing was asked. "
        "Choose another --out for a new run, or repeat the first command to resume that one."
    )


def _carried(base: Plan | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a base plan lends to a new one; its settings only if the method stays the same."""
    if base is None:
        return {}
    if given.get("method", base.method) == base.method:
        return values_of(base)
    promised = base.privacy.to_dict()
    if _is_pure(base.method) != _is_pure(given["method"]):  # a delta of one is none of the other
        promised = {k: v for k, v in promised.items() if k not in ("delta", "accounting")}
    return {"seed": base.seed, **promised}


def _is_pure(method: str) -> bool:
    from hedgerow.methods.registry import method_named

    return method_named(method).can_be_pure
