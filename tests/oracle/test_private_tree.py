"""The readable tree with noise off is scikit-learn's CART on the same bin codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.methods.private_tree.rule import tree_cuts
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy
from hedgerow.queries.cuts import bin_of_codes
from hedgerow.testing import noise_off, seeded
from tests.conftest import MIXED, federation_of, mixed_rows, mixed_table, split_rows

TIE = 1e-9
UNEVEN = (31, 150, 260, 59)


def table_of(n_rows: int, n_classes: int, seed: int) -> tuple[Schema, Rows, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    schema = Schema.from_bounds({f"x{j}": (-3, 3) for j in range(6)}, classes=range(n_classes))
    X = rng.normal(size=(n_rows, 6))
    score = X[:, 0] + np.abs(X[:, 1]) * (X[:, 2] > 0) + 0.7 * rng.normal(size=n_rows)
    edges = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    y = np.searchsorted(edges, score)
    rows = rows_of(X, schema, y)
    grid, cuts = base_grid(schema), tree_cuts(schema, 12)
    bins = [bin_of_codes(grid, (j,), (tuple(cuts[j]),))[0][0] for j in range(6)]
    codes = np.stack([b[rows.codes.column(j)] for j, b in enumerate(bins)], axis=1)
    return schema, rows, codes


def grow(
    parts: dict[str, Rows],
    schema: Schema,
    trust: str = "coordinator",
    ledger: Ledger | None = None,
    epsilon: float = 1.0,
    **settings: Any,
) -> Ensemble:
    privacy = Privacy(epsilon, 0.0, trust, accounting="pure")  # type: ignore[arg-type]
    ledger = ledger or Ledger.in_memory()
    plan = plan_for(schema, privacy, "private-tree", settings, seed=3, run="r")
    gate = Gate(federation_of(parts, schema, privacy, ledger), plan, ledger)
    return method_named(plan.method).grow(gate)


def impurity(classes: NDArray[np.int64], k: int) -> float:
    n = np.bincount(classes, minlength=k)
    return float(n.sum() - (n**2).sum() / max(1, n.sum()))


def ranked_splits(
    codes: NDArray[np.int64], y: NDArray[np.int64], least: int, k: int
) -> list[float]:
    """Impurities of every split that makes another partition, the lowest first."""
    found = {}
    for j in range(codes.shape[1]):
        for cut in np.unique(codes[:, j])[:-1]:
            left = codes[:, j] <= cut
            if min(left.sum(), (~left).sum()) >= least:
                key = min(left.tobytes(), (~left).tobytes())
                found[key] = impurity(y[left], k) + impurity(y[~left], k)
    return sorted(found.values())


def compare(
    model: Ensemble, cart: Any, codes: NDArray[np.int64], y: NDArray[np.int64], least: int
) -> int:
    """Walk both trees; where the best split is unique they must part the rows alike."""
    ours, theirs, k = model.trees[0].structure, cart.tree_, int(y.max()) + 1
    grid, cuts = base_grid(model.schema), tree_cuts(model.schema, 12)
    shares = np.array(model.record["tree"]["shares"])
    compared = 0

    def walk(a: int, b: int, rows: NDArray[np.int64]) -> None:
        nonlocal compared
        counts = np.bincount(y[rows], minlength=k)
        assert np.allclose(shares[a], counts / counts.sum(), atol=1e-6)
        found = ranked_splits(codes[rows], y[rows], least, k)
        if len(found) > 1 and found[1] - found[0] <= TIE:
            return
        if ours.feature[a] < 0 or theirs.feature[b] < 0:
            gains = bool(found) and impurity(y[rows], k) - found[0] > TIE
            assert ours.feature[a] < 0
            assert theirs.feature[b] < 0 or not gains
            return
        j = int(ours.feature[a])
        edges = grid[j].edges[list(cuts[j])]
        mine = codes[rows, j] <= int(np.searchsorted(edges, ours.threshold[a]))
        cart_goes = codes[rows, theirs.feature[b]] <= theirs.threshold[b]
        assert np.array_equal(mine, cart_goes) or np.array_equal(mine, ~cart_goes)
        compared += 1
        same = np.array_equal(mine, cart_goes)
        left, right = theirs.children_left[b], theirs.children_right[b]
        walk(int(ours.left[a]), int(left if same else right), rows[mine])
        walk(int(ours.right[a]), int(right if same else left), rows[~mine])

    walk(0, 0, np.arange(len(y)))
    return compared


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("saves", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_noise_off_is_cart_for_any_parties(n_classes: int, saves: bool, seed: int) -> None:
    schema, rows, codes = table_of(600, n_classes, seed)
    y = rows.target.astype(np.int64)
    given = {"max_depth": 4, "n_bins": 12, "min_samples_leaf": 5, "save_budget": saves}
    cart = DecisionTreeClassifier(max_depth=4, min_samples_leaf=5).fit(codes, y)
    with noise_off():
        alone = grow({"all": rows}, schema, **given)
        apart = grow(split_rows(rows, UNEVEN), schema, **given)
        masked = grow(split_rows(rows, UNEVEN), schema, "parties", **given)
    assert compare(alone, cart, codes, y, 5) >= 5
    assert compare(apart, cart, codes, y, 5) >= 5
    assert apart == masked
    assert alone.statement.guarantee == "not private"
    predicted = alone.predict({name: [0.1] for name in schema.names})
    assert predicted.shape == (1, n_classes)
    assert predicted.sum() == pytest.approx(1.0, abs=1e-6)


def test_the_comparison_can_fail() -> None:
    schema, rows, codes = table_of(600, 2, 1)
    y = rows.target.astype(np.int64)
    with noise_off():
        model = grow({"all": rows}, schema, max_depth=3, n_bins=12, min_samples_leaf=5)
    other = DecisionTreeClassifier(
        max_depth=3, min_samples_leaf=5, splitter="random", random_state=1
    )
    with pytest.raises(AssertionError):
        compare(model, other.fit(codes, y), codes, y, 5)


def test_permuting_the_classes_permutes_the_tree() -> None:
    schema, rows, _ = table_of(500, 3, 4)
    turned = Rows(rows.codes, (rows.target + 1) % 3, rows.persons)
    with noise_off():
        one, two = (grow({"all": r}, schema, max_depth=3) for r in (rows, turned))
    assert np.array_equal(one.trees[0].structure.threshold, two.trees[0].structure.threshold)
    assert np.allclose(one.trees[0].values[:, [2, 0, 1]], two.trees[0].values)


def test_every_sort_of_column_can_cut_and_counts_are_those_of_the_rows() -> None:
    rows = mixed_rows(mixed_table(900, seed=3))
    with noise_off():
        model = grow({"all": rows}, MIXED, max_depth=5, min_samples_leaf=5)
    record, structure = model.record["tree"], model.trees[0].structure
    assert record["counts"][0] == np.bincount(rows.target.astype(int)).tolist()
    assert len(record["counts"]) == structure.n_nodes
    assert {type(MIXED.columns[j]).__name__ for j in structure.feature if j >= 0} >= {
        "Numeric",
        "Categorical",
    }
    counts = np.array(record["counts"])
    for node in np.flatnonzero(structure.feature >= 0):
        both = counts[structure.left[node]] + counts[structure.right[node]]
        assert np.array_equal(counts[node], both)
    assert set(record["deviations"]) == {0.0}


@pytest.mark.parametrize(("n_parties", "trust"), [(1, "coordinator"), (4, "parties")])
def test_a_resumed_run_replays_the_same_tree_with_real_noise(n_parties: int, trust: str) -> None:
    schema, rows, _ = table_of(400, 2, 1)
    ledger, models = Ledger.in_memory(), []
    for _ in range(2):
        parts = split_rows(rows, [90] * (n_parties - 1))
        models.append(grow(parts, schema, trust, ledger, epsilon=4.0, max_depth=3))
    assert models[0] == models[1]
    assert models[0].record == models[1].record
    assert models[0].statement.guarantee == "pure"
    verify(ledger)


@pytest.mark.parametrize("lost", range(8))
def test_a_lost_release_ends_a_branch_and_stays_charged(
    lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process dies between charge and release, no spare is left; the next one goes on."""
    schema, rows, _ = table_of(400, 2, 1)
    ledger, seen = Ledger.in_memory(), []
    store = Reservation.store

    def dying(self: Reservation, *given: Any, **more: Any) -> Any:
        seen.append(1)
        if len(seen) == lost + 1:
            raise KeyboardInterrupt
        return store(self, *given, **more)

    monkeypatch.setattr(Reservation, "store", dying)
    try:
        whole = grow({"all": rows}, schema, ledger=ledger, epsilon=4.0, max_depth=2)
        assert len(seen) <= lost  # fewer questions than that
        assert whole.statement.guarantee == "pure"
        return
    except KeyboardInterrupt:
        pass
    model = grow({"all": rows}, schema, ledger=ledger, epsilon=4.0, max_depth=2)
    assert model == grow({"all": rows}, schema, ledger=ledger, epsilon=4.0, max_depth=2)
    charges = ledger.lines(COORDINATOR, "charge")
    assert len(charges) == len(ledger.lines(COORDINATOR, "release")) + 1
    assert np.isfinite(model.trees[0].values).all()
    verify(ledger)


def test_the_bare_gate_of_the_benchmark_gives_the_model_of_the_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    from private_tree.bare import tree_of

    schema, rows, _ = table_of(500, 2, 1)
    with seeded(3):
        real = grow({"all": rows}, schema, epsilon=2.0, max_depth=3)
    bare = tree_of([rows], schema, 2.0, 3, max_depth=3)
    assert real == bare
    assert real.record["tree"] == bare.record["tree"]
