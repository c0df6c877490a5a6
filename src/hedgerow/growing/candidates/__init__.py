"""Split candidates: where a column may be cut. One file per method.

Every method starts from cuts that need no question; `iterative_hessian` then refines them.
"""

from __future__ import annotations

from hedgerow.growing.candidates.base import Cuts
from hedgerow.growing.candidates.iterative_hessian import refine
from hedgerow.growing.candidates.uniform import log, uniform

CANDIDATES = {"uniform": uniform, "log": log, "iterative-hessian": uniform}

__all__ = ["CANDIDATES", "Cuts", "log", "refine", "uniform"]
