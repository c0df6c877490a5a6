"""The default method: main effects of all columns at once, then interaction tables of a few.

loop.py                what is asked, in order
rule.py                its settings, from public facts and noisy counts
state.py               one run: what is known, the scores so far
start.py               what the first counts say
first_counts.py        the first question about columns, and the bins that follow
bins.py                cells to bins of about equal mass
fine_cells.py          values that many rows share, found among fine cells
main_effects.py        all columns at once, averaged over rounds
strategies.py          which strategy matrix a column is asked in
evidence.py            what rounds say, added up as precisions
priors.py              a column's scores before anything is known
smoothing.py           empirical Bayes: noisy sums to scores
deviations.py          how noise moves those scores
interaction_tables.py  which columns, where they are cut, what cells weigh
interaction_rounds.py  rounds of interaction tables, with a line search
dictionary_rounds.py   many cheap rounds over tables that are drawn once
dictionary.py          those tables, and what noise alone would make of the same rounds
parts.py               step functions and tables as trees
calibration.py         slope and intercept at the end
counts.py              counts with exposure: what is asked, and what is made of it
label_scale.py         where scores of a regression begin, and the units of scores and gradients
survival.py            times to an event: what is asked, and what is made of it
base_line.py           hazards of all rows together, from noisy counts of times and events
periods.py             effects on hazards that change at a cut: what is shared, and the difference
"""

from __future__ import annotations

from hedgerow.methods.auto.loop import (
    adaptive_queries,
    declared_queries,
    events_of_plan,
    grow,
    rule_of_plan,
)
from hedgerow.methods.auto.rule import MOST_ROUNDS, Rule, reasons, rule_for

__all__ = [
    "MOST_ROUNDS",
    "Rule",
    "adaptive_queries",
    "declared_queries",
    "events_of_plan",
    "grow",
    "reasons",
    "rule_for",
    "rule_of_plan",
]
