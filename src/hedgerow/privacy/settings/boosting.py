"""Settings of `random-trees` and the methods of Maddock et al."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from hedgerow.errors import SettingsError
from hedgerow.privacy.settings.base import Categories, Sizes, Steps
from hedgerow.privacy.settings.fields import Choice, Edges, Flag, Number, Whole, setting

CANDIDATE_METHODS = ("uniform", "log", "iterative-hessian", "quantiles", "quantiles-not-private")


@dataclass(frozen=True, kw_only=True)
class BoostingSettings(Sizes, Steps, Categories):
    """Of `random-trees` and the methods of Maddock et al.: candidates, splits, updates, batches."""

    cycles: int = setting(
        0, Whole(0, 10_000), "above 0: n_trees is so many times the number of columns"
    )
    floor_deviations: float = setting(
        2.0, Number(0, 100), "noisy Hessians are held above so many deviations of their noise"
    )
    shrinkage: str = setting(
        "stein",
        Choice(("stein", "none")),
        "whether trees that look like noise step less: stein or none",
    )
    split: str = setting(
        "totally-random",
        Choice(("totally-random", "partially-random", "histogram")),
        "how a tree is shaped: totally-random, partially-random or histogram",
    )
    split_caution: float = setting(
        2.0,
        Number(0, 100),
        "how strictly learned splits allow for their noise; 0 = gains as released",
    )
    gain_penalty: float = setting(0.0, Number(0, 1e9), "a learned split must gain more than this")
    min_hessian: float = setting(
        0.0, Number(0, 1e12), "a node with less (noisy) Hessian, or fewer rows, becomes a leaf"
    )
    reuse_histogram: bool = setting(
        True, Flag(), "learned trees take leaves from the query that cut their parent"
    )
    update: str = setting(
        "newton",
        Choice(("newton", "gradient", "averaging")),
        "how sums become leaf values: newton, gradient or averaging",
    )
    candidates: str = setting(
        "uniform",
        Choice(CANDIDATE_METHODS),
        "where columns may be cut: uniform, log, iterative-hessian, quantiles or "
        "quantiles-not-private",
    )
    candidate_rounds: int = setting(
        5, Whole(1, 1000), "rounds in which iterative-hessian refines its cuts"
    )
    candidate_share: float = setting(
        0.1,
        Number(0, 0.9),
        "part of the budget (mu²) for paid cuts; 0 = as much a column as a tree",
    )
    cuts: tuple[tuple[int, ...], ...] = setting(
        (), Edges(), "edges by column that quantiles-not-private writes; never given by hand"
    )
    batch_size: int = setting(1, Whole(1, 100_000), "trees that share one release")
    batch_fraction: float = setting(
        0.0,
        Number(0, 1),
        "the same as a part of all trees; above 0 it replaces batch_size",
    )
    features_per_tree: int = setting(0, Whole(0, 1_000_000), "columns that a tree may use; 0 = all")
    feature_order: str = setting(
        "cyclical",
        Choice(("cyclical", "random")),
        "which columns those are: cyclical or random",
    )
    start_share: float = setting(
        0.02, Number(0, 0.9), "part of the budget (mu²) that buys the base rate; 0 = none"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
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
        if self.cuts and not self.reads_rows:
            raise SettingsError(
                'cuts belong to candidates = "quantiles-not-private", which writes them itself; '
                f"candidates is {self.candidates!r}, so leave them out"
            )

    @classmethod
    def chosen(cls, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> Self:
        """What was given one way is not overruled by a default of the other way."""
        other: dict[str, Any] = {"batch_fraction": 0.0} if "batch_size" in given else {}
        if "n_trees" in given:
            other["cycles"] = 0
        return cls(**{**defaults, **other, **given})

    def for_columns(self, n_columns: int) -> Self:
        return replace(self, n_trees=self.cycles * n_columns, cycles=0) if self.cycles else self

    @property
    def trees_per_round(self) -> int:
        """`batch_size`, or a fraction of all trees."""
        if self.batch_fraction:
            return max(1, round(self.batch_fraction * self.n_trees))
        return min(self.batch_size, self.n_trees)

    @property
    def reads_rows(self) -> bool:
        return self.candidates == "quantiles-not-private"

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "cuts": [list(cuts) for cuts in self.cuts]}
