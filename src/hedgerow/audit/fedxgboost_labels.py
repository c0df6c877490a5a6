"""How many labels can be read from what leaves the active party: plain, noisy, randomised.

The attackers are as strong as can be: they know the running scores, the share of every class and
the mechanism, and guess every row's more likely label. Rows are taken one by one, so any number
fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError
from hedgerow.privacy.noise import randomisers
from hedgerow.privacy.noise.mechanisms import perturb, randomised_labels

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Guessed:
    """How often an attacker's guess of a label is right."""

    accuracy: float
    baseline: float  # who always says the most frequent class
    bound: float  # no attacker on what was shown can be expected to do better; 1 without a bound

    @property
    def above_chance(self) -> float:
        return (self.accuracy - self.baseline) / (1 - self.baseline) if self.baseline < 1 else 0.0


def most_accurate(epsilon: float, shares: Sequence[float]) -> float:
    """The largest expected share of right guesses after an epsilon-private look at every label.

    Given an output, a label with prior p is true with a probability of at most
    e^epsilon p / (e^epsilon p + 1 - p), because no other label made the output less than
    e^-epsilon times as likely. For a binary label the rates of both errors satisfy a + e^epsilon b
    >= 1 and e^epsilon a + b >= 1, and the best corner is one of the two constant guesses or
    a = b = 1 / (1 + e^epsilon).
    """
    power = math.exp(min(epsilon, 700.0))
    if len(shares) == 2:
        return max(*shares, power / (1 + power))
    return max(power * p / (power * p + 1 - p) for p in shares)


def labels_from_gradients(gradients: Floats) -> Ints:
    """Labels read from plain gradients: (row,) of a logistic loss, (row, class) of softmax.

    A gradient is a probability less 1 for the true class and 0 for others, in every tree: it is
    negative for the true class alone.
    """
    if gradients.ndim == 1 or gradients.shape[1] == 1:
        return np.asarray(gradients.reshape(len(gradients)) < 0, np.int64)
    return np.asarray(gradients.argmin(axis=1), np.int64)


def guessed_from_plain(gradients: Floats, labels: Ints) -> Guessed:
    """Without protection."""
    shares = _shares(labels)
    return Guessed(float((labels_from_gradients(gradients) == labels).mean()), max(shares), 1.0)


def log_chances(rule: randomisers.Rule, outputs: Floats, values: Floats) -> Floats:
    """log of how likely outputs are if these were the inputs, up to what is alike for all."""
    if isinstance(rule, randomisers.Hybrid):
        piecewise, duchi = rule.parts
        plain = np.isclose(np.abs(outputs), duchi.size, rtol=1e-12, atol=0.0)
        return np.where(
            plain, log_chances(duchi, outputs, values), log_chances(piecewise, outputs, values)
        )
    cells = rule.cells(values)
    if isinstance(rule, randomisers.Laplace):
        return np.asarray(-np.abs(outputs * rule.places - cells) / rule.scale, np.float64)
    if isinstance(rule, randomisers.Duchi):
        upper = rule.weight(cells).astype(np.float64) / rule.limit
        return np.log(np.where(outputs > 0, upper, 1 - upper))
    drawn = np.rint(outputs / rule.slope + (rule.n_cells - 1) / 2)
    near = (drawn >= cells) & (drawn < cells + rule.window)
    inside, outside = (math.log(weight) for weight in rule.weights)
    return np.where(near, inside, outside)


def guess_from_noisy(
    outputs: Floats, probabilities: Floats, prior: float, mechanism: str, epsilon: float
) -> Ints:
    """The more likely label of every row, from noisy logistic gradients of all trees.

    `outputs` and `probabilities` are (tree, row): what was shown, and the probabilities p that the
    model gave before each tree, so gradients were p - 1 or p. `epsilon` is that of one tree.
    """
    if outputs.shape != probabilities.shape:
        raise FormatError(f"{outputs.shape} outputs and {probabilities.shape} probabilities")
    rule = randomisers.rule_for(mechanism, epsilon)
    odds = np.full(outputs.shape[1], math.log(prior) - math.log1p(-prior))
    for shown, p in zip(outputs, probabilities, strict=True):  # a tree at a time
        odds += log_chances(rule, shown, p - 1) - log_chances(rule, shown, p)
    return np.asarray(odds > 0, np.int64)


def guessed_from_noisy(
    labels: Ints, probabilities: Floats, mechanism: str, epsilon: float
) -> Guessed:
    """Draw noisy gradients as the active party would, then guess; `epsilon` is that of one tree."""
    shares = _shares(labels)
    if len(shares) != 2 or min(shares) == 0:
        raise FormatError("this audit takes labels 0 and 1, both of which occur")
    shown = np.stack([perturb(p - labels, epsilon, mechanism) for p in probabilities])
    guess = guess_from_noisy(shown, probabilities, shares[1], mechanism, epsilon)
    bound = most_accurate(len(probabilities) * epsilon, shares)
    return Guessed(float((guess == labels).mean()), max(shares), bound)


def guessed_from_randomised(labels: Ints, classes: int, epsilon: float) -> Guessed:
    """Labels randomised once, for any number of trees: the most likely class given the report."""
    shares = _shares(labels, classes)
    rule = randomisers.LabelResponse(classes, epsilon)
    reports = randomised_labels(labels, classes, epsilon)
    chances = np.full((classes, classes), float(rule.other))  # (class, report)
    np.fill_diagonal(chances, float(rule.own))
    guesses = (np.array(shares)[:, None] * chances).argmax(axis=0)
    accuracy = float((guesses[reports] == labels).mean())
    return Guessed(accuracy, max(shares), most_accurate(epsilon, shares))


def _shares(labels: Ints, classes: int | None = None) -> list[float]:
    if len(labels) == 0:
        raise FormatError("there are no labels to guess")
    counts = np.bincount(labels, minlength=classes or 2)
    return [float(share) for share in counts / len(labels)]
