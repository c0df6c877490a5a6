"""What a report says in numbers: from the model, and from its ledger and plan if they are given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hedgerow.coordinator.traffic import Traffic, traffic
from hedgerow.errors import FormatError, PlanError
from hedgerow.evaluation.result import Evaluation
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import budget_of, counts_as_gaussians, spending
from hedgerow.privacy.ledger.store import COORDINATOR

_NAMES = {"batch of": "leaves", "level": "splits", "tables": "interaction tables"}


@dataclass(frozen=True)
class BudgetPart:
    """A part of the budget: what was asked, how often, and its share of the whole."""

    name: str
    questions: int
    n_values: int
    share: float  # of mu^2, or of a pure epsilon


@dataclass(frozen=True)
class Account:
    """The coordinator's ledger: all runs on these rows, and the budget they share."""

    runs: int
    epsilon: float
    delta: float
    budget: float | None  # epsilon, at the same delta
    own: float  # shares of the budget (or, without one, of all runs): this run, others, left
    others: float
    left: float


@dataclass(frozen=True)
class ReportFacts:
    """Everything beside the explanation."""

    model: str  # hash
    label: str
    schema: str
    method: str
    run: str
    trees: int
    releases: int
    n_values: int
    parts: tuple[BudgetPart, ...]
    account: Account | None
    sent: int | None  # bytes that a party sends, at most; None where the plan is not known
    received: int | None
    parties: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def facts_of(
    model: Ensemble, ledger: Ledger | None = None, plan: Plan | None = None
) -> ReportFacts:
    """Facts of a model; its plan is read from the ledger unless it is given."""
    record = model.record
    asked = _asked(record)
    run = str(record.get("run", ""))
    if plan is None and ledger is not None:
        plan = _plan_of(ledger, run)
    parties = max(1, len(model.statement.parties))
    expected: Traffic | None = None
    if plan is not None and plan.schema_hash == model.schema.hash and plan.run == run:
        expected = traffic(plan, model.schema, model.statement.parties or parties)
    return ReportFacts(
        model.hash,
        model.schema.label.name,
        model.schema.name,
        str(record.get("method", "")),
        run,
        len(model.trees),
        model.statement.releases,
        sum(query["numbers"] * query["repeat"] for query in asked),
        _parts(asked, model),
        None if ledger is None else _account(ledger, run),
        expected.sent if expected else None,
        expected.received if expected else None,
        parties,
    )


def check_evaluation(model: Ensemble, evaluation: Evaluation) -> None:
    """Refuse the evaluation of another model."""
    if evaluation.model != model.hash:
        raise FormatError(
            f"the evaluation is of the model {evaluation.model[:12]}, and this is "
            f"{model.hash[:12]}; give the evaluation of this model, or none"
        )


def _asked(record: dict[str, Any]) -> list[dict[str, Any]]:
    entries = record.get("asked", [])
    try:
        return [
            {
                "name": str(entry["name"]),
                "numbers": int(entry["numbers"]),
                "repeat": int(entry["repeat"]),
                "mu": float(entry["mu"]),
                "epsilon": float(entry["epsilon"]),
            }
            for entry in entries
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError("the model's record of what was asked is not readable") from error


def _parts(asked: Sequence[dict[str, Any]], model: Ensemble) -> tuple[BudgetPart, ...]:
    """Questions of one name together; what is left of the promise was reserved and not used."""
    pure = all(query["mu"] == 0 for query in asked)
    groups: dict[str, list[float]] = {}
    for query in asked:
        cost = query["epsilon"] if pure else query["mu"] ** 2
        name = re.sub(r"\s*\d+$", "", query["name"])
        group = groups.setdefault(_NAMES.get(name, name), [0, 0, 0.0])
        group[0] += query["repeat"]
        group[1] += query["repeat"] * query["numbers"]
        group[2] += query["repeat"] * cost
    spent = sum(cost for _, _, cost in groups.values())
    # Poisson sampling costs less than its queries say, so those are shares of each other.
    whole = spent if pure else max(model.statement.mu**2, spent)
    if not whole > 0:
        return ()
    parts = [
        BudgetPart(name, int(questions), int(n_values), cost / whole)
        for name, (questions, n_values, cost) in groups.items()
    ]
    if 1 - spent / whole > 1e-3:
        parts.append(BudgetPart("reserved, not used", 0, 0, 1 - spent / whole))
    return tuple(parts)


def _plan_of(ledger: Ledger, run: str) -> Plan | None:
    lines = ledger.lines(COORDINATOR, "reserve", run) if run else []
    if not lines:
        return None
    try:
        return Plan.from_dict(lines[0].values["plan"])
    except (KeyError, PlanError):
        return None


def _account(ledger: Ledger, run: str) -> Account | None:
    """What the ledger says of all runs; squares of mu add up, and pure epsilons do."""
    lines = ledger.lines(COORDINATOR, "reserve")
    if not lines:
        return None
    spent, budget = spending(ledger), budget_of(ledger)
    mine = [line.values for line in lines if line.run == run]
    delta = budget.delta if budget else max(float(line.values["delta"]) for line in lines)
    if delta == 0:
        this_run = sum(float(values["epsilon"]) for values in mine)
        total = spent.pure
        whole = budget.epsilon if budget else total
    else:
        this_run = sum(float(values["mu"]) ** 2 for values in mine)
        total = spent.mu**2
        whole = budget.whole(spent.coordinates) if budget else total
    whole = max(whole, total, 1e-300)
    return Account(
        spent.runs,
        spent.epsilon(delta, as_gaussians=counts_as_gaussians(budget)),
        delta,
        budget.epsilon if budget else None,
        this_run / whole,
        max(0.0, (total - this_run) / whole),
        max(0.0, 1 - total / whole),
    )
