"""A gate without ledger, messages and masks: the same questions, answers and noise, only quicker.

A test compares it with the real gate. The noise is seeded, so its models say "not private".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Statement
from hedgerow.privacy.accounting.path_budget import PathBudget
from hedgerow.privacy.accounting.paths import Paths
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.reservation import Release
from hedgerow.privacy.noise import mechanisms
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import NO_TREES, EnsembleRef, SumQuery
from hedgerow.queries.calibration import noise_for
from hedgerow.testing import seeded


class BareGate:
    """What a grower knows of a gate, over tables in this process."""

    def __init__(self, parts: Sequence[Rows], schema: Schema, plan: Plan) -> None:
        self.schema, self.plan, self._parts = schema, plan, parts
        self.paths = Paths()

    @property
    def ensemble(self) -> EnsembleRef:
        return NO_TREES

    @property
    def asked(self) -> list[dict[str, Any]]:
        return []  # nobody reads the record of these models

    @property
    def attendance(self) -> dict[str, Any]:
        return {}

    def pass_over(self) -> None:
        pass

    def release(self, query: SumQuery, mu: float = 0.0, name: str = "") -> Release:
        noise = noise_for(query, mu, self.plan, self.schema)
        budget = PathBudget.of(self.plan.budget)
        priced = budget.nodes(query)
        reason = self.paths.objection(priced, budget.branches.rounds[0].epsilon)
        assert not reason, reason
        self.paths.add(priced)
        scores = [np.zeros((rows.n_rows, 1)) for rows in self._parts]
        total = sum(
            query.answer(rows, zeros, self.schema, noise.bits)
            for rows, zeros in zip(self._parts, scores, strict=True)
        )
        values, blocks = np.asarray(total).view(np.uint64), [b.size for b in query.blocks]
        masked = self.plan.privacy.trust == "parties"
        size, honest = len(self._parts), len(self._parts) - self.plan.privacy.colluding
        for _ in range(size if masked else 1):
            values = mechanisms.add_laplace(values, blocks, noise.sigmas, honest if masked else 1)
        grow = (size / honest) ** 0.5 if masked else 1.0
        deviations = [
            mechanisms.laplace_deviation(s) * grow / 2.0**noise.bits for s in noise.sigmas
        ]
        return Release(
            values.view(np.int64), noise.bits, tuple(deviations), deviations[0], "seeded"
        )

    def statement(self) -> Statement:
        privacy = self.plan.privacy
        why = "Noise was seeded for a benchmark."
        return Statement("not private", privacy.epsilon, 0.0, privacy.trust, "pure", reason=why)


def tree_of(
    parts: Sequence[Rows], schema: Schema, epsilon: float, seed: int, **settings: object
) -> Ensemble:
    """One private tree over these tables; several are several parties that trust each other."""
    trust = "parties" if len(parts) > 1 else "coordinator"
    privacy = Privacy(epsilon, 0.0, trust, accounting="pure")  # type: ignore[arg-type]
    plan = plan_for(schema, privacy, "private-tree", settings, seed, run="benchmark")
    with seeded(seed):
        return method_named(plan.method).grow(BareGate(parts, schema, plan))  # type: ignore[arg-type]
