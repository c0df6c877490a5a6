"""The most similar rows equal brute force, ties are drawn evenly, additions redo nothing."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow.methods.simfl import neighbours
from hedgerow.methods.simfl.hashing import hash_family
from hedgerow.methods.simfl.neighbours import Pair, most_similar
from tests.methods.simfl.tables import numbers
from tests.methods.simfl.test_hashing import unpacked

PAIR = Pair(11, "north", "south")


def counts(own: np.ndarray, others: np.ndarray, n: int) -> np.ndarray:
    """Equal hashes of every pair, counted plainly: (own, other)."""
    a, b = unpacked(own, n), unpacked(others, n)
    return np.sum(a[:, None, :] == b[None], axis=2)


@pytest.mark.parametrize(("d", "n_hashes"), [(6, 5), (18, 17), (41, 40)])
def test_neighbours_equal_brute_force(d: int, n_hashes: int) -> None:
    schema, rows = numbers(1100, d)
    words = hash_family(schema, 2, n_hashes, 0.5).hashes(rows)
    own, others = words[:300], words[300:]
    found = most_similar(PAIR, n_hashes, own, others)
    plain = counts(own, others, n_hashes)
    assert np.array_equal(found.collisions, plain.max(axis=1))
    assert np.array_equal(plain[np.arange(300), found.row], plain.max(axis=1))


def test_neighbours_of_twenty_thousand_rows_equal_brute_force_on_a_sample() -> None:
    schema, rows = numbers(20_040, 28)
    words = hash_family(schema, 2, 27, 1.0).hashes(rows)
    found = most_similar(PAIR, 27, words[:40], words[40:])
    assert np.array_equal(found.collisions, counts(words[:40], words[40:], 27).max(axis=1))


def test_beyond_the_exact_search_collisions_are_close_to_the_most() -> None:
    schema, rows = numbers(neighbours.EXACT + 300, 28, seed=4)
    words = hash_family(schema, 2, 27, 2.0).hashes(rows)
    own, others = words[:60], words[60:]
    assert len(others) > neighbours.EXACT
    found = most_similar(PAIR, 27, own, others)
    plain = counts(own, others, 27)
    assert np.array_equal(plain[np.arange(60), found.row], found.collisions)
    assert np.mean(found.collisions / plain.max(axis=1)) >= 0.95


def test_ties_are_drawn_evenly_and_by_the_seed() -> None:
    own = np.zeros((6000, 1), np.uint64)
    others = np.array([[0], [0], [1], [0]], np.uint64)  # the third differs in one hash
    found = most_similar(PAIR, 3, own, others)
    shares = np.bincount(found.row, minlength=4) / 6000
    assert shares[2] == 0
    assert np.all(np.abs(shares[[0, 1, 3]] - 1 / 3) < 5.2 * np.sqrt(2 / 9 / 6000))
    assert np.array_equal(found.row, most_similar(PAIR, 3, own, others).row)
    other_seed = most_similar(Pair(12, "north", "south"), 3, own, others)
    assert not np.array_equal(found.row, other_seed.row)


def test_added_rows_are_found_without_redoing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, rows = numbers(900, 9)
    words = hash_family(schema, 2, 8, 0.7).hashes(rows)
    own, others = words[:400], words[400:]
    whole = most_similar(PAIR, 8, own, others)
    part = most_similar(PAIR, 8, own[:350], others[:300])
    seen = []
    search = neighbours._search
    monkeypatch.setattr(
        neighbours, "_search", lambda *a: (seen.append(len(a[2]) * len(a[4])), search(*a))
    )
    grown = part.with_others(own[:350], others[300:]).with_own(own[350:], others)
    assert np.array_equal(grown.found, whole.found)
    assert sum(seen) == 350 * 200 + 50 * 500  # not 400 * 500
