"""Mixes: whole-number matrices by which a column's sums of bins are multiplied before the noise.

Noise on mixed sums is not the same for every pattern of bins: what a mix asks loudly (mostly
that neighbours go together) is heard well, what it whispers is left to the noise. Which mix is a
good one is for the grower to say; here is only what a mix is, what it costs, and how it travels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError

Mix = NDArray[np.int8]  # (number, bin), square
LARGEST = 127  # of a mix's numbers, either sign
PLAIN = -1  # stands for no mix
WIDEST = 48  # bins of a column that may be mixed
MOST = 32  # mixes of one question: columns with as many bins can share one


def lengths(mix: Mix) -> tuple[float, float]:
    """The largest l1 and l2 norm of what a mix makes of a single bin."""
    whole = np.abs(mix.astype(np.int64))
    return float(whole.sum(axis=0).max()), math.sqrt(int((whole**2).sum(axis=0).max()))


def check_mixes(mixes: Sequence[Mix], mixed: Sequence[int], n_bins: Sequence[int]) -> None:
    """Raise FormatError unless every column has no mix, or one of its size that says something."""
    if len(mixed) != len(n_bins) or set(mixed) - {PLAIN} != set(range(len(mixes))):
        raise FormatError("column sums do not say which column has which mix")
    if len(mixes) > MOST or max((len(mix) for mix in mixes), default=0) > WIDEST:
        raise FormatError("column sums have more mixes, or larger ones, than a question may have")
    for n, m in zip(n_bins, mixed, strict=True):
        if m != PLAIN and mixes[m].shape != (n, n):
            raise FormatError("column sums have a mix of another size than the column's bins")
    for mix in mixes:
        if mix.dtype != np.int8 or not mix.any() or mix.min() < -LARGEST:
            raise FormatError("column sums have a mix of nothing, or of too large numbers")


def pack_mixes(mixes: Sequence[Mix], mixed: Sequence[int]) -> dict[str, NDArray[Any]]:
    """Mixes as arrays of a message; `unpack_mixes` reads them back."""
    flat = [mix.ravel() for mix in mixes]
    return {
        "mixed": np.array(mixed, np.int32),
        "mixes": np.concatenate(flat) if flat else np.zeros(0, np.int8),
    }


def unpack_mixes(
    arrays: dict[str, NDArray[Any]], n_bins: Sequence[int]
) -> tuple[tuple[Mix, ...], tuple[int, ...]]:
    """Mixes and the columns' choice of them; sizes are those of the columns that have them."""
    flat, mixed = arrays["mixes"], tuple(int(m) for m in arrays["mixed"])
    wrong = FormatError("column sums do not have mixes of the lengths they state")
    if len(mixed) != len(n_bins) or flat.ndim != 1 or flat.dtype != np.int8:
        raise wrong
    sizes = {m: n for m, n in zip(mixed, n_bins, strict=True) if m != PLAIN}
    if sorted(sizes) != list(range(len(sizes))) or any(n < 1 for n in sizes.values()):
        raise wrong
    ends = np.cumsum([0, *(sizes[m] ** 2 for m in range(len(sizes)))])
    if int(ends[-1]) != len(flat):
        raise wrong
    parts = [flat[a:b] for a, b in pairwise(ends)]
    return tuple(p.reshape(sizes[m], -1) for m, p in enumerate(parts)), mixed
