"""The expected error of leaf weights, from public facts alone: schema, promise, number of rows.

A leaf weight is a noisy sum of gradients over a sum of Hessians. The noise of the first is known;
of the second the number of rows says what to expect if rows spread evenly over leaves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hedgerow.data.counts import refuse_unusual
from hedgerow.data.schema import Schema
from hedgerow.errors import HedgerowError, SettingsError
from hedgerow.methods.auto import rule_for
from hedgerow.methods.auto.state import mu_of_a_row
from hedgerow.methods.registry import plan_for
from hedgerow.model.losses import loss_for
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.settings import BoostingSettings, Privacy
from hedgerow.queries import LeafSums

GROUP = 0.1  # of the rows
LEAST_EPSILON, MOST_EPSILON, _SCAN = 1e-3, 1e3, 25  # where an answer is looked for


@dataclass(frozen=True)
class Facts:
    """What everybody may know before anything is asked."""

    schema: Schema
    n_rows: int
    n_parties: int = 1
    rate: float = 0.5  # of the rarer class of a binary label, if that is public
    method: str = "auto"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_unusual(self.schema.label, "advice on epsilon")
        if self.n_rows < 1:
            raise SettingsError(f"the number of rows is {self.n_rows}; it must be at least 1")
        if not 0 < self.rate < 1:
            raise SettingsError(f"the rate of a class is {self.rate}; it lies between 0 and 1")

    def plan(self, privacy: Privacy) -> Plan:
        """The plan of a run; its seed and name do not matter here."""
        return plan_for(self.schema, privacy, self.method, self.settings, seed=0, run="advice")

    @property
    def task(self) -> str:
        return self.schema.label.task


@dataclass(frozen=True)
class Expected:
    """Standard errors that noise alone gives, before any smoothing or shrinkage.

    In log-odds for classes; for regression deviations of the label (`auto`) or parts of its range.
    """

    leaf: float  # of one leaf weight: a bin's score, or a leaf of a tree
    group: float  # of the mean weight of a tenth of the rows, however finely it is cut
    row: float  # of a row's score, over all columns or trees
    leaves: int  # bins a column, or leaves a tree
    strength: float  # S of the public rule: rows over the noise of a count about all columns
    unit: str


def expected_error(facts: Facts, plan: Plan) -> Expected | None:
    """What noise does to leaf weights under a plan; None where the method has no such sums."""
    if plan.method == "auto":
        return _of_main_effects(facts, plan)
    if any(slot.kind == LeafSums.kind for slot in plan.slots):
        return _of_trees(facts, plan)
    return None


def unit_of(facts: Facts, method: str) -> str:
    """What leaf weights are measured in."""
    if facts.task != "regression":
        return "log-odds"
    return "deviations of the label" if method == "auto" else "parts of the label's range"


def _growth(plan: Plan, n_parties: int) -> float:
    """Shares of the noise that colluding parties know are added on top."""
    trust = plan.privacy.trusted
    if trust.local or n_parties < 1:  # what rows add is counted by `row_noise`
        return 1.0
    colluding = min(plan.privacy.colluding, n_parties - 1)
    return trust.growth(n_parties, colluding, 0)


def _strength(facts: Facts, plan: Plan, mu: float) -> float:
    return facts.n_rows * mu / math.sqrt(len(facts.schema.columns))


def _of_main_effects(facts: Facts, plan: Plan) -> Expected:
    """The default method's bins, whose scores are averaged over all rounds about main effects.

    A question about m columns has sqrt(m) times the noise of one; a bin holds 1 / B of the rows.
    """
    schema, columns = facts.schema, len(facts.schema.columns)
    mu = mu_of_a_row(plan, schema, facts.n_rows) / _growth(plan, facts.n_parties)
    classes = len(schema.label.classes)
    rates = [1 / classes] * classes if classes else None
    if facts.task == "binary":
        rates = [1 - facts.rate, facts.rate]
    rule = rule_for(facts.n_rows, columns, mu, facts.task, rates)
    bound = loss_for(schema.label).bound("slope", rule.clip).l2
    noise = math.sqrt(columns) * bound / (mu * math.sqrt(rule.main_share))
    leaf = noise / (facts.n_rows / rule.n_bins * _hessian(facts))
    unit = unit_of(facts, plan.method)
    group = leaf / math.sqrt(max(1.0, GROUP * rule.n_bins))
    return Expected(leaf, group, math.sqrt(columns) * leaf, rule.n_bins, rule.strength, unit)


def _of_trees(facts: Facts, plan: Plan) -> Expected:
    """Trees whose leaves are asked for: one leaf, and all trees of the plan together."""
    settings, loss = BoostingSettings.of(plan.settings), loss_for(facts.schema.label)
    bound, batch = loss.bound(settings.update), settings.trees_per_round
    mu = max(slot.mu for slot in plan.slots if slot.kind == LeafSums.kind)
    mu /= facts.schema.unit.at_most * _growth(plan, facts.n_parties)
    mu /= plan.privacy.trusted.row_noise(facts.n_rows)
    leaves = 2**settings.max_depth
    each = _hessian(facts) if settings.update == "newton" else 1.0
    leaf = math.sqrt(batch) * bound.l2 / mu / (facts.n_rows / leaves * each + settings.reg_lambda)
    n_trees = settings.n_trees
    if settings.update == "averaging":
        row = leaf / math.sqrt(n_trees)
    else:
        row = settings.learning_rate * leaf * math.sqrt(n_trees) / batch
    strength = _strength(facts, plan, plan.mu / facts.schema.unit.at_most)
    unit = "parts of a class" if settings.update == "averaging" else unit_of(facts, plan.method)
    group = leaf / math.sqrt(max(1.0, GROUP * leaves))
    return Expected(leaf, group, row, leaves, strength, unit)


def _hessian(facts: Facts) -> float:
    """A row's expected Hessian: that of the classes' rates, before anything is learned."""
    if facts.task == "binary":
        return facts.rate * (1 - facts.rate)
    k = len(facts.schema.label.classes)
    return (1 - 1 / k) / k if k else 1.0


def epsilon_for_error(facts: Facts, privacy: Privacy, target: float) -> float | None:
    """The smallest epsilon at which a leaf weight's error is at most `target`; None if none is.

    With more signal the default method cuts columns finer, so errors of single bins may rise again
    further up.
    """
    if not 0 < target < math.inf:
        raise SettingsError(f"the error to reach is {target}; it must be above 0")

    def error(epsilon: float) -> float:
        try:
            plan = facts.plan(replace(privacy, epsilon=epsilon))
        except HedgerowError:  # too small to plan with
            return math.inf
        expected = expected_error(facts, plan)
        return math.inf if expected is None else expected.leaf

    ratio = (MOST_EPSILON / LEAST_EPSILON) ** (1 / (_SCAN - 1))
    tried = [LEAST_EPSILON * ratio**i for i in range(_SCAN)]
    high = next((epsilon for epsilon in tried if error(epsilon) <= target), None)
    if high is None or high == tried[0]:
        return high
    low = high / ratio
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if error(middle) <= target else (middle, high)
    return high
