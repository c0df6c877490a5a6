"""The one decorator of compiled loops: cached on disk, without Python's lock, and typed.

Numba's own decorators have no types, so whatever they decorate would be `Any` to a type checker,
at every call. Through this one a compiled function keeps the types that it was written with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])
_dispatchers: list[Any] = []  # of all compiled functions


def compiled(
    *,
    inline: Literal["never", "always"] = "never",
    error_model: Literal["python", "numpy"] = "python",
    fastmath: bool | set[str] = False,
) -> Callable[[F], F]:
    """Compile a function at its first call with arguments of a kind, and keep that on disk.

    Under the error model "numpy" a division by zero gives infinity instead of an exception: loops
    without that exception can take several rows at once. `fastmath` names what the compiler may do
    to sums of floats; it stays off wherever the order of additions is part of the result.
    """
    # nogil: `threads` hands ranges of rows to all cores, and each leaves Python's lock.
    compile_it = njit(
        cache=True, nogil=True, inline=inline, error_model=error_model, fastmath=fastmath
    )

    def decorate(function: F) -> F:
        _dispatchers.append(compile_it(function))
        return cast(F, _dispatchers[-1])

    return decorate


def is_anything_compiled() -> bool:
    """Whether this process has compiled a loop, or loaded one that was."""
    return any(dispatcher.signatures for dispatcher in _dispatchers)
