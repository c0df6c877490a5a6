"""The default method: main effects of all columns at once, then small tables of a few columns."""

from __future__ import annotations

from hedgerow.growing.auto.loop import grow, later, wishes
from hedgerow.growing.auto.rule import Rule, rule_for

__all__ = ["Rule", "grow", "later", "rule_for", "wishes"]
