"""The graph of masks stays connected whichever c parties collude: every case of small sets."""

from __future__ import annotations

from itertools import combinations

import pytest

from hedgerow.protocol import mask_graph
from hedgerow.protocol.mask_graph import LEAST_DEGREE, degree, neighbours

LARGEST = 12


def around(n_parties: int, degree: int) -> list[int]:
    """The neighbours of every place, as bits."""
    found = [neighbours(place, n_parties, degree) for place in range(n_parties)]
    return [sum(1 << other for other in others) for others in found]


def is_connected(bits: list[int], rest: int) -> bool:
    """Whether the parties in `rest` reach each other without any other."""
    reached = last = rest & -rest
    while last:
        touched = 0
        for place in range(len(bits)):
            if last >> place & 1:
                touched |= bits[place]
        last = touched & rest & ~reached
        reached |= last
    return reached == rest


def separated_by(bits: list[int], n_taken: int) -> bool:
    """Whether some so many parties, taken out, leave others that do not reach each other."""
    whole = (1 << len(bits)) - 1
    taken = (sum(1 << place for place in out) for out in combinations(range(len(bits)), n_taken))
    return any(not is_connected(bits, whole & ~out) for out in taken)


def test_the_check_finds_a_set_that_falls_apart() -> None:
    ring = around(6, 2)
    assert is_connected(ring, 0b111111)
    assert is_connected(ring, 0b011111)
    assert not is_connected(ring, 0b011011)


@pytest.mark.parametrize("n_parties", range(2, LARGEST + 1))
def test_no_c_parties_separate_the_others(n_parties: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All sets up to twelve, all c, all choices of c; without what is added on top of c."""
    monkeypatch.setattr(mask_graph, "LEAST_DEGREE", 2)
    for colluding in range(n_parties - 1):
        for chosen in (degree(n_parties, colluding), min(n_parties - 1, max(2, colluding + 1))):
            bits = around(n_parties, chosen)
            assert not any(separated_by(bits, taken) for taken in range(colluding + 1))


@pytest.mark.parametrize("n_parties", range(4, LARGEST + 1))
def test_a_graph_holds_until_as_many_are_taken_out_as_it_has_neighbours(n_parties: int) -> None:
    for chosen in range(2, n_parties - 1, 2):
        bits = around(n_parties, chosen)
        assert not any(separated_by(bits, taken) for taken in range(chosen))
        assert separated_by(bits, chosen) == (n_parties > chosen + 1)


@pytest.mark.parametrize("n_parties", [1, 2, 3, 16, 17, 18, 19, 100, 1001])
@pytest.mark.parametrize("colluding", [0, 1, 2, 7, 8, 40])
def test_neighbours_are_mutual_and_as_many_as_the_degree_says(
    n_parties: int, colluding: int
) -> None:
    count = degree(n_parties, colluding)
    assert count == n_parties - 1 or count >= max(LEAST_DEGREE, 2 * (colluding + 1))
    bits = around(n_parties, count)
    for place, others in enumerate(bits):
        assert not others >> place & 1
        assert others.bit_count() == count
        assert all(bits[other] >> place & 1 for other in range(n_parties) if others >> other & 1)


def test_the_work_of_a_party_does_not_grow_with_the_number_of_parties() -> None:
    assert len({degree(n_parties, 1) for n_parties in (17, 20, 1000, 1_000_000)}) == 1
