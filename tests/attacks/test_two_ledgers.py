"""One run, begun again over the same federation with a ledger that knows nothing of it."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow import Ledger, Privacy, Schema, local_federation, plan_for
from hedgerow.coordinator.gate import Gate
from hedgerow.coordinator.refused import RefusedBy
from hedgerow.data.tables import rows_of
from hedgerow.methods.registry import METHODS
from hedgerow.model.trust import TRUSTS
from hedgerow.privacy.ledger.store import COORDINATOR

SCHEMA = Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, classes=[0, 1])
PARTIES = ("north", "south", "west")


def table(seed: int) -> dict[str, np.ndarray]:
    a, b = np.random.default_rng(seed).random((2, 60))
    return {"a": a, "b": b, "label": (a > b).astype(int)}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("trust", TRUSTS)
def test_what_was_paid_once_gets_no_second_noise(trust: str, packed: bool) -> None:
    settings = {"n_trees": 1, "max_depth": 2}
    plan = plan_for(SCHEMA, Privacy(1.0, 1e-6, trust), "random-trees", settings, seed=3)
    books, first, second = Ledger.in_memory(), Ledger.in_memory(), Ledger.in_memory()
    tables = {name: rows_of(table(i), SCHEMA) for i, name in enumerate(PARTIES)}
    federation = local_federation(tables, SCHEMA, books, trust=trust, packed=packed)
    METHODS[plan.method].grow(Gate(federation, plan, first))
    paid = [len(books.lines(name, "charge")) for name in PARTIES]
    with pytest.raises(RefusedBy, match="answered-differently"):
        METHODS[plan.method].grow(Gate(federation, plan, second))
    assert first.lines(COORDINATOR, "release", plan.run)
    assert second.lines(COORDINATOR, "release", plan.run) == []
    assert [len(books.lines(name, "charge")) for name in PARTIES] == paid
