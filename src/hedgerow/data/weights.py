"""Weights of rows: private numbers between 0 and a public cap, on a grid that the cap decides.

A row of weight w adds w times what it would add alone, so it moves every sum by at most the cap
times as much. Weights are never divided by their sum or mean, which are facts about rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.documents import Within
from hedgerow.data.schema_checks import SCHEMA, make_plain
from hedgerow.errors import SettingsError

Steps = NDArray[np.uint16]  # (row,): weights in steps of 2**-bits; (0,) where every row counts once
UNWEIGHTED: Steps = np.zeros(0, np.uint16)
LEAST_CAP, LARGEST_CAP = 1.0, 1e4  # a row without a weight counts once, so no cap is below 1


@dataclass(frozen=True)
class Weight:
    """How often rows count: a column of private numbers, and the public cap on them."""

    column: str
    at_most: Annotated[float, Within(LEAST_CAP, LARGEST_CAP)]

    def __post_init__(self) -> None:
        make_plain(self, "at_most")
        SCHEMA.check(self, "[weight]")

    @property
    def text(self) -> str:
        """The column and its range, in a word or two."""
        return f"{self.column}, 0 to {self.at_most:g}"

    @property
    def bits(self) -> int:
        """Weights are whole numbers of steps of 2**-bits, at most 2**15 of them.

        >>> Weight("w", 1.0).bits, Weight("w", 10.0).bits, Weight("w", 10_000.0).bits
        (15, 11, 1)
        """
        return 15 - math.ceil(math.log2(self.at_most))

    def steps(self, weights: NDArray[Any]) -> Steps:
        """Weights clamped to 0 and the cap and rounded down, so none exceeds the cap: (row,).

        >>> Weight("w", 2.0).steps(np.array([-1.0, 0.5, 1.0, 2.0, 7.0])).tolist()
        [0, 8192, 16384, 32768, 32768]
        """
        clamped = np.clip(weights.astype(np.float64), 0.0, self.at_most)
        return np.asarray(np.floor(clamped * 2.0**self.bits).astype(np.uint16))


def refuse_weight(weight: Weight | None, what: str) -> None:
    """Refuse a schema with weights, for what knows nothing of them."""
    if weight is not None:
        raise SettingsError(
            f"{what} has no weights of rows, and the schema has the weight {weight.column!r}. "
            "Nothing was sent. Take [weight] out of the schema, or train with `hedgerow train`."
        )
