"""One frozen settings object for methods and one for privacy; every interface reads these."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from hedgerow.errors import SettingsError
from hedgerow.model.trust import TRUSTS, Trust

ACCOUNTINGS = ("exact", "renyi", "pure")
CANDIDATE_METHODS = ("uniform", "log", "iterative-hessian", "quantiles", "quantiles-not-private")
_WHOLE = {
    "n_trees": (1, 100_000), "cycles": (0, 10_000), "max_depth": (1, 12), "n_bins": (2, 128),
    "batch_size": (1, 100_000), "features_per_tree": (0, 1_000_000), "candidate_rounds": (1, 1000),
    "rows_hint": (0, 10**12), "min_samples_leaf": (1, 10**9),
}  # fmt: skip
_NUMBERS = {
    "learning_rate": (0, 10), "reg_lambda": (0, 1e9), "leaf_clip": (0, 1e6),
    "floor_deviations": (0, 100), "split_caution": (0, 100), "gain_penalty": (0, 1e9),
    "min_hessian": (0, 1e12), "candidate_share": (0, 0.9), "batch_fraction": (0, 1),
    "start_share": (0, 0.9), "leaf_share": (0, 0.95), "bounds_share": (0, 0.95),
    "sketch_share": (0, 0.95), "level_growth": (0.1, 10), "sample_rate": (0, 1),
    "gradient_bound": (2.0**-12, 1),
}  # fmt: skip
_CHOICES = {
    "split": ("totally-random", "partially-random", "histogram"),
    "shrinkage": ("stein", "none"),
    "update": ("newton", "gradient", "averaging"),
    "candidates": CANDIDATE_METHODS,
    "feature_order": ("cyclical", "random"),
    "category_split": ("subset", "equality"),
    "sample_by": ("tree", "question"),
    "utility": ("separation", "gain"),
    "selector": ("permute-and-flip", "exponential"),
    "leaf_rule": ("sum-and-count", "least-rows", "plain"),
    "gradient_rule": ("clip", "filter"),
    "loss": ("log", "squared"),
}


@dataclass(frozen=True)
class Settings:
    """How trees are grown. A method lists which of these it uses (see `methods.registry`)."""

    n_trees: int = 100
    cycles: int = 0  # above 0: n_trees is so many times the number of columns
    max_depth: int = 4
    learning_rate: float = 0.3
    n_bins: int = 32
    reg_lambda: float = 1.0
    leaf_clip: float = 2.0
    floor_deviations: float = 2.0  # noisy Hessians are held above so many noise deviations
    shrinkage: str = "stein"  # trees that look like noise step less; or "none"
    split: str = "totally-random"  # or "partially-random", "histogram": how a tree is shaped
    split_caution: float = 2.0  # how strictly learned splits allow for their noise; 0 = not at all
    gain_penalty: float = 0.0  # a split must gain more than this
    min_hessian: float = 0.0  # a node with less (noisy) Hessian becomes a leaf
    reuse_histogram: bool = True  # histogram trees take leaves from the last level's histogram
    update: str = "newton"  # or "gradient", "averaging": how leaf sums become leaf values
    candidates: str = "uniform"  # or another of CANDIDATE_METHODS: where columns may be cut
    candidate_rounds: int = 5  # rounds in which iterative-hessian refines its cuts
    candidate_share: float = 0.1  # part of mu^2 for paid candidates; 0 = as much a column as a tree
    cuts: tuple[tuple[int, ...], ...] = ()  # written by quantiles-not-private alone
    batch_size: int = 1
    batch_fraction: float = 0.0  # of n_trees; above 0 it replaces batch_size
    features_per_tree: int = 0  # 0 = all columns
    feature_order: str = "cyclical"  # or "random": which columns a tree may use
    category_split: str = "equality"  # one category against the rest; or "subset"
    rows_hint: int = 0  # how many rows there are, if that is public; 0 = a noisy count is bought
    monotone: str = ""  # columns whose effect may only rise or fall: JSON such as {"age": 1}
    warm_start: str = ""  # hash of the model that a run builds on; set by `warm_start_from`
    warm_start_says: str = ""  # its promise, or "public"; set by `warm_start_from`
    start_share: float = 0.02  # part of mu^2 that buys the base rate; 0 = start from one half
    min_samples_leaf: int = 10  # fewer (noisy) rows are no leaf; dp-xgboost divides by so many
    leaf_share: float = 0.0  # part of a path's epsilon for its leaf; 0 = by a public rule
    bounds_share: float = 0.0  # part of a node's epsilon that ranks columns; 0 = by a public rule
    save_budget: bool = True  # rank columns first, ask few of them, hand down what is left
    sketch_share: float = 0.0  # part of a tree's epsilon for where columns are cut; 0 = not asked
    level_growth: float = 1.0  # a level's part of the epsilon for splits, beside the one above
    sample_rate: float = 1.0  # probability that a row takes part in a tree
    sample_by: str = "tree"  # or "question": how long the same rows take part
    utility: str = "separation"  # or "gain": what makes a cut good
    selector: str = "permute-and-flip"  # or "exponential": how a cut is drawn by its gain
    leaf_rule: str = "sum-and-count"  # or "least-rows", "plain": what of a leaf is released
    gradient_bound: float = 0.5  # gradients of numbers scaled to 0 .. 1, or of probabilities
    gradient_rule: str = "clip"  # or "filter": what happens to rows beyond it
    loss: str = "log"  # of classes; or "squared", as if the second class were the number 1

    def __post_init__(self) -> None:
        for name, (low, high) in _WHOLE.items():
            _whole(name, getattr(self, name), low, high)
        for name, (least, most) in _NUMBERS.items():
            above = name in ("learning_rate", "leaf_clip", "sample_rate")
            _number(name, getattr(self, name), least, most, open_low=above)
        for name, choices in _CHOICES.items():
            _choice(name, getattr(self, name), choices)
        for name in ("reuse_histogram", "save_budget"):
            if not isinstance(getattr(self, name), bool):
                raise SettingsError(f"{name} must be true or false")
        object.__setattr__(self, "cuts", _cuts(self.cuts))
        object.__setattr__(self, "monotone", _monotone_text(self.monotone))
        if not isinstance(self.warm_start, str) or not isinstance(self.warm_start_says, str):
            raise SettingsError("warm_start is the hash of a model; use warm_start_from")
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.batch_fraction and self.batch_size != 1:
            raise SettingsError("give batch_size or batch_fraction, not both")
        if self.split != "totally-random" and self.trees_per_round > 1:
            raise SettingsError(
                f"split = {self.split!r} grows one tree a round, because each split waits for an "
                'answer; set batch_size = 1, or split = "totally-random"'
            )
        refined = self.candidates == "iterative-hessian"
        if self.split == "histogram" and refined and self.update != "newton":
            raise SettingsError(
                'split = "histogram" refines its cuts by the Hessians of its own histograms, and '
                f'update = {self.update!r} has none; set update = "newton", or candidates = '
                '"quantiles"'
            )
        if self.cuts and self.candidates != "quantiles-not-private":
            raise SettingsError(
                'cuts belong to candidates = "quantiles-not-private", which writes them itself; '
                f"candidates is {self.candidates!r}, so leave them out"
            )

    @property
    def trees_per_round(self) -> int:
        """How many trees share one round: `batch_size`, or a fraction of all trees."""
        if self.batch_fraction:
            return max(1, round(self.batch_fraction * self.n_trees))
        return min(self.batch_size, self.n_trees)

    @property
    def directions(self) -> dict[str, int]:
        """Columns whose effect may only rise (1) or fall (-1)."""
        return dict(json.loads(self.monotone)) if self.monotone else {}

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "cuts": [list(cuts) for cuts in self.cuts]}


def _monotone_text(value: Any) -> str:
    """One spelling of what may be given as a table or as JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except ValueError:
            value = None
    fits = isinstance(value, Mapping) and all(
        isinstance(name, str) and not isinstance(sign, bool) and sign in (1, -1)
        for name, sign in value.items()
    )
    if not fits:
        raise SettingsError(
            'monotone must give 1 or -1 for each column, such as {"age": 1, "dose": -1}'
        )
    signs = {name: int(sign) for name, sign in sorted(value.items())}
    return json.dumps(signs) if signs else ""


@dataclass(frozen=True)
class Privacy:
    """What is promised, to whom, and how it is counted.

    `colluding` is the number c of parties that may leak, omit or lie; `minimum_parties` the
    smallest set that is ever summed (0 = the default, three and at least c + 2); `spare` the
    attempts that are paid in advance for drop-outs.
    """

    epsilon: float
    delta: float
    trust: str = "coordinator"
    accounting: str = "exact"
    colluding: int = 1
    minimum_parties: int = 0
    spare: int = 0

    def __post_init__(self) -> None:
        _number("epsilon", self.epsilon, 0, 1e7, open_low=True)
        _choice("trust", self.trust, tuple(TRUSTS))
        _choice("accounting", self.accounting, ACCOUNTINGS)
        if self.accounting == "pure":
            self._check_pure()
        else:
            _number("delta", self.delta, 0, 0.5, open_low=True)
        _whole("colluding", self.colluding, 1, 10_000)
        if self.minimum_parties == 0:
            object.__setattr__(self, "minimum_parties", max(3, self.colluding + 2))
        _whole("minimum_parties", self.minimum_parties, 1, 10_000)
        if self.trusted.masked and self.minimum_parties <= self.colluding:
            raise SettingsError(
                f"minimum_parties is {self.minimum_parties} and {self.colluding} may collude; "
                "at least one more party than may collude must be in every sum"
            )
        _whole("spare", self.spare, 0, 1000)

    @property
    def trusted(self) -> Trust:
        """What follows from the trust."""
        return TRUSTS[self.trust]

    def _check_pure(self) -> None:
        if self.delta != 0 or isinstance(self.delta, bool):
            raise SettingsError(
                f"delta is {self.delta!r}, and pure accounting has none; set delta = 0"
            )
        if self.trusted.local:
            raise SettingsError(
                "pure epsilon is promised where the coordinator or the parties are trusted; under "
                "trust in nobody every row would need Laplace noise of its own, whose sum is not "
                'drawn here. Set trust to "parties" or "coordinator"'
            )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def spare_for(n_parties: int) -> int:
    """Attempts paid in advance: one process loses nobody, larger federations sometimes do."""
    return 0 if n_parties <= 1 else 1 if n_parties <= 5 else 2


def with_values(base: Settings, values: Mapping[str, Any]) -> Settings:
    """Settings with some values replaced; unknown names are refused with the known ones."""
    known = {f.name for f in fields(Settings)}
    for name in values:
        if name not in known:
            raise SettingsError(f"unknown setting {name!r}; known: {', '.join(sorted(known))}")
    return replace(base, **values)


def privacy_from(values: Mapping[str, Any]) -> Privacy:
    """Privacy settings from a plain table, refusing unknown names."""
    known = [f.name for f in fields(Privacy)]
    for name in values:
        if name not in known:
            raise SettingsError(f"unknown privacy setting {name!r}; known: {', '.join(known)}")
    for name in ("epsilon", "delta"):
        if name not in values:
            raise SettingsError(f"the privacy setting {name!r} is missing")
    return Privacy(**values)


def _whole(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SettingsError(f"{name} is {value!r}; it must be a whole number from {low} to {high}")


def _number(name: str, value: Any, low: float, high: float, open_low: bool = False) -> None:
    fits = (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and (low < value if open_low else low <= value)
        and value <= high
    )
    if not fits:
        sign = "above" if open_low else "at least"
        raise SettingsError(f"{name} is {value!r}; it must be {sign} {low} and at most {high:g}")


def _cuts(value: Any) -> tuple[tuple[int, ...], ...]:
    """Edge numbers by column, from tuples or from the lists of a plan file."""
    lists = isinstance(value, (list, tuple)) and all(isinstance(c, (list, tuple)) for c in value)
    if not lists or not all(type(edge) is int and edge >= 0 for cuts in value for edge in cuts):
        raise SettingsError("cuts must be a list of edge numbers for every column, or empty")
    return tuple(tuple(cuts) for cuts in value)


def _choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(f"{name} is {value!r}; choose one of {', '.join(choices)}")
