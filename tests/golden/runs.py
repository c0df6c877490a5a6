"""Whole runs with everything held still: models, messages, questions and ledger lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hedgerow.coordinator.federation import Federation, Reply
from hedgerow.coordinator.gate import Gate
from hedgerow.coordinator.sessions import Session
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.deployment.roles import role_factories
from hedgerow.engines.local import local_federation
from hedgerow.evaluation import Evaluation, evaluate, evaluation_plan
from hedgerow.methods.fedxgboost.run import agreement_for as vertical_agreement
from hedgerow.methods.fedxgboost.run import prediction_agreement, shares_of
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.methods.registry import METHODS, method_named, plan_for
from hedgerow.methods.simfl.kept import place_of
from hedgerow.methods.simfl.run import agreement_for as similarity_agreement
from hedgerow.methods.simfl.run import model_of
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.ensemble import Ensemble
from hedgerow.party.limits import Limits
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.messages import Message
from hedgerow.protocol.roles import Agreement, MemoryStore
from hedgerow.queries import query_bytes
from hedgerow.testing import seeded
from tests.golden.fixed import fixed
from tests.golden.tables import PARTIES, PLAIN, SCHEMAS, dealt, rows

TRUSTS = {"dp-xgboost": "coordinator", "ldp": "nobody"}
PURE = ("dp-xgboost", "private-tree")
TASKS = {
    "private-tree": ("binary", "multiclass"), "dp-xgboost": ("binary", "regression"),
    "auto": tuple(SCHEMAS),
    "random-trees": ("binary", "multiclass", "regression", "survival", "periods"),
}  # fmt: skip
_USUAL = ("binary", "multiclass", "regression")  # what every method knows
CASES = [(method, task) for method in METHODS for task in TASKS.get(method, _USUAL)]
SMALL = {"n_trees": 3, "max_depth": 2, "n_bins": 6, "candidate_rounds": 2, "min_samples_leaf": 3}
OWNERS = {"x0": "east", "x1": "north", "x2": "north", "x3": "west"}
ANYTHING = Limits(roles=frozenset(role_factories()))


@dataclass
class Run:
    """What a run left behind."""

    messages: list[tuple[str, bytes]] = field(default_factory=list)  # (name, bytes), in order
    queries: list[tuple[str, bytes]] = field(default_factory=list)  # (kind, bytes)
    ledger: Ledger = field(default_factory=Ledger.in_memory)
    coordinator: str = ""
    model: Ensemble | None = None
    plan: Plan | None = None
    evaluation: Evaluation | None = None
    reports: Mapping[str, list[bytes]] = field(default_factory=dict)
    federation: Federation | None = None
    lasting: bool = False  # whether its parties remember each other by their ledger


class Recorder:
    """An engine that keeps every message and reply as bytes.

    The `forgetful` message reaches the parties without its trees, as if they had lost theirs.
    """

    simulated = True

    def __init__(self, engine: Any, run: Run, forgetful: int = -1) -> None:
        self._engine, self._run, self._forgetful, self._asks = engine, run, forgetful, 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._engine.names)

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        read = Message.from_bytes(message)
        self._asks += read.type == "ask"
        self._keep(read.type, "coordinator", message)
        if read.type == "ask" and self._asks == self._forgetful:
            message = Message(read.type, read.body, read.signature, 9, (), read.request).to_bytes()
        replies: dict[str, Reply] = self._engine.ask(names, message, timeout_seconds)
        for name, reply in replies.items():
            assert reply.body is not None
            self._keep(Message.from_bytes(reply.body).type, name, reply.body)
        return replies

    def _keep(self, type_: str, sender: str, data: bytes) -> None:
        self._run.messages.append((f"{len(self._run.messages):03d}-{type_}-{sender}", data))


class _KeepingGate(Gate):
    """A gate that keeps its questions."""

    kept: list[tuple[str, bytes]]

    def release(self, query: Any, mu: float = 0.0, name: str = "") -> Any:
        self.kept.append((query.kind, query_bytes(query)))
        return super().release(query, mu, name)


def federation_of(
    tables: Mapping[str, Rows],
    schema: Schema,
    trust: str,
    run: Run,
    forgetful: int = -1,
    **more: Any,
) -> Federation:
    federation = local_federation(tables, schema, run.ledger, trust=trust, **more)
    if run.lasting:  # as with a key of its own, which a party of a site keeps
        for party in federation.engine.parties.values():  # type: ignore[attr-defined]
            party._handshake._lasts = True
    federation.engine = Recorder(federation.engine, run, forgetful)
    run.federation = federation
    return federation


def privacy_of(method: str) -> Privacy:
    trust = TRUSTS.get(method, "parties")
    if method in PURE:
        return Privacy(5.0, 0.0, trust, accounting="pure")  # type: ignore[arg-type]
    return Privacy(5.0, 1e-5, trust)  # type: ignore[arg-type]


def settings_of(method: str) -> dict[str, Any]:
    used = METHODS[method].uses
    return {name: value for name, value in SMALL.items() if name in used}


def plan_of(method: str, task: str) -> Plan:
    return plan_for(
        SCHEMAS[task], privacy_of(method), method, settings_of(method), 7, f"{method}.{task}"
    )


@contextmanager
def still(label: str) -> Iterator[None]:
    """Keys, nonces, clock and noise, all the same in every run."""
    with fixed(label), seeded(5):
        yield


def train(method: str, task: str, run: Run | None = None, forgetful: int = -1) -> Run:
    """Train one of CASES over three parties."""
    run = run or Run()
    with still(f"{method} {task}"):
        schema, plan = SCHEMAS[task], plan_of(method, task)
        federation = federation_of(dealt(schema), schema, plan.privacy.trust, run, forgetful)
        gate = _KeepingGate(federation, plan, run.ledger)
        gate.kept = run.queries
        run.model, run.plan = method_named(method).grow(gate), plan
    return run


def measure(model: Ensemble, task: str, run: Run | None = None) -> Run:
    """Evaluate a model privately over the same parties."""
    run = run or Run()
    with still(f"evaluation {task}"):
        plan = evaluation_plan(model, Privacy(3.0, 1e-5, "parties"), f"evaluation.{task}")
        federation = federation_of(dealt(model.schema), model.schema, "parties", run)
        gate = _KeepingGate(federation, plan, run.ledger, start=model)
        gate.kept = run.queries
        run.plan, run.evaluation = plan, evaluate(gate, model)
    return run


def _run_session(tables: Mapping[str, Rows], agreement: Agreement, run: Run, **more: Any) -> Run:
    makers = role_factories()
    federation = federation_of(tables, PLAIN, "parties", run, roles=makers, limits=ANYTHING, **more)
    run.reports = Session(federation, agreement, run.ledger).run()
    return run


def similarity(run: Run | None = None) -> Run:
    """A SimFL model over sealed peer messages."""
    run = run or Run()
    with still("simfl"):
        settings = SimilaritySettings(n_trees=3, max_depth=2, seed=3)
        agreement = similarity_agreement(PLAIN, PARTIES, settings, "simfl.binary")
        _run_session(dealt(PLAIN), agreement, run)
        run.model = model_of(run.reports, PLAIN, agreement)
    return run


def similarity_kept() -> dict[str, bytes]:
    """What each party keeps of a SimFL run for later ones."""
    stores = {name: MemoryStore() for name in PARTIES}
    with still("simfl kept"):
        settings = SimilaritySettings(n_trees=1, max_depth=1, seed=3, keep=True)
        agreement = similarity_agreement(PLAIN, PARTIES, settings, "simfl.kept")
        _run_session(dealt(PLAIN), agreement, Run(), stores=stores)
    kept = {name: store.get(place_of("simfl.kept")) for name, store in stores.items()}
    return {name: data for name, data in kept.items() if data is not None}


def vertical_settings(protection: str) -> VerticalSettings:
    return VerticalSettings(
        OWNERS, "east", protection, n_trees=2, max_depth=2, max_bins=8, ids="agreed", merge=True,
        allow_unsafe=True, block_rows=32,
    )  # fmt: skip


def vertical(protection: str, run: Run | None = None) -> Run:
    """A FedXGBoost model; every owner hands its part over."""
    run = run or Run()
    with still(f"vertical {protection}"):
        settings = vertical_settings(protection)
        agreement = vertical_agreement(PLAIN, settings, f"vertical.{protection}")
        _run_session(shares_of(rows(PLAIN), PLAIN, settings), agreement, run)
    return run


def vertical_prediction(parts: Mapping[str, bytes], run: Run | None = None) -> Run:
    """A joint prediction by stored parts."""
    run = run or Run()
    with still("vertical prediction"):
        settings = vertical_settings("none")
        agreement = prediction_agreement(PLAIN, settings, "vertical.none", "predicted.none")
        stores = {name: MemoryStore() for name in parts}
        for name, data in parts.items():
            stores[name].put("part-vertical.none", data)
        _run_session(shares_of(rows(PLAIN), PLAIN, settings), agreement, run, stores=stores)
    return run
