"""Noise for single numbers and labels: exact chances, true means, and draws that follow them."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.privacy.noise import randomisers
from hedgerow.privacy.noise.mechanisms import _perturbed, perturb, randomised_labels
from hedgerow.privacy.noise.randomisers import (
    MECHANISMS,
    Duchi,
    Hybrid,
    LabelResponse,
    Laplace,
    Piecewise,
    noise_variance,
    power_below,
)
from hedgerow.testing import noise_off, seeded
from tests.statistical.measures import (
    counts_fit,
    hits_fit,
    mean_within,
)

EPSILONS = (1e-4, 0.05, 0.5, 1.0, 3.0, 8.0, 20.0)
mpmath.mp.dps = 90


def keeps(more: int, less: int, epsilon: float, slack: float = 1e-5) -> None:
    """more / less is at most e^epsilon, and no wasteful bit less."""
    ratio, bound = mpmath.mpf(more) / less, mpmath.exp(mpmath.mpf(epsilon))
    assert ratio <= bound
    assert mpmath.log(ratio) >= epsilon * (1 - slack)


def duchi_table(rule: Duchi) -> NDArray[np.object_]:
    """(input, output): weights of the lower and the upper output, from the comparison itself."""
    cells = np.arange(-rule.places, rule.places + 1)
    upper = [int(weight) for weight in rule.weight(cells)]
    for cell, weight in zip(cells, upper, strict=True):
        edge = np.array([weight - 1, weight], np.uint64)
        signs = np.sign(rule.outputs(np.array([cell, cell]), edge))
        assert signs.tolist() == [1, -1]
    return np.array([[rule.limit - weight, weight] for weight in upper], object)


def piecewise_table(rule: Piecewise) -> NDArray[np.object_]:
    """(input, output): how many draws give each output, from the first and last draw of each."""
    inside, outside = rule.weights
    sizes = [inside] * rule.window + [outside] * rule.last
    ends = np.cumsum(np.array(sizes, object))
    first = np.array([int(end) - size for end, size in zip(ends, sizes, strict=True)], np.uint64)
    last = np.array([int(end) - 1 for end in ends], np.uint64)
    table = np.zeros((rule.last + 1, rule.n_cells), object)
    for place in range(rule.last + 1):
        cells = np.full(rule.n_cells, place)
        outputs = rule.drawn_cells(cells, first)
        assert np.array_equal(outputs, rule.drawn_cells(cells, last))
        assert sorted(outputs.tolist()) == list(range(rule.n_cells))
        table[place, outputs] = sizes
    assert int(ends[-1]) == rule.limit
    return table


def label_table(rule: LabelResponse) -> NDArray[np.object_]:
    """(label, report)."""
    sizes = [rule.own] + [rule.other] * (rule.classes - 1)
    ends = np.cumsum(np.array(sizes, object))
    first = np.array([int(end) - size for end, size in zip(ends, sizes, strict=True)], np.uint64)
    last = np.array([int(end) - 1 for end in ends], np.uint64)
    table = np.zeros((rule.classes, rule.classes), object)
    for label in range(rule.classes):
        reports = rule.outputs(np.full(rule.classes, label), first)
        assert np.array_equal(reports, rule.outputs(np.full(rule.classes, label), last))
        table[label, reports] = sizes
    assert int(ends[-1]) == rule.limit
    return table


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_output_tells_two_inputs_apart_by_more_than_epsilon(epsilon: float) -> None:
    """Whole tables of small grids: every input against every other, for every output."""
    tables = [
        duchi_table(Duchi(epsilon, places=5)),
        piecewise_table(Piecewise(epsilon, n_cells=24)),
        *(label_table(LabelResponse(k, epsilon)) for k in (2, 3, 7)),
    ]
    for table in tables:
        assert len({sum(row) for row in table.tolist()}) == 1  # chances add up alike
        worst = max(max(column) / Fraction(min(column)) for column in table.T.tolist())
        keeps(worst.numerator, worst.denominator, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_grids_in_use_keep_the_bound_too(epsilon: float) -> None:
    duchi = Duchi(epsilon)
    low, high = (int(w) for w in duchi.weight(np.array([-duchi.places, duchi.places])))
    keeps(high, low, epsilon)
    assert low + high == duchi.limit
    keeps(*Piecewise(epsilon).weights, epsilon)
    assert Piecewise(epsilon).limit <= 2**63
    laplace = Laplace(epsilon)
    assert Fraction(2 * laplace.places, laplace.scale) <= Fraction(epsilon)
    assert 2 * laplace.places / laplace.scale > epsilon * (1 - 1e-4)
    for classes in (2, 10, 10_000):
        rule = LabelResponse(classes, epsilon)
        keeps(rule.own, rule.other, epsilon)


@pytest.mark.parametrize("epsilon", [*EPSILONS, math.log(3), 2 / 3])
def test_the_power_is_below_the_true_one(epsilon: float) -> None:
    power = power_below(epsilon)
    true = mpmath.exp(mpmath.mpf(epsilon))
    found = mpmath.mpf(power.numerator) / power.denominator
    assert true * (1 - mpmath.mpf(10) ** -56) < found < true


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_means_are_the_inputs_and_variances_as_stated(epsilon: float) -> None:
    """From the tables, with inputs at both ends and between."""
    duchi, piecewise = Duchi(epsilon, places=5), Piecewise(epsilon, n_cells=24)
    cases = [
        (duchi_table(duchi), np.array([-duchi.size, duchi.size]), np.arange(-5, 6) / 5, duchi),
        (
            piecewise_table(piecewise),
            piecewise.slope * (np.arange(24) - 11.5),
            piecewise.exact(np.arange(piecewise.last + 1)),
            piecewise,
        ),
    ]
    for table, outputs, inputs, rule in cases:
        chances = np.array(table / rule.limit, np.float64)
        size = np.abs(outputs).max()
        assert np.allclose(chances @ outputs, inputs, rtol=0, atol=1e-9 * size)
        spread = chances @ outputs**2 - inputs**2
        stated = [rule.variance(value) for value in inputs]
        assert np.allclose(spread, stated, rtol=1e-9, atol=1e-9 * size)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("value", [0.0, 0.5, -1.0])
def test_variances_are_those_of_the_papers(epsilon: float, value: float) -> None:
    power, half = math.exp(epsilon), math.exp(epsilon / 2)
    duchi = ((power + 1) / (power - 1)) ** 2 - value**2
    piecewise = value**2 / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)
    part = 1 - 1 / half if epsilon > 0.61 else 0.0
    expected = {
        "laplace": 8 / epsilon**2,
        "duchi": duchi,
        "piecewise": piecewise,
        "hybrid": part * piecewise + (1 - part) * duchi,
    }
    for mechanism in MECHANISMS:
        found = noise_variance(mechanism, epsilon, value)
        assert found == pytest.approx(expected[mechanism], rel=1e-4)


@pytest.mark.parametrize("mechanism", [m for m in MECHANISMS if m != "laplace"])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_draws_have_the_stated_mean_and_variance(mechanism: str, epsilon: float) -> None:
    """Outputs are bounded by b, so squares around their mean v by b^2 and their variance by b^2 v.

    At epsilon = 0.3 Duchi's b^2 is above v by 1, and squares hardly vary.
    """
    piecewise, duchi = Hybrid(epsilon).parts
    reach = {"duchi": duchi.size, "piecewise": piecewise.slope * (piecewise.n_cells - 1) / 2}
    for value in (-1.0, 0.3):
        found = perturb(np.full(20_000, value), epsilon, mechanism)
        variance = noise_variance(mechanism, epsilon, value)
        bound = reach.get(mechanism, max(reach.values())) + abs(value)
        assert mean_within(found, value, variance, bound)
        assert mean_within((found - value) ** 2, variance, bound**2 * variance, bound**2)
        assert len(np.unique(found)) >= 2


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_laplace_draws_spread_as_stated(epsilon: float) -> None:
    """Between multiples of half the scale: sums of a geometric series."""
    rule = Laplace(epsilon)
    noise = np.rint(perturb(np.full(20_000, 0.3), epsilon, "laplace") * rule.places)
    noise -= rule.cells(np.array([0.3]))
    steps = np.arange(1, 13) * (rule.scale // 2)
    beyond = np.array([1.0, *(2 * np.exp(-steps / rule.scale) / (1 + np.exp(-1 / rule.scale)))])
    seen = np.bincount(np.searchsorted(steps, np.abs(noise), side="right"), minlength=13)
    assert counts_fit(seen, beyond - np.append(beyond[1:], 0.0))
    assert hits_fit(int((noise > 0).sum()), int((noise != 0).sum()), 0.5)


def test_piecewise_outputs_come_as_often_as_the_table_says() -> None:
    rule = Piecewise(1.0, n_cells=24)
    table, places = piecewise_table(rule), (0, 5, rule.last)
    for place in places:
        value = rule.exact(np.full(20_000, place))
        assert np.array_equal(rule.cells(value), np.full(20_000, place))
        outputs = _perturbed(value, rule) / rule.slope + 11.5
        found = np.bincount(np.rint(outputs).astype(int), minlength=24)
        assert counts_fit(found, np.array(table[place] / rule.limit, np.float64))


@pytest.mark.parametrize("classes", [2, 5])
def test_reported_labels_come_as_often_as_the_table_says(classes: int) -> None:
    rule, n = LabelResponse(classes, 1.5), 20_000
    for label in (0, classes - 1):
        reports = randomised_labels(np.full(n, label), classes, 1.5)
        chances = np.array(label_table(rule)[label] / rule.limit, np.float64)
        assert counts_fit(np.bincount(reports, minlength=classes), chances)
        assert chances[label] == pytest.approx(math.exp(1.5) / (math.exp(1.5) + classes - 1))


def test_the_hybrid_takes_the_piecewise_mechanism_as_often_as_stated() -> None:
    """One of Duchi's two outputs is missing among 500 with a chance of 2^-499."""
    rule, n = Hybrid(2.0), 20_000
    found = perturb(np.zeros(n), 2.0, "hybrid")
    plain = np.abs(np.abs(found) - rule.parts[1].size) < 1e-12
    share = 1 - math.exp(-1.0)
    assert hits_fit(int((~plain).sum()), n, share)
    assert Hybrid(0.6).share == 0
    assert len(np.unique(perturb(np.zeros(500), 0.6, "hybrid"))) == 2


def test_weights_undo_the_bias_of_reports() -> None:
    for classes in (2, 4):
        rule = LabelResponse(classes, 0.7)
        chances = np.array(label_table(rule) / rule.limit, np.float64)
        assert np.allclose(chances @ rule.unbiased_weights(), np.eye(classes), atol=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_without_noise_numbers_come_back_clamped(mechanism: str) -> None:
    values = np.array([-1.0, -0.25, 0.0, 1 / 3, 1.0, 7.0, -np.inf, np.nan])
    with noise_off():
        found = perturb(values, 1.0, mechanism)
        assert randomised_labels(np.array([2, 0]), 3, 1.0).tolist() == [2, 0]
    assert np.allclose(found, [-1, -0.25, 0, 1 / 3, 1, 1, -1, 0], rtol=0, atol=2e-6)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_seeds_repeat_and_secure_draws_do_not(mechanism: str) -> None:
    """Two of Duchi's outputs agree with a chance of 0.61 at most, 200 of them with one of 1e-42;
    at 0 with one of 1/2, 50 of them with one of 1e-15. The other mechanisms have more outputs."""
    values = np.linspace(-1, 1, 200)
    with seeded(5):
        one, labels = perturb(values, 1.0, mechanism), randomised_labels(np.arange(200) % 3, 3, 1.0)
    with seeded(5):
        assert np.array_equal(one, perturb(values, 1.0, mechanism))
        assert np.array_equal(labels, randomised_labels(np.arange(200) % 3, 3, 1.0))
    assert not np.array_equal(perturb(values, 1.0, mechanism), perturb(values, 1.0, mechanism))
    assert perturb(np.zeros((0, 3)), 1.0, mechanism).shape == (0, 3)
    table = perturb(np.zeros((50, 40)), 1.0, mechanism)
    assert table.shape == (50, 40)
    assert not np.array_equal(table[:, 0], table[:, 1])  # every number has noise of its own


def test_what_cannot_be_drawn_is_refused() -> None:
    for epsilon in (0.0, -1.0, 1e-9, 21.0, math.nan, math.inf):
        with pytest.raises(PlanError, match="epsilon from"):
            perturb(np.zeros(2), epsilon, "duchi")
        with pytest.raises(PlanError, match="epsilon from"):
            randomised_labels(np.zeros(2, np.int64), 2, epsilon)
    with pytest.raises(PlanError, match="'gauss'"):
        perturb(np.zeros(2), 1.0, "gauss")
    with pytest.raises(PlanError, match="not one of the 2 classes"):
        randomised_labels(np.array([0, 2]), 2, 1.0)
    with pytest.raises(PlanError, match="classes"):
        randomised_labels(np.array([0]), 1, 1.0)


def test_rounding_the_wrong_way_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randomisers, "power_below", lambda e: Fraction(math.exp(e) * (1 + 1e-9)))
    labels = LabelResponse(2, 1.0)
    for more, less in (Piecewise(1.0).weights, (labels.own, labels.other)):
        with pytest.raises(AssertionError):
            keeps(more, less, 1.0)
