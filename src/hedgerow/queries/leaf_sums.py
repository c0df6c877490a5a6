"""Sums of gradients and Hessians in the leaves of a batch of trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.model.losses import UPDATES, RowBound, loss_for, loss_named
from hedgerow.model.routing import Routes, shared_routes
from hedgerow.model.stacking import stack, unstack
from hedgerow.model.tree import Structure
from hedgerow.queries.base import (
    Block,
    EnsembleRef,
    QueryBase,
    RowWeights,
    Sensitivity,
    check_clip,
    clip_steps,
)

MAX_TREES = 100_000
STEP_CURVE_SCALE = 3.33  # of several outputs: the curvature along a step beside its slope


@dataclass(frozen=True, eq=False)
class LeafSums(QueryBase):
    """Sums (statistic, leaf of all trees) of what `losses.RowBound` lists, at some ensemble.

    Newton asks for gradients and Hessians, gradient for gradients and the count, averaging for
    class counts (or, for regression, the labels' sum and the count).

    With `step_trees`, two more coordinates say how good the last step was: the sums of g u and
    h u^2, u the step of each row; of hazards, which all move alike, that of the first. With several
    outputs they are slope and curvature of the softmax loss along the step: mean of the u_k under
    the row's probabilities less that of its own class, and their variance.
    """

    structures: tuple[Structure, ...]
    loss: str
    ensemble: EnsembleRef
    update: str = "newton"
    clip: float = math.inf  # gradients are clamped to it
    step_trees: int = 0  # above 0: the last so many trees of the ensemble are a step that is tried
    # The step is counted in units of it, and clamped: to +-1, of several outputs to 1 apart.
    step_scale: float = 1.0
    kind: ClassVar[str] = "leaf-sums"
    row_weights: ClassVar[RowWeights] = "scale"

    @cached_property
    def n_leaves(self) -> int:
        return sum(structure.n_leaves for structure in self.structures)

    @cached_property
    def bound(self) -> RowBound:
        return loss_named(self.loss).bound(self.update, self.clip)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        bound, n = self.bound, self.n_leaves
        second = (Block(n * bound.second, 1 / bound.second_scale),) if bound.second else ()
        first, then = self.step_noise
        step = (Block(1, first), Block(1, then)) if self.step_trees else ()
        return (Block(n * bound.first), *second, *step)

    @property
    def step_noise(self) -> tuple[float, float]:
        """Noise of the two coordinates about the step, in units of that of gradients."""
        bound = self.bound
        if bound.first == 1:
            return 1.0, 1 / bound.second_scale
        return 1 / bound.l2, 1 / (STEP_CURVE_SCALE * bound.l2)

    @property
    def sensitivity(self) -> Sensitivity:
        # A row lands in exactly one leaf of each tree of the batch and adds its statistics there,
        # the same in every tree: the norm is sqrt(trees) times the loss's bound of one row. With a
        # step u between -1 and 1 it adds (g u, h u^2) as well, no longer than (g, h): as one tree
        # more.
        #
        # With several outputs it adds x = m - u_y and the variance v of the u_k, m their mean under
        # the row's probabilities p. The u_k lie between a and b, b - a <= 1. Let x >= 0 (else turn
        # all signs) and s = m - a. Then x <= s, as u_y >= a, and v <= (b - m)(m - a) <= s (1 - s)
        # (Bhatia and Davis 2000). So x^2 + (c v)^2 <= s^2 + c^2 s^2 (1 - s)^2, at most 1 for c =
        # 3.33 as in `losses.Logistic`, and x + c v <= (1 + c)^2 / (4 c) < 1.41. In the units of
        # `step_noise` that is bound.l2 long, as one tree more, and in l1 1.41 bound.l2, less than
        # bound.l1: Newton's is at least 3, its l2 at most sqrt 2. That a clip clamps gradients
        # does not matter here: p is that of the row. On the grid p is a distribution, too.
        bound, n_trees = self.bound, len(self.structures) + (self.step_trees > 0)
        return Sensitivity(l1=n_trees * bound.l1, l2=math.sqrt(n_trees) * bound.l2)

    def check(self, schema: Schema) -> None:
        if self.loss != loss_for(schema.label).name:
            raise FormatError("leaf sums ask for a loss that does not belong to the label")
        if not 1 <= len(self.structures) <= MAX_TREES:
            raise FormatError("leaf sums ask for no tree, or for too many")
        check_clip(self.clip)
        self._check_step()
        if schema.hash not in self._fits:  # else the coordinator of this process has looked
            for structure in self.structures:
                structure.check(schema)
            self.routes(schema)  # every threshold is a public edge
            self._fits.add(schema.hash)

    @cached_property
    def _fits(self) -> set[str]:
        return set()

    def routes(self, schema: Schema) -> Routes:
        if schema.hash not in self._known:
            self._known[schema.hash] = shared_routes(self.structures, base_grid(schema))
        return self._known[schema.hash]

    @cached_property
    def _known(self) -> dict[str, Routes]:
        return {}

    def _check_step(self) -> None:
        # Hazards in two periods have two gradients, and are no softmax: nothing is proven of that.
        alone = self.bound.first == 1 == self.bound.second
        known = alone or (self.update == "newton" and loss_named(self.loss).code == kernels.SOFTMAX)
        if not 0 <= self.step_trees <= self.ensemble.length or (self.step_trees and not known):
            raise FormatError("leaf sums try a step that the ensemble, or the loss, does not have")
        if not (self.step_scale > 0 and math.isfinite(self.step_scale)):
            raise FormatError("leaf sums count a step in units of nothing")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        routes = self.routes(schema)
        loss = loss_named(self.loss)
        gradients = kernels.Gradients(
            scores, rows.target, bits, loss.code, UPDATES[self.update],
            clip_steps(self.clip, bits), self.bound.width, rows.weights, schema.weight_bits,
            loss.parameter,
        )  # fmt: skip
        if not self.step_trees:
            return routes.leaf_sums(rows.codes, gradients)
        half = scores.shape[1] // 2
        now, before = np.ascontiguousarray(scores[:, :half]), np.ascontiguousarray(scores[:, half:])
        gradients = gradients._replace(scores=now)
        total = routes.leaf_sums(rows.codes, gradients, spare=2)
        total[-2:] = kernels.step_sums(gradients, before, self.step_scale)
        return total

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values = {
            "loss": self.loss,
            "update": self.update,
            "step": [self.step_trees, self.step_scale],
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
        step_trees, step_scale = values["step"]
        return LeafSums(
            tuple(structures), values["loss"], ensemble, values["update"], clip,
            int(step_trees), float(step_scale),
        )  # fmt: skip
