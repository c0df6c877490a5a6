"""Pure epsilon on the paths of a tree: what a question charges each node, and the filter.

A node is named by its place: the root is 1, the children of h are 2h (left) and 2h + 1 (right), so
the name is the path. A question about a tree charges some of its leaves, each its own epsilon.

The filter. Let every question be about the leaves of a tree, all those trees agree on the split of
every node that two of them split, and let node h be charged e_t(h) by question t: its answer about
h is e_t(h)-private, and rows elsewhere do not enter it. Then releasing all answers, each question
chosen with sight of the answers before it, is epsilon-private (add or remove one row) for

    epsilon = max over root-to-leaf paths of the sum of e_t(h) over questions and nodes on the path.

Proof. Fix a row x, tables D and D + x, and a sequence of answers o_1 .. o_T. Questions follow from
earlier answers, so both tables meet the same questions along this sequence, and the ratio of their
probabilities is the product over t of those of o_t given question t. Factor t is at most
exp(e_t(h_t)), h_t the leaf of tree t that x falls into (the leaves of one tree are disjoint, so x
enters the answer about one of them). The trees agree, so all h_t are places that x passes on its
way down the union of the trees: they lie on one path, and the product is at most exp(epsilon).
This holds for every sequence of answers, hence for every event, also when prices and trees depend
on earlier answers, as long as no path ever goes beyond epsilon: that is what `Paths` refuses.
A person with k rows is covered because noise is k times as wide: each of the k rows costs a k-th.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError
from hedgerow.packing import digest
from hedgerow.privacy.accounting.pure import LEAST_PRICE, MOST_PRICE
from hedgerow.privacy.ledger.line import Line

DEEPEST = 40  # levels that a place can name


@dataclass(frozen=True)
class Priced:
    """What one question says of its tree: the split of every inner node, and what leaves pay."""

    splits: Mapping[int, str]  # by place; hash of column, threshold, members, missing
    prices: Mapping[int, float]  # by place; what the leaves that are asked about pay

    @property
    def most(self) -> float:
        """What the question costs any one row: it lies in one leaf."""
        return max(self.prices.values())

    def scaled(self, part: float) -> Priced:
        return Priced(self.splits, {place: part * price for place, price in self.prices.items()})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a ledger line; `priced_of` reads them back."""
        hashes = b"".join(bytes.fromhex(text) for text in self.splits.values())
        return {
            "split_places": np.array(list(self.splits), np.int64),
            "split_hashes": np.frombuffer(hashes, np.uint8).reshape(len(self.splits), 32),
            "places": np.array(list(self.prices), np.int64),
            "prices": np.array(list(self.prices.values()), np.float64),
        }


def priced_of(line: Line) -> Priced:
    """What a charge on a ledger says; FormatError if it says nothing of a tree."""
    arrays = line.arrays
    try:
        hashes = [row.tobytes().hex() for row in arrays["split_hashes"]]
        splits = zip(arrays["split_places"].tolist(), hashes, strict=True)
        prices = zip(arrays["places"].tolist(), arrays["prices"].tolist(), strict=True)
        return Priced(dict(splits), dict(prices))
    except (KeyError, ValueError) as error:
        raise FormatError(f"line {line.seq} charges no path of a tree") from error


def split_hash(*parts: str | bytes) -> str:
    """Names a split. In full: a shorter hash would let two category sets be found that share it,
    and one place would then stand for two sets of rows."""
    return digest("hedgerow split 1", *parts)


@dataclass
class Paths:
    """What the first attempts of a run have charged so far, and the tree that they agree on."""

    splits: dict[int, str] = field(default_factory=dict)
    paid: dict[int, float] = field(default_factory=dict)

    @staticmethod
    def of(charges: Iterable[Line]) -> Paths:
        """From the charges of one owner in one run; further attempts at a slot are spares."""
        paths, slots = Paths(), set()
        for line in charges:
            priced = priced_of(line)
            if line.slot not in slots:
                slots.add(line.slot)
                paths.add(priced)
        return paths

    def add(self, priced: Priced) -> None:
        self.splits.update(priced.splits)
        for place, price in priced.prices.items():
            self.paid[place] = math.fsum((self.paid.get(place, 0.0), price))

    def most(self) -> float:
        """The dearest path from the root to a leaf, over everything that was paid."""
        below: dict[int, float] = {}
        for place in sorted(self._places(), reverse=True):  # children before their parent
            children = max(below.get(2 * place, 0.0), below.get(2 * place + 1, 0.0))
            below[place] = math.fsum((self.paid.get(place, 0.0), children))
        return below.get(1, 0.0)

    def _places(self) -> set[int]:
        """Everything that was paid for, and what lies above it."""
        found: set[int] = set()
        for place in self.paid:
            while place >= 1 and place not in found:
                found.add(place)
                place //= 2
        return found

    def objection(self, priced: Priced, ceiling: float, retry: float | None = None) -> str:
        """Why a question may not be asked; "" if it may. With `retry`, it is a further attempt."""
        for place, split in priced.splits.items():
            if not 1 <= place < 2**DEEPEST:
                return "its tree is deeper than any"
            if self.splits.get(place, split) != split:
                return f"node {place} was split differently before"
        if not priced.prices or not all(_fits(place, priced) for place in priced.prices):
            return "it does not say which nodes pay what"
        if retry is not None:
            over = priced.most > retry
            return f"a further attempt may cost {retry:.6g} on a path" if over else ""
        together = Paths(dict(self.splits), dict(self.paid))
        together.add(priced)
        if (cost := together.most()) > ceiling:
            return (
                f"a path would have cost {cost:.6g} of {ceiling:.6g}, "
                f"{self.most():.6g} of it before"
            )
        return ""


def _fits(place: int, priced: Priced) -> bool:
    """A leaf of the question's own tree at a sensible price: all above it is split there."""
    if not 1 <= place < 2**DEEPEST or place in priced.splits:
        return False
    above, inside = place // 2, True
    while above >= 1:
        inside = inside and above in priced.splits
        above //= 2
    return inside and LEAST_PRICE <= priced.prices[place] < MOST_PRICE


def path_costs(charges: Sequence[Line]) -> dict[int, float]:
    """What each leaf of a run's one tree has drawn on its whole path, by place.

    A further attempt counts on every path: whose it was does not matter for what may be spent.
    """
    paths = Paths.of(charges)
    again = math.fsum(further_attempts(charges))
    ends = [h for h in paths.paid if 2 * h not in paths.paid and 2 * h + 1 not in paths.paid]
    costs = {}
    for place in sorted(ends):
        above = [place >> level for level in range(place.bit_length())]
        costs[place] = math.fsum([again, *(paths.paid.get(h, 0.0) for h in above)])
    return costs


def further_attempts(charges: Sequence[Line]) -> list[float]:
    """What each attempt beyond the first at its slot cost."""
    first: dict[int, Line] = {}
    for line in charges:
        first.setdefault(line.slot, line)
    return [priced_of(line).most for line in charges if first[line.slot] is not line]
