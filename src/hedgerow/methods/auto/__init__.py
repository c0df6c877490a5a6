"""The default method: main effects of all columns at once, then small tables of a few columns."""

from __future__ import annotations

from hedgerow.methods.auto.loop import grow, later, rule_of_plan, wishes
from hedgerow.methods.auto.rule import MOST_ROUNDS, Rule, reasons, rule_for

__all__ = ["MOST_ROUNDS", "Rule", "grow", "later", "reasons", "rule_for", "rule_of_plan", "wishes"]
