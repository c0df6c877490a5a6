"""The one decorator of compiled loops: cached on disk, without Python's lock, and typed.

Numba's own decorators have no types, so whatever they decorate would be `Any` to a type checker,
at every call. Through this one a compiled function keeps the types that it was written with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

from numba import njit
from numba.core import event

from hedgerow.kernels import pipeline

_logger = logging.getLogger(__name__)
COMPILING = "compiling loops, once on this machine: that takes about ten seconds"

F = TypeVar("F", bound=Callable[..., object])


def compiled(
    *,
    error_model: Literal["python", "numpy"] = "python",
    fastmath: bool | set[str] = False,
    helper: bool = False,
    allocates: bool = False,
) -> Callable[[F], F]:
    """Compile a function at its first call with arguments of a kind, and keep that on disk.

    Under the error model "numpy" a division by zero gives infinity instead of an exception: loops
    without that exception can take several rows at once. `fastmath` names what the compiler may do
    to sums of floats; it stays off wherever the order of additions is part of the result. A
    `helper` is called by compiled functions only: it has no entry from Python, which takes a while
    to compile, and is kept on disk as a part of its callers. A loop that `allocates` arrays has to
    say so: all others are compiled without counts of references.
    """
    # nogil: `threads` hands ranges of rows to all cores, and each leaves Python's lock.
    compile_it: Any = cast(Any, njit)(  # its types do not know of wrappers
        cache=not helper, nogil=True, error_model=error_model, fastmath=fastmath,
        no_cpython_wrapper=helper, no_cfunc_wrapper=True, **pipeline.options(allocates),
    )  # fmt: skip

    def decorate(function: F) -> F:
        return cast(F, compile_it(function))

    return decorate


class _Watch(event.Listener):
    """Counts loops that are compiled, not those that are found on disk, and says it once."""

    def __init__(self) -> None:
        self.n_compiled = 0
        self.say: Callable[[str], None] = _logger.info

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"].__module__.startswith("hedgerow."):
            self.n_compiled += 1
            if self.n_compiled == 1:
                try:
                    self.say(COMPILING)
                except Exception:  # whoever wanted to know is gone; the loop is needed all the same
                    _logger.info(COMPILING)

    def on_end(self, event: Any) -> None:
        pass


_watch = _Watch()
cast(Any, event).register("numba:compile", _watch)


def say_when_compiling(say: Callable[[str], None]) -> None:
    """Say so at the first loop that this process has to compile; nothing if all are on disk."""
    _watch.say = say


def n_compiled() -> int:
    """How many loops this process has compiled, and did not find on disk."""
    return _watch.n_compiled
