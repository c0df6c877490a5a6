"""Noise so wide that a party of many rows cannot draw it is refused before the charge."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow.data.binning import base_grid
from hedgerow.errors import PlanError
from hedgerow.methods.registry import plan_for
from hedgerow.party.party import Party
from hedgerow.privacy.noise import mechanisms
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.messages import Message
from hedgerow.queries import NO_TREES, ColumnSums, n_bins_of
from hedgerow.queries.calibration import noise_for
from tests.attacks.rig import SCHEMA, Rig, some_rows, word


class _Nobody(Rig):
    """Trust in nobody, the default method; party a has many rows."""

    def __init__(self) -> None:
        super().__init__(trust="nobody", opened=False)
        many = Party("a", some_rows(6000, 0), SCHEMA, self.ledgers["a"])
        keys = dict(self.roster.parties) | {"a": many.identity.public}
        self.roster = replace(self.roster, parties=tuple(sorted(keys.items())))
        self.parties["a"] = many
        for party in self.parties.values():
            party.pin(self.roster)
        self.plan = plan_for(SCHEMA, Privacy(1.0, 1e-6, "nobody", spare=1), "auto", seed=1)
        self.open(self.plan)

    def send_wide(self, name: str) -> Message:
        grid, cuts = base_grid(SCHEMA), ((10, 20), ())
        n_bins = tuple(n_bins_of(g, c) for g, c in zip(grid, cuts, strict=True))
        slot, mu, found = len(self.plan.slots), self.plan.budget.adaptive.mu * 0.5, []
        for entry in range(1, 128):
            matrix = np.full((n_bins[0], n_bins[0]), entry, np.int8)
            query = ColumnSums(
                (0, 1), cuts, n_bins, (1e-3, 1e3), "logistic", NO_TREES, "slope", math.inf,
                (matrix,), (0, -1),
            )  # fmt: skip
            try:
                found.append((noise_for(query, mu, self.plan, SCHEMA), query))
            except PlanError:
                continue
        noise, query = max(found, key=lambda one: max(one[0].sigmas))
        assert max(noise.sigmas) * math.sqrt(6000) > mechanisms.WIDEST_DRAWN
        question: Any = self.question(query=query, slot=slot, noise=noise)
        return self.send(name, Message("ask", question.body()))

    def question(self, **changes: Any) -> Any:
        query, slot, noise = changes.pop("query"), changes.pop("slot"), changes.pop("noise")
        first = replace(super().question(), query=query, slot=slot, noise=noise)
        return replace(first, **changes)


def test_a_party_that_cannot_draw_its_noise_refuses_before_it_is_charged() -> None:
    rig = _Nobody()
    assert word(rig.send_wide("b")) == "answer"
    assert word(rig.send_wide("a")) == "bad-message"
    assert not rig.ledgers["a"].lines("a", "charge")
    assert len(rig.ledgers["b"].lines("b", "charge")) == 1
    rig.check_books()


@pytest.mark.parametrize("rows", [1.0, 4095.0, 4097.0, 1e9])
def test_what_can_be_drawn_is_what_the_source_draws(rows: float) -> None:
    sigma = 2.0**50
    total = np.zeros(3, np.uint64)
    if mechanisms.can_draw(sigma, rows):
        mechanisms.add_gaussian(total, [3], [sigma], rows)
    else:
        with pytest.raises(PlanError, match="cannot be drawn"):
            mechanisms.add_gaussian(total, [3], [sigma], rows)


def test_what_fails_after_the_charge_is_not_the_message_s_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()

    def broken(*arguments: Any) -> Any:
        raise PlanError("the noise cannot be drawn")

    monkeypatch.setattr(mechanisms, "add_gaussian", broken)
    assert word(rig.ask("a")) == "failed"
    assert len(rig.ledgers["a"].lines("a", "charge")) == 1
