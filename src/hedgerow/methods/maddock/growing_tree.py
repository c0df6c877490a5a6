"""A tree under construction: leaves are cut one by one, children after their parent."""

from __future__ import annotations

from dataclasses import dataclass, field

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
        none = np.zeros(0, np.uint64)
        members = [none if cut is None else cut.members for cut in self.cuts]
        starts = np.concatenate([[0], np.cumsum([len(m) for m in members])])
        return Structure(
            feature=np.array([-1 if c is None else c.column for c in self.cuts], np.int32),
            threshold=np.array([0 if c is None else c.threshold for c in self.cuts], np.float32),
            missing_left=np.array(
                [0 if c is None else c.missing_left for c in self.cuts], np.uint8
            ),
            left=np.array([pair[0] for pair in self.children], np.int32),
            right=np.array([pair[1] for pair in self.children], np.int32),
            member_start=starts.astype(np.int32),
            members=np.concatenate([*members, none]),
        )


def member_set(schema: Schema, column: int, right: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """The bits of a category split: which of the column's cells go right."""
    description = schema.columns[column]
    assert isinstance(description, Categorical)
    chosen = np.zeros(member_words(description) * 64, np.bool_)
    chosen[: len(right)] = right
    return np.packbits(chosen, bitorder="little").view("<u8").astype(np.uint64)
