"""What the coordinator and colluding parties see of the others is uniform but for their total."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.protocol import mask_graph
from hedgerow.protocol.identity import Announcement, Identity
from hedgerow.protocol.joined import Joined, SumSet
from hedgerow.protocol.masks import Context, MaskKeys, add_modulo
from tests.statistical.measures import looks_uniform

SIZE = 4096  # coordinates of a message
Messages = dict[str, NDArray[np.uint64]]


def seen_of_others(n_parties: int, places: Collection[int]) -> Messages:
    """Messages of all but those that collude, without the streams that these know.

    A party's own numbers are all the same: only masks can hide that.
    """
    names = tuple(f"p{i:02d}" for i in range(n_parties))
    keys = {name: MaskKeys() for name in names}
    signed = {
        name: Announcement(name, 1, 1, keys[name].public, "plan", "schema", "roster").signed(
            Identity()
        )
        for name in names
    }
    context = Context("plan", "schema", 0, 1, "request", SumSet(Joined(signed), names, 1))
    colluding = {names[place] for place in places}
    seen: Messages = {}
    for place, name in enumerate(names):
        if name in colluding:
            continue
        seen[name] = keys[name].mask(name, context, SIZE) + np.uint64(1000 + place)
        for other in context.among.neighbours(name):
            if other.name in colluding:
                info = context.info + other.pair
                known = keys[other.name]._stream(signed[name].key, context.salt, info, SIZE)
                seen[name] = seen[name] - known if name < other.name else seen[name] + known
    expected = sum(1000 + names.index(name) for name in seen)
    assert set(add_modulo(seen.values()).tolist()) == {expected}  # the total is what they learn
    return seen


def parts_of(seen: Messages) -> Iterator[NDArray[np.uint64]]:
    """Sums over every set of them but all; of a set and the others one alone, for the other one
    follows from the total."""
    first, *others = seen.values()
    for count in range(len(others)):
        for chosen in combinations(others, count):
            yield add_modulo([first, *chosen])


@pytest.mark.parametrize(
    "places",
    [
        [*range(1, 9), *range(15, 22)],  # all neighbours of the first party but one
        range(15),  # side by side
        [21, *(place for place in range(22) if place % 3)],  # no two of the others side by side
    ],
    ids=["around one", "side by side", "between"],
)
def test_fifteen_of_twenty_two_parties_see_nothing_but_a_total(places: Collection[int]) -> None:
    """Fifteen, where the roster says one: 63 sums, each a false alarm with 1.1e-11 at most."""
    seen = seen_of_others(22, places)
    assert len(seen) == 7
    parts = list(parts_of(seen))
    assert len(parts) == 63
    assert all(looks_uniform(part) for part in parts)


def test_parties_that_are_no_neighbours_are_hidden_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four neighbours of eight, three of them taken out around one: 15 sums."""
    monkeypatch.setattr(mask_graph, "LEAST_DEGREE", 4)
    assert all(looks_uniform(part) for part in parts_of(seen_of_others(8, (1, 2, 7))))


def test_a_graph_that_falls_apart_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four neighbours, and all four collude: the party in the middle is read by them."""
    monkeypatch.setattr(mask_graph, "LEAST_DEGREE", 4)
    parts = list(parts_of(seen_of_others(8, (1, 2, 6, 7))))
    assert not looks_uniform(parts[0])
    assert set(parts[0].tolist()) == {1000}
