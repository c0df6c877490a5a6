"""All audits of a vertical federation on one table: what each protection hides, in figures.

Statements say what was shown; these figures say what it is worth to an attacker. Everything here
runs in one process on rows that one owner may see: made-up ones, or its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError
from hedgerow.privacy.local import MECHANISMS
from hedgerow.rng import Generator, stream
from hedgerow.vertical.audit_columns import SeenSplit, narrowed
from hedgerow.vertical.audit_labels import (
    guessed_from_noisy,
    guessed_from_plain,
    guessed_from_randomised,
)
from hedgerow.vertical.audit_matrices import Recovered, attack_labels, attack_splits

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class AuditSettings:
    """What is tried. Figures of matrices are averages over blocks of rows."""

    shares: tuple[float, ...] = (0.1, 0.5, 0.9)  # dimensions of a sent space, of a block's rows
    block_rows: int = 1000
    most_blocks: int = 3
    candidates: int = 8  # splits a column
    epsilons: tuple[float, ...] = (0.5, 1.0, 3.0)
    mechanisms: tuple[str, ...] = MECHANISMS
    n_trees: int = 10
    steps: int = 300


def split_matrix(columns: Floats, candidates: int) -> Bits:
    """The 0/1 matrix of SMM, (row, column x candidate): whether a value is left of a quantile."""
    at = np.linspace(0, 1, candidates + 2)[1:-1]
    cuts = np.quantile(columns, at, axis=0)  # (candidate, column)
    left = columns[:, :, None] < cuts.T[None]
    return np.asarray(left.reshape(len(columns), -1))


def matrix_figures(
    columns: Floats, labels: Ints, settings: AuditSettings, rng: Generator
) -> dict[str, Any]:
    """SMM-1 and SMM-2 in a first tree, at each size of the space that was sent."""
    n_rows = len(columns)
    order = rng.permutation(n_rows)
    n_blocks = max(1, min(settings.most_blocks, n_rows // settings.block_rows))
    blocks = [block[: settings.block_rows] for block in np.array_split(order, n_blocks)]
    smm_1: dict[str, Any] = {}
    smm_2: dict[str, Any] = {}
    p = float(labels.mean())
    for share in settings.shares:
        splits, guesses = [], []
        for block in blocks:
            bits, y = split_matrix(columns[block], settings.candidates), labels[block] == 1
            gradients = np.column_stack([p - y, np.full(len(y), p * (1 - p))])
            splits.append(attack_splits(bits, gradients, share, rng, settings.steps))
            guesses.append(attack_labels(y, bits, share, rng, settings.steps))
        smm_1[f"{share:g}"], smm_2[f"{share:g}"] = _averaged(splits), _averaged(guesses)
    return {"splits under smm-1": smm_1, "labels under smm-2": smm_2}


def label_figures(labels: Ints, probabilities: Floats, settings: AuditSettings) -> dict[str, Any]:
    """Plain gradients, noisy ones by mechanism and epsilon of a tree, labels randomised once.

    `probabilities` (tree, row) are what the model says before each tree.
    """
    plain = guessed_from_plain(probabilities[0] - labels, labels)
    noisy = {
        mechanism: {
            f"{epsilon:g}": asdict(guessed_from_noisy(labels, probabilities, mechanism, epsilon))
            for epsilon in settings.epsilons
        }
        for mechanism in settings.mechanisms
    }
    once = {
        f"{epsilon:g}": asdict(guessed_from_randomised(labels, 2, epsilon))
        for epsilon in settings.epsilons
    }
    return {
        "labels without protection": asdict(plain),
        "labels under noise, by epsilon of a tree": noisy,
        "labels randomised once": once,
    }


def column_figures(
    columns: Floats, seen: Mapping[int, Sequence[SeenSplit]], ordered: Sequence[bool]
) -> dict[str, Any]:
    """Columns of a passive party from the splits that the active party saw, by column."""
    return {
        str(column): asdict(narrowed(splits, columns[:, column], ordered[column]))
        for column, splits in seen.items()
    }


def drawn_splits(
    columns: Floats, n_trees: int, depth: int, rng: Generator
) -> dict[int, list[SeenSplit]]:
    """Splits of trees that nobody learned, at random quantiles of random columns: for a trial."""
    seen: dict[int, list[SeenSplit]] = {j: [] for j in range(columns.shape[1])}
    for _ in range(n_trees):
        nodes = [np.arange(len(columns))]
        for _ in range(depth):
            below = []
            for rows in nodes:
                column = int(rng.integers(columns.shape[1]))
                values = columns[rows, column]
                left = values < np.quantile(values, rng.uniform(0.1, 0.9))
                if left.all() or not left.any():
                    continue
                seen[column].append(SeenSplit(rows, left))
                below += [rows[left], rows[~left]]
            nodes = below
    return seen


def audit_table(
    columns: Floats,
    labels: Ints,
    seed: int,
    settings: AuditSettings | None = None,
    probabilities: Floats | None = None,
    seen: Mapping[int, Sequence[SeenSplit]] | None = None,
) -> dict[str, Any]:
    """Run all audits on a passive party's columns (row, column) and labels 0 and 1.

    Without `probabilities` (tree, row) of a model, scores stay at the share of ones, which is the
    easiest for an attacker; without `seen`, splits are drawn at random.
    """
    settings = settings or AuditSettings()
    if columns.ndim != 2 or len(columns) != len(labels) or not set(np.unique(labels)) == {0, 1}:
        raise FormatError("audits take columns (row, column) and as many labels, both 0 and 1")
    if probabilities is None:
        probabilities = np.full((settings.n_trees, len(labels)), float(labels.mean()))
    if seen is None:
        seen = drawn_splits(columns, settings.n_trees, 3, stream(seed, "audit", "splits"))
    matrices = matrix_figures(columns, labels, settings, stream(seed, "audit", "matrices"))
    ordered = [True] * columns.shape[1]
    return {
        "rows": len(labels),
        **matrices,
        **label_figures(labels, probabilities, settings),
        "columns from splits": column_figures(columns, seen, ordered),
    }


def _averaged(found: Sequence[Recovered]) -> dict[str, float]:
    names = ("rounding", "projections", "baseline", "best", "above_chance")
    return {name: float(np.mean([getattr(one, name) for one in found])) for name in names}
