"""Defects planted on purpose: each must turn its named check red, and the check is green without.

These are the defects that were found in other tools; a check that stays green is no check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow.coordinator import gate
from hedgerow.kernels import loops
from hedgerow.model import losses
from hedgerow.packing import canonical_json
from hedgerow.privacy.accounting.gaussian_budget import Drawn
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.noise import mechanisms
from hedgerow.protocol import messages
from hedgerow.protocol.masks import Context, MaskKeys
from hedgerow.queries import calibration
from hedgerow.queries.leaf_sums import LeafSums
from tests.mutations import checks

Plant = Callable[[pytest.MonkeyPatch], None]


def seeded_noise(patch: pytest.MonkeyPatch) -> None:
    def gaussian(self: object, size: int, sigma: float) -> np.ndarray:
        return np.rint(np.random.default_rng(7).normal(0, sigma, size)).astype(np.int64)

    patch.setattr(mechanisms.SecureSource, "gaussian", gaussian)


def halved_noise(patch: pytest.MonkeyPatch) -> None:
    honest = mechanisms.SecureSource.gaussian
    patch.setattr(
        mechanisms.SecureSource, "gaussian", lambda self, n, sigma: honest(self, n, sigma / 2)
    )


def noise_to_a_copy(patch: pytest.MonkeyPatch) -> None:
    honest = mechanisms.add_gaussian

    def copied(total: Any, *arguments: Any) -> Any:
        honest(total.copy(), *arguments)
        return total

    patch.setattr(mechanisms, "add_gaussian", copied)


def inverted_scale(patch: pytest.MonkeyPatch) -> None:
    honest = calibration.noise_for

    def inverted(query: Any, mu: float, plan: Any, schema: Any, part: float = 1.0) -> Any:
        return honest(query, 1 / mu, plan, schema, part)

    patch.setattr(gate, "noise_for", inverted)
    patch.setattr(messages, "noise_for", inverted)


def missing_charge(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reservation, "charge", lambda *_, **__: 1)


def prices_not_added_up(patch: pytest.MonkeyPatch) -> None:
    """Each price is compared with the whole, as if nothing had been drawn before."""
    honest = Drawn.fits_with
    patch.setattr(Drawn, "fits_with", lambda self, *price: honest(Drawn(0.0, 0), *price))


def unbound_query(patch: pytest.MonkeyPatch) -> None:
    def info(self: Context) -> bytes:
        fields = [self.plan, self.schema, self.slot, self.attempt]
        return canonical_json([*fields, self.among.hash, self.among.degree])

    patch.setattr(Context, "info", property(info))


def one_mask_for_all(patch: pytest.MonkeyPatch) -> None:
    honest = MaskKeys._stream

    def repeated(self: MaskKeys, other: str, salt: bytes, info: bytes, size: int) -> Any:
        return np.full(size, honest(self, other, salt, info, 1)[0])

    patch.setattr(MaskKeys, "_stream", repeated)


def shares_of_one_over_s(patch: pytest.MonkeyPatch) -> None:
    honest = mechanisms.add_gaussian

    def small(total: Any, blocks: Any, sigmas: Any, share: float = 1.0) -> Any:
        return honest(total, blocks, sigmas, 1 / 3 if share == 1 / 2 else share)

    patch.setattr(mechanisms, "add_gaussian", small)


def clipped_gradient_with_the_plain_bound(patch: pytest.MonkeyPatch) -> None:
    """Gradients clipped at 0.5 and noise scaled to 0.5, while Hessians stay what they were."""
    honest = LeafSums.answer

    def clipped(self: Any, rows: Any, scores: Any, schema: Any, bits: int) -> Any:
        if rows.n_rows > 1:
            return sum(
                clipped(self, rows.take(np.array([i])), scores[i : i + 1], schema, bits)
                for i in range(rows.n_rows)
            )
        answer = honest(self, rows, scores, schema, bits)
        half = len(answer) // 2
        limit = np.int64(1) << (bits - 1)
        answer[:half] = np.clip(answer[:half], -limit, limit)
        return answer

    patch.setattr(LeafSums, "answer", clipped)
    bound = losses.Logistic().bound("newton")
    patch.setattr(losses.Logistic, "bound", lambda *_: replace(bound, l2=0.5))


def larger_hessian_scale(patch: pytest.MonkeyPatch) -> None:
    bound = losses.Logistic().bound("newton")
    wider = replace(bound, second_scale=3.5)
    patch.setattr(losses.Logistic, "bound", lambda *_: wider)


MUTATIONS: dict[str, tuple[Plant, Callable[[], None]]] = {
    "seeded noise": (seeded_noise, checks.noise_is_never_repeated),
    "halved noise": (halved_noise, checks.noise_at_the_gate_has_the_stated_variance),
    "noise to a copy": (noise_to_a_copy, checks.noise_at_the_gate_has_the_stated_variance),
    "inverted scale": (inverted_scale, checks.noise_at_the_gate_has_the_stated_variance),
    "missing charge": (missing_charge, checks.every_release_was_charged),
    "prices not added up": (prices_not_added_up, checks.later_slots_stop_at_what_was_planned),
    "unbound query in the mask key": (unbound_query, checks.masks_depend_on_everything_asked),
    "one mask for all coordinates": (one_mask_for_all, checks.masks_differ_between_coordinates),
    "shares of shape 1/S": (shares_of_one_over_s, checks.shares_add_up_to_the_stated_variance),
    "Hessian noise under a clipped gradient": (
        clipped_gradient_with_the_plain_bound,
        checks.no_row_exceeds_the_bound_of_leaf_sums,
    ),
    "Hessians counted too cheaply": (
        larger_hessian_scale,
        checks.no_row_exceeds_the_bound_of_leaf_sums,
    ),
}


@pytest.mark.parametrize(
    "check", sorted({c for _, c in MUTATIONS.values()}, key=lambda c: c.__name__)
)
def test_the_check_is_green_on_honest_code(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_planted_defect_turns_its_check_red(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, check = MUTATIONS[name]
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check()


def test_kernels_are_compiled() -> None:
    assert hasattr(loops.add_to_leaves, "signatures")
