"""How a tree's epsilon is shared out, and what it is asked: from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.data.schema import Schema
from hedgerow.errors import SettingsError
from hedgerow.model.losses import Loss, Squared, loss_for
from hedgerow.privacy.accounting.path_budget import PathBudget
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.settings import DPXGBoostSettings
from hedgerow.queries import ColumnCounts

RETRY_SHARE = 0.1  # the most that a spare attempt may cost, as a part of the whole epsilon
_MARGIN = 1 - 1e-9  # what is shared out adds up to no more than the whole


@dataclass(frozen=True)
class Shares:
    """Parts of a tree's epsilon; a split is asked for once a level."""

    sketch: float
    split: float  # of all levels together
    leaf: float
    depth: int
    growth: float = 1.0  # a level's part beside that of the level above

    @staticmethod
    def of(schema: Schema, settings: DPXGBoostSettings) -> Shares:
        sketch = settings.sketch_share if sketched(schema, settings) else 0.0
        leaf = settings.leaf_share or 1 / 3
        if sketch + leaf >= 1:
            raise SettingsError(
                f"sketch_share = {sketch:g} and leaf_share = {leaf:g} leave nothing for the "
                "splits; lower one of them. Nothing was asked."
            )
        return Shares(sketch, 1 - sketch - leaf, leaf, settings.max_depth, settings.level_growth)

    @property
    def levels(self) -> list[float]:
        """The part of each level: gains get smaller from level to level, as nodes do."""
        weights = [self.growth**level for level in range(self.depth)]
        return [self.split * weight / sum(weights) for weight in weights]

    @property
    def questions(self) -> list[float]:
        """The parts of a tree's questions, in their order."""
        first = [self.sketch] if self.sketch else []
        return [*first, *self.levels, self.leaf]


def sketched(schema: Schema, settings: DPXGBoostSettings) -> bool:
    """Whether where columns are cut is asked at all: some have more edges than cuts."""
    counted = ColumnCounts.for_cuts(schema, settings.n_bins).columns
    return settings.sketch_share > 0 and bool(counted)


def rounds_of(shares: Shares, settings: DPXGBoostSettings) -> tuple[tuple[int, float, float], ...]:
    """(slots, part, rate): a tree is a round; or every question is one, with rows of its own.

    Fresh rows for every question cost less: what a sampled question costs grows faster than its
    epsilon, so three small ones cost less than one of their sum.
    """
    rate = settings.sample_rate
    if settings.sample_by == "tree":
        tree: tuple[tuple[int, float, float], ...] = ((len(shares.questions), 1.0, rate),)
    else:
        tree = tuple((1, part, rate) for part in shares.questions)
    return tree * settings.n_trees


def price_of(plan: Plan, slot: int, part: float) -> float:
    """What a slot may spend on a path: its part of its round, or all of a round of its own."""
    _, round_ = PathBudget.of(plan.budget).branches.round_of(slot)
    return round_.epsilon * (part if round_.slots > 1 else 1.0) * _MARGIN


def loss_of(schema: Schema, settings: DPXGBoostSettings) -> Loss:
    """The loss whose gradients are asked about."""
    if settings.loss == "squared" and schema.label.task == "multiclass":
        raise SettingsError(
            f"the label has {len(schema.label.classes)} classes, which are no regression; set "
            'loss = "log". Nothing was asked.'
        )
    loss = Squared() if settings.loss == "squared" else loss_for(schema.label)
    if settings.gradient_rule == "filter" and loss.n_outputs > 1:
        raise SettingsError(
            "rows are left out by one gradient, and a multiclass label has one for each; "
            'set gradient_rule = "clip". Nothing was asked.'
        )
    return loss
