"""Ranges of rows handed to all cores: compiled loops leave Python's lock, so threads suffice.

Sums are integers and scores belong to one row each, so results do not depend on how many threads
there are or on how rows are cut.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

BLOCK = 1024  # rows that a loop takes at once: its values stay in the nearest cache
_LEAST = 32 * BLOCK  # rows of a range; below that waking a thread costs more than it brings
_RANGES = 4  # of each thread, so that one that was held up does not hold up all
S = TypeVar("S")
T = TypeVar("T")


def _cores() -> int:
    for name in ("HEDGEROW_THREADS", "NUMBA_NUM_THREADS"):
        if (text := os.environ.get(name, "")).isdigit() and int(text) > 0:
            return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Pool:
    """The threads of this process; a forked child starts its own."""

    def __init__(self) -> None:
        self.size = _cores()
        self._threads: ThreadPoolExecutor | None = None

    def threads(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.size, "hedgerow")
        return self._threads

    def forget(self) -> None:
        self._threads = None


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def use_threads(n: int) -> int:
    """Use so many threads from now on; returns how many it were before."""
    before, _pool.size = _pool.size, max(1, n)
    _pool.forget()
    return before


def ranges_of(n_rows: int, each: int = 1) -> list[tuple[int, int]]:
    """Row ranges (first, stop) for the threads: whole blocks but for the last.

    Where a row takes several steps (`each`), such as a tree or a column, fewer rows will do.
    """
    worth = max(n_rows, n_rows * each // 4) // _LEAST
    wanted = min(_RANGES * _pool.size, worth) if _pool.size > 1 else 1
    if wanted <= 1:
        return [(0, n_rows)]
    blocks = -(-n_rows // BLOCK)
    size = max(1, -(-blocks // wanted)) * BLOCK
    return [(first, min(n_rows, first + size)) for first in range(0, max(n_rows, 1), size)]


def over_items(work: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """Return what `work` gives for every item, in order."""
    n = len(items)
    if n < 2 or _pool.size == 1:
        return [work(item) for item in items]
    results: dict[int, T] = {}
    indices = iter(range(n))  # each goes to whichever thread asks first

    def drain() -> None:
        for k in indices:
            results[k] = work(items[k])

    # The caller works too. A thread that was not woken by the time all is done is not waited for.
    others = [_pool.threads().submit(drain) for _ in range(min(_pool.size, n) - 1)]
    try:
        drain()
    finally:
        for _ in indices:  # where this thread was interrupted, the others begin nothing new
            pass
        for other in others:
            if not other.cancel():
                wait((other,))
    for other in others:
        if not other.cancelled():
            other.result()
    return [results[k] for k in range(n)]


def over_rows(work: Callable[[int, int], T], n_rows: int, each: int = 1) -> list[T]:
    """Return what `work(first, stop)` gives for every range, in order; see `ranges_of`."""
    return over_items(lambda rows: work(*rows), ranges_of(n_rows, each))


class _Blas:
    """How many are inside of `one_blas_thread`, and what brings the other threads back."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.controller: Any = None
        self.limit: Any = None


_blas = _Blas()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's linear algebra use one thread inside the block.

    Its matrices are small here: more threads bring nothing, wait by spinning, and may change last
    bits. The number is the process's own, so the first one in takes it and the last one out gives
    it back.
    """
    with _blas.lock:
        if not _blas.inside:
            if _blas.controller is None:  # looking for libraries takes milliseconds
                from threadpoolctl import ThreadpoolController

                _blas.controller = ThreadpoolController()
            _blas.limit = _blas.controller.limit(limits=1, user_api="blas")
        _blas.inside += 1
    try:
        yield
    finally:
        with _blas.lock:
            _blas.inside -= 1
            if not _blas.inside:
                _blas.limit.restore_original_limits()
