"""Sums of gradients and Hessians in the leaves of a batch of trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.binning import base_grid
from hedgerow.errors import FormatError
from hedgerow.losses import UPDATES, RowBound, loss_for, loss_named
from hedgerow.model.routing import routes_of
from hedgerow.model.tree import Structure, stack, unstack
from hedgerow.queries.base import Block, EnsembleRef, Sensitivity, check_clip, clip_steps
from hedgerow.schema import Schema
from hedgerow.tables import Rows

MAX_TREES = 100_000


@dataclass(frozen=True, eq=False)
class LeafSums:
    """(number, leaf of all trees): what `losses.RowBound` lists, at the scores of `ensemble`.

    Newton asks for gradients and Hessians, gradient for gradients and the count, averaging for
    class counts (or, for numbers, their sum and the count).
    """

    structures: tuple[Structure, ...]
    loss: str
    ensemble: EnsembleRef
    update: str = "newton"
    clip: float = math.inf  # gradients are clamped to it
    kind: ClassVar[str] = "leaf-sums"

    @cached_property
    def n_leaves(self) -> int:
        return sum(structure.n_leaves for structure in self.structures)

    @cached_property
    def bound(self) -> RowBound:
        return loss_named(self.loss).bound(self.update, self.clip)

    @property
    def blocks(self) -> tuple[Block, ...]:
        bound, n = self.bound, self.n_leaves
        second = (Block(n * bound.second, 1 / bound.second_scale),) if bound.second else ()
        return (Block(n * bound.first), *second)

    @property
    def sensitivity(self) -> Sensitivity:
        # A row lands in exactly one leaf of each tree of the batch and adds its numbers there, the
        # same in every tree: the norm is sqrt(trees) times the loss's bound of one row.
        bound, n_trees = self.bound, len(self.structures)
        return Sensitivity(l1=n_trees * bound.l1, l2=math.sqrt(n_trees) * bound.l2)

    def check(self, schema: Schema) -> None:
        if self.loss != loss_for(schema.label).name:
            raise FormatError("leaf sums ask for a loss that does not belong to the label")
        if not 1 <= len(self.structures) <= MAX_TREES:
            raise FormatError("leaf sums ask for no tree, or for too many")
        check_clip(self.clip)
        for structure in self.structures:
            structure.check(schema)
        routes_of(self.structures, base_grid(schema))  # every threshold is a public edge

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        routes = routes_of(self.structures, base_grid(schema))
        clip = clip_steps(self.clip, bits)
        kernel = (bits, loss_named(self.loss).code, UPDATES[self.update], clip, self.bound.width)
        return routes.leaf_sums(rows.codes, scores, rows.target, *kernel).ravel()

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values = {
            "loss": self.loss,
            "update": self.update,
            "clip": None if math.isinf(self.clip) else self.clip,
            "ensemble": [self.ensemble.length, self.ensemble.hash],
        }
        return values, stack(self.structures)

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> LeafSums:
        length, hash_ = values["ensemble"]
        if values["update"] not in UPDATES:
            raise FormatError(f"unknown update {values['update']!r}")
        loss_named(values["loss"])
        structures: Sequence[Structure] = unstack(arrays)
        ensemble = EnsembleRef(int(length), str(hash_))
        clip = math.inf if values["clip"] is None else float(values["clip"])
        return LeafSums(tuple(structures), values["loss"], ensemble, values["update"], clip)
