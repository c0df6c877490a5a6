"""Hashes: what a code stands for, L < d, the collision probability, and whose order matters."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.errors import SettingsError
from hedgerow.methods.simfl.hashing import (
    code_values,
    default_hashes,
    dimensions,
    hash_family,
    spread,
    typical_width,
)
from hedgerow.methods.simfl.settings import SimilaritySettings
from tests.methods.simfl.tables import MIXED, dealt, mixed_rows, numbers, train


def unpacked(words: np.ndarray, n_hashes: int) -> np.ndarray:
    shifts = np.arange(0, 64, 4, dtype=np.uint64)
    return ((words[:, :, None] >> shifts) & np.uint64(15)).reshape(len(words), -1)[:, :n_hashes]


def test_hashes_are_floors_of_projections_modulo_16() -> None:
    schema, rows = mixed_rows(300)
    family = hash_family(schema, 3, 5, 0.07)
    plain = np.floor(family.projections(rows)).astype(np.int64) % 16
    assert np.array_equal(unpacked(family.hashes(rows), 5), plain)
    assert len(np.unique(plain)) == 16  # the narrow window reaches all values


def test_codes_stand_for_the_middle_of_their_cell() -> None:
    age, dose, stage, site = base_grid(MIXED)
    values = code_values(dose)
    width = np.diff(np.concatenate([[-1.0], dose.edges.astype(float), [5.0]])) / 6
    assert np.allclose(np.diff(values[:-1, 0]), (width[1:] + width[:-1]) / 2)
    assert values[dose.missing_code].tolist() == [0.5, math.sqrt(0.5)]
    assert code_values(stage)[:3, 0].tolist() == [0, 0.5, 1]
    places = code_values(site)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert np.allclose(apart + np.eye(len(places)), 1.0)
    assert code_values(age).shape == (age.n_codes, 2)


def test_two_rows_collide_as_often_as_the_theory_says() -> None:
    """Datar et al. 2004: p(c) for a distance c, over many independent functions."""
    schema, rows = numbers(2, 241, seed=5)
    distance = math.sqrt(
        sum(
            float(
                (code_values(g)[rows.codes.column(j)][0] - code_values(g)[rows.codes.column(j)][1])[
                    0
                ]
            )
            ** 2
            for j, g in enumerate(base_grid(schema))
        )
    )
    hits = [
        np.mean(np.equal(*unpacked(hash_family(schema, seed, 240, distance).hashes(rows), 240)))
        for seed in range(8)
    ]
    expected = 1 - 2 * 0.158655 - 2 / math.sqrt(2 * math.pi) * (1 - math.exp(-0.5))
    assert abs(np.mean(hits) - expected) < 5.2 * math.sqrt(expected * (1 - expected) / 1920)


@pytest.mark.parametrize("n_hashes", [7, 8, 100])
def test_as_many_hashes_as_dimensions_are_refused(n_hashes: int) -> None:
    assert dimensions(MIXED) == 3 + 3
    with pytest.raises(SettingsError, match=r"6 dimensions: L < d .*Nothing was sent.*1 to 5"):
        hash_family(MIXED, 0, n_hashes, 1.0)
    _, rows = mixed_rows(40)
    with pytest.raises(SettingsError, match="L < d"):
        train(dealt(rows, 2), MIXED, SimilaritySettings(n_trees=1, n_hashes=n_hashes))


def test_hashes_by_default() -> None:
    assert default_hashes(MIXED) == 5
    many = Schema.from_bounds({f"x{j}": (0, 1) for j in range(123)}, classes=[0, 1])
    assert default_hashes(many) == 40
    with pytest.raises(SettingsError, match="one dimension"):
        hash_family(Schema.from_bounds({"x": (0, 1)}, classes=[0, 1]), 0, 1, 1.0)


def test_the_order_of_parties_does_not_matter_for_hashes() -> None:
    schema, rows = mixed_rows(120)
    tables = dealt(rows, 3)
    backwards = dict(reversed(tables.items()))
    settings = SimilaritySettings(n_trees=2, max_depth=3)
    (one, first), (two, second) = (
        train(tables, schema, settings),
        train(backwards, schema, settings),
    )
    assert one == two
    for name in tables:
        assert np.array_equal(first[name]._finding._words, second[name]._finding._words)


def test_the_window_follows_the_scaling() -> None:
    schema, rows = numbers(4000, 6)
    wide = Schema.from_bounds({f"x{j}": (0, 4) for j in range(6)}, classes=[0, 1])
    assert spread(rows, schema) == pytest.approx(6 * 2 / 12, rel=0.05)
    assert typical_width([4.0, 1.0], [1, 3], 0.5) == pytest.approx(0.5 * math.sqrt(7 / 4))
    assert wide.hash != schema.hash
