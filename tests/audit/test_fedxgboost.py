"""Attacks find what they should find, and nothing where nothing is left."""

from __future__ import annotations

import json
import math
from importlib import import_module

import numpy as np
import pytest

from hedgerow.audit.fedxgboost import AuditSettings, audit_table, drawn_splits, split_matrix
from hedgerow.audit.fedxgboost_columns import (
    SeenSplit,
    instance_spaces,
    order_of_cuts,
    places_between_cuts,
)
from hedgerow.audit.fedxgboost_labels import (
    guess_from_noisy,
    guessed_from_noisy,
    guessed_from_plain,
    guessed_from_randomised,
    labels_from_gradients,
    log_chances,
    most_accurate,
)
from hedgerow.audit.fedxgboost_matrices import (
    answer,
    columns_used,
    labels_from_answers,
    null_vectors,
    recover_splits,
    recovered,
    together,
)
from hedgerow.audit.fedxgboost_null_spaces import (
    beside,
    bins_from_kernel,
    fewest_ones,
    labels_from_kernel,
)
from hedgerow.data.rng import stream
from hedgerow.errors import FormatError
from hedgerow.methods.fedxgboost.settings import PROTECTIONS, VerticalSettings
from hedgerow.methods.fedxgboost.statements import disclosures
from hedgerow.privacy.noise import randomisers
from hedgerow.privacy.noise.mechanisms import perturb
from hedgerow.privacy.noise.randomisers import MECHANISMS, Duchi, Laplace, Piecewise
from hedgerow.testing import seeded
from tests.statistical.test_local import piecewise_table


def table(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, labels, and [g h] of a first logistic tree."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n_rows, 2))
    labels = (rng.uniform(size=n_rows) < 1 / (1 + np.exp(1 - columns[:, 0]))).astype(np.int64)
    p = labels.mean()
    return columns, labels, np.column_stack([p - labels, np.full(n_rows, p * (1 - p))])


# ---- matrices


def test_null_vectors_keep_sums_and_answers_do_not_change_them() -> None:
    columns, _, gradients = table(120)
    space = null_vectors(gradients, 50, stream(0, "t"))
    assert np.allclose(space.T @ space, np.eye(50))
    assert np.allclose(space.T @ gradients, 0)
    bits = split_matrix(columns, 4)
    assert bits.shape == (120, 8)
    assert np.array_equal(bits[:, 0], columns[:, 0] < np.quantile(columns[:, 0], 0.2))
    seen = answer(bits.astype(float), space)
    assert np.allclose(gradients.T @ seen, gradients.T @ bits)
    assert np.allclose(seen, (np.eye(120) - space @ space.T) @ bits)
    with pytest.raises(FormatError, match="119 columns"):
        null_vectors(gradients, 119, stream(0, "t"))


def test_splits_are_recovered_from_small_spaces_and_hidden_by_large_ones() -> None:
    columns, _, gradients = table(300)
    bits = split_matrix(columns, 5)
    found = {s: recover_splits(bits, gradients, s, stream(1, "t")) for s in (0.1, 0.4, 0.95)}
    assert found[0.1].projections == 1.0
    assert found[0.4].projections == 1.0 > found[0.4].rounding > 0.85
    assert found[0.4].above_chance == 1.0
    assert found[0.95].above_chance < 0.25
    assert found[0.1].baseline == pytest.approx(np.maximum(bits.mean(0), 1 - bits.mean(0)).mean())


def test_columns_used_as_they_were_sent_are_found_out() -> None:
    columns, _, gradients = table(200)
    bits = split_matrix(columns, 4)
    sent = null_vectors(gradients, 150, stream(2, "t"))
    used = np.array([3, 17, 40, 99, 149])
    seen = answer(bits.astype(float), sent[:, used])
    assert np.array_equal(columns_used(sent, seen), used)
    # Knowing them, little is left to look for; knowing all that was sent only, much is.
    few = recovered(bits, seen, sent[:, used], steps=50)
    assert few.projections == 1.0
    assert recovered(bits, seen, sent, steps=50).projections < few.projections
    with pytest.raises(FormatError, match="must fit"):
        recovered(bits, seen[:100], sent)


def test_labels_of_a_first_tree_are_recovered_under_smm_2() -> None:
    columns, labels, _ = table(300, seed=3)
    bits = split_matrix(columns, 5)
    small = labels_from_answers(labels == 1, bits, 0.3, stream(3, "t"))
    large = labels_from_answers(labels == 1, bits, 1.0, stream(3, "t"))
    assert small.best == 1.0
    assert large.above_chance < 0.35  # what the sums by bin say about labels is left
    assert large.baseline == max(labels.mean(), 1 - labels.mean())


def test_answers_about_the_same_rows_add_up() -> None:
    columns, labels, gradients = table(150)
    bits = split_matrix(columns, 4)
    one = recover_splits(bits, gradients, 0.9, stream(4, "t"))
    ten = recover_splits(bits, gradients, 0.9, stream(4, "t"), n_trees=10)
    assert one.above_chance < 0.5
    assert ten.best == 1.0
    assert labels_from_answers(labels == 1, bits, 0.8, stream(4, "t"), n_answers=8).best == 1.0
    spaces = [null_vectors(gradients, 60, stream(s, "t")) for s in (1, 2)]
    held = bits.astype(float)
    point, space = together([answer(held, z) for z in spaces], spaces)
    assert space.shape == (150, 0)  # 60 + 60 < 150: nothing in common
    assert np.allclose(point, held)
    spaces = [null_vectors(gradients, 100, stream(s, "t")) for s in (1, 2)]
    point, space = together([answer(held, z) for z in spaces], spaces)
    assert space.shape == (150, 52)  # 100 + 100 in 148 dimensions
    assert np.allclose(held - point, space @ (space.T @ (held - point)))


# ---- null-space vectors


def test_vectors_of_two_levels_show_the_labels_of_a_first_tree() -> None:
    _, labels, gradients = table(240)
    bits = labels == 1
    assert labels_from_kernel(bits, 0.6, stream(5, "t"), 2, block_rows=80).best == 1.0
    assert labels_from_kernel(bits, 0.4, stream(5, "t"), 3, block_rows=80).best == 1.0
    hidden = labels_from_kernel(bits, 0.4, stream(5, "t"), 2, block_rows=80)
    assert hidden.above_chance < 0.2
    left = beside(null_vectors(gradients, 200, stream(5, "t")))
    assert left.shape == (240, 40)
    assert np.allclose(left @ (left.T @ gradients), gradients)


def test_vectors_show_which_rows_share_a_bin_in_spite_of_decoys() -> None:
    codes = np.random.default_rng(3).integers(0, 8, (160, 2))
    assert bins_from_kernel(codes, 8, decoys=8, share=0.95, rng=stream(6, "t"), tries=6) == 1.0
    assert bins_from_kernel(codes, 8, decoys=8, share=0.3, rng=stream(6, "t"), tries=2) == 0.0
    plain = np.linalg.qr((codes[:, :1] == np.arange(8)).astype(float))[0]
    assert np.array_equal(fewest_ones(plain, 7), codes[:, 0] == codes[7, 0])


# ---- labels


def test_plain_gradients_show_every_label() -> None:
    _, labels, gradients = table(200)
    found = guessed_from_plain(gradients[:, 0], labels)
    assert (found.accuracy, found.bound) == (1.0, 1.0)
    assert found.above_chance == 1.0
    rng = np.random.default_rng(0)
    classes, p = rng.integers(0, 4, 100), rng.dirichlet(np.ones(4), 100)
    softmax = p - np.eye(4)[classes]
    assert np.array_equal(labels_from_gradients(softmax), classes)


def test_bounds_of_guessing() -> None:
    assert most_accurate(0.0, [0.5, 0.5]) == 0.5
    assert most_accurate(math.log(3), [0.5, 0.5]) == pytest.approx(0.75)
    assert most_accurate(math.log(3), [0.9, 0.1]) == 0.9
    assert most_accurate(math.log(3), [0.25] * 4) == pytest.approx(0.5)
    assert most_accurate(1000.0, [0.5, 0.5]) == 1.0


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_likelihoods_are_those_of_the_mechanism(mechanism: str) -> None:
    """No two inputs differ by more than epsilon at any output, and some reach it."""
    rule = randomisers.rule_for(mechanism, 2.0)
    outputs = perturb(np.zeros(400), 2.0, mechanism)
    apart = log_chances(rule, outputs, np.ones(400)) - log_chances(rule, outputs, -np.ones(400))
    assert np.abs(apart).max() <= 2.0 + 1e-9
    assert np.abs(apart).max() > 1.9
    assert apart[np.argmax(outputs)] > 0 > apart[np.argmin(outputs)]


def test_likelihoods_agree_with_exact_tables() -> None:
    rule = Piecewise(1.0, n_cells=24)
    chances = np.array(piecewise_table(rule) / rule.limit, np.float64)
    outputs = rule.slope * (np.arange(24) - 11.5)
    for place in (0, 4, rule.last):
        value = rule.exact(np.full(24, place))
        found = log_chances(rule, outputs, value) - log_chances(rule, outputs, np.ones(24))
        assert np.allclose(found, np.log(chances[place] / chances[rule.last]))
    duchi = Duchi(1.0)
    both = log_chances(duchi, np.array([duchi.size, -duchi.size]), np.full(2, 0.5))
    assert np.exp(both).sum() == pytest.approx(1.0)
    assert np.exp(both[0]) == pytest.approx(0.5 + 0.25 * math.tanh(0.5))
    laplace = Laplace(1.0)
    assert log_chances(laplace, np.array([2.0]), np.array([1.0]))[0] == pytest.approx(-0.5)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_more_trees_show_more_labels_and_never_more_than_the_bound(mechanism: str) -> None:
    rng = np.random.default_rng(1)
    labels = (rng.uniform(size=4000) < 0.5).astype(np.int64)
    one = np.full((1, 4000), 0.5)
    with seeded(1):
        few = guessed_from_noisy(labels, one, mechanism, 1.0)
        many = guessed_from_noisy(labels, np.repeat(one, 12, axis=0), mechanism, 1.0)
    slack = 5.3 * math.sqrt(0.25 / 4000)
    assert few.baseline - slack < few.accuracy < few.bound + slack
    assert few.accuracy + 0.1 < many.accuracy <= 1.0
    assert few.bound == most_accurate(1.0, [1 - labels.mean(), labels.mean()])


def test_the_guess_weighs_the_prior_and_every_tree() -> None:
    duchi = Duchi(1.0)
    up, down = duchi.size, -duchi.size
    half = np.full((1, 2), 0.5)
    # A gradient is p - 1 < 0 for label 1: a lower output speaks for it.
    assert guess_from_noisy(np.array([[up, down]]), half, 0.5, "duchi", 1.0).tolist() == [0, 1]
    assert guess_from_noisy(np.array([[up, down]]), half, 0.9, "duchi", 1.0).tolist() == [1, 1]
    votes = np.array([[up, down], [down, down], [up, up]])
    assert guess_from_noisy(votes, np.full((3, 2), 0.5), 0.5, "duchi", 1.0).tolist() == [0, 1]
    with pytest.raises(FormatError):
        guess_from_noisy(votes, half, 0.5, "duchi", 1.0)


def test_randomised_labels_are_guessed_as_often_as_theory_says() -> None:
    rng = np.random.default_rng(2)
    for classes in (2, 4):
        labels = rng.integers(0, classes, 8000)
        with seeded(4):
            found = guessed_from_randomised(labels, classes, 1.0)
        expected = math.e / (math.e + classes - 1)
        assert abs(found.accuracy - expected) < 5.3 * math.sqrt(0.25 / 8000)
        assert found.bound == pytest.approx(expected, abs=0.02)
    rare = (rng.uniform(size=3000) < 0.05).astype(np.int64)
    assert guessed_from_randomised(rare, 2, 1.0).above_chance == 0.0


# ---- columns


def seen_at(values: np.ndarray, cuts: list[float]) -> list[SeenSplit]:
    rows = np.arange(len(values))
    return [SeenSplit(rows, values < cut) for cut in cuts]


def test_cuts_are_put_in_order_and_rows_between_them() -> None:
    values = np.random.default_rng(4).uniform(size=300)
    cuts = [0.7, 0.2, 0.9, 0.5]
    splits = seen_at(values, cuts)
    assert order_of_cuts(splits, 300).tolist() == [2, 0, 3, 1]
    low, high = places_between_cuts(splits, 300)
    assert np.array_equal(low, np.searchsorted(np.sort(cuts), values, side="right"))
    assert np.array_equal(high, low + 1)
    found = instance_spaces(splits, values, ordered=True)
    assert (found.n_splits, found.n_cells) == (4, 5)
    assert found.rank_correlation > 0.95
    assert 1.5 < found.bits < found.of_bits
    assert 0.3 < found.share_of_bits < 0.6


def test_cuts_of_different_nodes_are_compared_through_others() -> None:
    """No row has been at 60 and at one of the lowest cuts; that at 45 lies between."""
    values = np.arange(90.0)
    even, odd = np.arange(0, 90, 2), np.arange(1, 90, 2)
    splits = [
        SeenSplit(odd, values[odd] < 60),
        SeenSplit(np.arange(90), values < 45),
        *(SeenSplit(even, values[even] < cut) for cut in (10, 30, 20)),
    ]
    assert order_of_cuts(splits, 90).tolist() == [4, 3, 0, 2, 1]


def test_a_few_missing_values_do_not_spoil_the_order() -> None:
    values = np.random.default_rng(5).uniform(size=400)
    splits = seen_at(values, [0.3, 0.6, 0.45])
    for split, side in zip(splits, (True, False, True), strict=True):
        split.left[:10] = side  # missing: some splits send them left, others right
    assert order_of_cuts(splits, 400).tolist() == [0, 2, 1]


def test_no_split_tells_nothing_and_two_sides_tell_one_bit() -> None:
    values = np.repeat([0.0, 1.0, 2.0, 3.0], 25)
    nothing = instance_spaces([], values, ordered=True)
    assert (nothing.n_cells, nothing.bits, nothing.rank_correlation) == (1, 0.0, 0.0)
    half = instance_spaces(seen_at(values, [2.0]), values, ordered=True)
    assert (half.n_cells, half.bits, half.of_bits) == (2, 1.0, 2.0)
    sets = [SeenSplit(np.arange(100), np.isin(values, [0, 3]))]
    told = instance_spaces(sets, values, ordered=False)
    assert (told.n_cells, told.bits) == (2, 1.0)
    assert math.isnan(told.rank_correlation)
    with pytest.raises(FormatError):
        SeenSplit(np.arange(3), np.zeros(2, bool))


def test_splits_of_another_column_tell_next_to_nothing() -> None:
    rng = np.random.default_rng(6)
    found = instance_spaces(
        seen_at(rng.uniform(size=20_000), [0.3, 0.6]), rng.uniform(size=20_000), ordered=True
    )
    assert abs(found.rank_correlation) < 0.05
    assert found.bits < 0.02


# ---- all of them


def test_what_statements_say_measured_them_exists() -> None:
    for protection in PROTECTIONS:
        for shown in disclosures(VerticalSettings(protection=protection, allow_unsafe=True)):
            place, _, name = shown.measured_by.rpartition(".")
            # Agreements and statements keep the names that modules had when they were hashed.
            module = place.replace("hedgerow.vertical.audit_", "hedgerow.audit.fedxgboost_")
            module = module.replace("fedxgboost_kernels", "fedxgboost_null_spaces")
            if shown.measured_by != "not measured":
                assert callable(getattr(import_module(module), name))


def test_all_audits_run_on_a_table_and_say_figures() -> None:
    columns, labels, _ = table(900, seed=7)
    settings = AuditSettings((0.2, 0.9), 120, 2, candidates=7, tries=3, epsilons=(1.0,), n_trees=4)
    figures = audit_table(columns, labels, 1, settings)
    json.dumps(figures)  # plain values
    few, many = figures["smm-1"]["0.2"], figures["smm-1"]["0.9"]
    assert few["splits, 1 trees"]["above_chance"] == 1.0
    assert many["splits, 1 trees"]["above_chance"] < 0.5
    assert many["splits, 10 trees"]["above_chance"] == 1.0
    assert few["labels from vectors"]["above_chance"] < 0.2
    assert many["labels from vectors"]["above_chance"] == 1.0
    assert figures["smm-2"]["0.2"]["labels, 1 answers"]["best"] == 1.0
    assert figures["smm-2"]["0.9"]["bins from vectors"]["best"] > 0.5
    assert figures["labels without protection"]["accuracy"] == 1.0
    noisy = figures["labels under noise, by epsilon of a tree"]
    assert set(noisy) == set(MECHANISMS)
    assert all(one["1"]["accuracy"] < 1 for one in noisy.values())
    assert figures["labels randomised once"]["1"]["accuracy"] < 0.85
    assert figures["columns from splits"]["0"]["rank_correlation"] > 0.8
    seen = drawn_splits(columns, 3, 2, stream(0, "t"))
    assert sum(map(len, seen.values())) == 3 * 3
    with pytest.raises(FormatError, match="both 0 and 1"):
        audit_table(columns, np.zeros(900, np.int64), 1)
