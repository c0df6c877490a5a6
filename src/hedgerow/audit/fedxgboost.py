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

from hedgerow.audit.fedxgboost_columns import SeenSplit, instance_spaces
from hedgerow.audit.fedxgboost_labels import (
    guessed_from_noisy,
    guessed_from_plain,
    guessed_from_randomised,
    labels_from_gradients,
)
from hedgerow.audit.fedxgboost_matrices import Recovered, labels_from_answers, recover_splits
from hedgerow.audit.fedxgboost_null_spaces import bins_from_kernel, labels_from_kernel
from hedgerow.data.rng import Generator, stream
from hedgerow.errors import FormatError
from hedgerow.privacy.noise.randomisers import MECHANISMS

__all__ = [  # attacks by the names that statements give as what measured a disclosure
    "AuditSettings",
    "audit_table",
    "bins_from_kernel",
    "guessed_from_noisy",
    "guessed_from_randomised",
    "instance_spaces",
    "labels_from_answers",
    "labels_from_gradients",
    "labels_from_kernel",
    "recover_splits",
]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class AuditSettings:
    """What is tried. Figures of matrices are averages over blocks of rows."""

    shares: tuple[float, ...] = (0.1, 0.5, 0.9)  # null-space vectors, of a block's rows
    block_rows: int = 256
    most_blocks: int = 3
    candidates: int = 8  # splits a column
    decoys: int = 8  # columns of random bits in SMM-2
    repeats: tuple[int, ...] = (1, 10)  # trees of SMM-1, answers of SMM-2 about the same rows
    n_levels: int = 2  # of a first tree
    tries: int = 10  # rows of a block whose bin is looked for in vectors of SMM-2
    epsilons: tuple[float, ...] = (0.5, 1.0, 3.0)
    mechanisms: tuple[str, ...] = MECHANISMS
    n_trees: int = 10


def split_matrix(columns: Floats, candidates: int) -> Bits:
    """The 0/1 matrix of SMM, (row, column x candidate): whether a value is left of a quantile."""
    at = np.linspace(0, 1, candidates + 2)[1:-1]
    cuts = np.quantile(columns, at, axis=0)  # (candidate, column)
    left = columns[:, :, None] < cuts.T[None]
    return np.asarray(left.reshape(len(columns), -1))


def matrix_figures(
    columns: Floats, labels: Ints, settings: AuditSettings, rng: Generator
) -> dict[str, Any]:
    """SMM-1 and SMM-2 in a first tree, by the share of null-space vectors that are sent."""
    n_blocks = max(1, min(settings.most_blocks, len(columns) // settings.block_rows))
    order = rng.permutation(len(columns))[: n_blocks * settings.block_rows]
    blocks = np.array_split(order, n_blocks)
    figures: dict[str, Any] = {"smm-1": {}, "smm-2": {}}
    for share in settings.shares:
        per_block = [
            _block_figures(columns[b], labels[b] == 1, share, settings, rng) for b in blocks
        ]
        for name in ("smm-1", "smm-2"):
            attacks = per_block[0][name]
            figures[name][f"{share:g}"] = {
                attack: _averaged([block[name][attack] for block in per_block])
                for attack in attacks
            }
        levels = (settings.n_levels, settings.block_rows)
        seen = labels_from_kernel(labels[order] == 1, share, rng, *levels)
        figures["smm-1"][f"{share:g}"]["labels from vectors"] = _averaged([seen])
    return figures


def _block_figures(
    columns: Floats, labels: Bits, share: float, settings: AuditSettings, rng: Generator
) -> dict[str, dict[str, Recovered]]:
    """The attacks on one block of rows."""
    bits, p = split_matrix(columns, settings.candidates), float(labels.mean())
    gradients = np.column_stack([p - labels, np.full(len(labels), p * (1 - p))])
    left = bits.reshape(len(columns), columns.shape[1], -1).sum(axis=2)
    codes, n_bins = settings.candidates - left, settings.candidates + 1
    share_of_bins = bins_from_kernel(codes, n_bins, settings.decoys, share, rng, settings.tries)
    one: dict[str, Recovered] = {}
    two = {"bins from vectors": Recovered(share_of_bins, share_of_bins, 0.0)}
    for times in settings.repeats:
        one[f"splits, {times} trees"] = recover_splits(bits, gradients, share, rng, times)
        two[f"labels, {times} answers"] = labels_from_answers(labels, bits, share, rng, times)
    return {"smm-1": one, "smm-2": two}


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
        str(column): asdict(instance_spaces(splits, columns[:, column], ordered[column]))
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
