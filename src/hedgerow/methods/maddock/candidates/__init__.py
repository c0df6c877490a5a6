"""Split candidates: where a column may be cut. One file a method.

base.py               what candidates are
uniform.py            evenly or log-spaced between the public bounds; free
quantiles.py          equal mass of noisy counts
iterative_hessian.py  bins refined by noisy Hessians
not_private.py        exact quantiles, for comparison only
"""

from __future__ import annotations

from hedgerow.data.schema import Schema
from hedgerow.methods.maddock.candidates import not_private
from hedgerow.methods.maddock.candidates.base import Cuts
from hedgerow.methods.maddock.candidates.iterative_hessian import refine
from hedgerow.methods.maddock.candidates.uniform import log, uniform
from hedgerow.privacy.settings import BoostingSettings

CANDIDATES = {"uniform": uniform, "log": log, "iterative-hessian": uniform, "quantiles": uniform}


def first_cuts(schema: Schema, settings: BoostingSettings) -> Cuts:
    """The cuts that a run starts with."""
    if settings.candidates == not_private.NAME:
        return not_private.planned_cuts(schema, settings)
    return CANDIDATES[settings.candidates](schema, settings.n_bins)


__all__ = ["CANDIDATES", "Cuts", "first_cuts", "log", "refine", "uniform"]
