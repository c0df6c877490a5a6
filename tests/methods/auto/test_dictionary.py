"""Many rounds over a dictionary of tables: what is known of it, lost rounds, and resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow import PrivateBoostingClassifier
from hedgerow.coordinator.gate import Gate, Progress
from hedgerow.data.binning import base_grid
from hedgerow.data.rng import stream
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.engines.local import local_federation
from hedgerow.errors import SettingsError, SlotSpent
from hedgerow.methods.auto.bins import bins_of, cell_cuts
from hedgerow.methods.auto.dictionary import (
    KEPT,
    Dictionary,
    Response,
    Step,
    class_response,
    codes_of,
    made_up_bins,
    noise_left,
    variance_of,
)
from hedgerow.methods.auto.parts import Parts, structure_of
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off
from tests.conftest import MIXED
from tests.contracts.attacks import SCHEMAS

SCHEMA = Schema.from_bounds({"a": (0, 1), "b": (0, 1), "c": (0, 1)}, classes=[0, 1])
N_ROWS, ROUNDS = 4_000, 40


def dictionary(n_blocks: int = 2) -> Dictionary:
    """Each block asks about a table of `a` in two halves and one of `b` in four quarters."""
    grid = base_grid(SCHEMA)
    counts = [np.append(np.full(len(cell_cuts(g, 4)) + 1, 10.0), 0.0) for g in grid]
    bins = [
        bins_of(g, cell_cuts(g, 4), of, 0.0, 8, heavy=False)
        for g, of in zip(grid, counts, strict=True)
    ]
    even = [np.append(np.ones(b.n_bins - 1), 0.0) for b in bins]
    drawn = []
    for _ in range(n_blocks):
        tables = []
        for column, n_parts in ((0, 2), (1, 4)):
            n = bins[column].n_bins
            part = np.minimum(np.arange(n) * n_parts // (n - 1), n_parts - 1)
            parts = [Parts(column, bins[column].cuts, part)]
            tables.append(structure_of(SCHEMA, grid, parts)[0])
        drawn.append(tables)
    made_up = made_up_bins(stream(1, "rows"), even)
    return Dictionary.of(drawn, grid, codes_of(made_up, grid, bins))


def test_made_up_rows_have_the_released_shares() -> None:
    found = dictionary()
    for block in found.blocks:
        halves, quarters = block.split(block.share)
        assert halves == pytest.approx([0.5, 0.5], abs=0.03)
        assert quarters == pytest.approx([0.25] * 4, abs=0.03)
        assert block.cells.shape == (2, KEPT)
        assert np.bincount(block.cells.ravel(), minlength=6).sum() == 2 * KEPT
    assert found.closeness == pytest.approx((0.5 + 0.25) / 2, abs=0.01)


def test_every_kind_of_column_has_made_up_rows_within_its_codes() -> None:
    grid, rng = base_grid(MIXED), np.random.default_rng(2)
    bins, counts = [], []
    for g in grid:
        cuts = cell_cuts(g, 8)
        cells = rng.uniform(-1, 20, (len(cuts) if g.ordered else g.n_cells - 1) + 2)
        bins.append(bins_of(g, cuts, cells, 1.0, 8, heavy=True))
        counts.append(bins[-1].add_up(cells))
    codes = codes_of(made_up_bins(stream(3, "rows"), counts), grid, bins)
    for j, g in enumerate(grid):
        assert int(codes.column(j).max()) <= g.missing_code
        share = np.mean(codes.column(j) == g.missing_code)
        mass = np.maximum(counts[j], 0.0)
        assert share == pytest.approx(mass[-1] / mass.sum(), abs=0.03)


def even_response(slope: float, variance: float) -> Response:
    """All rows alike: `slope` and `variance` are those of the sums over all of them."""
    return Response(np.full(KEPT, slope / KEPT), np.full(KEPT, variance / KEPT))


def test_noise_alone_is_as_wide_as_arithmetic_says_where_nothing_is_taken_back() -> None:
    """One visit to each block: independent noise in two cells and four, less what is common."""
    found, draws = dictionary(), []
    steps = [Step(0, 0.01, 3.0), Step(1, 0.02, 5.0)]
    for seed in range(200):
        draws.append(noise_left(found, steps, even_response(0.0, 0.0), stream(seed, "noise")))
    expected = sum((one.scale * one.noise) ** 2 * ((1 - 1 / 2) + (1 - 1 / 4)) for one in steps)
    assert np.mean(draws) == pytest.approx(expected, rel=0.15)


def test_later_rounds_take_noise_back_and_a_sample_of_rows_adds_to_it() -> None:
    found = dictionary(1)
    steps = [Step(0, 0.002, 3.0)] * 30

    def mean(hessian: float, chance: float) -> float:
        return float(
            np.mean(
                [
                    noise_left(found, steps, even_response(hessian, chance), stream(seed, "noise"))
                    for seed in range(40)
                ]
            )
        )

    assert mean(400.0, 0.0) < 0.5 * mean(0.0, 0.0)
    assert mean(400.0, 400.0) > 1.5 * mean(400.0, 0.0)


def test_clamped_rows_do_not_respond_and_vary_less() -> None:
    chance = np.full((KEPT, 1), 0.2)
    free = class_response(chance, 1.0, 1000.0)
    assert free.slope.sum() == pytest.approx(1000 * 0.2 * 0.8)
    assert free.variance.sum() == pytest.approx(1000 * 0.2 * 0.8)
    clamped = class_response(chance, 0.5, 1000.0)  # those with the class have .8, and are clamped
    assert clamped.slope.sum() == pytest.approx(1000 * 0.2 * 0.8 * 0.8)
    mean = 0.8 * 0.2 - 0.2 * 0.5
    expected = 0.8 * 0.2**2 + 0.2 * 0.5**2 - mean**2
    assert clamped.variance.sum() == pytest.approx(1000 * expected)


def test_the_variance_of_scores_is_that_of_made_up_rows() -> None:
    found = dictionary()
    weights = [np.zeros(6), np.array([1.0, -1.0, 0.0, 0.0, 0.0, 0.0])]
    assert variance_of(found, weights) == pytest.approx(1.0, abs=0.01)


def made_up(n_rows: int = N_ROWS) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """An effect that two columns have together only."""
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 1, (n_rows, 3))
    score = 3.0 * np.sign(X[:, 0] - 0.5) * np.sign(X[:, 1] - 0.5)
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(np.int64)


def fit(rounds: int, **more: Any) -> PrivateBoostingClassifier:
    model = PrivateBoostingClassifier(
        SCHEMA, epsilon=8.0, delta=1e-6, random_state=1, settings={"rounds": rounds}, **more
    )
    return model.fit(*made_up())


def test_a_fit_has_few_rounds_unless_more_are_wanted() -> None:
    usual = PrivateBoostingClassifier(SCHEMA, epsilon=8.0, delta=1e-6).fit(*made_up())
    assert usual.statement_.releases == 16
    assert "rounds" not in usual.plan_.to_dict()["settings"]
    many = fit(ROUNDS)
    assert many.plan_.to_dict()["settings"]["rounds"] == many.statement_.releases == ROUNDS


def test_lost_rounds_make_the_stage_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    release, lost = Gate.release, list[str]()

    def lossy(gate: Gate, query: Any, mu: float = 0.0, name: str = "") -> Any:
        if name.startswith("dictionary") and int(name.split()[1]) % 3 == 0:
            lost.append(name)
            raise SlotSpent("lost")
        return release(gate, query, mu, name)

    whole = fit(ROUNDS)
    monkeypatch.setattr(Gate, "release", lossy)
    model = fit(ROUNDS)
    assert len(lost) == (ROUNDS - 16) // 3
    assert model.statement_.releases == whole.statement_.releases - len(lost)
    X, y = made_up()
    for one in (whole, model):
        right = float(np.mean(one.predict(X) == y))
        assert right > 0.9


def test_a_stage_that_lost_all_of_its_rounds_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    release = Gate.release

    def lossy(gate: Gate, query: Any, mu: float = 0.0, name: str = "") -> Any:
        if name.startswith("dictionary"):
            raise SlotSpent("lost")
        return release(gate, query, mu, name)

    monkeypatch.setattr(Gate, "release", lossy)
    model = fit(ROUNDS)
    dictionary_trees = model.model_.trees[-12 * 16 :]
    assert not any(np.any(tree.values) for tree in dictionary_trees)


class _Stopped(Exception):
    pass


def test_a_run_that_is_resumed_in_the_middle_replays_and_gives_the_same_model(
    tmp_path: Path,
) -> None:
    X, y = made_up()
    rows = rows_of(dict(zip("abc", X.T, strict=True)) | {"label": y}, SCHEMA)
    privacy = Privacy(8.0, 1e-6, "coordinator")
    plan = plan_for(SCHEMA, privacy, "auto", {"rounds": ROUNDS}, seed=3, run="resumed")

    def grown(path: Path, stop: int = 1000) -> tuple[Ensemble, list[Progress]]:
        seen = list[Progress]()

        def observe(progress: Progress) -> None:
            seen.append(progress)
            if progress.slot == stop:
                raise _Stopped

        with Ledger.open(path) as ledger, noise_off():
            federation = local_federation({"all": rows}, SCHEMA, ledger)
            model = method_named("auto").grow(Gate(federation, plan, ledger, observe=observe))
            charges = ledger.lines(COORDINATOR, "charge")
            assert len(charges) == len({line.slot for line in charges}) == len(seen)
        return model, seen

    whole, seen = grown(tmp_path / "whole")
    assert len(seen) == ROUNDS
    with pytest.raises(_Stopped):
        grown(tmp_path / "stopped", stop=28)
    again, replayed = grown(tmp_path / "stopped")
    assert again == whole
    assert [one.replayed for one in replayed] == [True] * 29 + [False] * (ROUNDS - 29)


def test_labels_without_dictionary_rounds_refuse_them() -> None:
    with pytest.raises(SettingsError, match=r"counts are asked in at most 16 rounds"):
        plan_for(SCHEMAS["counts"], Privacy(1.0, 1e-6), "auto", {"rounds": 50})
