"""A tree under construction: leaves are cut one by one, children after their parent."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Categorical, Schema
from hedgerow.model.tree import Structure, member_words


@dataclass(frozen=True, eq=False)
class Cut:
    """How a node is split: `x < threshold` goes left, or members of a set go right."""

    column: int
    threshold: float
    members: NDArray[np.uint64]
    missing_left: bool


@dataclass
class GrowingTree:
    """Nodes in order of creation; those without a cut are leaves."""

    cuts: list[Cut | None] = field(default_factory=lambda: [None])
    children: list[tuple[int, int]] = field(default_factory=lambda: [(-1, -1)])

    @property
    def leaves(self) -> list[int]:
        return [node for node, cut in enumerate(self.cuts) if cut is None]

    def split(self, node: int, cut: Cut) -> tuple[int, int]:
        """Cut a leaf; returns its two children."""
        left, right = len(self.cuts), len(self.cuts) + 1
        self.cuts[node] = cut
        self.children[node] = (left, right)
        self.cuts += [None, None]
        self.children += [(-1, -1), (-1, -1)]
        return left, right

    def copy(self) -> GrowingTree:
        return GrowingTree(list(self.cuts), list(self.children))

    def structure(self) -> Structure:
        """The tree so far as flat arrays, leaves numbered in node order."""
        sets = [(0 if cut is None else len(cut.members)) for cut in self.cuts]
        members = [cut.members for cut in self.cuts if cut is not None and len(cut.members)]
        nodes = [
            (-1, 0.0, 0) if cut is None else (cut.column, cut.threshold, cut.missing_left)
            for cut in self.cuts
        ]
        feature, threshold, missing_left = zip(*nodes, strict=True)
        left, right = zip(*self.children, strict=True)
        return Structure(
            feature=np.array(feature, np.int32),
            threshold=np.array(threshold, np.float32),
            missing_left=np.array(missing_left, np.uint8),
            left=np.array(left, np.int32),
            right=np.array(right, np.int32),
            member_start=np.array([0, *accumulate(sets)], np.int32),
            members=np.concatenate(members) if members else np.zeros(0, np.uint64),
        )


def member_set(schema: Schema, column: int, right: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """The bits of a category split: which of the column's cells go right."""
    description = schema.columns[column]
    assert isinstance(description, Categorical)
    chosen = np.zeros(member_words(description) * 64, np.bool_)
    chosen[: len(right)] = right
    return np.packbits(chosen, bitorder="little").view("<u8").astype(np.uint64)
