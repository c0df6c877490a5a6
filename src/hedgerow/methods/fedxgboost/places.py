"""Where a passive party's own splits lie in trees that it does not have, and who may reach them.

A place numbers the nodes of a tree: the root is 1, and h has the children 2h and 2h + 1. A passive
party follows them from the levels that it is told. It knows which side is which at its own splits
alone; elsewhere it knows the two children apart, which is all that is needed here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.methods.fedxgboost.bins import Bools, Split
from hedgerow.methods.fedxgboost.levels import Level
from hedgerow.model.exact import Ints
from hedgerow.protocol.peer_messages import PeerMessage

MOST_DEPTH = 15  # of a place: one more than a tree can have
_DEPTH = np.array([0, *(h.bit_length() - 1 for h in range(1, 1 << (MOST_DEPTH + 1)))])


class Places:
    """The places of the open nodes of a tree, level by level."""

    def __init__(self) -> None:
        self._open: Ints = np.ones(1, np.int64)
        self._level: Level | None = None
        self._own: Bools = np.zeros(0, np.bool_)  # (node,): of the level: split by this party
        self._right: NDArray[np.uint8] = np.zeros(0, np.uint8)  # (row,): in such nodes

    def of(self, node: int) -> int:
        return int(self._open[node])

    def take(self, level: Level, message: PeerMessage) -> None:
        """Go on to the next level of a tree; rows of own splits went the way this party said."""
        if self._level is not None:
            self._open = self._below(self._level, level, message)
        self._level, self._own = level, np.zeros(level.n_nodes + 1, np.bool_)

    def split(self, nodes: Sequence[int], right: NDArray[np.uint8]) -> None:
        """Nodes of this level that this party splits; `right` of their rows, in row order."""
        assert self._level is not None
        self._own[list(nodes)] = True
        self._right = np.zeros(len(self._level.node), np.uint8)
        self._right[self._own[self._level.node]] = right

    def _below(self, before: Level, level: Level, message: PeerMessage) -> Ints:
        n, parent = level.n_nodes, level.parent
        first = np.zeros(n, np.bool_)
        first[np.unique(parent, return_index=True)[1]] = True
        side = np.where(first, 0, 1)
        own = self._own[parent]
        if own.any():
            rights = np.bincount(level.node, self._right, minlength=n + 1)[:n].astype(np.int64)
            held = np.bincount(before.node.astype(np.int64) * 2 + self._right)
            went = rights > 0
            whole = np.append(held, [0] * 2 * before.n_nodes)[2 * parent + went]
            right = ((rights == 0) | (rights == level.sizes)) & (level.sizes == whole)
            if not bool(right[own].all()):
                raise message.wrong("rows did not go the way that this party said at its own split")
            side = np.where(own, went, side)
        return np.asarray(2 * self._open[parent] + side, np.int64)


class Paths:
    """Rows of a joint prediction on their way down, as far as one party can follow them.

    A row goes down each tree once. Whatever the active party says of splits of others, it can ask
    about splits on one path only, the one that this party's own answers lead along.
    """

    def __init__(self, splits: Sequence[Split], n_rows: int) -> None:
        self._splits = splits
        self._at = {split.tree: np.ones(n_rows, np.int32) for split in splits}  # places, by tree

    def check(self, number: int, rows: Bools, message: PeerMessage) -> None:
        """Raise if some of these rows cannot have come to a split."""
        split = self._splits[number]
        at = self._at[split.tree][rows]
        above = np.maximum(_DEPTH[split.place] - _DEPTH[at], 0)
        if bool(((split.place >> above) != at).any()):
            raise message.wrong("it asks about rows at a split that they cannot have reached")

    def went(self, number: int, rows: Bools, right: Bools) -> None:
        """These rows were at a split, and it was told which way they go."""
        split = self._splits[number]
        self._at[split.tree][rows] = 2 * split.place + right[rows]
