"""One public rule: every setting of the default method from public facts and noisy class counts.

S = n mu / sqrt(m) is what everything scales with: the number of rows over the noise of one count in
a question about all m columns, if it had the whole budget. With rare classes less of it counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hedgerow.privacy.settings.methods import FEW_ROUNDS

MOST_ROUNDS = FEW_ROUNDS  # questions in all, where each costs a trip around a network
ROUND_STEP = 30.0  # effective S that pays for another round over a dictionary of tables
DICTIONARY_BLOCKS, DICTIONARY_TABLES = 12, 16  # tables that are asked in turns; of each of them
DICTIONARY_SHAPES = ((3, 4), (2, 8), (4, 3), (3, 6))
ROW_ROUNDS = 40_000_000  # rows times rounds over a dictionary: so many take seconds
COUNT_SHARE = 0.01  # of mu^2, for the noisy row count
NOTHING = 15.0  # S below which columns of noise add up to more than any signal
MANY_COLUMNS = 125
FEW_EVENTS = 20.0  # survival: S of the events below which noise wins
LOW, MIDDLE, HIGH = 40.0, 400.0, 1000.0  # S: noise rules below, hardly matters above
LOW_REGRESSION = 100.0  # regression: S below which the label is seen through noise
LABEL_CELLS, FEW_LABEL_CELLS = 64, 8  # of its histogram: where little is seen, few and well paid
COUNT_LABEL_SHARE, COUNT_FINAL_SHARE = 0.04, 0.06  # counts: their histogram, the calibration
COUNT_OVERLAP = 0.7  # steps on a logarithmic scale overshoot where columns say the same
FORGET = 150.0  # effective S from which on early rounds count less
POOR, RICH = (
    300.0,
    480.0,
)  # effective S: below, interactions cost more than they say; above, they pay
SEVERAL = 700.0  # the same for multiclass, whose rows have more noise
PLENTY = 1200.0  # effective S that fills interaction tables of 216 cells; below, 64 are enough
# Where values that many rows share are looked for: a part of the first counts, which get more.
FINE_SHARE, FINE_EXTRA = 0.5, 0.05
FINE = 900.0  # effective S from which on that is worth its price
HUGE, MANY_ROWS = 4000.0, 200_000  # S and rows that fill cells of 5^4 and 8^3


@dataclass(frozen=True)
class Rule:
    """Settings of one run. Shares are parts of what is left of mu^2 after the row count."""

    strength: float  # S
    n_bins: int
    n_cells: int  # half of the even cells that the first counts have
    label_share: float  # regression: the label's histogram
    label_cells: int
    start_share: float  # counts by class and cell
    interaction_share: float
    final_share: float  # recalibration
    main_rounds: int
    interaction_rounds: int
    n_interaction_tables: int  # a round
    shapes: tuple[tuple[int, int], ...]  # columns and parts of each, by table
    clip: float  # of gradients; for regression in deviations of the label
    eta: float
    first_step: float
    memory: float  # weight of earlier rounds in the average
    start_weight: float  # weight of the first counts in the average
    floor: float  # noise deviations under counts
    heavy: bool  # heavy cells are bins of their own
    fine_share: float = 0.0  # of the first counts, for fine cells of wide integer columns
    caution: float = 0.0  # log weight of "this column says nothing", beforehand
    uniform: float = 0.6
    interaction_power: float = 0.5
    overlap_gain: float = 1.2
    explore: float = 0.1  # part of the draws of columns for tables that knows no importance
    dictionary_share: float = 0.0
    dictionary_rounds: int = 0  # cheap ones over tables that are drawn once

    @property
    def main_share(self) -> float:
        """What is left for the main rounds together."""
        spent = self.start_share + self.label_share + self.final_share + self.interaction_share
        return 1.0 - spent - self.dictionary_share

    @property
    def n_rounds(self) -> int:
        """Questions, the row count included."""
        extra = (self.label_share > 0) + (self.final_share > 0)
        tables = self.interaction_rounds + self.dictionary_rounds
        return 2 + self.main_rounds + tables + extra


def balance(rates: Sequence[float]) -> float:
    """How much of S the classes carry: 4 p (1 - p), averaged over the rows' own classes.

    For a binary label it is 4 p (1 - p) itself; ten equal ones carry a third.

    >>> round(balance([0.5, 0.5]), 2), round(balance([0.1] * 10), 2)
    (1.0, 0.36)
    """
    return 4 * sum(rate**2 * (1 - rate) for rate in rates)


def rule_for(
    n_rows: float,
    n_columns: int,
    mu: float,
    task: str,
    rates: Sequence[float] | None = None,
    n_free: int | None = None,
    n_fine: int = 0,
    most_rounds: int = MOST_ROUNDS,
) -> Rule:
    """Settings from a (noisy) row count, the number of columns, mu, the task and class shares.

    `n_free` of the columns may be part of interaction tables; by default all. `n_fine` of them
    have a fine level.

    >>> rule_for(30_000, 14, 0.04, "binary").n_bins
    21
    """
    s = max(n_rows, 1.0) * mu / math.sqrt(n_columns)
    if task == "survival":
        free = n_columns if n_free is None else n_free
        return _survival_rule(s, n_rows * mu, 1.0 if rates is None else rates[1], free)
    if task == "counts":
        free = n_columns if n_free is None else n_free
        rate = 1.0 if rates is None else rates[1]
        return _counts_rule(s, n_rows * mu, rate, free, _caution(rate * s, n_columns, False))
    effective = s if rates is None else balance(rates) * s
    regression = task == "regression"
    least = 6 if regression and s < LOW else 8
    cells = min(max(math.floor(1.2 * math.sqrt(s)), least), 32)
    alone = (n_columns if n_free is None else n_free) < 2  # no two columns to put together
    interactions = 0.0 if alone else _interaction_share(s, effective, task)
    rich = effective >= RICH and (interactions > 0 or task != "multiclass")
    huge = rich and s >= HUGE and n_rows >= MANY_ROWS
    fine = n_fine > 0 and effective >= FINE
    rule = Rule(
        strength=s,
        n_bins=cells,
        n_cells=cells,
        label_share=(0.10 if s < LOW_REGRESSION else 0.03) if regression else 0.0,
        label_cells=FEW_LABEL_CELLS if s < LOW_REGRESSION else LABEL_CELLS,
        start_share=(0.30 if s < 100 else 0.15) + (FINE_EXTRA if fine else 0.0),
        interaction_share=interactions,
        final_share=0.02,
        main_rounds=_main_rounds(effective, task, interactions > 0),
        interaction_rounds=9 if interactions else 0,
        n_interaction_tables=16 if rich and not huge else 12,
        shapes=_shapes(rich, huge, task == "binary" and effective < PLENTY),
        clip=(1.0 if s < LOW_REGRESSION else 1.25) if regression else (0.7 if s >= HIGH else 0.5),
        eta=0.8 if s >= HIGH else 0.7,
        first_step=0.3,
        memory=_memory(s, effective, task),
        start_weight=1.0 if s < LOW else 0.5,
        floor=2.0 if s < LOW else 1.0,
        heavy=rich,
        fine_share=FINE_SHARE if fine else 0.0,
        caution=_caution(s, n_columns, regression),
    )
    if regression and s < 20:
        rule = replace(rule, n_bins=4, n_cells=2, start_share=0.3)
    other = rule.n_rounds - rule.interaction_rounds
    rule = replace(rule, interaction_rounds=min(rule.interaction_rounds, MOST_ROUNDS - other))
    return _with_dictionary(rule, effective, n_rows, most_rounds)


def _with_dictionary(rule: Rule, effective: float, n_rows: float, most_rounds: int) -> Rule:
    """With many rounds: half of what interactions get, in many cheap rounds afterwards.

    How many is limited by what they have to say, by time (rows times rounds), and by the plan.
    """
    rows, room = max(n_rows, 1.0), most_rounds - rule.n_rounds
    rounds = min(room, int(effective / ROUND_STEP), int(ROW_ROUNDS / rows))
    if not rule.interaction_rounds or rounds < DICTIONARY_BLOCKS:
        return rule
    share = rule.interaction_share / 2
    return replace(rule, interaction_share=share, dictionary_share=share, dictionary_rounds=rounds)


def _survival_rule(s: float, per_cell: float, rate: float, n_free: int) -> Rule:
    """Settings for times to an event, of which `rate` of the rows have one.

    S counts rows; events are what effects are learned from. Below `FEW_EVENTS` of them the noise of
    all columns is more than most effects, so a curve that is the same for everybody gets it all.
    """
    alone = rate * s < FEW_EVENTS
    shared = min(0.15 * math.log2(max(rate * s, 1.0) / 250), 0.4)
    tables = shared >= 0.1 and n_free > 1
    cells = min(max(math.floor(1.2 * math.sqrt(rate * s)), 8), 32)
    return Rule(
        strength=s,
        n_bins=cells,
        n_cells=cells,
        label_share=0.0,
        label_cells=0,
        start_share=1.0 if alone else 0.25,
        interaction_share=shared if tables else 0.0,
        final_share=0.0 if alone else 0.10,
        main_rounds=_survival_rounds(alone, tables, per_cell),
        interaction_rounds=9 if tables else 0,
        n_interaction_tables=12,
        shapes=_shapes(rate * s >= RICH, False, rate * s < PLENTY),
        clip=1.0,
        eta=0.7,
        first_step=0.3,
        memory=0.6,
        start_weight=0.5,
        floor=1.0,
        heavy=False,
        overlap_gain=2.0,
        explore=0.5,  # what main effects say of columns says little of pairs
    )


def _counts_rule(s: float, per_cell: float, rate: float, n_free: int, caution: float) -> Rule:
    """Settings for counts; `rate` is their mean over what a row's gradient is clamped to.

    Events are learned from as times to an event are; where few are seen, columns must prove
    themselves, and the label's histogram and the last calibration keep their parts.
    """
    rule = _survival_rule(max(s, FEW_EVENTS / max(rate, 1e-9)), per_cell, rate, n_free)
    rule = replace(
        rule, strength=s, label_share=COUNT_LABEL_SHARE, final_share=COUNT_FINAL_SHARE,
        caution=caution, memory=0.8, overlap_gain=COUNT_OVERLAP, explore=0.1,
    )  # fmt: skip
    other = rule.n_rounds - rule.interaction_rounds
    return replace(rule, interaction_rounds=min(rule.interaction_rounds, MOST_ROUNDS - other))


def _survival_rounds(alone: bool, tables: bool, per_cell: float) -> int:
    """Rounds about main effects, by rows times mu; none where one curve is for all."""
    if alone:
        return 0
    most = 4 if tables else 6
    return most if per_cell >= 1000 else 4 if per_cell >= 300 else 2


def events_needed(n_columns: int, mu: float) -> float:
    """How many events a model of times to an event needs, to be more than one curve for all.

    >>> round(events_needed(9, 0.25))
    240
    """
    return FEW_EVENTS * math.sqrt(n_columns) / mu


def _caution(s: float, n_columns: int, regression: bool) -> float:
    """Columns of pure noise add up, and many of them sooner: each must then prove itself.

    For regression with few columns it cost more than it saved (seen on one table).
    """
    many = math.sqrt(n_columns / MANY_COLUMNS)
    nothing = NOTHING * (many if regression else max(1.0, many))
    return max(0.0, 4 * math.log2(nothing / max(s, 1e-9)))


def _memory(s: float, effective: float, task: str) -> float:
    """Forget the early rounds, biased by overlaps, as soon as noise allows.

    For a binary label the rarer class says how much noise there is: from all of the past at an
    effective S of 150 down to 0.8 of it at 300.
    """
    if task != "binary":
        return 1.0 if s < MIDDLE else 0.8
    return 1.0 - 0.2 * min(max(math.log2(effective / FORGET), 0.0), 1.0)


def _main_rounds(effective: float, task: str, interactions: bool) -> int:
    """Few where interactions follow; many where early rounds are forgotten: the last ones count.

    With more noise than that all rounds count the same, and more of them change nothing.
    """
    if interactions and task != "multiclass":
        return 4
    return 10 if task == "binary" and effective >= FORGET else 6


def _shapes(rich: bool, huge: bool, small: bool) -> tuple[tuple[int, int], ...]:
    """Columns and parts of each, by table: more cells where there are rows to fill them.

    A cell's rows must rise above its noise, so little signal is spread over few cells.
    """
    if huge:
        return ((4, 5), (3, 8))
    if small:
        return ((3, 3), (2, 6), (4, 2), (3, 4)) if rich else ((3, 3), (4, 2))
    return ((3, 4), (2, 8), (4, 3), (3, 6)) if rich else ((3, 4), (4, 3))


def _interaction_share(s: float, effective: float, task: str) -> float:
    """A quarter of the budget where interactions begin to pay, half where there is plenty."""
    if task == "multiclass":
        share = min(0.25 + 0.1 * math.log2(max(effective, 1.0) / SEVERAL), 0.4)
        return share if effective >= SEVERAL else 0.0
    if effective >= RICH and task == "binary":
        return min(0.25 + 0.1 * math.log2(effective / RICH), 0.5)
    if effective < POOR and task == "binary":
        return 0.0  # the rarer class carries no interactions, however large S is
    mild = min(0.15 * math.log2(s / 250), 0.5) if s > 250 else 0.0
    return mild if mild >= 0.1 else 0.0


def reasons(rule: Rule) -> list[tuple[str, str, str]]:
    """Every setting with its value and the reason for it, for people."""
    tables = rule.interaction_share + rule.dictionary_share
    shares = f"{rule.start_share:.2f} / {rule.main_share:.2f} / {tables:.2f}"
    rounds = rule.interaction_rounds
    interactions = f"{rounds} rounds of {rule.n_interaction_tables}" if rounds else "none"
    cheap = f"{rule.dictionary_rounds} rounds" if rule.dictionary_rounds else "none"
    label = f"{rule.label_cells} cells for {rule.label_share:g}" if rule.label_share else "classes"
    return [
        ("S", f"{rule.strength:.0f}", "rows times mu over the root of the columns"),
        ("bins", str(rule.n_bins), "more signal carries more bins; below 8 a shape is lost, "
         "above 32 nothing is won"),
        ("first cells", str(2 * rule.n_cells), "the grid under the bins; fewer cells, less noise"),
        ("shares", shares, "counts, main effects, interaction tables"),
        ("label", label, "centre and spread of a regression; with little signal few cells rise "
         "above their noise"),
        ("main rounds", str(rule.main_rounds), "what is learned is averaged over all of them"),
        ("interaction tables", interactions, "pairs and more columns, where their cells rise above "
         "the noise"),
        ("dictionary of tables", cheap, "small steps over the same tables, again and again, where "
         "rounds are free"),
        ("strategy matrices", "of bins", "shapes that effects are likely to have get less noise, "
         "others more"),
        ("clip", f"{rule.clip:g}", "clamped gradients need less noise; with much signal their "
         "bias costs more"),
        ("eta", f"{rule.eta:g}", "columns overlap, so all of them at once step short of the goal"),
        ("first step", f"{rule.first_step:g}", "effects of single columns add up too high"),
        ("memory", f"{rule.memory:.2g}", "noise is averaged away; early rounds are biased"),
        ("start weight", f"{rule.start_weight:g}", "counts know nothing of overlaps"),
        ("caution", f"{rule.caution:.1f}", "with next to no signal a column must prove that it "
         "says something"),
        ("floor", f"{rule.floor:g}", "noise deviations under a count that divides"),
        ("heavy cells", "apart" if rule.heavy else "shared", "a value that many rows have"),
        ("fine cells", f"{rule.fine_share:g}" if rule.fine_share else "none", "part of the counts; "
         "values of wide integer columns that many rows have"),
        ("final share", f"{rule.final_share:g}", "clamping biases probabilities; a few counts "
         "set slope and intercept"),
    ]  # fmt: skip
