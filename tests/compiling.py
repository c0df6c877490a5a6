"""Compiled loops in tests: one process compiles a loop, the others wait and read it from disk.

Without it, processes that begin with no cache each compile the same loops, and write over what the
others noted in its index.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

_alone = Dispatcher.compile
_held: set[Path] = set()  # under the compiler's lock, which one thread has at a time


def compile_together() -> None:
    """From now on this process takes turns with the others that do the same."""
    Dispatcher.compile = _in_turn


def _in_turn(loop: Any, signature: Any) -> Any:
    folder, name = loop._cache.cache_path, f"{loop.__module__}.{loop.__qualname__}.turn"
    with global_compiler_lock:
        if folder is None or (file := Path(folder) / name) in _held:
            return _alone(loop, signature)
        file.parent.mkdir(parents=True, exist_ok=True)
        _held.add(file)
        try:
            with file.open("w") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                return _alone(loop, signature)  # looks on disk first
        finally:
            _held.remove(file)
