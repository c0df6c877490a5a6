"""Methods by name: each is a set of defaults and the settings it uses, not a class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hedgerow.errors import SettingsError
from hedgerow.gate import Gate
from hedgerow.growing import boost
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.plan import Plan, Wish, make_plan
from hedgerow.rng import fresh_seed
from hedgerow.schema import Schema
from hedgerow.settings import Privacy, Settings, with_values

_BOOSTING = frozenset(Settings.__dataclass_fields__)


@dataclass(frozen=True)
class Method:
    """A named way of growing: one line for people, defaults, and which settings mean something."""

    name: str
    summary: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    uses: frozenset[str] = _BOOSTING

    def settings(self, chosen: Mapping[str, Any]) -> Settings:
        """The method's defaults with the user's choices; None means the method's own choice."""
        given = {name: value for name, value in chosen.items() if value is not None}
        unused = [name for name in given if name in _BOOSTING and name not in self.uses]
        if unused:
            raise SettingsError(
                f"method {self.name!r} does not use {unused[0]!r}; leave it out. "
                f"It uses: {', '.join(sorted(self.uses))}"
            )
        return with_values(with_values(Settings(), self.defaults), given)

    def wishes(self, schema: Schema, settings: Settings) -> list[Wish]:
        return boost.wishes(schema, settings)

    def grow(self, gate: Gate) -> Ensemble:
        return boost.grow(gate)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "dp-tr-newton",
            "totally random trees over public cuts, Newton leaves: one release a tree",
        ),
    )
}
AUTO = "dp-tr-newton"


def method_named(name: str) -> Method:
    """The method of that name; "auto" is the best one this version has."""
    chosen = AUTO if name == "auto" else name
    if chosen not in METHODS:
        raise SettingsError(f"no method called {name!r}; known: auto, {', '.join(sorted(METHODS))}")
    return METHODS[chosen]


def plan_for(
    schema: Schema,
    privacy: Privacy,
    method: str = "auto",
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    run: str | None = None,
) -> Plan:
    """Everything a run will ask and what it costs, from public facts alone.

    >>> schema = Schema.from_bounds({"age": (0, 110)}, classes=[0, 1])
    >>> plan = plan_for(schema, Privacy(epsilon=1.0, delta=1e-5), settings={"n_trees": 10})
    >>> len(plan.slots), round(plan.epsilon, 3)
    (11, 1.0)
    """
    chosen = method_named(method)
    resolved = chosen.settings(settings or {})
    wanted = chosen.wishes(schema, resolved)
    seed = fresh_seed() if seed is None else seed
    return make_plan(schema.hash, chosen.name, resolved, privacy, wanted, seed, run)


def check_party_count(privacy: Privacy, n_parties: int) -> None:
    """Refuse a secure sum over too few parties, before anything is asked."""
    if privacy.trust != "parties":
        return
    least = privacy.minimum_parties
    if n_parties < least:
        raise SettingsError(
            f"trust in the parties needs at least {least} parties and there are {n_parties}. "
            "Nothing was asked. Trust the coordinator instead, or lower minimum_parties openly; "
            "with two parties each can subtract its own part from a sum, and the statement says so."
        )
