"""Losses: how scores become gradients, and the proven bound of one row's (g, h).

`kernels.py` computes g and h on an integer grid; this module says how large they can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.errors import SchemaError
from hedgerow.schema import Label

GOLDEN = (1 + math.sqrt(5)) / 2


@dataclass(frozen=True)
class Logistic:
    """Binary log loss on labels 0 and 1; the score is the log-odds of class 1.

    With q = |p - y| we have |g| = q and h = q (1 - q). In units where h counts c-fold, the
    row's squared norm is q^2 + c^2 q^2 (1 - q)^2. It is at most 1 for all q in [0, 1] exactly
    when c <= GOLDEN**2.5 = 3.33019 (tight at q = 1 / GOLDEN), so Hessians travel free of charge
    at 1 / 3.33 of the gradients' noise. `kernels._logistic` truncates q onto the grid first and
    floors h, hence the bound holds on the grid too.
    """

    name: str = "logistic"
    code: int = kernels.LOGISTIC
    n_outputs: int = 1
    hessian_scale: float = 3.33

    @property
    def l2(self) -> float:
        """Largest norm of (g, hessian_scale * h) of one row."""
        return 1.0

    @property
    def l1(self) -> float:
        # q + c q (1 - q) is largest at q = (1 + c) / (2 c).
        c = self.hessian_scale
        return (1 + c) ** 2 / (4 * c)

    def start(self, counts: NDArray[np.float64], floor: float) -> NDArray[np.float64]:
        """Log-odds from noisy class counts, each held above `floor` rows."""
        negative, positive = np.maximum(counts, floor)
        return np.array([math.log(positive / negative)])

    def probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Class probabilities (row, class) from scores (row, output)."""
        positive = 1.0 / (1.0 + np.exp(-np.clip(scores[:, 0], -700, 700)))
        return np.column_stack([1.0 - positive, positive])


Loss = Logistic
LOSSES: dict[str, Loss] = {"logistic": Logistic()}


def loss_for(label: Label) -> Loss:
    """The loss that belongs to a label."""
    if label.task == "binary":
        return LOSSES["logistic"]
    raise SchemaError(
        f"label {label.name!r} is {label.task}; this version trains on labels with two classes. "
        "Nothing was asked. Choose a binary label."
    )
