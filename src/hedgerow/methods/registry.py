"""Methods by name: each is a set of defaults and the settings it uses, not a class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from hedgerow.coordinator.gate import Gate
from hedgerow.data.counts import refuse_unusual
from hedgerow.data.habits import did_you_mean
from hedgerow.data.rng import fresh_seed
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import SettingsError
from hedgerow.methods import auto, dp_xgboost, private_tree
from hedgerow.methods.maddock import boosting
from hedgerow.methods.maddock.candidates import not_private
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.accounting.gaussian_budget import AdaptiveQueries
from hedgerow.privacy.accounting.path_budget import PathQueries
from hedgerow.privacy.accounting.plan import Plan, make_plan
from hedgerow.privacy.settings import DEFAULTS, FAMILIES, BoostingSettings, Privacy, Settings
from hedgerow.queries.calibration import check_unit

# The published methods as published: no shrinkage, no floor, no base rate, equal noise a question.
_PAPER = {
    "shrinkage": "none",
    "floor_deviations": 0.0,
    "start_share": 0.0,
    "candidate_share": 0.0,
}
# Hessians carry less than a third of the paper's noise here, so that of nearly empty leaves they
# seldom hold a noisy gradient back. Held above one deviation of the gradients' noise (3.33 of their
# own) they do; docs/papers/maddock2022.md has both forms beside the published figures.
_HELD = {**_PAPER, "floor_deviations": 3.33}
_HISTOGRAM = {**_PAPER, "split": "histogram", "split_caution": 0.0, "n_trees": 25}
_IH = {"candidates": "iterative-hessian"}
_EBM = {"features_per_tree": 1, "feature_order": "cyclical"}


class Grower(Protocol):
    """A module that says what it will ask and then asks it."""

    def declared_queries(self, schema: Schema, settings: Settings) -> list[DeclaredQuery]: ...

    def adaptive_queries(
        self, schema: Schema, settings: Settings
    ) -> AdaptiveQueries | PathQueries | None: ...

    def grow(self, gate: Gate) -> Ensemble: ...


@dataclass(frozen=True)
class Method:
    """A named way of growing: one line for people, defaults, and which settings stay as they are.

    `queries` counts questions as Table 1 of Maddock et al. does: for candidates, splits and
    weights, with T trees, m columns (k in a tree), depth d and s rounds of refined candidates.
    """

    name: str
    summary: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    queries: tuple[str, str, str] = ("0", "0", "T")
    trust: str | None = None  # the only trust the method makes sense under
    accountings: tuple[str, ...] = ("exact", "renyi")  # how its cost can be counted
    fixed: tuple[str, ...] = ()  # settings of its family that it does not let anybody change
    grower: Grower = boosting
    knows_times: bool = False  # to an event

    @property
    def can_be_pure(self) -> bool:
        """Whether it promises an epsilon without any delta, if asked to."""
        return "pure" in self.accountings

    @property
    def weighs_rows(self) -> bool:
        """Whether rows may have weights: where all noise is Gaussian, on sums over rows."""
        return not self.can_be_pure

    def settings(self, chosen: Mapping[str, Any]) -> Settings:
        """The method's defaults with the user's choices; None means the method's own choice."""
        given = {name: value for name, value in chosen.items() if value is not None}
        for name in given:
            if name not in self.uses:
                known = ", ".join(sorted(self.uses))
                if name not in DEFAULTS:
                    raise SettingsError(
                        f"unknown setting {name!r}{did_you_mean(name, self.uses)}; known to method "
                        f"{self.name!r}: {known}"
                    )
                raise SettingsError(
                    f"method {self.name!r} does not use {name!r}; leave it out. It uses: {known}"
                )
        return self.family.chosen(self.defaults, given)

    @property
    def family(self) -> type[Settings]:
        """The dataclass of its settings."""
        return FAMILIES[self.name]

    @property
    def uses(self) -> frozenset[str]:
        """Names of the settings that may be chosen."""
        return frozenset(self.family.names()) - set(self.fixed)

    @property
    def rounds(self) -> str:
        """Rounds of questions with its own defaults, in the letters of `queries`; B trees a batch.

        A round asks every party once, whatever number of columns the question is about.
        """
        if self.grower is auto:
            return f"at most {auto.MOST_ROUNDS}"
        if self.grower is private_tree:
            return "3 d + 2"
        if self.grower is dp_xgboost:
            return "T d + 2 T"
        own = BoostingSettings.of(self.settings({}))
        trees = "T m" if own.cycles else "T"
        if own.split != "totally-random":
            single = own.features_per_tree == 1
            terms = [trees if single else f"{trees} d"]
            terms += [] if own.reuse_histogram else [trees]
        else:
            batched = "1" if own.batch_fraction == 1 else f"{trees}/B"
            terms = [batched if own.trees_per_round > 1 else trees]
        if own.candidates == "iterative-hessian" and own.split != "histogram":
            terms.append("s")
        if own.candidates == "quantiles":
            terms.append("1")
        if own.start_share > 0 and own.update != "averaging":
            terms.append("1")
        return " + ".join(terms)

    def grow(self, gate: Gate) -> Ensemble:
        """Run the method; the model's record also says what was asked, what it cost, and who took
        part where parties are apart."""
        model = self.grower.grow(gate)
        record = {**model.record, "asked": gate.asked}
        if attendance := gate.attendance:
            record["attendance"] = attendance
        return replace(model, record=record)


_NO_GAIN = ("split_caution", "gain_penalty", "min_hessian", "reuse_histogram")
_NO_IH = ("candidate_rounds",)
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "auto",
            "main effects of all columns at once, then interactions; settings by a public rule",
            queries=("0", "0", "16"),
            grower=auto,
            knows_times=True,
        ),
        Method(
            "random-trees",
            "totally random trees, Newton leaves that shrink by their own noise",
            knows_times=True,
        ),
        Method(
            "dp-tr-newton",
            "totally random trees over public cuts, Newton leaves held back by their noise",
            _HELD,
            fixed=_NO_GAIN,
        ),
        Method(
            "dp-tr-newton-literal",
            "the same with Newton leaves to the letter of the paper",
            _PAPER,
            fixed=_NO_GAIN,
        ),
        Method(
            "dp-tr-newton-ih",
            "the same with cuts refined by Hessian histograms in the first rounds",
            {**_PAPER, **_IH},
            ("s m", "0", "T"),
            fixed=_NO_GAIN,
        ),
        Method(
            "dp-tr-newton-ih-ebm",
            "the same with one column a tree, in turn",
            {**_PAPER, **_IH, **_EBM},
            ("s m", "0", "T"),
            fixed=_NO_GAIN,
        ),
        Method(
            "dp-tr-batch-newton-ih-ebm",
            "the same with a quarter of the trees a round (batch_fraction = 1: one round)",
            {**_PAPER, **_IH, **_EBM, "batch_fraction": 0.25},
            ("s m", "0", "T"),
            fixed=_NO_GAIN,
        ),
        Method(
            "dp-ebm",
            "explainable boosting: one column a tree, gradient leaves, a tree a column and cycle",
            {**_PAPER, **_EBM, "update": "gradient", "cycles": 100},
            ("0", "0", "T m"),
            fixed=(*_NO_GAIN, *_NO_IH),
        ),
        Method(
            "dp-ebm-newton",
            "explainable boosting with Newton leaves and T trees in all",
            {**_PAPER, **_EBM},
            fixed=(*_NO_GAIN, *_NO_IH),
        ),
        Method(
            "dp-gbm",
            "gradient boosting on noisy histograms of every column",
            {**_HISTOGRAM, "update": "gradient"},
            ("0", "T m d", "0"),
            fixed=("batch_size", "batch_fraction"),
        ),
        Method(
            "feverless",
            "Newton boosting on noisy histograms of every column",
            _HISTOGRAM,
            ("0", "T m d", "0"),
            fixed=("batch_size", "batch_fraction"),
        ),
        Method(
            "dp-rf",
            "random forest: leaves are class shares, all trees in one round",
            {**_PAPER, "update": "averaging", "batch_fraction": 1.0},
            fixed=(*_NO_GAIN, *_NO_IH, "shrinkage", "learning_rate", "leaf_clip"),
        ),
        Method(
            "ldp",
            "totally random trees, Newton leaves, every row's own noise: nobody is trusted",
            _PAPER,
            trust="nobody",
            fixed=(*_NO_GAIN, "batch_size", "batch_fraction"),
        ),
        Method(
            "private-tree",
            "one readable tree from class counts, under pure epsilon; few columns asked a node",
            {"max_depth": 5, "n_bins": 16, "category_split": "subset"},
            ("0", "3 d", "2"),
            accountings=("pure",),
            grower=private_tree,
        ),
        Method(
            "dp-xgboost",
            "boosting with cuts drawn by gain, for one trusted owner; pure epsilon or with a delta",
            {
                "n_trees": 12,
                "max_depth": 6,
                "learning_rate": 0.5,
                "reg_lambda": 0.1,
                "min_samples_leaf": 50,
                "sketch_share": 0.1,
                "leaf_share": 0.25,
                "level_growth": 1.6,
                "loss": "squared",
            },
            ("T m", "T d", "T"),
            trust="coordinator",
            accountings=("pure", "exact"),
            grower=dp_xgboost,
        ),
    )
}


def method_named(name: str) -> Method:
    """The method of that name; "auto" is the best one this version has."""
    if name not in METHODS:
        raise SettingsError(f"no method called {name!r}; known: {', '.join(sorted(METHODS))}")
    return METHODS[name]


def with_exact_cuts(
    schema: Schema, method: str, settings: Mapping[str, Any], tables: Callable[[], Iterable[Rows]]
) -> dict[str, Any]:
    """The settings, with cuts read from `tables` if the candidates are those not private."""
    resolved = method_named(method).settings({**settings, "cuts": None})
    if not resolved.reads_rows:
        return dict(settings)
    resolved = BoostingSettings.of(resolved)
    cuts = not_private.exact_cuts(tables(), schema, resolved.n_bins)
    return {**settings, "cuts": [list(one) for one in cuts]}


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
    >>> promise = Privacy(epsilon=1.0, delta=1e-5)
    >>> plan = plan_for(schema, promise, "random-trees", settings={"n_trees": 10})
    >>> len(plan.slots), round(plan.epsilon, 3)
    (11, 1.0)
    """
    chosen = method_named(method)
    check_unit(privacy.trusted, schema)
    if chosen.grower is not auto and not (chosen.knows_times and schema.label.task == "survival"):
        refuse_unusual(schema.label, f"method {method!r}")
    if schema.weight is not None and not chosen.weighs_rows:
        able = ", ".join(name for name, m in METHODS.items() if m.weighs_rows)
        raise SettingsError(
            f"method {method!r} cannot weigh rows, and the schema has the weight "
            f"{schema.weight.column!r} of at most {schema.max_weight:g}. Nothing was asked. Leave "
            f"weights out (sample_weight and max_weight, or [weight]), or choose one of: {able}"
        )
    if chosen.trust is not None and privacy.trust != chosen.trust:
        raise SettingsError(
            f"method {method!r} is for trust {chosen.trust!r} and the plan says "
            f"{privacy.trust!r}; set trust = {chosen.trust!r}, or choose another method. Nothing "
            "was asked."
        )
    _check_accounting(chosen, privacy)
    resolved = chosen.settings(settings or {}).for_columns(len(schema.columns))
    grower = chosen.grower
    declared = grower.declared_queries(schema, resolved)
    adaptive = grower.adaptive_queries(schema, resolved)
    seed = fresh_seed() if seed is None else seed
    return make_plan(
        schema.hash, chosen.name, resolved, privacy, declared, seed, run, schema.unit.text,
        adaptive, schema.max_weight,
    )  # fmt: skip


def _check_accounting(method: Method, privacy: Privacy) -> None:
    if privacy.accounting in method.accountings:
        return
    if privacy.accounting == "pure":
        known = ", ".join(name for name, m in METHODS.items() if m.can_be_pure)
        raise SettingsError(
            f"method {method.name!r} adds Gaussian noise, which promises no pure epsilon; set "
            f"accounting to exact or renyi with a delta above 0, or choose a method that does: "
            f"{known}. Nothing was asked."
        )
    if method.accountings == ("pure",):
        raise SettingsError(
            f"method {method.name!r} promises a pure epsilon and the plan counts it as "
            f'{privacy.accounting!r}; set accounting = "pure" and delta = 0. Nothing was asked.'
        )
    raise SettingsError(
        f"what method {method.name!r} costs is counted as {' or '.join(method.accountings)}, and "
        f"the plan counts it as {privacy.accounting!r}. Nothing was asked."
    )


def check_party_count(privacy: Privacy, n_parties: int) -> None:
    """Refuse a secure sum over too few parties, before anything is asked."""
    if not privacy.trusted.masked:
        return
    least = privacy.minimum_parties
    if n_parties < least:
        raise SettingsError(
            f"trust in the parties needs at least {least} parties and there are {n_parties}. "
            "Nothing was asked. Trust the coordinator instead, or lower minimum_parties openly; "
            "with two parties each can subtract its own part from a sum, and the statement says so."
        )
