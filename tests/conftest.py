"""Tables and federations that many tests share. Real tables come from HEDGEROW_DATA."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.engines.local import local_federation
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from tests import order, outcomes, randomness, slow
from tests.compiling import compile_together
from tests.quick import pytest_addoption as pytest_addoption
from tests.quick import pytest_collection_modifyitems as pytest_collection_modifyitems
from tests.quick import pytest_ignore_collect as pytest_ignore_collect

# Ledgers that nobody names lie in the user's state folder: never in that of whoever runs tests.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="hedgerow-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)
compile_together()
randomness.install()
# Machines may be busy, so examples have all the time they need; and the same code gets the same
# examples, except where tests may take long.
hypothesis.settings.register_profile("here", deadline=None, derandomize=not slow.ALL)
hypothesis.settings.load_profile("here")


def pytest_configure(config: pytest.Config) -> None:
    for plugin in (randomness, order, outcomes):
        config.pluginmanager.register(plugin, plugin.__name__)


# One column of every sort: whole and real numbers, both kinds of list, a list beyond one byte.
MIXED = Schema(
    columns=(
        Numeric("age", 0, 100, integer=True),
        Numeric("dose", -1.0, 5.0),
        Ordinal("stage", ("low", "middle", "high", "severe"), other="category"),
        Categorical("site", ("north", "south", "east"), other="category"),
        Categorical("code", tuple(range(300)), other="error"),
    ),
    label=Label("sick", ("no", "yes")),
)

Table = dict[str, list[Any]]


def mixed_table(n_rows: int, seed: int = 0) -> Table:
    """Rows for MIXED with missing values, values out of bounds and values outside the lists."""
    rng = np.random.default_rng(seed)
    age = rng.integers(-5, 110, n_rows).tolist()
    dose = rng.normal(1.5, 2.0, n_rows).tolist()
    stage = rng.choice(["low", "middle", "high", "severe", "unheard"], n_rows).tolist()
    site = rng.choice(["north", "south", "east", "elsewhere"], n_rows).tolist()
    code = rng.integers(0, 300, n_rows).tolist()
    sick = ["yes" if rng.uniform() < (0.8 if a > 50 else 0.2) else "no" for a in age]
    table: Table = {"age": age, "dose": dose, "stage": stage, "site": site, "code": code}
    for column in table.values():
        for i in np.flatnonzero(rng.uniform(size=n_rows) < 0.1):
            column[i] = None
    return {**table, "sick": sick}


def mixed_rows(table: Table) -> Rows:
    return rows_of(table, MIXED)


def split_rows(rows: Rows, sizes: Iterable[int]) -> dict[str, Rows]:
    """Parties p0, p1, ... of the given sizes; the last one takes what is left."""
    cuts = np.cumsum([*sizes])
    parts = np.split(np.arange(rows.n_rows), cuts)
    return {f"p{i}": rows.take(part) for i, part in enumerate(parts)}


def federation_of(
    parts: dict[str, Rows], schema: Schema, privacy: Privacy, ledger: Ledger | None = None
) -> Federation:
    least = privacy.minimum_parties
    return local_federation(parts, schema, ledger, privacy.colluding, least, privacy.trust)


def promise(
    method: str, trust: str = "coordinator", epsilon: float = 1.0, delta: float = 1e-5, **more: Any
) -> Privacy:
    """What a plan of a method can promise: its own trust and accounting, if it has one."""
    chosen = method_named(method)
    trust = chosen.trust or trust
    if chosen.can_be_pure:
        trust = "coordinator" if trust == "nobody" else trust
        return Privacy(epsilon, 0.0, trust, accounting="pure", **more)  # type: ignore[arg-type]
    return Privacy(epsilon, delta, trust, **more)  # type: ignore[arg-type]


def train(
    parts: dict[str, Rows],
    schema: Schema,
    privacy: Privacy,
    settings: dict[str, Any],
    ledger: Ledger | None = None,
    seed: int = 7,
    method: str = "random-trees",
) -> tuple[Ensemble, Plan, Federation]:
    """Grow a model through a gate, with everything in sight."""
    ledger = ledger or Ledger.in_memory()
    federation = federation_of(parts, schema, privacy, ledger)
    plan = plan_for(schema, privacy, method, settings=settings, seed=seed)
    model = method_named(plan.method).grow(Gate(federation, plan, ledger))
    return model, plan, federation


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real tables; tests that need one skip without it."""
    folder = os.environ.get("HEDGEROW_DATA")
    if not folder or not (Path(folder) / "adult.parquet").is_file():
        pytest.skip("set HEDGEROW_DATA to the folder of real tables")
    return Path(folder)


@pytest.fixture
def two_numbers() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A small numeric table and its labels."""
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 1, (600, 2))
    return X, (X[:, 0] > 0.5).astype(np.int64)
