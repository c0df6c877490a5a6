"""Numba's compiler with what plain loops need and nothing else: a first fit compiles in less time.

It leans on names that Numba may change without notice, so it serves the versions that it was tried
with; with any other, loops are compiled as Numba does by itself. Both give the same machine code.
"""

from __future__ import annotations

import gc
from typing import Any, cast

import numba
from numba.core import typed_passes, untyped_passes
from numba.core.compiler import CompilerBase, Flags
from numba.core.compiler_machinery import PassManager

TRIED = ("0.68.",)

# What takes plain loops over arrays to machine code. Left out of Numba's own pipeline is what such
# loops have none of: closures, `with`, literal types, functions inlined by name, expressions of
# whole arrays. Each of these passes would look for them in every statement.
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


class LoopPipeline(cast(Any, CompilerBase)):  # type: ignore[misc]
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
        # Compiling makes a great many small objects, nearly all of which live until it is done:
        # looking in between for those that can be freed takes time and frees next to nothing.
        collects = gc.isenabled()
        gc.disable()
        try:
            return super()._compile_core()
        finally:
            if collects:
                gc.enable()


def options(allocates: bool, version: str = numba.__version__) -> dict[str, Any]:
    """What to tell Numba about a loop; nothing where its version was not tried."""
    if not version.startswith(TRIED):
        return {}
    return {"pipeline_class": LoopPipeline, "_nrt": allocates}
