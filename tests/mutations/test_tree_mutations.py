"""Defects planted into the pure part: each must turn its check red, which is green without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow import Ledger, local_federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.errors import PlanError
from hedgerow.methods.maddock.growing_tree import Cut, GrowingTree
from hedgerow.methods.registry import plan_for
from hedgerow.privacy.accounting.accountant import Price
from hedgerow.privacy.accounting.paths import Paths, Priced
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.noise import mechanisms
from hedgerow.privacy.noise.bernoulli import Sampler
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import ClassHistograms, ImpurityBounds, impurity_bounds
from hedgerow.queries.tree_nodes import NO_COLUMN, Asked
from hedgerow.testing import check_query, noise_off
from tests.statistical.measures import counts_fit, laplace_pmf, share_pmf

SCHEMA = Schema.from_bounds({f"x{j}": (0, 1) for j in range(12)}, classes=[0, 1])
GRID = np.linspace(0, 1, 144).reshape(12, 12)
ROWS = rows_of(GRID, SCHEMA, np.arange(12) % 2)
CUTS = [tuple(range(0, 120, 2))] * 12
COLUMNS = tuple(range(12))


def plan_of(trust: str) -> Any:
    privacy = Privacy(1.0, 0.0, trust, accounting="pure")  # type: ignore[arg-type]
    return plan_for(SCHEMA, privacy, "private-tree", {"max_depth": 3, "n_bins": 128}, seed=1)


def released_noise(trust: str) -> NDArray[np.float64]:
    """Noise of some 1,500 numbers at a price of 0.02 each: scale 50."""
    plan, structure = plan_of(trust), GrowingTree().structure()
    query = ClassHistograms.of(SCHEMA, structure, [Asked(0, COLUMNS, 0.02)], CUTS)

    def release() -> NDArray[np.float64]:
        parts = {f"p{i}": ROWS.take(np.arange(i, 12, 3)) for i in range(3)}
        gate = Gate(local_federation(parts, SCHEMA, trust=trust), plan, Ledger.in_memory())
        for _ in range(3):
            gate.pass_over()
        return gate.release(query).values

    with noise_off():
        exact = release()
    return release() - exact


def has_the_chances(trust: str, pmf: NDArray[np.float64]) -> None:
    """Noise from -1,000 to 1,000 by fifties, and all beyond."""
    noise = np.concatenate([released_noise(trust) for _ in range(4)])
    places = np.clip(np.rint(noise).astype(np.int64), -1001, 1001) + 1001
    seen = np.bincount(places, minlength=2003)
    tail = (1 - pmf.sum()) / 2
    edges = np.arange(0, 2003, 50)
    chances = np.add.reduceat(np.array([tail, *pmf, tail]), edges)
    assert counts_fit(np.add.reduceat(seen, edges), chances)


def the_gate_adds_the_stated_noise() -> None:
    has_the_chances("coordinator", laplace_pmf(50.0, 1000))


def shares_add_up_to_the_stated_noise() -> None:
    """Any two shares are a discrete Laplace, and the third comes on top."""
    both = np.convolve(laplace_pmf(50.0, 2000), share_pmf(50.0, 2, 2000))
    has_the_chances("parties", both[3000:5001])


def paths_stop_at_the_ceiling() -> None:
    ledger, plan = Ledger.in_memory(), plan_of("coordinator")
    held = Reservation(ledger, plan)
    held.charge(0, "a", price=Price(nodes=Priced({}, {1: 0.6})))
    for slot, priced in (
        (3, Priced({1: "a" * 64}, {2: 0.5, 3: 0.1})),
        (4, Priced({1: "a" * 64}, {2: 0.41})),
    ):
        try:
            held.charge(slot, "b", price=Price(nodes=priced))
        except PlanError:
            continue
        raise AssertionError("a path went beyond its ceiling")


def trees_agree() -> None:
    held = Reservation(Ledger.in_memory(), plan_of("coordinator"))
    held.charge(0, "a", price=Price(nodes=Priced({1: "a" * 64}, {2: 0.6})))
    try:
        held.charge(3, "b", price=Price(nodes=Priced({1: "b" * 64}, {3: 0.6})))
    except PlanError:
        return
    raise AssertionError("another tree was accepted, and its right side may be the old left one")


def splits_have_names_of_their_own() -> None:
    none, names = np.zeros(0, np.uint64), set()
    for cut in (Cut(0, 0.5, none, True), Cut(0, 0.25, none, True), Cut(1, 0.5, none, True)):
        for side in (True, False):
            tree = GrowingTree()
            tree.split(0, replace(cut, missing_left=side))
            asked = [Asked(0, (NO_COLUMN,), 0.1)]
            query = ClassHistograms.of(SCHEMA, tree.structure(), asked, CUTS)
            names.add(query.priced().splits[1])
    assert len(names) == 6


def no_row_moves_a_bound_by_more() -> None:
    few = tuple(tuple(cuts) for cuts in CUTS)
    root = GrowingTree().structure()
    query = ImpurityBounds(root, (Asked(0, COLUMNS, 0.1),), COLUMNS, few, 2, subsets=True)
    check_query(query, SCHEMA, ROWS, np.zeros((12, 1)), bits=8)


def halved_scale(patch: pytest.MonkeyPatch) -> None:
    honest = Sampler.geometrics

    def narrow(self: Sampler, size: int, numerator: int, denominator: int) -> NDArray[np.int64]:
        return honest(self, size, numerator, 2 * denominator)

    patch.setattr(Sampler, "geometrics", narrow)


def noise_to_a_copy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mechanisms, "add_laplace", lambda total, *_: total.copy())


def one_draw_for_all(patch: pytest.MonkeyPatch) -> None:
    honest = mechanisms.SecureSource.laplace

    def repeated(self: Any, size: int, scale: float, shares: int = 1) -> Any:
        return np.repeat(honest(self, 1, scale, shares), size)

    patch.setattr(mechanisms.SecureSource, "laplace", repeated)


def shares_of_one_over_s(patch: pytest.MonkeyPatch) -> None:
    honest = mechanisms.add_laplace
    patch.setattr(
        mechanisms, "add_laplace", lambda t, b, s, shares=1: honest(t, b, s, shares + (shares > 1))
    )


def only_this_question(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Paths, "of", staticmethod(lambda charges: Paths()))


def splits_forgotten(patch: pytest.MonkeyPatch) -> None:
    honest = Paths.objection

    def blind(self: Paths, *given: Any, **more: Any) -> str:
        return honest(Paths({}, self.paid), *given, **more)

    patch.setattr(Paths, "objection", blind)


def threshold_left_out(patch: pytest.MonkeyPatch) -> None:
    from hedgerow.queries import tree_nodes

    honest = tree_nodes.split_hash
    patch.setattr(tree_nodes, "split_hash", lambda column, threshold, *rest: honest(column, *rest))


def gini_not_halved(patch: pytest.MonkeyPatch) -> None:
    honest = impurity_bounds.impurity_steps
    patch.setattr(impurity_bounds, "impurity_steps", lambda side, bits: 2 * honest(side, bits))


MUTATIONS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], None]]] = {
    "halved scale": (halved_scale, the_gate_adds_the_stated_noise),
    "noise to a copy": (noise_to_a_copy, the_gate_adds_the_stated_noise),
    "one draw for all": (one_draw_for_all, the_gate_adds_the_stated_noise),
    "halved scale of shares": (halved_scale, shares_add_up_to_the_stated_noise),
    "shares of shape 1/S": (shares_of_one_over_s, shares_add_up_to_the_stated_noise),
    "prices not added up": (only_this_question, paths_stop_at_the_ceiling),
    "trees not compared": (splits_forgotten, trees_agree),
    "threshold not in the split": (threshold_left_out, splits_have_names_of_their_own),
    "Gini not halved": (gini_not_halved, no_row_moves_a_bound_by_more),
}


@pytest.mark.parametrize(
    "check", sorted({c for _, c in MUTATIONS.values()}, key=lambda c: c.__name__)
)
def test_the_check_is_green_on_honest_code(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_planted_defect_turns_its_check_red(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, check = MUTATIONS[name]
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check()
