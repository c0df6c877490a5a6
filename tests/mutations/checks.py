"""Checks that a defect of the privacy core must turn red. Each raises AssertionError."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow import Ledger, local_federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.errors import PlanError
from hedgerow.methods.maddock.boosting import _structure
from hedgerow.methods.maddock.candidates import uniform
from hedgerow.methods.registry import plan_for
from hedgerow.model.losses import loss_for
from hedgerow.privacy.accounting.accountant import Price
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.accounting.gaussian_budget import AdaptiveQueries
from hedgerow.privacy.accounting.plan import make_plan
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy, Settings
from hedgerow.protocol.identity import Announcement, Identity
from hedgerow.protocol.joined import Joined, SumSet
from hedgerow.protocol.masks import Context, MaskKeys
from hedgerow.queries import NO_TREES, ColumnCounts, LabelSums, LeafSums, size_of
from hedgerow.testing import check_query, noise_off
from tests.statistical.measures import variance_fits

SCHEMA = Schema.from_bounds({f"x{j}": (0, 1) for j in range(24)}, classes=[0, 1])


def some_rows(n: int = 12) -> Rows:
    grid = np.linspace(0, 1, n * 24).reshape(n, 24)
    return rows_of(grid, SCHEMA, np.arange(n) % 2)


def one_release(trust: str, epsilon: float = 1.0, parties: int = 3) -> NDArray[np.float64]:
    """Noise of one released histogram: release minus the same release with noise off."""
    query = ColumnCounts.of(SCHEMA)
    declared = DeclaredQuery("counts", query.kind, 1.0, size_of(query))
    plan = make_plan(
        SCHEMA.hash,
        "check",
        Settings(),
        Privacy(epsilon, 1e-6, trust),
        [declared],
        seed=0,  # type: ignore[arg-type]
    )

    def release() -> NDArray[np.float64]:
        rows = some_rows()
        tables = {f"p{i}": rows.take(np.arange(i, 12, parties)) for i in range(parties)}
        federation = local_federation(tables, SCHEMA, trust=trust)
        return Gate(federation, plan, Ledger.in_memory()).release(query).values

    with noise_off():
        exact = release()
    return release() - exact


def variance(noise: NDArray[np.float64], expected: float) -> None:
    ratio = float(np.mean(noise**2)) / expected
    assert variance_fits(noise, math.sqrt(expected)), f"variance is {ratio:.3f} of what is stated"


def noise_at_the_gate_has_the_stated_variance() -> None:
    from hedgerow.privacy.accounting.gaussian import mu_of

    for epsilon in (0.5, 4.0):
        mu = mu_of(epsilon, 1e-6, size_of(ColumnCounts.of(SCHEMA)))
        variance(one_release("coordinator", epsilon), 24 / mu**2)


def shares_add_up_to_the_stated_variance() -> None:
    from hedgerow.privacy.accounting.gaussian import mu_of

    mu = mu_of(1.0, 1e-6, size_of(ColumnCounts.of(SCHEMA)))
    variance(one_release("parties"), 3 / 2 * 24 / mu**2)


def noise_is_never_repeated() -> None:
    first, second = one_release("coordinator"), one_release("coordinator")
    assert not np.array_equal(first, second), "two releases carry the same noise"


def every_release_was_charged() -> None:
    ledger = Ledger.in_memory()
    privacy = Privacy(1.0, 1e-6)
    plan = plan_for(
        SCHEMA, privacy, "random-trees", settings={"n_trees": 2, "max_depth": 1}, seed=0
    )
    gate = Gate(local_federation({"all": some_rows()}, SCHEMA), plan, ledger)
    gate.release(LabelSums(2))
    try:
        verify(ledger)
    except Exception as error:
        raise AssertionError(str(error)) from error
    assert len(ledger.lines(kind="charge")) == len(ledger.lines(kind="release"))


def later_slots_stop_at_what_was_planned() -> None:
    adaptive = AdaptiveQueries(0.99, 0.1, 100, 5, (LabelSums.kind,))
    privacy = Privacy(1.0, 1e-6)
    plan = make_plan(SCHEMA.hash, "check", Settings(), privacy, [], seed=0, adaptive=adaptive)
    reservation = Reservation(Ledger.in_memory(), plan)
    reservation.charge(0, "q", price=Price(0.8 * plan.budget.adaptive.mu, 10))
    reservation.charge(1, "q", price=Price(0.5 * plan.budget.adaptive.mu, 10))
    for mu, numbers in ((0.5 * plan.budget.adaptive.mu, 10), (0.1 * plan.budget.adaptive.mu, 90)):
        try:
            reservation.charge(2, "q", price=Price(mu, numbers))
        except PlanError:
            continue
        raise AssertionError("more was drawn than was planned")


def _two_parties() -> tuple[MaskKeys, Context]:
    keys = {name: MaskKeys() for name in ("a", "b")}
    announced = {
        name: Announcement(name, 1, 1, keys[name].public, "p", "s", "r").signed(Identity())
        for name in keys
    }
    among = SumSet(Joined(announced), ("a", "b"), 1)
    return keys["a"], Context("p", "s", 0, 1, "question", among)


def masks_depend_on_everything_asked() -> None:
    keys, context = _two_parties()
    first = keys.mask("a", context, 4)
    for change in (
        {"request": "another question"},
        {"attempt": 2},
        {"slot": 1},
        {"plan": "another plan"},
        {"schema": "another schema"},
    ):
        other = keys.mask("a", replace(context, **change), 4)  # type: ignore[arg-type]
        assert not np.array_equal(first, other), f"the mask ignores {next(iter(change))}"


def masks_differ_between_coordinates() -> None:
    keys, context = _two_parties()
    mask = keys.mask("a", context, 1000)
    assert len(np.unique(mask)) == 1000, "coordinates share a mask"


def no_row_exceeds_the_bound_of_leaf_sums() -> None:
    plan = plan_for(SCHEMA, Privacy(1.0, 1e-6), "random-trees", settings={"max_depth": 1}, seed=0)
    structure = _structure(SCHEMA, plan, uniform(SCHEMA, 32), 0)
    query = LeafSums((structure,), loss_for(SCHEMA.label).name, NO_TREES)
    rows = some_rows(400)
    scores = np.linspace(-8, 8, 400).reshape(-1, 1)
    check_query(query, SCHEMA, rows, scores, bits=24)
