"""What the last bits of a float depend on: libraries, and the instructions that they use."""

from __future__ import annotations

import platform
from importlib.metadata import version

from numpy._core._multiarray_umath import __cpu_features__


def arithmetic() -> dict[str, object]:
    """Equal where the same training gives the same bits."""
    used = ("FMA3", "AVX2", "AVX512F", "AVX512_SKX", "NEON", "SVE")
    return {
        "machine": platform.machine(),
        "instructions": [name for name in used if __cpu_features__.get(name)],
        "numpy": version("numpy"),
        "numba": version("numba"),
        "scipy": version("scipy"),
    }
