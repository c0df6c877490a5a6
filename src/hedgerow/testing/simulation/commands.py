"""The coordinator's commands, as the command line runs them: train, evaluate, or a session."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.coordinator.sessions import Session
from hedgerow.evaluation.program import evaluate
from hedgerow.methods.fedxgboost.run import merged_from_reports
from hedgerow.methods.registry import method_named
from hedgerow.methods.simfl.run import model_of
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.identity import Roster
from hedgerow.testing.simulation.machines import CoordinatorMachine
from hedgerow.testing.simulation.network import PATIENCE, ConnectedEngine, Network, SimulatedEngine
from hedgerow.testing.simulation.scenarios import Scenario, Work, start_of


@dataclass
class Attempted:
    """A command and what came of it so far."""

    work: Work
    result: Any = None
    error: BaseException | None = None
    troubles: list[BaseException] = field(default_factory=list)  # of all tries, in order
    running: bool = False
    tries: int = 0
    parties: list[tuple[str, ...]] = field(default_factory=list)  # of each sum of the last process
    slots: set[int] = field(default_factory=set)  # of the same
    process: str = ""

    @property
    def finished(self) -> bool:
        return self.result is not None


Watch = Callable[[Federation, Ledger, Attempted], None]


def run_command(
    attempted: Attempted,
    scenario: Scenario,
    machine: CoordinatorMachine,
    network: Network,
    roster: Roster,
    watch: Watch,
) -> Any:
    """One process of the coordinator, from opening its ledger to the model."""
    work = attempted.work
    engine_class = ConnectedEngine if scenario.connected else SimulatedEngine
    engine = engine_class(network, scenario.parties, attempted.process)
    ledger = Ledger.open(Path(machine.file))
    try:
        federation = Federation(
            engine, scenario.schema, roster, machine.identity, timeout_seconds=PATIENCE,
            wait_seconds=scenario.wait_seconds,
        )  # fmt: skip
        watch(federation, ledger, attempted)
        if work.agreement is not None:
            # A command makes a new agreement; a session that ended half-way is not taken up again.
            agreement = replace(work.agreement, run=f"{work.run}-{attempted.tries}")
            reports = Session(federation, agreement, ledger, seconds=PATIENCE).run()
            if work.kind == "vertical":
                return merged_from_reports(reports)
            return model_of(reports, scenario.schema, agreement, simulated=False)
        result = _through_a_gate(work, scenario, federation, ledger)
        if isinstance(result, Ensemble):
            result.save(_folder() / "model.hedge")
        return result
    finally:
        ledger.close()


@cache
def _folder() -> Path:
    """Where models are written: the one thing that a history does outside of its own disk.

    In memory where the system has a folder there, so that thousands of syncs wait for no disk.
    """
    memory = Path("/dev/shm")
    within = memory if os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-simulation-", dir=within))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _through_a_gate(work: Work, scenario: Scenario, federation: Federation, ledger: Ledger) -> Any:
    assert work.plan is not None
    start = start_of(work, scenario.schema)
    gate = Gate(federation, work.plan, ledger, scenario.budget, start=start)
    if start is not None:
        return evaluate(gate, start)
    return method_named(work.plan.method).grow(gate)


class _Nobody:
    """An engine that may not be used: what a finished run needs is on the ledger."""

    simulated = False

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def ask(self, names: Any, message: bytes, timeout_seconds: float) -> Any:
        raise AssertionError("a run whose releases are all stored asked somebody")


def replayed(
    work: Work, scenario: Scenario, machine: CoordinatorMachine, roster: Roster, ledger: Ledger
) -> Any:
    """What a run gives from its ledger alone."""
    engine = _Nobody(scenario.parties)
    federation = Federation(engine, scenario.schema, roster, machine.identity)
    return _through_a_gate(work, scenario, federation, ledger)


def same_result(one: Any, other: Any) -> bool:
    """Whether two results are one: equal trees, or equal findings of an evaluation."""
    if isinstance(one, Ensemble) and isinstance(other, Ensemble):
        return one.trees == other.trees
    return type(one) is type(other) and str(one) == str(other)
