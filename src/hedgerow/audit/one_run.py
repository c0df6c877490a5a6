"""The one-run audit: canaries in made-up rows, each in or out by a coin, told from the releases.

The plan, the settings and the code are those of a real run; the rows are made up, so nothing is
charged to anybody and nothing about real rows is read. docs/audit.md says what follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.audit.bounds import (
    any_mechanism_bound,
    gaussian_bound,
    separation,
    silent_block,
)
from hedgerow.audit.made_up import (
    joined,
    made_up_canaries,
    made_up_rows,
    opposites,
)
from hedgerow.audit.recorder import RecordingGate
from hedgerow.audit.result import GAUSSIAN, AuditResult
from hedgerow.audit.scoring import Coins, Scores, local_scores_of, scores_of
from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.rng import Generator, fresh_seed, stream
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.engines.local import LocalEngine, local_federation
from hedgerow.errors import SettingsError
from hedgerow.methods.registry import method_named
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tradeoff import EXACT_LIMIT, epsilon_of
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.messages import Message
from hedgerow.protocol.replies import Answer, PartyReply
from hedgerow.queries.calibration import made_for

BASE_ROWS = 20_000
DISTINCT = 400  # canaries that differ; more than so many are copies of them
MOST_CANARIES = 20_000
PRECISION = 1 / 8  # the estimate's error, as a part of the claimed mu, that decides how many
LOCAL_CANARIES = 100  # each is a party of its own
Run = Callable[[Gate], Any]


@dataclass(frozen=True)
class Size:
    """How much is made up: rows besides the canaries, canaries, and parties that hold them."""

    rows: int
    canaries: int
    parties: int

    @property
    def copies(self) -> int:
        return math.ceil(self.canaries / min(self.canaries, DISTINCT))

    @property
    def distinct(self) -> int:
        return math.ceil(self.canaries / self.copies)


def one_run(
    plan: Plan,
    schema: Schema,
    *,
    canaries: int | None = None,
    rows: int = BASE_ROWS,
    parties: int | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
    run: Run | None = None,
    start: Ensemble | None = None,
) -> AuditResult:
    """Audit a plan in one run over made-up rows, with everything released and the noise known.

    Parameters
    ----------
    plan : what is audited, as `hedgerow plan` makes it; Gaussian noise of any method
    schema : the one that the plan was made for
    canaries : how many units are in or out by a coin; None = enough for the plan's mu
    rows : made-up rows besides the canaries
    parties : how many hold them; None = as few as the plan's trust allows
    confidence : of the lower bounds
    seed : of made-up rows and coins, which are public; never of the noise
    run : what is done with the gate; None = the plan's method grows a model
    start : the model that the plan builds on or measures

    Returns
    -------
    AuditResult
        with `words()`, `to_dict()`, `save(path)`, and `holds`: whether nothing refutes the claim

    Examples
    --------
    >>> from hedgerow import Privacy, Schema, plan_for
    >>> schema = Schema.from_bounds({"age": (0, 110), "dose": (0, 5)}, classes=["no", "yes"])
    >>> plan = plan_for(schema, Privacy(4.0, 1e-6, "coordinator"), "dp-rf", {"n_trees": 5})
    >>> one_run(plan, schema, canaries=200, rows=500).holds
    True
    """
    _check(plan, schema, confidence)
    rng = stream(fresh_seed() if seed is None else seed, "one-run audit")
    size = _size(plan, canaries, rows, parties)
    play = run or method_named(plan.method).grow
    attack = _local_attack if plan.privacy.trusted.local else _attack
    scores = attack(plan, schema, size, rng, play, start)
    return _result(plan, scores, 1 - confidence)


def _check(plan: Plan, schema: Schema, confidence: float) -> None:
    """Refuse what this audit cannot say anything about."""
    if not made_for(plan, schema):
        raise SettingsError("the plan was made for another schema. Nothing was audited.")
    if plan.budget.mechanism != "gaussian":
        raise SettingsError(
            f"the one-run audit scores Gaussian noise, and method {plan.method!r} promises a pure "
            "epsilon by Laplace noise and choices. Nothing was audited. Attack its models instead: "
            "--black-box with --runs, or audit.black_box."
        )
    if plan.settings.reads_rows:
        raise SettingsError(
            "cuts of this plan are read from rows without noise, so it promises nothing that could "
            "be audited. Nothing was audited."
        )
    if not 0.5 <= confidence < 1:
        raise SettingsError(f"confidence is {confidence}; it must be at least 0.5 and below 1")


def _size(plan: Plan, canaries: int | None, rows: int, parties: int | None) -> Size:
    """Enough canaries for the estimate to be off by an eighth of mu, within limits."""
    trust, privacy = plan.privacy.trusted, plan.privacy
    wanted = min(MOST_CANARIES, max(DISTINCT, math.ceil((2 / (PRECISION * plan.mu)) ** 2)))
    chosen = (LOCAL_CANARIES if trust.local else wanted) if canaries is None else canaries
    least = trust.least_set(privacy.minimum_parties, privacy.colluding, 1)
    n_parties = max(least, 3 if trust.masked else 1) if parties is None else parties
    if chosen < 2 or rows < 0 or n_parties < least:
        raise SettingsError(
            f"an audit needs at least 2 canaries and {least} parties, and has {chosen} and "
            f"{n_parties}. Nothing was audited."
        )
    return Size(rows, chosen, n_parties)


def _attack(
    plan: Plan, schema: Schema, size: Size, rng: Generator, play: Run, start: Ensemble | None
) -> Scores:
    """Canaries among made-up rows, all parties summed."""
    base = made_up_rows(schema, size.rows, rng)
    canaries = made_up_canaries(schema, size.distinct, rng)
    coins = rng.random((size.distinct, size.copies)) < 0.5
    table = joined([base, canaries.copies(coins)])
    of = np.arange(table.n_rows) % size.parties
    if table.persons is not None:  # all rows of a person lie in one party
        of = np.unique(table.persons, return_inverse=True)[1] % size.parties
    parts = table.split(of, size.parties)
    gate = _gate(plan, schema, {f"p{i}": part for i, part in enumerate(parts)}, start)
    play(gate)
    return scores_of(gate.transcript, canaries, base, coins)


def _local_attack(
    plan: Plan, schema: Schema, size: Size, rng: Generator, play: Run, start: Ensemble | None
) -> Scores:
    """Every canary is a party of its own, it or another row in its place."""
    canaries = made_up_canaries(schema, size.canaries, rng)
    others = opposites(schema, canaries, rng)
    coins = rng.random((size.canaries, 1)) < 0.5
    tables = {}
    for i in range(size.canaries):
        source = canaries if coins[i, 0] else others
        tables[f"p{i:05d}"] = source.rows.take(np.array([i]))
    gate = _gate(plan, schema, tables, start, listening=True)
    play(gate)
    engine = gate.engine
    assert isinstance(engine, ListeningEngine)
    return local_scores_of(gate.transcript, engine.heard, canaries, others, coins)


class ListeningEngine(LocalEngine):
    """Keeps what each party sent for every question, as anybody on the wire does."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.heard: list[list[NDArray[np.int64]]] = []

    def hand_over(self, messages: Mapping[str, bytes | Message]) -> dict[str, PartyReply]:
        replies = self._replies(messages)
        sent = [reply.reply for _, reply in sorted(replies.items())]
        answers = [one.total.view(np.int64) for one in sent if isinstance(one, Answer)]
        if len(answers) == len(replies):
            self.heard.append(answers)
        return replies


def _gate(
    plan: Plan,
    schema: Schema,
    tables: Mapping[str, Rows],
    start: Ensemble | None,
    listening: bool = False,
) -> RecordingGate:
    """A gate over parties of this process, with a ledger that nobody keeps."""
    privacy, ledger = plan.privacy, Ledger.in_memory()
    agreed = (privacy.colluding, privacy.minimum_parties, privacy.trust)
    federation: Federation = local_federation(tables, schema, ledger, *agreed)
    if listening:
        engine = federation.engine
        assert isinstance(engine, LocalEngine)
        federation.engine = ListeningEngine(engine.parties, ledger)
    return RecordingGate(federation, plan, ledger, start=start)


def _result(plan: Plan, scores: Scores, alpha: float) -> AuditResult:
    coins: Coins = scores.coins
    largest = math.sqrt(float(scores.squares.max()))
    lower = gaussian_bound(scores.blocks, alpha)
    guesses = np.repeat(scores.from_output_alone()[:, None] > 0, coins.shape[1], axis=1)
    right, n = int((guesses == coins).sum()), coins.size
    any_lower = any_mechanism_bound(n, n, right, alpha)
    return AuditResult(
        method=plan.method,
        plan=plan.hash,
        kind=GAUSSIAN,
        trust=plan.privacy.trust,
        unit=plan.unit,
        runs=1,
        releases=scores.n_releases,
        canaries=n,
        confidence=1 - alpha,
        delta=plan.privacy.delta,
        claimed_mu=plan.mu,
        claimed_epsilon=plan.privacy.epsilon,
        largest_mu=largest,
        estimated_mu=separation(scores.known_others().ravel(), coins.ravel()),
        estimate_error=2 / math.sqrt(n),  # of a difference of two means of n / 2 scores each
        lower_mu=lower,
        lower_epsilon=_epsilon(lower, plan),
        any_lower_mu=any_lower,
        any_lower_epsilon=_epsilon(any_lower, plan),
        right_guesses=right,
        violation=_violation(plan, scores, largest, max(lower, any_lower), alpha),
    )


def _epsilon(mu: float, plan: Plan) -> float:
    """What a Gaussian guarantee of this mu would say as an epsilon, at the plan's delta."""
    if math.isinf(mu):
        return math.inf
    accounting = plan.privacy.accounting if mu <= EXACT_LIMIT else "renyi"
    return epsilon_of(mu, plan.privacy.delta, 0, accounting)


def _violation(plan: Plan, scores: Scores, largest: float, lower: float, alpha: float) -> str:
    if lower <= plan.mu and largest <= plan.mu * (1 + 1e-9):
        return ""
    said = f"the plan promises mu = {plan.mu:.4g}"
    if lower > plan.mu:
        silent = silent_block(scores.blocks, alpha)
        where = f" The noise of {silent} is narrower than stated." if silent else ""
        return f"{said}, and it is at least {lower:.4g} with {1 - alpha:.0%} confidence.{where}"
    return f"{said}, and a canary contributes {largest:.4g} in units of the stated noise."
