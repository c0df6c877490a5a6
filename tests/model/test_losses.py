"""The bounds that losses state, searched densely in whole numbers and through the kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.data.schema import Label
from hedgerow.errors import FormatError, SettingsError
from hedgerow.kernels import hazards, statistics
from hedgerow.model.losses import (
    Hazards,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    loss_for,
    loss_named,
)
from hedgerow.privacy.settings import BoostingSettings
from tests.contracts.attacks import GOLDEN, TIGHT
from tests.oracle.parts import softmax

Ints = NDArray[np.int64]


@pytest.mark.parametrize(
    ("label", "loss"),
    [
        (Label("y", (0, 1)), Logistic()),
        (Label("y", (0, 1, 2)), Softmax(3)),
        (Label("y", tuple("abcdefg")), Softmax(7)),
        (Label("y", lower=0, upper=9), Squared()),
        (Label("t", event="e", cuts=(1, 2, 5)), Hazards(3)),
        (Label("n", upper=20, loss="poisson"), Poisson(20)),
        (Label("y", lower=0, upper=9, loss="squared"), Squared()),
        (Label("y", lower=0, upper=9, loss="quantile", quantile=0.9), Quantile(9000)),
        (Label("y", lower=2, upper=10, loss="huber", huber=2), Huber(1 << 18)),
    ],
)
def test_a_loss_belongs_to_its_label_and_is_found_by_its_name(label: Label, loss: Any) -> None:
    assert loss_for(label) == loss
    assert loss_named(loss.name) == loss


@pytest.mark.parametrize(
    "name",
    ["", "softmax", "softmax-", "softmax-2", "softmax-10001", "softmax-³", "huber", "softmax--3",
     "hazards-1", "hazards-65", "hazards-", "poisson", "poisson-0", "poisson-1000001", "huber-0",
     "quantile-0", "quantile-10000", "quantile-0.5", "huber-1048577"],
)  # fmt: skip
def test_unknown_losses_and_updates_are_refused(name: str) -> None:
    with pytest.raises(FormatError, match="unknown loss"):
        loss_named(name)
    with pytest.raises(SettingsError, match="choose one of newton, gradient, averaging"):
        BoostingSettings(update=name)


# Softmax: the simplex, in whole numbers. A scale is m / n.


def largest_square(others: Ints, bits: int, scale: tuple[int, int]) -> int:
    """Largest (n g)^2 + (m h)^2 - 2 (n one)^2 over rows of the other classes' shares on a grid."""
    m, n = scale
    one = 1 << bits
    own = others.sum(axis=1, keepdims=True)
    assert own.max() <= one
    shares = np.concatenate([own, others], axis=1)  # (point, class)
    hessians = shares * (one - shares) >> bits
    squares = (n * shares) ** 2 + (m * hessians) ** 2
    return int(squares.sum(axis=1).max() - 2 * (n * one) ** 2)


def simplex(bits: int, n_others: int) -> Ints:
    """Dense points of {p >= 0, sum p <= 1}, and every step around the corners and the ties."""
    one, rng = 1 << bits, np.random.default_rng(0)
    steps = np.linspace(0, one, {2: 1025, 3: 129, 6: 9}[n_others]).astype(np.int64)
    points = np.stack(np.meshgrid(*[steps] * n_others, indexing="ij"), -1).reshape(-1, n_others)
    near = []
    for tied in range(1, n_others + 1):
        centre = np.zeros(n_others, np.int64)
        centre[:tied] = one // tied
        near.append(centre + rng.integers(-40, 41, (4000, n_others)))
        near.append(centre - np.arange(400)[:, None])
    shares = rng.dirichlet(np.full(n_others + 1, 0.4), 100_000)[:, :n_others]
    points = np.concatenate([points, *near, np.floor(shares * one).astype(np.int64)])
    return points[(points >= 0).all(axis=1) & (points.sum(axis=1) <= one)]


@pytest.mark.parametrize("n_others", [2, 3, 6])
@pytest.mark.parametrize("bits", [16, 20])
def test_the_softmax_bound_holds_on_the_whole_simplex_and_is_tight(
    bits: int, n_others: int
) -> None:
    points = simplex(bits, n_others)
    assert largest_square(points, bits, (2, 1)) == 0
    assert largest_square(points, bits, (41, 20)) > 0  # 2.05
    assert largest_square(points, bits, (2001, 1000)) > 0


def kernel_softmax(scores: list[float], own: int, bits: int) -> tuple[list[int], list[int]]:
    out = np.empty((1, 2 * len(scores)), np.int64)
    statistics.softmax(np.array([scores]), np.array([float(own)]), bits, out)
    return out[0, : len(scores)].tolist(), out[0, len(scores) :].tolist()


@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_the_compiled_softmax_keeps_the_bound_and_equals_whole_numbers(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    for bits in range(16, 32):
        one = 1 << bits
        for spread in (0.1, 1.0, 5.0, 40.0):
            for scores in rng.normal(0, spread, (60, n_classes)).tolist():
                own = int(rng.integers(n_classes))
                g, h = kernel_softmax(scores, own, bits)
                assert (g, h) == softmax(scores, own, bits)
                assert sum(g) == 0
                assert sum(a * a for a in g) + 4 * sum(b * b for b in h) <= 2 * one * one
                assert sum(h) <= one


def test_permuting_the_classes_permutes_the_compiled_softmax() -> None:
    rng = np.random.default_rng(4)
    for scores in rng.normal(0, 3, (200, 5)):
        order = rng.permutation(5)
        g, h = kernel_softmax(scores.tolist(), 2, 27)
        g2, h2 = kernel_softmax(scores[order].tolist(), int(np.flatnonzero(order == 2)[0]), 27)
        assert [g[k] for k in order] == g2
        assert [h[k] for k in order] == h2


@pytest.mark.parametrize("bits", [16, 31])
def test_scores_that_are_no_numbers_add_nothing_beyond_the_bound(bits: int) -> None:
    one = 1 << bits
    nan, inf = math.nan, math.inf
    several = ([nan] * 3, [nan, 0, 1], [1, 0, nan], [inf] * 3, [inf, 0, 0], [0, 0, inf])
    for scores in (*several, [-inf] * 3, [-inf, 0, 0]):
        for own in range(3):
            g, h = kernel_softmax([float(s) for s in scores], own, bits)
            assert sum(g) == 0
            assert all(0 <= b <= one // 4 for b in h)
            assert sum(a * a for a in g) + 4 * sum(b * b for b in h) <= 2 * one * one


@pytest.mark.parametrize("target", [0.0, 1.0, 0.3])
@pytest.mark.parametrize("bits", [16, 24, 31])
def test_the_squared_loss_clips_scores_far_outside(target: float, bits: int) -> None:
    one = 1 << bits
    for score in (-1e6, -1.0, 0.0, 0.4, 1.0, 1e6, math.inf, -math.inf, math.nan):
        out = np.empty((1, 2), np.int64)
        statistics.squared(np.array([score]), np.array([target]), bits, out)
        clipped = 0.5 if math.isnan(score) else min(max(score, 0.0), 1.0)
        assert out[0].tolist() == [math.trunc((clipped - target) * one), one]
        assert abs(int(out[0, 0])) <= one


def test_probabilities_are_stable_and_add_up() -> None:
    far = np.array([[1e6, 0.0, -1e6], [-1e6, -1e6, -1e6], [0.0, 0.0, 0.0]])
    shares = Softmax(3).predictions(far, averaged=False)
    assert shares.tolist()[0] == [1, 0, 0]
    assert np.allclose(shares[1:], 1 / 3)
    for loss, width in ((Softmax(3), 3), (Logistic(), 1)):
        forest = loss.predictions(np.array([[-0.2] * width, [1.3] * width]), averaged=True)
        assert np.allclose(forest.sum(axis=1), 1)
        assert (forest >= 0).all()


@pytest.mark.parametrize("counts", [[0.0, 0.0], [-50.0, 3.0], [10.0, -4.0], [5.0, 900.0]])
def test_a_start_from_noisy_counts_is_finite_and_sensible(counts: list[float]) -> None:
    start = Squared().start(np.array(counts), floor=4.0)
    assert 0 <= start[0] <= 1
    assert np.isfinite(Logistic().start(np.array(counts), floor=4.0)).all()
    several = Softmax(3).start(np.array([*counts, 7.0]), floor=4.0)
    assert several.max() == 0
    assert np.isfinite(several).all()


# The joint bound of (g, c h) on the grid, in whole numbers.


def worst_square(bits: int, scale: tuple[int, int], rounding: str) -> int:
    """Largest (n g)^2 + (m h)^2 - (n one)^2 with c = m / n, over a dense set of q."""
    m, n = scale
    one = 1 << bits
    # Quarter steps: everywhere at 16 bits, around the tight point and the ends above.
    centres = [4 * one - 4, 4 * round(one / GOLDEN), 4]
    wanted = (
        range(4 * one + 1)
        if bits == 16
        else [q for c in centres for q in range(c - 40_000, c + 40_000) if 0 <= q <= 4 * one]
    )
    worst = -(n**2) * one**2
    for quarter in wanted:
        if rounding == "truncate":
            g = quarter // 4
            h = g * (one - g) >> bits
        else:
            g = (quarter + 2) // 4
            h = (quarter * (4 * one - quarter) + 8 * one) // (16 * one)
        worst = max(worst, (n * g) ** 2 + (m * h) ** 2 - (n * one) ** 2)
    return worst


@pytest.mark.parametrize("bits", [16, 31])
def test_the_joint_bound_holds_on_the_grid_because_q_is_truncated(bits: int) -> None:
    assert worst_square(bits, (333, 100), "truncate") <= 0
    just_below = (math.floor(GOLDEN**2.5 * 10**12), 10**12)
    assert worst_square(bits, just_below, "truncate") <= 0
    assert worst_square(bits, (334, 100), "truncate") > 0
    assert worst_square(bits, just_below, "nearest") > 0


@pytest.mark.parametrize("bits", range(16, 32))
def test_the_compiled_gradient_keeps_the_joint_bound(bits: int) -> None:
    one, out = 1 << bits, np.empty((1, 2), np.int64)
    tight = TIGHT + np.linspace(-1e-4, 1e-4, 1500)
    scores = np.concatenate([np.linspace(-60, 60, 1500), tight, -tight])
    for score in scores.tolist():
        for target in (0.0, 1.0):
            statistics.logistic(np.array([score]), np.array([target]), bits, 1 << bits, out)
            g, h = (int(v) for v in out[0])
            assert (100 * g) ** 2 + (333 * h) ** 2 <= (100 * one) ** 2
            assert (g <= 0) == (target == 1.0) or g == 0


@pytest.mark.parametrize("bits", [16, 26, 31])
def test_the_compiled_sigmoid_is_the_exact_one(bits: int) -> None:
    rng = np.random.default_rng(bits)
    scores = np.concatenate([rng.normal(0, s, 4000) for s in (0.1, 3, 20)])
    scores = np.append(scores, [0.0, -0.0, 700.0, -700.0, 1e9, -1e9, np.inf, -np.inf, np.nan])
    target = rng.integers(0, 2, len(scores)).astype(float)
    out = np.empty((len(scores), 2), np.int64)
    statistics.logistic(scores, target, bits, 1 << bits, out)
    for score, y, g, h in zip(scores, target, *out.T, strict=True):
        with np.errstate(over="ignore"):
            q = 0.0 if np.isnan(score) else 1 / (1 + np.exp(score if y else -score))
        assert abs(abs(int(g)) - q * 2**bits) <= 1 + 2.0 ** (bits - 50)
        assert int(h) == (abs(int(g)) * (2**bits - abs(int(g)))) >> bits
        assert g == 0 or (g < 0) == (y == 1)


# Hazards: what a row adds lies between -1 and 1, and reaches both.


def strange_hazards(n: int, n_intervals: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores from nothing to overflow, and what is no number; every cell of time and event."""
    rng = np.random.default_rng(0)
    centre = rng.choice([-800.0, -30.0, -6.0, -2.0, 0.0, 3.0, 40.0, 800.0], (n, 1))
    scores = centre + rng.normal(0, 1, (n, n_intervals)) * rng.choice([0.0, 1.0, 30.0], (n, 1))
    strange = rng.choice([np.nan, np.inf, -np.inf], 1000)
    scores[rng.integers(0, n, 1000), rng.integers(0, n_intervals, 1000)] = strange
    return scores, rng.integers(0, 2 * n_intervals + 1, n).astype(np.float64)


@pytest.mark.parametrize("clip", [1.0, 0.3])
def test_no_row_exceeds_the_clip_in_a_million_tries_and_some_reach_it(clip: float) -> None:
    bits, n, n_intervals = 31, 1_000_000, 6
    scores, target = strange_hazards(n, n_intervals)
    out, most = np.empty((n, 2), np.int64), int(clip * 2**bits)
    for newton in (False, True):
        hazards.hazards(scores, target, bits, most, newton, out)
        assert (out[:, 0].min(), out[:, 0].max()) == (-most, most)  # no more, and no less would do
        if newton:
            assert (out[:, 1].min(), out[:, 1].max()) == (0, most)
            assert np.any((out[:, 0] == most) & (out[:, 1] == most))  # so neither is free
        else:
            assert np.all(out[:, 1] == 1 << bits)
    assert Hazards(n_intervals).bound("slope", clip).l2 == clip


@pytest.mark.parametrize("clip", [1.0, 0.3])
def test_no_row_of_two_periods_leaves_the_disk_in_a_million_tries(clip: float) -> None:
    """Both slopes of a row together: in whole numbers never longer than the clip, and as long."""
    bits, n, n_intervals = 31, 1_000_000, 6
    scores, target = strange_hazards(n, n_intervals)
    out, most = np.empty((n, 4), np.int64), int(clip * 2**bits)
    for n_first in (1, 3, 5):
        hazards.hazards_by_period(scores, target, n_first, bits, most, True, out)
        for pair in (out[:, :2], out[:, 2:]):  # below 2**31, so squares fit
            assert np.max(pair[:, 0] ** 2 + pair[:, 1] ** 2) == most**2
        first, second = out[:, 0], out[:, 1]
        assert (first.min(), first.max(), second.min(), second.max()) == (-most, most, -most, most)
        both = np.minimum(np.abs(first), np.abs(second)) > most // 2
        edge = np.hypot(first[both], second[both])
        assert edge.max() > (1 - 2.0**-30) * most  # shortened by no more than it takes
        assert out[:, 2:].min() == 0
    assert Hazards(n_intervals, 3).bound("slope", clip).l2 == clip


def test_rows_of_two_periods_that_are_not_clamped_are_no_longer_than_the_root_of_two() -> None:
    bits, n = 30, 1_000_000
    scores, target = strange_hazards(n, 6)
    query = statistics.Gradients(
        scores, target, bits, statistics.HAZARDS, statistics.SLOPE, statistics.NO_CLIP, 2,
        parameter=2.0,
    )  # fmt: skip
    out = np.empty((n, query.room), np.int64)
    statistics.row_statistics(query, 0, n, out)
    longest = math.sqrt(float(np.max(out[:, 0] ** 2 + out[:, 1] ** 2))) / 2**bits
    assert Hazards(6, 2).bound("slope").l2 == math.sqrt(2.0)
    assert 1 - 2.0 ** (2 - bits) < longest / math.sqrt(2.0) <= 1


def log_loss(scores: Any, cell: int) -> float:
    """Minus the log likelihood of a row of grouped times."""
    d, k, n = np.exp(scores), cell // 2, len(scores)
    if cell % 2:
        return float(d[:k].sum() - math.log(-math.expm1(-d[k])))
    return float(d[:k].sum() + (0.5 * d[k] if k < n else 0.0))


def test_hazards_are_the_slope_of_the_likelihood_of_grouped_times() -> None:
    """By differences along a common shift of all scores, and of those of each period."""
    rng, n, n_first = np.random.default_rng(1), 4, 3
    for cell in range(2 * n + 1):
        scores = rng.normal(-1.9, 0.3, n)

        def slope(of: slice, scores: Any = scores, cell: int = cell) -> float:
            step = np.zeros(n)
            step[of] = 1e-5
            return (log_loss(scores + step, cell) - log_loss(scores - step, cell)) / 2e-5

        at, (out, both) = np.array([float(cell)]), (np.empty((1, w), np.int64) for w in (2, 3))
        hazards.hazards(scores[None], at, 40, 1 << 40, False, out)
        assert abs(out[0, 0] / 2**40 - slope(slice(None))) < 1e-6
        hazards.hazards_by_period(scores[None], at, n_first, 40, 1 << 40, False, both)
        first, second = slope(slice(0, n_first)), slope(slice(n_first, n))
        length = max(1.0, math.hypot(first, second))
        assert abs(both[0, 0] / 2**40 - first / length) < 1e-6
        assert abs(both[0, 1] / 2**40 - second / length) < 1e-6


def test_a_loss_whose_effects_change_has_a_name_of_two_numbers() -> None:
    assert loss_named("hazards-6-2") == Hazards(6, 2) != Hazards(6)
    for wrong in ("hazards-6-0", "hazards-6-6", "hazards-06-2", "hazards-6-2-1", "hazards-6-x"):
        with pytest.raises(FormatError):
            loss_named(wrong)


def test_times_to_an_event_have_no_hessians_of_all_outputs() -> None:
    with pytest.raises(FormatError, match="no bounded Hessians"):
        Hazards(4).hessian_bound()


# Counts, quantiles and robust regressions: what a row adds reaches its bound and never exceeds it.


def strange_scores(rng: Any, n: int) -> NDArray[np.float64]:
    centre = rng.choice([-800.0, -30.0, -3.0, -0.5, 0.0, 0.3, 1.0, 40.0, 800.0], n)
    scores = centre + rng.normal(0, 1, n) * rng.choice([0.0, 0.3, 1.0, 30.0], n)
    scores[rng.integers(0, n, 3000)] = rng.choice([np.nan, np.inf, -np.inf], 3000)
    return scores


@pytest.mark.parametrize("clip", [1.0, 0.05])
@pytest.mark.parametrize("newton", [False, True])
def test_no_count_exceeds_the_clip_in_a_million_tries_and_some_reach_it(
    clip: float, newton: bool
) -> None:
    rng, bits, n, cap = np.random.default_rng(2), 31, 1_000_000, 37
    scores, steps = strange_scores(rng, n), statistics.EXPOSURE_STEPS
    target = rng.integers(0, cap + 1, n) * steps + rng.choice([0, 1, 30_000, steps - 1], n)
    update = statistics.NEWTON if newton else statistics.GRADIENT
    most = int(clip * 2**bits)
    gradients = statistics.Gradients(
        scores[:, None], target.astype(np.float64), bits, statistics.POISSON, update, most, 2,
        parameter=float(cap),
    )  # fmt: skip
    out = np.empty((n, 2), np.int64)
    statistics.row_statistics(gradients, 0, n, out)
    assert (out[:, 0].min(), out[:, 0].max()) == (-most, most)
    largest = most if newton else 1 << bits
    assert out[:, 1].min() >= 0
    assert out[:, 1].max() == largest
    bound = Poisson(cap).bound("newton" if newton else "gradient", clip)
    norms = np.hypot(out[:, 0] / 2.0**bits, bound.second_scale * out[:, 1] / 2.0**bits)
    assert norms.max() == pytest.approx(bound.l2, rel=1e-7)
    assert norms.max() <= bound.l2 * (1 + 1e-12)


def test_counts_have_the_slope_of_their_likelihood() -> None:
    """By differences of minus the log likelihood of a count, divided by the cap."""
    cap, steps = 12, statistics.EXPOSURE_STEPS
    for count, exposure, score in ((0, 1.0, -3.0), (3, 0.25, -1.5), (12, 0.5, -0.4)):

        def loss(s: float, count: int = count, exposure: float = exposure) -> float:
            mean = cap * exposure * math.exp(s)
            return (mean - count * math.log(mean)) / cap

        slope = (loss(score + 1e-5) - loss(score - 1e-5)) / 2e-5
        out = np.empty((1, 2), np.int64)
        target = np.array([count * steps + exposure * steps - 1])
        statistics.poisson(np.array([score]), target, cap, 40, 1 << 40, True, out)
        assert abs(out[0, 0] / 2**40 - slope) < 1e-6
        assert abs(out[0, 1] / 2**40 - exposure * math.exp(score)) < 1e-9


@pytest.mark.parametrize("level", [0.0001, 0.1, 0.5, 0.9])
def test_no_quantile_exceeds_its_bound_in_a_million_tries_and_some_reach_it(level: float) -> None:
    rng, bits, n = np.random.default_rng(3), 31, 1_000_000
    out = np.empty((n, 2), np.int64)
    statistics.quantile(strange_scores(rng, n), rng.random(n), level, bits, out)
    bound = Quantile(round(level * 10_000)).bound("slope")
    assert np.abs(out[:, 0]).max() / 2**bits == pytest.approx(bound.l2, rel=1e-8)
    assert np.abs(out[:, 0]).max() / 2**bits <= bound.l2
    assert set(np.unique(out[:, 1])) == {1 << bits}


def test_no_robust_gradient_exceeds_its_bend_in_a_million_tries_and_some_reach_it() -> None:
    rng, bits, n = np.random.default_rng(4), 31, 1_000_000
    out, loss = np.empty((n, 2), np.int64), Huber(1 << 15)
    statistics.huber(strange_scores(rng, n), rng.random(n), loss.parameter, bits, out)
    assert (out[:, 0].min(), out[:, 0].max()) == (-(1 << bits - 5), 1 << bits - 5)
    assert loss.bound("slope").l2 == 2.0**-5


@pytest.mark.parametrize("loss", [Quantile(5000), Huber(1 << 15)])
def test_losses_without_hessians_say_so(loss: Any) -> None:
    with pytest.raises(FormatError, match="no newton update"):
        loss.bound("newton")
    with pytest.raises(FormatError, match="no Hessians"):
        loss.hessian_bound()


@pytest.mark.parametrize("counts", [[0.0, 0.0], [-50.0, 3.0], [10.0, -4.0], [900.0, 5.0]])
def test_a_rate_from_noisy_sums_is_finite_and_at_most_the_cap(counts: list[float]) -> None:
    start = Poisson(9).start(np.array(counts), floor=4.0)
    assert np.isfinite(start).all()
    assert start[0] <= 0
    assert np.isfinite(Poisson(9).start_deviation(np.array(counts), 4.0, 2.0)).all()


@pytest.mark.parametrize("clip", [0.05, 0.3, 0.5, 0.6, 0.75, 0.99])
def test_the_bound_of_a_clamped_row_is_kept_and_reached(clip: float) -> None:
    """On the whole curve (q, q - q^2) of the logistic loss: less noise would be too little."""
    q = np.linspace(0.0, 1.0, 1_000_001)
    g, h = np.minimum(q, clip), q * (1 - q)
    bound = Logistic().bound("newton", clip)
    assert np.hypot(g, bound.second_scale * h).max() == pytest.approx(bound.l2, rel=1e-9)
    assert (g + bound.second_scale * h).max() == pytest.approx(bound.l1, rel=1e-9)
