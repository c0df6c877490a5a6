"""The ledger: append-only, hash-chained, and honest about what it finds."""

from __future__ import annotations

import copy
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hedgerow.coordinator.gate import Gate
from hedgerow.engines.local import local_federation
from hedgerow.errors import (
    BudgetExceeded,
    FormatError,
    LedgerError,
    LedgerWriteFailed,
    PlanError,
    SlotSpent,
)
from hedgerow.methods.registry import plan_for
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.in_force import enter_block, leave_block, ledger_in_force
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.refusals import MOST, Refusals
from hedgerow.privacy.ledger.reservation import Release, Reservation
from hedgerow.privacy.ledger.spending import Budget, budget_of, set_budget, spending
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import LabelSums
from tests.conftest import MIXED, mixed_rows, mixed_table


def a_plan(epsilon: float = 1.0, run: str = "run-1", spare: int = 0) -> Plan:
    privacy = Privacy(epsilon, 1e-5, spare=spare)
    return plan_for(MIXED, privacy, "random-trees", settings={"n_trees": 3}, seed=1, run=run)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger file with five lines."""
    file = tmp_path / "ledger.db"
    with Ledger.open(file) as ledger:
        for i in range(5):
            ledger.append("a", "boot", values={"boot": i}, arrays={"x": np.arange(i)})
    return file


def tampered(path: Path, statement: str) -> None:
    """Change the file as someone would who knows SQLite: without the triggers."""
    connection = sqlite3.connect(path)
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.executescript(statement)
    connection.commit()
    connection.close()


def test_lines_come_back_in_order_after_reopening(path: Path) -> None:
    with Ledger.open(path) as ledger:
        assert [line.values["boot"] for line in ledger.lines("a", "boot")] == list(range(5))
        assert ledger.lines()[3].arrays["x"].tolist() == [0, 1, 2]
        assert ledger.verify() == 5
        assert ledger.lines("b") == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE line SET owner = 'b'",
        "DELETE FROM line",
        # REPLACE deletes without firing delete triggers.
        "INSERT OR REPLACE INTO line SELECT seq, time, 'b', kind, run, slot, attempt, body, "
        "previous, hash FROM line WHERE seq = 2",
    ],
)
def test_lines_cannot_be_changed_or_removed(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE line SET owner = 'b' WHERE seq = 3;",
        "UPDATE line SET time = '' WHERE seq = 1;",
        "UPDATE line SET attempt = 1 WHERE seq = 5;",
        "UPDATE line SET body = zeroblob(4) WHERE seq = 2;",
        "UPDATE line SET previous = hash WHERE seq = 4;",
        "DELETE FROM line WHERE seq = 1;",
        "DELETE FROM line WHERE seq = 3;",
        "UPDATE line SET seq = 6 WHERE seq = 5;",
        "INSERT INTO line SELECT 6, time, owner, kind, run, slot, attempt, body, previous, 'x' "
        "FROM line WHERE seq = 5;",
        "INSERT OR REPLACE INTO line SELECT seq, time, 'b', kind, run, slot, attempt, body, "
        "previous, hash FROM line WHERE seq = 2;",
    ],
)
def test_the_chain_shows_what_was_changed(path: Path, statement: str) -> None:
    tampered(path, statement)
    with pytest.raises(LedgerError, match="changed, removed or"):
        Ledger.open(path)


def test_files_that_are_no_ledger_say_so(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database at all, but long enough to look like one" * 9)
    with pytest.raises(LedgerError, match="not a hedgerow ledger"):
        Ledger.open(tmp_path / "text")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE x (y)").connection.close()
    with pytest.raises(LedgerError, match="not a hedgerow ledger"):
        Ledger.open(tmp_path / "other.db")
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger.open(tmp_path / "absent.db", create=False)
    with pytest.raises(LedgerError, match="cannot open"):
        Ledger.open(tmp_path / "no" / "such" / "folder.db")


def test_a_newer_format_names_the_version_needed(path: Path) -> None:
    tampered(path, "UPDATE meta SET format = 9;")
    with pytest.raises(FormatError, match="writes ledger format 9"):
        Ledger.open(path)


def test_a_failed_block_leaves_no_line() -> None:
    ledger = Ledger.in_memory()

    def fails() -> None:
        with ledger.transaction():
            ledger.append("a", "boot")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert ledger.lines() == []
    ledger.append("a", "boot")
    assert ledger.verify() == 1


def test_the_same_charge_cannot_be_written_twice() -> None:
    ledger = Ledger.in_memory()
    ledger.append("a", "charge", "run", 0, 1)
    with pytest.raises(LedgerError, match="already has"):
        ledger.append("a", "charge", "run", 0, 1)
    ledger.append("b", "charge", "run", 0, 1)
    assert ledger.verify() == 2


def test_a_ledger_is_not_copied_with_the_object_that_holds_it() -> None:
    """Estimators are cloned by deep copy; two copies of a budget would be two budgets."""
    ledger = Ledger.in_memory()
    assert copy.deepcopy(ledger) is ledger
    assert copy.copy(ledger) is ledger


# Reservations


def test_a_reservation_is_written_once_and_found_again(tmp_path: Path) -> None:
    plan = a_plan()
    for _ in range(2):
        with Ledger.open(tmp_path / "ledger.db") as ledger:
            Reservation(ledger, plan)
            assert spending(ledger).mu == pytest.approx(plan.mu)
            assert len(ledger.lines(COORDINATOR, "reserve")) == 1
            with pytest.raises(PlanError, match="another plan"):
                Reservation(ledger, a_plan(0.5))


def test_charges_and_releases_survive_the_process(tmp_path: Path) -> None:
    release = Release(np.array([5, -7]), 20, (1.5,), 1.5, "secure")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        first = Reservation(ledger, a_plan())
        assert first.released(0, "request") is None
        first.store(0, first.charge(0, "request"), release)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        second = Reservation(ledger, a_plan())
        found = second.released(0, "request")
        assert found is not None
        assert (found.total.tolist(), found.bits, found.sigmas) == ([5, -7], 20, (1.5,))
        assert second.last_attempt(0) == 1
        with pytest.raises(SlotSpent):
            second.charge(0, "request")
        with pytest.raises(LedgerError, match="another question"):
            second.released(0, "another request")


def test_spare_attempts_are_counted_over_all_slots() -> None:
    reservation = Reservation(Ledger.in_memory(), a_plan(spare=2))
    for slot in (0, 1, 0, 1):
        reservation.charge(slot, "request")
    with pytest.raises(SlotSpent, match="2 of 2"):
        reservation.charge(0, "request")
    assert reservation.charge(2, "request") == 1  # a slot's own attempt is not a spare one
    with pytest.raises(LedgerError, match="not above the last"):
        reservation.charge(1, "request", attempt=2)


def test_a_budget_holds_over_all_runs() -> None:
    ledger = Ledger.in_memory()
    set_budget(ledger, Budget(1.5, 1e-5))
    Reservation(ledger, a_plan(run="one"))
    before = len(ledger.lines())
    with pytest.raises(BudgetExceeded, match=r"from 1\.000 to 1\.4[0-9]+|nothing was spent"):
        Reservation(ledger, a_plan(1.4, run="two"))
    assert len(ledger.lines()) == before
    Reservation(ledger, a_plan(0.9, run="three"))  # Gaussian slots add up in squares
    assert 1.0 < spending(ledger).epsilon(1e-5) < 1.5
    with pytest.raises(LedgerError, match="cannot be changed"):
        set_budget(ledger, Budget(9.0, 1e-5))
    assert budget_of(ledger) == Budget(1.5, 1e-5)


def test_owners_have_their_own_budgets() -> None:
    ledger = Ledger.in_memory()
    Reservation(ledger, a_plan(), "a")
    assert spending(ledger, "b").runs == 0
    Reservation(ledger, a_plan(), "b", Budget(1.0001, 1e-5))
    with pytest.raises(BudgetExceeded):
        Reservation(ledger, a_plan(run="two"), "b", Budget(1.0001, 1e-5))


def test_an_older_format_is_migrated_after_a_copy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hedgerow.privacy.ledger import migrations as module

    monkeypatch.setattr(module, "FORMAT", 2)
    monkeypatch.setitem(module.MIGRATIONS, 1, "CREATE TABLE later (x)")
    with Ledger.open(path) as migrated:
        assert migrated.lines()
        count = migrated.verify()
    copy = Path(f"{path}.format-1")
    monkeypatch.undo()
    with Ledger.open(copy) as before:
        assert before.verify() == count
    with pytest.raises(FormatError, match="writes ledger format 2"):
        Ledger.open(path)


def test_threads_cannot_overspend_together() -> None:
    import threading

    from hedgerow.privacy.ledger.spending import set_budget, spending

    ledger = Ledger.in_memory()
    set_budget(ledger, Budget(1.5, 1e-6))
    plans = [replace(a_plan(), run=f"run-{i}") for i in range(8)]
    refused: list[Exception] = []

    def reserve(plan: Plan) -> None:
        try:
            Reservation(ledger, plan)
        except BudgetExceeded as error:
            refused.append(error)

    threads = [threading.Thread(target=reserve, args=(plan,)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused
    assert spending(ledger).epsilon(1e-6) <= 1.5 * (1 + 1e-9)
    assert ledger.verify() == 1 + len(plans) - len(refused)


def test_a_recorded_budget_holds_beside_another_limit() -> None:
    from hedgerow.privacy.ledger.spending import set_budget

    ledger = Ledger.in_memory()
    set_budget(ledger, Budget(0.1, 1e-6))
    with pytest.raises(BudgetExceeded):
        Reservation(ledger, a_plan(), budget=Budget(50.0, 1e-6))
    assert ledger.lines(kind="reserve") == []


def test_epsilons_of_different_units_are_not_added_up() -> None:
    ledger = Ledger.in_memory()
    Reservation(ledger, a_plan())
    persons = replace(a_plan(), run="persons", unit="person with at most 10 rows")
    with pytest.raises(PlanError, match="do not add up"):
        Reservation(ledger, persons)
    local = replace(
        a_plan(),
        run="local",
        budget=replace(a_plan().budget, privacy=replace(a_plan().privacy, trust="nobody")),
    )
    with pytest.raises(PlanError, match="do not add up"):
        Reservation(ledger, local)
    assert len(ledger.lines(kind="reserve")) == 1


@pytest.mark.parametrize(("trust", "kept"), [("coordinator", False), ("parties", True)])
def test_receipts_of_exact_sums_are_not_kept(trust: str, kept: bool) -> None:
    """A signature over an exact sum would confirm guesses of it."""
    from tests.attacks.rig import SCHEMA, some_rows

    ledger = Ledger.in_memory()
    tables = {name: some_rows(20, i) for i, name in enumerate("abc")}
    privacy = Privacy(1.0, 1e-6, trust)  # type: ignore[arg-type]
    plan = plan_for(
        SCHEMA, privacy, "random-trees", settings={"n_trees": 1, "max_depth": 1}, seed=1
    )
    gate = Gate(local_federation(tables, SCHEMA, trust=trust), plan, ledger)
    gate.release(LabelSums(2))
    (line,) = ledger.lines(kind="release")
    assert bool(line.values["receipts"]) == kept


# The file under an open ledger


def _delete(path: Path) -> None:
    path.unlink()


def _replace(path: Path) -> None:
    old = path.with_suffix(".old")
    old.write_bytes(path.read_bytes())
    old.replace(path)


@pytest.mark.parametrize("change", [_delete, _replace])
def test_a_ledger_that_was_removed_or_replaced_takes_no_line(
    path: Path, change: Callable[[Path], None]
) -> None:
    """The open handle would go on in a file that nobody finds again."""
    with Ledger.open(path) as ledger:
        ledger.append("a", "boot")
        assert ledger.in_place
        change(path)
        assert not ledger.in_place
        with pytest.raises(LedgerWriteFailed, match="removed or replaced"):
            ledger.append("a", "boot")
        assert ledger.verify() == 6


def test_a_ledger_replaced_during_a_transaction_is_not_committed(path: Path) -> None:
    with Ledger.open(path) as ledger:

        def meddled() -> None:
            with ledger.transaction():
                ledger.append("a", "boot")
                _replace(path)

        with pytest.raises(LedgerWriteFailed, match="removed or replaced"):
            meddled()
        assert ledger.verify() == 5


def test_a_ledger_that_was_moved_away_and_back_goes_on(path: Path) -> None:
    with Ledger.open(path) as ledger:
        path.rename(path.with_suffix(".aside"))
        with pytest.raises(LedgerWriteFailed):
            ledger.append("a", "boot")
        path.with_suffix(".aside").rename(path)
        ledger.append("a", "boot")
        assert ledger.verify() == 6


@pytest.mark.parametrize("change", [_delete, _replace])
def test_a_party_without_its_ledger_file_lets_nothing_out(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    from hedgerow.party.party import Party
    from tests.attacks.rig import SCHEMA, Rig, some_rows, word

    rig = Rig(opened=False)
    rig.ledgers["a"] = Ledger.open(tmp_path / "ledger.db")
    identity = rig.parties["a"].identity
    rig.parties["a"] = Party("a", some_rows(50, 0), SCHEMA, rig.ledgers["a"], identity)
    rig.parties["a"].pin(rig.roster)
    rig.open(rig.plan)
    change(tmp_path / "ledger.db")
    for _ in range(2):
        assert word(rig.ask("a")) == "cannot-write"
    assert rig.ledgers["a"].lines("a", "charge") == []
    rig.ledgers["a"].close()


def test_a_new_ledger_is_closed_to_others(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        Ledger.open(tmp_path / "ledger.db").close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "ledger.db").stat().st_mode) == 0o600


# Refusals on record


def test_a_flood_of_one_word_leaves_room_for_every_other() -> None:
    ledger = Ledger.in_memory()
    refusals = Refusals(ledger, "a")
    told = [refusals.record(f"x{i}", "unknown-run") for i in range(1100)]
    assert sum(told) == MOST
    assert refusals.record("run", "too-few-parties")
    assert not refusals.record("run", "too-few-parties")
    words = [line.values["word"] for line in ledger.lines("a", "refuse")]
    assert words == ["unknown-run"] * MOST + ["too-few-parties"]


def test_what_was_left_out_is_counted_on_record() -> None:
    ledger = Ledger.in_memory()
    refusals = Refusals(ledger, "a")
    for i in range(MOST + 1234):
        refusals.record(f"x{i}", "unknown-run")
    for i in range(MOST):
        refusals.record(f"x{i}", "not-in-plan")
    counts = [line.values for line in ledger.lines("a", "unlisted")]
    assert counts == [{"word": "unknown-run", "count": n} for n in (1, 10, 100, 1000)]


def test_a_line_follows_the_last_that_stayed_after_one_was_rolled_back() -> None:
    ledger = Ledger.in_memory()
    first = ledger.append("a", "boot")
    with suppress(RuntimeError), ledger.transaction():
        ledger.append("a", "boot")
        raise RuntimeError
    assert ledger.last() == (1, first.hash)
    assert ledger.append("a", "boot").previous == first.hash
    assert ledger.verify() == 2


def test_what_an_owner_has_is_known_whether_it_was_read_written_or_rolled_back(
    tmp_path: Path,
) -> None:
    file = tmp_path / "ledger.db"
    with Ledger.open(file) as ledger:
        assert ledger.lines("a", "boot") == []
        ledger.append("a", "boot")
        assert [line.seq for line in ledger.lines("a", "boot")] == [1]
        assert ledger.newest("a", "boot", "") == 1
        assert ledger.newest("b", "boot", "") == 0
        with suppress(RuntimeError), ledger.transaction():
            ledger.append("b", "reserve", "run")
            assert ledger.has_reserved("b", "run")
            raise RuntimeError
        assert not ledger.has_reserved("b", "run")
        assert ledger.lines("b", "reserve") == []
        ledger.append("b", "reserve", "run")
    with Ledger.open(file) as ledger:
        assert ledger.has_reserved("b", "run")
        assert [len(ledger.lines(*of)) for of in (("a", "boot"), ("b", "boot"))] == [1, 0]


def test_a_block_of_a_transaction_that_has_ended_is_not_entered() -> None:
    """Else its lines would be written one by one, whatever becomes of the block."""
    ledger = Ledger.in_memory()
    with ledger.transaction():
        late = ledger.transaction()
    with pytest.raises(LedgerError, match="ended"), late:
        ledger.append("a", "boot")
    assert ledger.lines() == []


def test_nobody_is_asked_while_an_interrupted_transaction_is_open() -> None:
    """Ctrl-C between a block and its end, the traceback kept: the charge would not be on disk."""
    ledger, privacy = Ledger.in_memory(), Privacy(1.0, 1e-5)
    federation = local_federation({"a": mixed_rows(mixed_table(50, seed=1))}, MIXED)
    gate = Gate(federation, plan_for(MIXED, privacy, "auto"), ledger)
    left = ledger.transaction()
    left.__enter__()
    with pytest.raises(LedgerWriteFailed, match="Start Python again"):
        gate.release(LabelSums(2), name="row count")
    assert federation.rounds == 0
    left.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)


def test_threads_write_one_transaction_after_another() -> None:
    """A thread inside of one is not taken for another that wants its own."""
    ledger, inside, seen = Ledger.in_memory(), threading.Event(), list[int]()

    def other() -> None:
        inside.wait(300)
        with ledger.transaction():
            seen.append(ledger.last()[0])
            ledger.append("b", "boot")

    thread = threading.Thread(target=other)
    thread.start()
    with suppress(RuntimeError), ledger.transaction():
        ledger.append("a", "boot")
        inside.set()
        time.sleep(0.2)
        ledger.append("a", "boot")
        raise RuntimeError
    thread.join(300)
    assert seen == [0]  # nothing of what was rolled back
    assert [line.owner for line in ledger.lines()] == ["b"]


def in_a_fork(work: Callable[[], None]) -> str:
    """What a forked child was told by a LedgerError, or nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        told = "failed otherwise"
        try:
            work()
            told = ""
        except LedgerError as error:
            told = str(error)
        finally:
            os.write(writer, told.encode())
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as heard:
        return heard.read()


@pytest.mark.parametrize("on_disk", [True, False])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_cannot_spend_the_same_budget_again(tmp_path: Path, on_disk: bool) -> None:
    # It has the memory of the process that opened the file and not its lock, so each child would
    # find the whole budget left, and lines of one would overwrite those of another.
    file = tmp_path / "ledger.db"
    ledger = Ledger.open(file) if on_disk else Ledger.in_memory()
    set_budget(ledger, Budget(1.0, 1e-5))
    reserved = Reservation(ledger, a_plan(0.5, "run-0", spare=1))
    assert "fork" in in_a_fork(lambda: Reservation(ledger, a_plan(0.5, "run-1")) and None)
    assert "fork" in in_a_fork(lambda: reserved.charge(0, "question") and None)
    with ledger:
        assert reserved.charge(0, "question") == 1
        assert [line.kind for line in ledger.lines()] == ["open", "reserve", "charge"]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_a_thread_that_it_has_not() -> None:
    ledger = Ledger.in_memory()
    with ledger.transaction():
        assert "fork" in in_a_fork(lambda: ledger.append("a", "boot") and None)


class Interrupted:
    """A connection on which Ctrl-C comes just before, or just after, one statement is run."""

    def __init__(self, connection: sqlite3.Connection, statement: str, after: bool) -> None:
        self._connection, self._statement, self._after = connection, statement, after

    def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        if not statement.startswith(self._statement):
            return self._connection.execute(statement, *values)
        self._statement = "none"
        if self._after:
            self._connection.execute(statement, *values)
        raise KeyboardInterrupt

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("statement", ["BEGIN", "INSERT", "COMMIT"])
def test_an_interrupt_leaves_a_line_on_disk_or_none(
    path: Path, statement: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A line that is seen here and not on disk would be believed, and gone with the process.
    with Ledger.open(path) as ledger:
        connection = Interrupted(ledger._connection, statement, after)
        monkeypatch.setattr(ledger, "_connection", connection)
        with pytest.raises(KeyboardInterrupt):
            ledger.append("a", "boot")
        monkeypatch.undo()
        assert not ledger._connection.in_transaction
        kept = 6 if statement == "COMMIT" and after else 5
        assert len(ledger.lines()) == ledger.last()[0] == kept
        assert ledger.append("a", "boot").seq == kept + 1
        assert ledger.verify() == kept + 1


@pytest.mark.parametrize("word", ["reject", "withdraw"])
def test_a_reservation_of_a_plan_that_people_ended_is_found(word: str) -> None:
    ledger, plan = Ledger.in_memory(), a_plan()
    ledger.append("a", "approve", plan.run, values={"hash": plan.hash})
    ledger.append("a", word, plan.run, values={"hash": plan.hash})
    Reservation(ledger, plan, "a")
    with pytest.raises(LedgerError, match="rejected, or withdrew the approval of"):
        verify(ledger)


def test_leaving_a_block_ends_that_of_its_own_ledger() -> None:
    first, second = Ledger.in_memory(), Ledger.in_memory()
    enter_block(first)
    enter_block(second)
    leave_block(first)
    assert ledger_in_force() is second
    leave_block(second)
    assert ledger_in_force() is None


@pytest.mark.parametrize("spare", [0, 1, 3])
def test_a_ledger_with_one_attempt_more_than_was_reserved_does_not_verify(spare: int) -> None:
    ledger, plan = Ledger.in_memory(), a_plan(spare=spare)
    reservation = Reservation(ledger, plan)
    for _ in range(1 + spare):
        reservation.charge(0, "request")
    verify(ledger)
    last = ledger.lines(COORDINATOR, "charge")[-1]
    ledger.append(COORDINATOR, "charge", plan.run, 0, spare + 2, last.values)
    with pytest.raises(LedgerError, match="charges more attempts than the plan reserved"):
        verify(ledger)
