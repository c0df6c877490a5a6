"""The same small run over different ways to the same parties, with noise off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.tables import Rows
from hedgerow.engines.local import local_federation
from hedgerow.methods.maddock.boosting import grow
from hedgerow.methods.registry import plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off
from tests.conftest import MIXED, mixed_rows, mixed_table

THREE = ("north", "south", "west")
ROWS = mixed_rows(mixed_table(60, seed=1))
PARTS = [ROWS.take(np.arange(i, ROWS.n_rows, 3)) for i in range(3)]
Charge = tuple[str, int, int, str, float]  # run, slot, attempt, kind of the query, mu


@cache
def plan() -> Plan:
    """One plan for all ways, so that what is charged can be compared."""
    privacy = Privacy(1.0, 1e-5, "parties", spare=1)
    return plan_for(MIXED, privacy, "random-trees", {"n_trees": 2, "max_depth": 2}, seed=1)


@dataclass(frozen=True)
class Trained:
    """What came of a run: trees, and the charges of everybody."""

    trees: tuple[Tree, ...]
    charges: Mapping[str, list[Charge]]
    simulated: bool
    round_trips: int


def trained(federation: Federation, ledgers: Mapping[str, Ledger]) -> Trained:
    """Train over this federation; parties keep these ledgers."""
    own = Ledger.in_memory()
    with noise_off():
        model: Ensemble = grow(Gate(federation, plan(), own))
    charges = {name: _charges(ledger, name) for name, ledger in ledgers.items()}
    charges["coordinator"] = _charges(own, COORDINATOR)
    trips = federation.round_trips
    return Trained(tuple(model.trees), charges, model.statement.simulated, trips)


@cache
def trained_here() -> Trained:
    """Three parties of this process."""
    shared = Ledger.in_memory()
    tables: dict[str, Rows] = dict(zip(THREE, PARTS, strict=True))
    return trained(local_federation(tables, MIXED, shared), dict.fromkeys(THREE, shared))


def _charges(ledger: Ledger, owner: str) -> list[Charge]:
    lines = [(line, line.values) for line in ledger.lines(owner, "charge")]
    return [(x.run, x.slot, x.attempt, str(v.get("kind")), float(v["mu"])) for x, v in lines]
