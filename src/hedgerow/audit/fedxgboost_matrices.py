"""What the answers of secure matrix multiplication still show: attacks on W = (I - ZZ') X.

X has entries 0 and 1: a passive party's splits (SMM-1, the active party attacks), or labels behind
the gradients of a first tree (SMM-2, a passive party attacks). The attacker sees W and knows a
space that Z lies in, because it sent it: X is W plus something in that space. Of all such X the one
with entries between 0 and 1 is looked for. For spaces in general position it is unique as long as
the space has less than half as many dimensions as there are rows, so rounding it gives X; the more
dimensions, the less is left, and with nearly as many as rows nothing is.

Answers about the same X add up: the spaces of several of them have less and less in common. Splits
of the first node are asked about in every tree, so a few trees show what one of them hides; and
gradients of a first tree are asked about for every group of candidates and at every level.

Works on one block of rows; n-by-n matrices are formed for several answers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.rng import Generator
from hedgerow.errors import FormatError

STEPS = 300
NOTHING_LEFT = 1e-9  # of a sent column in the answers: it was used
Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class Recovered:
    """Shares of entries that an attacker gets right."""

    rounding: float  # the answers as they are, rounded
    projections: float  # the point of the space with entries between 0 and 1, rounded
    baseline: float  # who guesses every column's more frequent entry

    @property
    def best(self) -> float:
        return max(self.rounding, self.projections, self.baseline)

    @property
    def above_chance(self) -> float:
        """0: no better than guessing the more frequent entry. 1: everything is recovered."""
        return (self.best - self.baseline) / (1 - self.baseline) if self.baseline < 1 else 0.0


def null_vectors(held: Floats, count: int, rng: Generator) -> Floats:
    """Random orthonormal columns (row, count), orthogonal to all columns of `held`.

    What a party sends in SMM, drawn for an audit.
    """
    n_rows = len(held)
    basis = np.linalg.qr(held)[0]
    if not 1 <= count <= n_rows - basis.shape[1]:
        raise FormatError(f"{count} columns orthogonal to {basis.shape[1]} in {n_rows} rows")
    drawn = rng.normal(size=(n_rows, count))
    for _ in range(2):  # the second time for what rounding left
        drawn -= basis @ (basis.T @ drawn)
    return np.asarray(np.linalg.qr(drawn)[0])


def answer(held: Floats, space: Floats) -> Floats:
    """(I - ZZ') X by two thin products."""
    return np.asarray(held - space @ (space.T @ held))


def columns_used(sent: Floats, answers: Floats) -> NDArray[np.int64]:
    """Which of the columns that it sent the other party used: Z'(I - ZZ') X is 0 for them alone.

    So how many were used is no secret where Z is made of columns as they were sent.
    """
    left = np.abs(sent.T @ answers).max(axis=1)
    return np.flatnonzero(left <= NOTHING_LEFT * max(1.0, float(np.abs(answers).max())))


def between_zero_and_one(answers: Floats, space: Floats, steps: int = STEPS) -> Floats:
    """The point of answers + span(space) with entries in [0, 1], as near as `steps` come to it.

    Averaged reflections at the two sets (Douglas and Rachford), which get closer than projecting
    in turns. `space` has orthonormal columns; (row, column) in and out.
    """

    def onto_space(x: Floats) -> Floats:
        return answers + np.asarray(space @ (space.T @ (x - answers)))

    point = onto_space(np.full_like(answers, 0.5))
    for _ in range(steps):
        inside = np.clip(point, 0.0, 1.0)
        moved = onto_space(2 * inside - point) - inside
        point = point + moved
        if float(np.abs(moved).max(initial=0.0)) < 1e-6:
            break
    return onto_space(np.clip(point, 0.0, 1.0))


def recovered(truth: Bits, answers: Floats, space: Floats, steps: int = STEPS) -> Recovered:
    """Attack the answers (row, column) to the bits `truth`, knowing a space that Z lies in.

    `space` (row, dimension) needs no orthonormal columns: what the attacker sent, or what
    `columns_used` left of it.
    """
    if truth.shape != answers.shape or len(space) != len(truth):
        raise FormatError(
            f"there are {truth.shape} bits, {answers.shape} answers and {len(space)} rows of a "
            "space; they must fit each other"
        )
    estimate = between_zero_and_one(answers, np.linalg.qr(space)[0], steps)
    plain = _rounded(truth, answers)
    return Recovered(plain.rounding, _rounded(truth, estimate).projections, plain.baseline)


def together(answers: Sequence[Floats], spaces: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Several answers about one X as one: a point, and the space that all spaces have in common.

    What is orthogonal to a space is known of X from its answer; all that is known, from all of
    them, fixes X but for what is orthogonal to all of it.
    """
    known, values = [], []
    for seen, space in zip(answers, spaces, strict=True):
        beside = np.linalg.qr(space, mode="complete")[0][:, space.shape[1] :]  # (row, dimension)
        known.append(beside)
        values.append(beside.T @ seen)
    left, size, right = np.linalg.svd(np.concatenate(known, axis=1).T)
    rank = int((size > NOTHING_LEFT * size[0]).sum())
    measured = (left[:, :rank].T @ np.concatenate(values)) / size[:rank, None]
    return np.asarray(right[:rank].T @ measured), np.asarray(right[rank:].T)


def recover_splits(
    truth: Bits, gradients: Floats, share: float, rng: Generator, n_trees: int = 1
) -> Recovered:
    """SMM-1, attacked by the active party: a space of `share` of the rows, all of it used.

    `truth` (row, candidate) are splits, `gradients` (row, number) g and h: rows of one block. With
    several trees, the same rows are asked about in each.
    """
    count = max(1, min(round(share * len(truth)), len(truth) - gradients.shape[1]))
    spaces = [null_vectors(gradients, count, rng) for _ in range(n_trees)]
    seen = [answer(truth.astype(np.float64), space) for space in spaces]
    return _attacked(truth, seen, spaces)


def labels_from_answers(
    labels: Bits, splits: Bits, share: float, rng: Generator, n_answers: int = 1
) -> Recovered:
    """SMM-2 in a first logistic tree, attacked by a passive party: gradients are p - y, one p.

    The passive party sent a space orthogonal to its splits (with a random column, so that no row
    stands alone), is answered (I - ZZ') g, and knows p, since it is told the sums of g and h.
    """
    p, n_rows = float(labels.mean()), len(labels)
    seen, spaces = [], []
    for _ in range(n_answers):
        hidden = np.column_stack([splits.astype(np.float64), rng.normal(size=n_rows)])
        left, size, _ = np.linalg.svd(hidden, full_matrices=False)
        basis = left[:, size > NOTHING_LEFT * size[0]]
        count = max(1, min(round(share * n_rows), n_rows - basis.shape[1]))
        spaces.append(null_vectors(basis, count, rng))
        gradients = p - labels.astype(np.float64)[:, None]
        seen.append(p - answer(gradients, spaces[-1]))  # y = p - g, but for the space
    return _attacked(labels[:, None], seen, spaces)


def _attacked(truth: Bits, seen: Sequence[Floats], spaces: Sequence[Floats]) -> Recovered:
    if len(seen) == 1:
        return recovered(truth, seen[0], spaces[0])
    point, space = together(seen, spaces)
    attack = recovered(truth, point, space) if space.shape[1] else _rounded(truth, point)
    return Recovered(float(((seen[0] > 0.5) == truth).mean()), attack.projections, attack.baseline)


def _rounded(truth: Bits, point: Floats) -> Recovered:
    ones = truth.mean(axis=0)
    right = float(((point > 0.5) == truth).mean())
    return Recovered(right, right, float(np.maximum(ones, 1 - ones).mean()))
