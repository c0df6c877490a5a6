"""Trees whose splits are chosen by noisy gain, level by level: one question over all open nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hedgerow.coordinator.gate import Gate
from hedgerow.data.rng import Generator
from hedgerow.errors import SlotSpent
from hedgerow.methods.maddock.candidates import Cuts
from hedgerow.methods.maddock.splits.growth import Growth, LearnedTree, Offer
from hedgerow.methods.maddock.splits.histogram import histogram_offers
from hedgerow.methods.maddock.splits.partially_random import OneColumn, random_offers
from hedgerow.privacy.settings import BoostingSettings

Ask = Callable[[list[int], bool], dict[int, list[Offer]]]


def levels_of(settings: BoostingSettings, n_columns: int) -> int:
    """Questions a tree asks: one a level; one in all over a single column."""
    return 1 if n_columns == 1 else settings.max_depth


def grow_tree(
    gate: Gate, settings: BoostingSettings, cuts: Cuts, columns: Sequence[int], rng: Generator
) -> LearnedTree:
    """Grow one tree level by level; it asks at most `levels_of` questions and passes over the rest.

    A level whose slot was lost ends the tree there.
    """
    growth = Growth(gate, settings, cuts, tuple(columns), rng)
    ask = _way_to_ask(growth)
    open_nodes = [0]
    for level in range(settings.max_depth):
        asks = level < levels_of(settings, len(columns))
        if not open_nodes:
            if asks:
                gate.pass_over()
            continue
        try:
            offers = ask(open_nodes, asks)
        except SlotSpent:
            open_nodes = []
            continue
        open_nodes = [child for node in open_nodes for child in growth.cut(node, offers[node])]
    return growth.grown


def _way_to_ask(growth: Growth) -> Ask:
    if growth.settings.split == "histogram":
        return lambda nodes, asks: histogram_offers(growth, nodes, asks)
    if len(growth.columns) == 1:
        return OneColumn(growth).offers
    return lambda nodes, asks: random_offers(growth, nodes)
