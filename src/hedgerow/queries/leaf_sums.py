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
from hedgerow.losses import LOSSES, loss_for
from hedgerow.model.routing import routes_of
from hedgerow.model.tree import Structure, stack, unstack
from hedgerow.queries.base import Block, EnsembleRef, Sensitivity
from hedgerow.schema import Schema
from hedgerow.tables import Rows

MAX_TREES = 100_000


@dataclass(frozen=True, eq=False)
class LeafSums:
    """(g|h, leaf of all trees, output), gradients taken at the scores of `ensemble`."""

    structures: tuple[Structure, ...]
    loss: str
    ensemble: EnsembleRef
    kind: ClassVar[str] = "leaf-sums"

    @cached_property
    def n_leaves(self) -> int:
        return sum(structure.n_leaves for structure in self.structures)

    @property
    def blocks(self) -> tuple[Block, ...]:
        loss = LOSSES[self.loss]
        size = self.n_leaves * loss.n_outputs
        return (Block(size), Block(size, 1 / loss.hessian_scale))

    @property
    def sensitivity(self) -> Sensitivity:
        # A row lands in exactly one leaf of each tree of the batch and adds its (g, h) there, the
        # same pair in every tree: the norm is sqrt(trees) times the loss's bound of one row.
        loss, n_trees = LOSSES[self.loss], len(self.structures)
        return Sensitivity(l1=n_trees * loss.l1, l2=math.sqrt(n_trees) * loss.l2)

    def check(self, schema: Schema) -> None:
        if self.loss != loss_for(schema.label).name:
            raise FormatError("leaf sums ask for a loss that does not belong to the label")
        if not 1 <= len(self.structures) <= MAX_TREES:
            raise FormatError("leaf sums ask for no tree, or for too many")
        for structure in self.structures:
            structure.check(schema)
        routes_of(self.structures, base_grid(schema))  # every threshold is a public edge

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        routes = routes_of(self.structures, base_grid(schema))
        code = LOSSES[self.loss].code
        return routes.leaf_sums(rows.codes, scores, rows.target, bits, code).ravel()

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values = {"loss": self.loss, "ensemble": [self.ensemble.length, self.ensemble.hash]}
        return values, stack(self.structures)

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> LeafSums:
        length, hash_ = values["ensemble"]
        if values["loss"] not in LOSSES:
            raise FormatError(f"unknown loss {values['loss']!r}")
        structures: Sequence[Structure] = unstack(arrays)
        return LeafSums(tuple(structures), values["loss"], EnsembleRef(int(length), str(hash_)))
