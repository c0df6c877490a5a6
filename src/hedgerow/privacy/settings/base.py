"""What settings of all families have in common, and groups that several of them share, once.

Defaults are those of `random-trees`; a method's own are in its line of `methods/registry.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from hedgerow.errors import PlanError
from hedgerow.privacy.settings.fields import (
    Choice,
    ModelWords,
    Number,
    Whole,
    check_fields,
    setting,
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What all families have: nothing but the answers to questions that are asked of every plan."""

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The settings as those of this family; PlanError if a plan has others."""
        if not isinstance(settings, cls):
            raise PlanError(
                f"the method needs {cls.__name__}, and the plan has {type(settings).__name__}. "
                "Nothing was asked. Make the plan again."
            )
        return settings

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(entry.name for entry in fields(cls))

    @classmethod
    def chosen(cls, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> Self:
        """A method's defaults with what was given."""
        return cls(**{**defaults, **given})

    def for_columns(self, n_columns: int) -> Self:
        """Settings that follow from the number of columns, settled."""
        return self

    @property
    def trees_per_round(self) -> int:
        """How many trees share one release."""
        return 1

    @property
    def public_rows(self) -> int:
        """How many rows there are, if that is declared public; else 0."""
        return 0

    @property
    def model(self) -> str:
        """Hash of the model that a run builds on or measures; else empty."""
        return ""

    @property
    def model_says(self) -> str:
        """What that model promises, or "public"."""
        return ""

    @property
    def reads_rows(self) -> bool:
        """Whether something was read from the rows without noise, for comparison."""
        return False

    @property
    def most_rounds(self) -> int:
        """The most queries, where a method has one number for it; else 0."""
        return 0

    @property
    def directions(self) -> dict[str, int]:
        """Columns whose effect may only rise (1) or fall (-1)."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.names()}  # which hold plain values


@dataclass(frozen=True, kw_only=True)
class Sizes(Settings):
    """Of trees over binned columns."""

    max_depth: int = setting(4, Whole(1, 12), "depth of a tree")
    n_bins: int = setting(32, Whole(2, 128), "pieces into which a numeric column is cut")


@dataclass(frozen=True, kw_only=True)
class Steps(Settings):
    """Of boosting: how many trees, and how far each of them steps."""

    n_trees: int = setting(100, Whole(1, 100_000), "number of trees")
    learning_rate: float = setting(
        0.3, Number(0, 10, above=True), "part of a leaf's weight that is added"
    )
    reg_lambda: float = setting(1.0, Number(0, 1e9), "added to every Hessian sum or count")
    leaf_clip: float = setting(
        2.0, Number(0, 1e6, above=True), "largest weight of a leaf, before the learning rate"
    )


@dataclass(frozen=True, kw_only=True)
class Categories(Settings):
    """Of columns whose values have no order."""

    category_split: str = setting(
        "equality",
        Choice(("subset", "equality")),
        "one category against the rest (equality), or half of them (subset)",
    )


@dataclass(frozen=True, kw_only=True)
class Leaves(Settings):
    """Of leaves under pure epsilon."""

    min_samples_leaf: int = setting(
        10,
        Whole(1, 10**9),
        "private-tree: fewer (noisy) rows are not split off; dp-xgboost: a leaf divides by at "
        "least so many",
    )
    leaf_share: float = setting(
        0.0, Number(0, 0.95), "part of a path's epsilon for its leaf; 0 = by a public rule"
    )


@dataclass(frozen=True, kw_only=True)
class ModelBefore(Settings):
    """Of runs that begin with a model."""

    warm_start: str = setting(
        "", ModelWords(), "hash of the model that a run builds on; set by --warm-start-from"
    )
    warm_start_says: str = setting(
        "", ModelWords(), "what that model promises, or public; set by --warm-start-from"
    )

    @property
    def model(self) -> str:
        return self.warm_start

    @property
    def model_says(self) -> str:
        return self.warm_start_says
