"""Settings of the other methods: `auto`, `private-tree`, `dp-xgboost`, and of an evaluation."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hedgerow.privacy.settings.base import Categories, Leaves, ModelBefore, Sizes, Steps
from hedgerow.privacy.settings.fields import Choice, Flag, Number, Signs, Whole, setting

FEW_ROUNDS, MOST_ROUNDS = 16, 400  # of the default method: over a network, and at most


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings(ModelBefore):
    """Of a private evaluation: the model that it measures."""


@dataclass(frozen=True, kw_only=True)
class AutoSettings(ModelBefore):
    """Of the default method; everything else follows from a public rule."""

    rows_hint: int = setting(
        0,
        Whole(0, 10**12),
        "how many rows there are, if that is public; 0 = buy a noisy count",
    )
    rounds: int = setting(
        FEW_ROUNDS,
        Whole(FEW_ROUNDS, MOST_ROUNDS),
        "queries at most; many where a round costs no time of people or networks",
    )
    monotone: str = setting(
        "", Signs(), 'columns whose effect may only rise or fall: {"age": 1, "dose": -1}'
    )

    @property
    def public_rows(self) -> int:
        return self.rows_hint

    @property
    def most_rounds(self) -> int:
        return self.rounds

    @property
    def directions(self) -> dict[str, int]:
        return dict(json.loads(self.monotone)) if self.monotone else {}


@dataclass(frozen=True, kw_only=True)
class PrivateTreeSettings(Sizes, Categories, Leaves):
    """Of one readable tree under pure epsilon."""

    bounds_share: float = setting(
        0.0,
        Number(0, 0.95),
        "private-tree: part of a node's epsilon that ranks columns; 0 = by the rule",
    )
    save_budget: bool = setting(
        True, Flag(), "private-tree: rank columns, ask few, hand down what is left"
    )


@dataclass(frozen=True, kw_only=True)
class DPXGBoostSettings(Sizes, Steps, Leaves):
    """Of boosting with cuts drawn by their utility, under pure epsilon."""

    sketch_share: float = setting(
        0.0,
        Number(0, 0.95),
        "dp-xgboost: part of a tree's epsilon for where columns are cut; 0 = not asked",
    )
    level_growth: float = setting(
        1.0,
        Number(0.1, 10),
        "dp-xgboost: epsilon of a level's splits beside that of the level above",
    )
    sample_rate: float = setting(
        1.0,
        Number(0, 1, above=True),
        "dp-xgboost: probability that a row takes part in a tree (Poisson sampling)",
    )
    sample_by: str = setting(
        "tree",
        Choice(("tree", "question")),
        "dp-xgboost: whether a tree or each query has its own sample: tree or question",
    )
    utility: str = setting(
        "separation",
        Choice(("separation", "gain")),
        "dp-xgboost: what makes a cut good: separation or gain",
    )
    selector: str = setting(
        "permute-and-flip",
        Choice(("permute-and-flip", "exponential")),
        "dp-xgboost: how a cut is drawn by its utility: permute-and-flip or exponential",
    )
    leaf_rule: str = setting(
        "sum-and-count",
        Choice(("sum-and-count", "least-rows", "plain")),
        "dp-xgboost: what of a leaf is released: sum-and-count, least-rows or plain",
    )
    gradient_bound: float = setting(
        0.5, Number(2.0**-12, 1), "dp-xgboost: largest gradient of a row"
    )
    gradient_rule: str = setting(
        "clip",
        Choice(("clip", "filter")),
        "dp-xgboost: rows beyond it are clamped (clip) or left out (filter)",
    )
    loss: str = setting(
        "log",
        Choice(("log", "squared")),
        "dp-xgboost: loss of classes: log, or squared as in the paper",
    )
