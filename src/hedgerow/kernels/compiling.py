"""The one decorator of compiled loops: cached on disk, without Python's lock, and typed.

Numba's own decorators have no types, so whatever they decorate would be `Any` to a type checker,
at every call. Through this one a compiled function keeps the types that it was written with.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

from numba import njit
from numba.core import event, typed_passes, untyped_passes
from numba.core.compiler import CompilerBase, Flags
from numba.core.compiler_machinery import PassManager

_logger = logging.getLogger(__name__)
COMPILING = "compiling loops, once on this machine: that takes about ten seconds"

F = TypeVar("F", bound=Callable[..., object])

# What takes plain loops over arrays to machine code. Left out of Numba's own pipeline is what such
# loops have none of: closures, `with`, literal types, functions inlined by name, expressions of
# whole arrays. These passes look all the same, and that took a fifth of the time.
_PASSES: tuple[Any, ...] = (
    untyped_passes.TranslateByteCode, untyped_passes.FixupArgs, untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites, untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference, typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization, typed_passes.AnnotateTypes, typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)  # fmt: skip


class _QuickFlags(cast(Any, Flags)):  # type: ignore[misc]
    """Numba's flags, compared by what was set.

    They are a part of the key under which Numba remembers how an operator is typed, and are
    compared some thousand times a loop; its own comparison asks for every option by name.
    """

    _hash = hash(cast(Any, Flags)())  # Numba's is the same for all flags

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _QuickFlags):
            return bool(self._values == other._values)
        return bool(super().__eq__(other))


class _Pipeline(cast(Any, CompilerBase)):  # type: ignore[misc]
    """Compiles a loop by fewer passes than Numba's default, to the same machine code."""

    def __init__(
        self, typing: Any, target: Any, library: Any, arguments: Any, returned: Any, flags: Any,
        variables: Any,
    ) -> None:  # fmt: skip
        quick = _QuickFlags(flags)
        super().__init__(typing, target, library, arguments, returned, quick, variables)

    def define_pipelines(self) -> list[Any]:
        passes = cast(Any, PassManager)("loops")
        for each in _PASSES:
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]

    def _compile_core(self) -> Any:
        # A loop makes a million small objects, nearly all of which live until it is done: looking
        # for those that can be freed in between took a tenth of the time.
        collects = gc.isenabled()
        gc.disable()
        try:
            return super()._compile_core()
        finally:
            if collects:
                gc.enable()


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
        no_cpython_wrapper=helper, no_cfunc_wrapper=True, pipeline_class=_Pipeline, _nrt=allocates,
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
                self.say(COMPILING)

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
