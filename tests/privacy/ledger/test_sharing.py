"""One ledger file, several threads and processes: nobody overspends, nobody overwrites."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hedgerow.errors import BudgetExceeded, LedgerError, LedgerWriteFailed
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger import store
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.spending import Budget, budget_of, set_budget, spending
from hedgerow.privacy.noise.poisson_sampling import stored_key
from tests.privacy.ledger.test_ledger import a_plan


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@contextmanager
def another_process(path: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    """A process that opens the ledger, runs `code`, says so, and ends when it is told."""
    whole = (
        f"import sys; from hedgerow import Ledger; ledger = Ledger.open({str(path)!r}); {code}; "
        "print('ready', flush=True); sys.stdin.readline(); "
    )
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", whole], text=True, **piped) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.communicate("\n")


BEGUN = "block = ledger.transaction(); block.__enter__(); ledger.append('b', 'boot')"


def test_a_reader_sees_what_is_committed_while_others_write(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.append("a", "boot")
        with another_process(path, BEGUN):
            assert [line.owner for line in ledger.lines()] == ["a"]
            with Ledger.open(path, create=False) as reader:
                assert reader.verify() == 1
        with another_process(path, "ledger.append('c', 'boot')"):
            assert [line.owner for line in ledger.lines()] == ["a", "c"]
            assert ledger.lines("c", "boot") == ledger.lines()[1:]
            assert ledger.last()[0] == ledger.newest("c", "boot", "") == 2
        assert ledger.append("a", "boot").seq == 3
        assert ledger.verify() == 3


def test_a_writer_waits_for_a_transaction_of_another_process(path: Path) -> None:
    with Ledger.open(path) as ledger, another_process(path, BEGUN) as other:
        assert other.stdin is not None
        ends = threading.Timer(0.3, lambda: print(file=other.stdin, flush=True))
        ends.start()
        assert ledger.append("a", "boot").seq == 1  # what the other began was rolled back
        ends.join()


def test_a_process_stopped_half_way_is_waited_for_and_then_named(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "WAIT_SECONDS", 0.1)
    with Ledger.open(path) as ledger, another_process(path, BEGUN):
        with pytest.raises(LedgerWriteFailed, match="held the ledger for too long"):
            ledger.append("a", "boot")
        with pytest.raises(LedgerWriteFailed, match="Nothing more was asked"):
            Reservation(ledger, a_plan())
        assert ledger.lines() == []


RESERVE = """
import sys
from hedgerow import Ledger
from hedgerow.errors import BudgetExceeded
from hedgerow.privacy.ledger.reservation import Reservation
from tests.privacy.ledger.test_ledger import a_plan

with Ledger.open(sys.argv[1]) as ledger:
    for i in range(6):
        try:
            held = Reservation(ledger, a_plan(0.5, f"{sys.argv[2]}-{i}"))
            held.charge(0, "question")
        except BudgetExceeded:
            print("refused")
"""


def test_processes_cannot_overspend_together(path: Path) -> None:
    with Ledger.open(path) as ledger:
        set_budget(ledger, Budget(1.0, 1e-5))
    commands = [[sys.executable, "-c", RESERVE, str(path), name] for name in ("x", "y", "z")]
    processes = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
    refused = sum(process.communicate()[0].count("refused") for process in processes)
    assert [process.returncode for process in processes] == [0, 0, 0]
    with Ledger.open(path) as ledger:
        runs = spending(ledger).runs
        assert runs == 18 - refused == len(ledger.lines(kind="charge"))
        assert spending(ledger).epsilon(1e-5) <= 1.0
        with pytest.raises(BudgetExceeded):  # and as much was spent as could be
            Reservation(ledger, a_plan(0.5, "one-more"))
        assert ledger.verify() == 1 + 2 * runs


def test_a_ledger_that_many_create_at_once_is_one(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        ledgers = list(pool.map(lambda _: Ledger.open(path), range(8)))
        lines = list(pool.map(lambda ledger: ledger.append("a", "boot").seq, ledgers))
    assert sorted(lines) == list(range(1, 9))
    assert ledgers[3].verify() == 8
    for ledger in ledgers:
        ledger.close()
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name]  # no journal stays


def test_threads_with_a_ledger_each_cannot_overspend(path: Path) -> None:
    ledgers = [Ledger.open(path) for _ in range(4)]
    set_budget(ledgers[0], Budget(1.5, 1e-6))
    plans = [replace(a_plan(), run=f"run-{i}") for i in range(8)]

    def reserve(i: int) -> bool:
        try:
            Reservation(ledgers[i % 4], plans[i])
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        reserved = list(pool.map(reserve, range(8)))
    assert 0 < sum(reserved) < 8
    assert spending(ledgers[1]).runs == sum(reserved)
    assert spending(ledgers[1]).epsilon(1e-6) <= 1.5 * (1 + 1e-9)
    for ledger in ledgers:
        ledger.close()


def test_what_two_processes_charge_is_one_sum(path: Path) -> None:
    """What was read of a run before another process charged it is read again."""
    plan: Plan = a_plan(spare=1)
    with Ledger.open(path) as first, Ledger.open(path) as second:
        one, other = Reservation(first, plan), Reservation(second, plan)
        assert one.charge(0, "question") == 1
        assert other.charge(0, "question") == 2
        assert one.last_attempt(0) == 2
        with pytest.raises(LedgerError, match="not above the last"):
            one.charge(0, "question", attempt=2)


@pytest.mark.parametrize("how", ["copied over", "another ledger"])
def test_an_older_copy_written_into_the_file_is_noticed(path: Path, how: str) -> None:
    """The file is the same one, so its place tells nothing; its lines do."""
    kept = path.with_suffix(".kept")
    with Ledger.open(kept if how == "another ledger" else path) as before:
        before.append("a", "boot")
    with Ledger.open(path) as ledger:
        if how == "copied over":
            shutil.copy(path, kept)
        for _ in range(3):
            ledger.append("a", "boot")
        path.write_bytes(kept.read_bytes())
        assert ledger.in_place
        with pytest.raises(LedgerWriteFailed, match="older copy or another ledger"):
            ledger.append("a", "boot")
        with pytest.raises(LedgerWriteFailed, match="older copy or another ledger"):
            ledger.lines("a", "boot")
    with Ledger.open(path) as found:
        assert found.verify() == 1


def test_transactions_that_end_together_are_one_commit(path: Path) -> None:
    with Ledger.open(path) as ledger, Ledger.open(path) as reader:
        with ledger.together():
            reader.append("b", "boot")  # nothing is locked before there is something to write
            with ledger.transaction():
                ledger.append("a", "boot")
            ledger.append("a", "boot")
            assert len(reader.lines()) == 1
        assert [line.owner for line in reader.lines()] == ["b", "a", "a"]

        def fails() -> None:
            with ledger.together():
                ledger.append("a", "boot")
                raise KeyError

        with pytest.raises(KeyError):
            fails()
        assert ledger.verify() == 3


def test_a_ledger_sent_to_another_process_is_opened_there_by_its_path(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.append("a", "boot")
        with pickle.loads(pickle.dumps(ledger)) as other:  # noqa: S301
            other.append("b", "boot")
        assert [line.owner for line in ledger.lines()] == ["a", "b"]
    with pytest.raises(LedgerError, match="cannot be shared with other processes"):
        pickle.dumps(Ledger.in_memory())


def test_a_key_that_many_make_at_once_is_one(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: stored_key(tmp_path / "key"), range(16)))
    assert len(keys) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["key"]


def test_a_budget_that_two_set_at_once_is_set_once(path: Path) -> None:
    """Fits that begin at the same time all name it: the same one is no conflict, another is."""
    ledgers = [Ledger.open(path) for _ in range(2)]
    known = budget_of(ledgers[0])
    assert known is None
    both = threading.Barrier(2)

    def seen(ledger: Ledger, owner: str) -> Budget | None:
        found = budget_of(ledger, owner)
        with suppress(threading.BrokenBarrierError):  # both have looked, or one is held back
            both.wait(timeout=1)
        return found

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr("hedgerow.privacy.ledger.spending.budget_of", seen)
        list(pool.map(lambda ledger: set_budget(ledger, Budget(1.0, 1e-6)), ledgers))
    assert [len(ledger.lines(kind="open")) for ledger in ledgers] == [1, 1]
    for ledger in ledgers:
        ledger.close()


def test_nothing_is_written_after_sqlite_gave_a_transaction_up(path: Path) -> None:
    """After some errors it does: what follows would be checked and written without the lock."""
    with Ledger.open(path) as ledger:
        block = ledger.together()
        block.__enter__()
        ledger.append("a", "boot")
        ledger._connection.execute("ROLLBACK")
        with pytest.raises(LedgerWriteFailed, match="given up"):
            ledger.append("b", "boot")
        with pytest.raises(LedgerWriteFailed):
            block.__exit__(None, None, None)
        assert ledger.lines() == []
        assert ledger.append("c", "boot").seq == 1
