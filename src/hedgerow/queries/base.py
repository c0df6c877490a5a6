"""What a query is: frozen data whose answers add up, with its sensitivity beside the code.

`SumQuery` is what callers rely on, `QueryBase` has the defaults of what is optional.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.data.weights import Steps
from hedgerow.errors import FormatError
from hedgerow.model.hashes import NO_TREES_YET, longer, model_hash
from hedgerow.privacy.accounting.paths import Priced

Ints = NDArray[np.int64]
RowWeights = Literal["scale", "ignore", "refuse"]


@dataclass(frozen=True)
class Block:
    """A part of an answer: how many coordinates, and its noise unit relative to the others."""

    size: int
    weight: float = 1.0


@dataclass(frozen=True)
class Sensitivity:
    """The most that one row can change the answer, blocks divided by their noise units."""

    l1: float
    l2: float


@dataclass(frozen=True)
class EnsembleRef:
    """The trees that a question refers to: how many, and the hash of their chain."""

    length: int
    hash: str

    def then(self, tree: bytes) -> EnsembleRef:
        """The reference after one more tree."""
        return EnsembleRef(self.length + 1, longer(self.hash, tree))

    def is_of(self, model: str, schema: Schema, averaged: bool | None) -> bool:
        """Whether these are all trees of the model of this hash; None: averaged or not."""
        ways = (averaged,) if averaged is not None else (False, True)
        return model in [model_hash(schema.hash, self.length, self.hash, way) for way in ways]


NO_TREES = EnsembleRef(0, NO_TREES_YET)


@dataclass(frozen=True)
class Choice:
    """How a query that releases a choice draws it: which selector, and what decides its scale."""

    selector: str
    utility_range: int  # by how much more a row moves one utility than another, in steps
    price: float  # epsilon of every leaf that is asked about


class QueryBase(Protocol):
    """What a query may do besides answering, switched off. Every query inherits it."""

    kind: ClassVar[str]

    @property
    def blocks(self) -> tuple[Block, ...]: ...

    # -- the trees it refers to --

    @property
    def step_trees(self) -> int:
        """How many trees at the end of its ensemble it looks at as one step."""
        return 0

    @property
    def step_scale(self) -> float:
        """The unit that such a step is counted in."""
        return 1.0

    @property
    def averaged(self) -> bool | None:
        """Whether the trees it measures add up to predictions themselves; None: either."""
        return None

    # -- what rows add --

    counts: ClassVar[bool] = False  # whether every coordinate is whole: then noise is too
    fine_bits: ClassVar[int | None] = None  # a grid of its own for what rows add
    of_a_party: ClassVar[bool] = False  # whether answers add up over parties, but not over rows

    @property
    def row_weights(self) -> RowWeights:
        """What a row of weight w adds, where the schema has weights.

        "scale": w times as much, each coordinate truncated toward zero, so at most the cap times
        the sensitivity. "ignore": as much as any row. "refuse": nothing is proven, so it is not
        asked under such a schema.
        """
        return "refuse"

    def tally(self, rows: Rows, schema: Schema) -> Ints:
        """Of a party's statistic: what does add up over its rows; `from_tally` goes on from it."""
        raise FormatError(f"{self.kind} adds up over rows: it has no tally")

    def from_tally(self, tally: Ints, schema: Schema, bits: int) -> Ints:
        """The answer of a party whose rows tally up to this."""
        raise FormatError(f"{self.kind} adds up over rows: it has no tally")

    # -- what it costs and what is released --

    def priced(self) -> Priced | None:
        """What each node of its tree pays; None if it is not priced by node (Gaussian noise)."""
        return None

    @property
    def choice(self) -> Choice | None:
        """How one of its `utilities` is drawn, if that is all that is released."""
        return None

    def utilities(self, total: Ints, schema: Schema, bits: int) -> list[tuple[Ints, Ints]]:
        """Of every choice: utilities in whole steps, and the ways they belong to."""
        return []

    @property
    def finishes(self) -> bool:
        """Whether the gate makes something else of exact sums (`finish`) before the noise."""
        return False

    def finish(self, total: Ints, bits: int) -> Ints:
        """What gets the noise instead of the sums, where the query `finishes` them."""
        return total

    @property
    def released_blocks(self) -> tuple[Block, ...]:
        """Blocks of what gets the noise."""
        return self.blocks

    @property
    def needs_exact_sums(self) -> bool:
        """Whether what is released is no sum, so that somebody must be trusted with exact ones."""
        return self.choice is not None or self.finishes


class SumQuery(QueryBase, Protocol):
    """A question whose answers add up over rows and parties."""

    @property
    def ensemble(self) -> EnsembleRef: ...

    @property
    def sensitivity(self) -> Sensitivity: ...

    def check(self, schema: Schema) -> None:
        """Raise FormatError unless the question makes sense for the schema."""
        ...

    def answer(self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int) -> Ints:
        """The exact integer sums over the rows on the grid 2**-bits, blocks one after another.

        `scores` are (row, output). A question about a step has `step_trees` above 0 and gets, in
        further columns, the scores without the last so many trees of its ensemble.
        """
        ...

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Values and arrays for `packing`; `from_parts` reads them back."""
        ...


def check_clip(clip: float) -> None:
    """Raise FormatError unless gradients can be clamped to it: at most 1, or infinite for not.

    Nothing else may reach the kernels. No gradient is longer than 1, so a larger clip asks for
    nothing, and one beyond 64 bits would wrap there and let a row add more than its bound.
    """
    if not (clip == math.inf or 2.0**-12 <= clip <= 1.0):
        raise FormatError("a question clamps gradients to nothing, or to more than they can be")


def clip_steps(clip: float, bits: int) -> int:
    """A clip in whole steps of the grid, rounded down so that no row exceeds its bound."""
    return math.floor(clip * 2.0**bits) if math.isfinite(clip) else kernels.NO_CLIP


def weighted_counts(place: Ints, weights: Steps, schema: Schema, bits: int, n_places: int) -> Ints:
    """Rows by place on the grid 2**-bits, each counting as often as its weight says: (place,).

    A row adds its weight, truncated onto the grid: never more than the weight. Sums of 16-bit
    steps are exact in float64 up to 2**37 rows.
    """
    if not weights.size:
        return np.bincount(place, minlength=n_places).astype(np.int64) << bits
    finer = schema.weight_bits - bits
    steps = weights >> max(finer, 0)
    return np.bincount(place, steps, n_places).astype(np.int64) << max(-finer, 0)


def weighted_steps(values: Ints, weights: Steps, schema: Schema) -> Ints:
    """What rows add, (row,) in steps of the grid, times their weights and truncated toward zero."""
    if not weights.size:
        return values
    product = (np.abs(values) * weights.astype(np.int64)) >> schema.weight_bits
    return np.asarray(np.sign(values) * product)


def size_of(query: SumQuery) -> int:
    """How many coordinates an answer has."""
    cache: dict[str, Any] = vars(query)  # frozen: added up once, as a cached property would be
    if "_size" not in cache:
        cache["_size"] = sum(block.size for block in query.blocks)
    size: int = cache["_size"]
    return size
