"""Trees grown level by level: which rows are in which node, their histograms, and the best splits.

Every party can follow a level from what the active party sends: the node of each row, and which
node each one came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.methods.fedxgboost.bins import Bins, Bools, Split
from hedgerow.model.exact import BITS, Ints
from hedgerow.packing import pack
from hedgerow.protocol.peer_messages import PeerMessage

MOST_NODES = 1 << 14
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Level:
    """The open nodes of one level of a tree. Rows of closed nodes have the number `n_nodes`."""

    node: NDArray[np.uint16]  # (row,)
    parent: Ints  # (node,): the node of the last level that each came from; -1 at the root

    @property
    def n_nodes(self) -> int:
        return len(self.parent)

    @property
    def sizes(self) -> Ints:
        """Rows of every open node."""
        return np.bincount(self.node, minlength=self.n_nodes + 1)[: self.n_nodes]

    def message(self) -> bytes:
        small = self.node.astype(np.uint8) if self.n_nodes < 255 else self.node
        return pack({"kind": "level"}, {"node": small, "parent": self.parent})

    @staticmethod
    def read(message: PeerMessage, n_rows: int, before: int) -> Level:
        """A level as the active party wrote it; the last one had `before` open nodes."""
        parent = message.array("parent", np.int64, (-1,))
        n = len(parent)
        if not 1 <= n < MOST_NODES or bool((parent < -1).any()) or bool((parent >= before).any()):
            raise message.wrong("its nodes do not follow from the level before")
        node = message.array("node", np.uint8 if n < 255 else np.uint16, (n_rows,))
        if int(node.max(initial=0)) > n:
            raise message.wrong(f"a row lies in a node beyond the {n} that are open")
        return Level(node.astype(np.uint16), parent)


def check_level(level: Level, before: Level | None, least: int, message: PeerMessage) -> None:
    """Raise unless a level can have come of the one before: no party need believe the active one.

    A tree begins with all rows. Open nodes come two of a parent at most, have rows of their parent
    alone, and at least `least` of them; else nodes could be made up that single out a row.
    """
    if before is None:
        if level.n_nodes != 1 or level.parent[0] != -1 or bool(level.node.any()):
            raise message.wrong("a tree does not begin with all rows")
    else:
        parent = np.append(level.parent, 0)[level.node]
        apart = (level.node < level.n_nodes) & (before.node != parent)
        if bool((level.parent < 0).any()) or bool(apart.any()):
            raise message.wrong("a node has rows that its parent did not have")
        if int(np.bincount(level.parent, minlength=1).max()) > 2:
            raise message.wrong("a node has more than two children")
    if (smallest := int(level.sizes.min())) < least:
        raise message.wrong(f"a node has {smallest} rows; at least {least} were agreed")


def root(n_rows: int) -> Level:
    return Level(np.zeros(n_rows, np.uint16), np.full(1, -1, np.int64))


class Histograms:
    """Histograms of a party's own columns, level after level.

    Of two open children of a node the one with fewer rows is added up, the other is what the parent
    has beyond it; with whole numbers that is exact.
    """

    def __init__(self, bins: Bins) -> None:
        self._bins = bins
        self._last = np.zeros((0, 0, 0), np.int64)

    def of(self, level: Level, numbers: Ints) -> Ints:
        """Sums by node, bin and number."""
        n, width = level.n_nodes, numbers.shape[1]
        slot, twin = counted(level)
        direct = np.flatnonzero(slot >= 0)
        into = np.full(n + 1, -1, np.int64)
        into[direct] = np.arange(len(direct))
        found = np.empty((n, self._bins.n_bins, width), np.int64)
        found[direct] = kernels.level_histograms(
            self._bins.codes.arrays, self._bins.starts, level.node, into, numbers, len(direct)
        )
        for node in np.flatnonzero(slot < 0).tolist():
            found[node] = self._last[level.parent[node]] - found[twin[node]]
        self._last = found
        return found


def counted(level: Level) -> tuple[Ints, Ints]:
    """Nodes that are added up (>= 0) or follow by subtraction (-1), and each one's twin (or -1)."""
    n, sizes = level.n_nodes, level.sizes
    slot, twin = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    by_parent: dict[int, int] = {}
    for node, parent in enumerate(level.parent.tolist()):
        if parent < 0:
            continue
        if parent in by_parent:
            other = by_parent[parent]
            twin[node], twin[other] = other, node
            slot[node if sizes[node] > sizes[other] else other] = -1
        else:
            by_parent[parent] = node
    return slot, twin


@dataclass(frozen=True, eq=False)
class Found:
    """The best split of every node among some columns; score -1 where there is none."""

    scores: Floats  # (node,): G^2 / (H + lambda) of both sides
    columns: Ints  # (node,)
    rights: Bools  # (node, bin): those of the column that go right

    def splits(self, bins: Bins, nodes: Sequence[int]) -> list[Split]:
        return [bins.split(int(self.columns[node]), self.rights[node]) for node in nodes]


def search(
    histograms: Ints, starts: Ints, categorical: Bools, totals: Ints, lam: float, least: float
) -> Found:
    """The best splits from histograms (node, bin, number) and totals (node, number)."""
    rule = kernels.SplitRule.of(BITS, totals.shape[1], lam, least)
    layout = kernels.BinLayout(starts, categorical)
    found = kernels.best_splits(histograms, layout, totals, rule)
    return Found(found.scores, found.columns, found.rights)


def totals_of(level: Level, numbers: Ints) -> Ints:
    """The sums of every open node: (node, number)."""
    return kernels.sums_by_place(level.node.astype(np.int64), numbers, level.n_nodes + 1)[
        : level.n_nodes
    ]


def sides(bins: Bins, level: Level, found: Found, nodes: Sequence[int]) -> NDArray[np.uint8]:
    """Of the rows in these nodes, in row order: whether each goes right."""
    columns = np.full(level.n_nodes + 1, -1, np.int64)
    columns[list(nodes)] = found.columns[list(nodes)]
    out = np.zeros(len(level.node), np.uint8)
    rights = np.concatenate([found.rights, np.zeros((1, found.rights.shape[1]), np.bool_)])
    kernels.go_right(bins.codes.arrays, level.node, columns, rights, out)
    return out[(columns >= 0)[level.node]]
