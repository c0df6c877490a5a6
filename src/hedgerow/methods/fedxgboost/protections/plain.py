"""`none` and `ldp`: passive parties get a number of every row, and score their own candidates.

Under `none` these are the gradients themselves, which show the labels. Under `ldp` (algorithm 6)
they are noisy, and everything else follows from the noisy ones: splits, totals, leaf values, hence
scores. So a label is protected by the epsilon of the whole run, whatever the parties see.

Hessians are computed from scores alone, never from labels, so they cost nothing and get no noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import SQUARED
from hedgerow.methods.fedxgboost.asking import Asking, PeerSteps
from hedgerow.methods.fedxgboost.levels import Level, search
from hedgerow.methods.fedxgboost.protections.base import (
    DONE,
    ExactNumbers,
    Floats,
    Passive,
    ScoredThere,
)
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.exact import BITS, Ints, gradients, leaf_values
from hedgerow.model.losses import Loss
from hedgerow.packing import pack
from hedgerow.privacy.noise import mechanisms
from hedgerow.privacy.noise.randomisers import LabelResponse
from hedgerow.protocol.peer_messages import PeerMessage


class PlainActive(ScoredThere, ExactNumbers):
    """Sends the numbers of every row at the beginning of a tree."""

    def __init__(
        self, asking: Asking, settings: VerticalSettings, loss: Loss, target: Floats
    ) -> None:
        ScoredThere.__init__(self, asking)
        ExactNumbers.__init__(self, settings, loss, target)

    def begin(self, numbers: Ints) -> PeerSteps[None]:
        small = bool((np.abs(numbers) < 2**31).all())
        yield from self._asking.tell_all(
            pack({"kind": "numbers"}, {"numbers": numbers.astype(np.int32) if small else numbers})
        )

    def offers(self, level: Level, numbers: Ints, totals: Ints) -> PeerSteps[dict[str, Floats]]:
        messages = dict.fromkeys(self._asking.passive, level.message())
        answers = yield from self._asking.ask(messages, "scores")
        return self.read_scores(answers, level.n_nodes)


class PlainPassive(Passive):
    """Adds up the numbers by its own bins, and says how good its best splits are."""

    _numbers: Ints | None = None

    def answer(self, kind: str, message: PeerMessage) -> bytes:
        if kind == "numbers":
            self.begin_tree(message)
            self._numbers = self._read(message)
            return DONE
        if kind != "level" or self._numbers is None:
            raise self.unknown(kind)
        level, s = self.take_level(message), self.settings
        sums = self.histograms.of(level, self._numbers)
        totals = sums[:, : int(self.bins.starts[1])].sum(axis=1)  # over the bins of any column
        arrays = (sums, self.bins.starts, self.bins.categorical, totals)
        return self.scored(search(*arrays, s.reg_lambda, least_weight(s)))

    def _read(self, message: PeerMessage) -> Ints:
        shape = (self.n_rows, 2 * self.n_outputs)
        kind = np.int64 if message.has("numbers", np.int64) else np.int32
        found = message.array("numbers", kind, shape).astype(np.int64)
        if bool((np.abs(found) > 2**62 // max(1, self.n_rows)).any()):
            raise message.wrong("its numbers are larger than sums can hold")
        return found


def least_weight(settings: VerticalSettings) -> float:
    """The Hessians that a side of a split needs; first-order numbers have none."""
    return 0.0 if settings.order == 1 else settings.min_child_weight


class LdpActive(PlainActive):
    """The same with numbers that protect labels, each tree paying its share of the epsilon.

    `labels-once` randomises every label once and trains on unbiased versions of the result: any
    number of trees costs epsilon once. The others perturb every gradient of every tree: a tree
    costs epsilon / n_trees, of which every output has an equal share.
    """

    def __init__(
        self, asking: Asking, settings: VerticalSettings, loss: Loss, target: Floats
    ) -> None:
        super().__init__(asking, settings, loss, target)
        self._known: Floats | None = None  # (row, output): labels as everything may see them
        if settings.mechanism == "labels-once":
            self._known = noisy_labels(target, loss, settings.epsilon)

    def numbers(self, scores: Floats) -> Ints:
        k = scores.shape[1]
        # Of rows whose label is the first class (or 0): nothing here depends on a label.
        found = gradients(self._loss, scores, np.zeros(len(scores)))
        if k > 1:
            found[:, 0] += 2**BITS  # probabilities of all classes
        if self._known is None:
            own = self._targets(k)
            slopes = found[:, :k] * 2.0**-BITS - own
            share = self._settings.share(k)
            flat = np.clip(slopes, -1, 1).ravel()
            noisy = mechanisms.perturb(flat, share, self._settings.mechanism).reshape(-1, k)
            found[:, :k] = np.rint(noisy * 2.0**BITS).astype(np.int64)
        else:
            found[:, :k] -= np.rint(self._known * 2.0**BITS).astype(np.int64)
        if self._settings.order == 1:
            found[:, k:] = 0
        return found

    def _targets(self, k: int) -> Floats:
        if k == 1:
            return self._target[:, None]
        return np.asarray(np.arange(k)[None, :] == self._target[:, None], np.float64)

    def values(self, sums: Ints, counts: Ints) -> NDArray[np.float32]:
        if self._settings.order == 2:
            return super().values(sums, counts)
        # Without Hessians every row counts with the most that its Hessian could be.
        k, full = sums.shape[1] // 2, sums.copy()
        most = self._loss.hessian_bound() / k
        full[:, k:] = np.rint(counts[:, None] * most * 2.0**BITS).astype(np.int64)
        return leaf_values(full, self._settings.learning_rate, self._settings.reg_lambda)


def noisy_labels(target: Floats, loss: Loss, epsilon: float) -> Floats:
    """Labels randomised once, as unbiased numbers (row, output)."""
    if loss.code == SQUARED:
        return (mechanisms.perturb(2 * target - 1, epsilon, "hybrid")[:, None] + 1) / 2
    classes = 2 if loss.n_outputs == 1 else loss.n_outputs
    drawn = mechanisms.randomised_labels(target.astype(np.int64), classes, epsilon)
    weights = LabelResponse(classes, epsilon).unbiased_weights()[drawn]  # (row, class)
    return weights[:, 1:] if loss.n_outputs == 1 else weights
