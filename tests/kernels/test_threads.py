"""Work over ranges of rows: in order, by the caller too, and failures are not lost."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from hedgerow.kernels import threads


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = threads.use_threads(3)
    yield
    threads.use_threads(before)


def test_results_come_in_order_each_once() -> None:
    seen: list[int] = []

    def work(item: int) -> int:
        seen.append(item)
        return item * item

    assert threads.over_items(work, range(50)) == [k * k for k in range(50)]
    assert sorted(seen) == list(range(50))


def test_work_may_hand_out_work() -> None:
    inner = range(4)
    found = threads.over_items(lambda k: sum(threads.over_items(lambda j: j * k, inner)), range(20))
    assert found == [6 * k for k in range(20)]


def test_several_threads_take_part() -> None:
    together = threading.Barrier(3)  # nobody passes it alone
    assert threads.over_items(lambda k: together.wait(300) >= 0, range(3)) == [True] * 3


@pytest.mark.parametrize("bad", range(6))
def test_a_failure_is_raised_once_nobody_works_any_more(bad: int) -> None:
    busy = set[int]()

    def work(item: int) -> int:
        busy.add(item)
        try:
            if item == bad:
                raise ValueError("this one")
            return item
        finally:
            busy.discard(item)

    with pytest.raises(ValueError, match="this one"):
        threads.over_items(work, range(6))
    assert not busy


def test_ranges_cover_all_rows_once() -> None:
    for n_rows in (0, 1, 1024, 100_000, 1_000_001):
        for each in (1, 16, 500):
            ranges = threads.ranges_of(n_rows, each)
            assert ranges[0][0] == 0
            assert ranges[-1][1] == n_rows
            assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))


def test_nothing_new_begins_once_the_caller_is_interrupted() -> None:
    begun, interrupted = [], threading.Event()

    def work(item: int) -> None:
        begun.append((item, interrupted.is_set()))
        if threading.current_thread() is threading.main_thread():
            interrupted.set()
            raise KeyboardInterrupt
        interrupted.wait(300)

    with pytest.raises(KeyboardInterrupt):
        threads.over_items(work, range(50))
    assert sum(late for _, late in begun) <= 2  # what two other threads had taken already
    assert len(begun) <= 5


def blas_threads() -> list[int]:
    found = ThreadpoolController().info()
    return [library["num_threads"] for library in found if library["user_api"] == "blas"]


def test_linear_algebra_has_one_thread_inside_and_its_own_number_again_after_the_last() -> None:
    np.ones((2, 2)) @ np.ones((2, 2))  # loads the library
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        first, second = threads.one_blas_thread(), threads.one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert set(blas_threads()) == {1}
        first.__exit__(None, None, None)  # whoever came first may leave first
        assert set(blas_threads()) == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
        with pytest.raises(ValueError, match="inside"), threads.one_blas_thread():
            raise ValueError("inside")
        assert blas_threads() == before
