"""What the last bits of a float depend on: libraries, and the instructions that they use."""

from __future__ import annotations

import platform
from importlib.metadata import version

import scipy.linalg  # noqa: F401  SciPy has linear algebra of its own, with kernels of its own
from numpy._core._multiarray_umath import __cpu_features__
from threadpoolctl import threadpool_info


def arithmetic() -> dict[str, object]:
    """Equal where the same training gives the same bits."""
    used = ("FMA3", "AVX2", "AVX512F", "AVX512_SKX", "NEON", "SVE")
    # Chosen by the processor's model, not by its instructions; the Makefile names one for tests.
    blas = {str(one.get("architecture")) for one in threadpool_info() if one["user_api"] == "blas"}
    return {
        "blas": sorted(blas),
        "machine": platform.machine(),
        "instructions": [name for name in used if __cpu_features__.get(name)],
        "numpy": version("numpy"),
        "numba": version("numba"),
        "scipy": version("scipy"),
    }
