"""What was given by options and environment, and the plan that follows from it.

A value comes from the flag, else the environment, else a plan file, else the method's default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.data.habits import did_you_mean
from hedgerow.errors import PlanError, SettingsError
from hedgerow.privacy.settings import DEFAULTS, Privacy, settings_table

if TYPE_CHECKING:
    from hedgerow.data.schema import Schema
    from hedgerow.privacy.accounting.plan import Plan
    from hedgerow.privacy.accounting.request import Request

_OWN_FLAG = {"epsilon": "--epsilon", "delta": "--delta", "trust": "--trust"}
_NAMES = {"trees": "n_trees", "depth": "max_depth", "bins": "n_bins"}  # of options, in plans
# Options that set a value of a plan, by the name the value has there.
_FLAGS = {
    "n_trees": "--trees", "max_depth": "--depth", "learning_rate": "--learning-rate",
    "n_bins": "--bins", "method": "--method", "seed": "--seed", "spare": "--spare",
    "minimum_parties": "--minimum-parties", "colluding": "--colluding",
    "accounting": "--accounting", "purpose": "--purpose", "asker": "--asker", "ends": "--ends",
    **_OWN_FLAG,
}  # fmt: skip


def given_values(*groups: Any) -> dict[str, Any]:
    """All values that were given in groups of options, by the name they have in plans.

    What was not given is absent.
    """
    given: dict[str, Any] = {}
    texts: Sequence[str] = ()
    for group in groups:
        for field in fields(group):
            value = getattr(group, field.name)
            if field.name == "further":
                texts = value or ()
            elif value is not None:
                given[_NAMES.get(field.name, field.name)] = value
    for text in texts:
        name, value = _further(text)
        if name in given:
            raise SettingsError(f"{name!r} is given twice; keep one of the two")
        given[name] = value
    if "method" in given:
        from hedgerow.methods.registry import method_named

        given["method"] = method_named(given["method"]).name
    return given


def flag_of(name: str) -> str:
    """How a value is given on the command line."""
    return _FLAGS.get(name, f"--set {name}")


def _further(text: str) -> tuple[str, Any]:
    name, equals, value = (part.strip() for part in text.partition("="))
    known: dict[str, Any] = {**Privacy(1.0, 1e-6).to_dict(), **DEFAULTS}
    if not equals or not value:
        raise SettingsError(f"--set {text!r} is not of the form key=value")
    if name in _OWN_FLAG:
        raise SettingsError(f"{name!r} has its own option; write {_OWN_FLAG[name]} {value}")
    if name not in known:
        names = sorted(set(known) - set(_OWN_FLAG))
        hint = did_you_mean(name, known)
        raise SettingsError(f"unknown setting {name!r}{hint}; known: {', '.join(names)}")
    kind = type(known[name])
    if kind is bool:
        if value.lower() not in ("true", "false"):
            raise SettingsError(f"--set {text!r}: {name} must be true or false")
        return name, value.lower() == "true"
    try:
        return name, kind(value)
    except ValueError as error:
        what = "a whole number" if kind is int else "a number"
        raise SettingsError(f"--set {text!r}: {name} must be {what}") from error


def privacy_names() -> set[str]:
    """Names of values that belong to the promise rather than to the method."""
    return {field.name for field in fields(Privacy)}


def values_of(plan: Plan) -> dict[str, Any]:
    """Everything that a plan fixes, by the names that options use."""
    return {
        "method": plan.method,
        "seed": plan.seed,
        **asdict(plan.request),
        **plan.privacy.to_dict(),
        **DEFAULTS,
        **settings_table(plan.settings),
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
    for name, usual in (("epsilon", "1 is usual"), ("delta", "1e-6, well below 1 / rows")):
        if name not in values:
            raise SettingsError(
                f"{name} is not set: give --{name} ({usual}), the environment variable "
                f"HEDGEROW_{name.upper()}, or a plan with --plan. Nothing was asked."
            )
    values.setdefault("trust", chosen.trust or usual_trust(n_parties))
    promised = {name: values.pop(name) for name in privacy_names() if name in values}
    privacy = privacy_from(promised)
    check_party_count(privacy, n_parties)
    method, seed = values.pop("method", "auto"), values.pop("seed", None)
    request = request_of(values)
    if base is not None:
        used = METHODS[method_named(method).name].uses
        values = {name: v for name, v in values.items() if name in used or name in given}
    return replace(plan_for(schema, privacy, method, values, seed), request=request)


def request_of(values: dict[str, Any]) -> Request:
    """Who asks, what for and until when; taken out of the values."""
    from hedgerow.privacy.accounting.request import KEYS, Request

    return Request(**{key: values.pop(key) for key in KEYS if key in values})


def tell_cautions(plan: Plan, schema: Schema) -> None:
    """What looks like a mistake by public facts alone, on the screen."""
    from hedgerow.cli.screen import tell
    from hedgerow.privacy.cautions import cautions

    if schema.confirmed_by:
        tell(f"Note: {schema.origin}.")
    for text in cautions(plan, schema):
        tell(text, style="yellow")


def with_pooled_cuts(
    schema: Schema, given: Mapping[str, Any], sources: Mapping[str, Path]
) -> dict[str, Any]:
    """What was given; with candidates that are not private, their cuts from all tables."""
    from hedgerow.data.tables import rows_of
    from hedgerow.methods.registry import with_exact_cuts

    if given.get("candidates") != "quantiles-not-private":
        return dict(given)
    values = {name: v for name, v in given.items() if name in DEFAULTS}
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
    differing = differences(plan, wanted)
    if differing:
        raise _another(beside, "; ".join(differing))


def _another(beside: Path, what: str) -> PlanError:
    return PlanError(
        f"{beside} belongs to a run that was planned differently: {what}. Nothing was asked. "
        "Choose another --out for a new run, or repeat the first command to resume that one. If it "
        "only waits for people to approve it, removing the file gives it up."
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
    return {"seed": base.seed, **asdict(base.request), **promised}


def _is_pure(method: str) -> bool:
    from hedgerow.methods.registry import method_named

    return method_named(method).can_be_pure
