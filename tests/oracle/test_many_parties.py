"""With noise off, a thousand parties that mask between few neighbours give the model of one."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from hedgerow import Ledger, local_federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off

SCHEMA = Schema.from_bounds({"a": (0, 1), "b": (-5, 5), "c": (0, 3)}, classes=[0, 1])
SETTINGS = {"auto": {"rows_hint": 3000}, "random-trees": {"n_trees": 3, "max_depth": 2}}


@cache
def train(method: str, n_parties: int) -> Ensemble:
    rng = np.random.default_rng(5)
    table = {"a": rng.uniform(0, 1, 3000), "b": rng.normal(0, 2, 3000), "c": rng.gamma(1, 1, 3000)}
    rows = rows_of(table, SCHEMA, ((table["a"] > 0.5) ^ (table["b"] > 1)).astype(int))
    trust = "coordinator" if n_parties == 1 else "parties"
    parts = {f"p{i}": rows.take(np.arange(i, 3000, n_parties)) for i in range(n_parties)}
    plan = plan_for(SCHEMA, Privacy(5.0, 1e-6, trust), method, SETTINGS[method], seed=3)  # type: ignore[arg-type]
    federation = local_federation(parts, SCHEMA, trust=trust)
    with noise_off():
        return method_named(method).grow(Gate(federation, plan, Ledger.in_memory()))


@pytest.mark.parametrize("n_parties", [3, 17, 18, 100, 1000])
@pytest.mark.parametrize("method", SETTINGS)
def test_any_number_of_parties_gives_the_model_of_one(method: str, n_parties: int) -> None:
    one = train(method, 1)
    assert len(one.trees) > 3
    assert train(method, n_parties) == one
