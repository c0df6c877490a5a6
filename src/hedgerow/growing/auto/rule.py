"""One public rule: every setting of the default method from public facts and a noisy row count.

S = n mu / sqrt(m) is what everything scales with: the number of rows over the noise of one count in
a question about all m columns, if it had the whole budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

MOST_ROUNDS = 16  # questions in all
COUNT_SHARE = 0.01  # of mu^2, for the noisy row count
LOW, HIGH = 40.0, 1000.0  # S below which noise rules, and above which it hardly matters


@dataclass(frozen=True)
class Rule:
    """Settings of one run. Shares are parts of what is left of mu^2 after the row count."""

    strength: float  # S
    n_bins: int
    start_share: float  # counts by class and cell
    label_share: float  # regression: the label's histogram
    final_share: float  # recalibration
    table_share: float
    main_rounds: int
    table_rounds: int
    n_tables: int  # a round
    shapes: tuple[tuple[int, int], ...]  # columns and parts of each, by table
    clip: float  # of gradients; for numbers in standard deviations of the label
    eta: float
    first_step: float
    memory: float  # weight of earlier rounds in the average
    start_weight: float  # weight of the first counts in the average
    floor: float  # noise deviations under counts
    heavy: bool  # heavy cells are bins of their own
    uniform: float  # part of the column weights that is equal
    table_power: float
    overlap_gain: float
    old_steps: bool

    @property
    def main_share(self) -> float:
        """What is left for the main rounds together."""
        spent = self.start_share + self.label_share + self.final_share + self.table_share
        return 1.0 - spent

    @property
    def n_rounds(self) -> int:
        """Questions, the row count included."""
        extra = (self.label_share > 0) + (self.final_share > 0)
        return 2 + self.main_rounds + self.table_rounds + extra


def rule_for(
    n_rows: float, n_columns: int, mu: float, task: str, rate: float | None = None
) -> Rule:
    """Settings from a (noisy) row count, the number of columns, mu, the task and a noisy base rate.

    >>> rule_for(30_000, 14, 0.04, "binary").n_bins
    14
    """
    s = max(n_rows, 1.0) * mu / math.sqrt(n_columns)
    low = s < LOW
    tables = 0.15 * math.log2(s / 250) if s > 250 else 0.0
    tables = min(tables, 0.5) if tables >= 0.1 and task != "multiclass" else 0.0
    clip = 0.7 if s >= HIGH else 0.5  # less clipping where noise is small
    if task == "regression":
        clip = 1.0 if s < 60 else 1.5
    rule = Rule(
        strength=s,
        n_bins=min(max(math.floor(0.8 * math.sqrt(s)), 6), 32),  # bias of bins against their noise
        start_share=0.30
        if low
        else 0.15,  # with little budget the counts are most of what is known
        label_share=0.03 if task == "regression" else 0.0,
        final_share=0.02,
        table_share=tables,
        main_rounds=6,
        table_rounds=8 if tables else 0,
        n_tables=12,
        shapes=((3, 4), (4, 3)) if s < 8000 else ((4, 5), (3, 8)),
        clip=clip,
        eta=0.8 if s >= HIGH else 0.7,
        first_step=0.3,
        memory=1.0 if low else 0.8,
        start_weight=1.0 if low else 0.5,
        floor=2.0 if low else 1.0,
        heavy=False,
        uniform=0.3,
        table_power=1.0,
        overlap_gain=1.0,
        old_steps=True,
    )
    if task == "binary" and rate is not None and 4 * rate * (1 - rate) * s >= 480:
        rule = replace(
            rule, table_share=0.5, main_rounds=4, table_rounds=9, heavy=True, n_tables=16,
            shapes=((3, 4), (2, 8), (4, 3), (3, 6)), table_power=0.5, overlap_gain=1.2,
            old_steps=False,
        )  # fmt: skip
    return replace(rule, table_rounds=min(rule.table_rounds, MOST_ROUNDS - _other_rounds(rule)))


def _other_rounds(rule: Rule) -> int:
    return rule.n_rounds - rule.table_rounds
