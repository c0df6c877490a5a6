"""The simulated disk: what is committed survives, whatever moment the power fails at."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hedgerow.errors import LedgerWriteFailed
from hedgerow.privacy.ledger.disk import disk_from
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.testing.simulation.disk import Crashed, SimulatedDisk
from hedgerow.testing.simulation.randomness import Dice

FILE = Path("ash/party.ledger")


class Machine:
    """A disk whose power fails at its n-th write or sync."""

    def __init__(self, seed: int, fails_at: int) -> None:
        self.disk = SimulatedDisk(self._touched, lambda seconds: None, Dice(seed, "test"))
        self.disk.process = "ash#1"
        self._left = fails_at

    def _touched(self, machine: str, what: str) -> None:
        self._left -= 1
        if self._left == 0:
            self.disk.end_process("ash#1")
            self.disk.lose_power("ash")

    def start_again(self) -> Ledger:
        self.disk.process = "ash#2"
        return Ledger.open(FILE)


@pytest.mark.parametrize("fails_at", range(1, 90, 3))
def test_a_line_that_was_appended_survives_a_power_failure(fails_at: int) -> None:
    machine, appended = Machine(fails_at, fails_at), 0
    with disk_from(machine.disk):
        try:
            ledger = Ledger.open(FILE)
            for number in range(1, 5):
                ledger.append("ash", "boot", values={"boot": number})
                appended = number
        except Crashed:
            pass
        found = len(machine.start_again().lines("ash", "boot"))
    machine.disk.shut()
    assert appended <= found <= appended + 1  # the one under way may be there


def test_what_was_not_synced_is_lost() -> None:
    machine = Machine(0, -1)
    with disk_from(machine.disk):
        connection = machine.disk.connect(FILE, 0.0)
        connection.execute("PRAGMA synchronous=OFF")
        connection.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1);")
        machine.disk.end_process("ash#1")
        machine.disk.lose_power("ash")
        machine.disk.process = "ash#2"
        with pytest.raises(sqlite3.Error):
            machine.disk.connect(FILE, 0.0).execute("SELECT x FROM t")


def test_a_full_disk_is_said_so_and_comes_back() -> None:
    machine = Machine(1, -1)
    with disk_from(machine.disk):
        ledger = Ledger.open(FILE)
        ledger.append("ash", "boot", values={"boot": 1})
        machine.disk.full.add("ash")
        with pytest.raises(LedgerWriteFailed, match="full"):
            ledger.append("ash", "boot", values={"boot": 2})
        machine.disk.full.clear()
        ledger.append("ash", "boot", values={"boot": 2})
        assert [line.values["boot"] for line in ledger.lines("ash", "boot")] == [1, 2]


def test_a_read_that_must_undo_what_a_killed_process_left_says_why_it_cannot() -> None:
    machine = Machine(2, -1)
    with disk_from(machine.disk):
        first = Ledger.open(FILE)
        machine.disk.process = "ash#2"
        second = Ledger.open(FILE)
        machine.disk.process = "ash#1"
        first._connection.execute("BEGIN IMMEDIATE")
        first._connection.execute("PRAGMA cache_size=1")  # so that pages are written before the end
        for number in range(40):
            values = (number + 1, "t", "ash", "boot", "", -1, number, bytes(3000), "", f"{number}")
            first._connection.execute(
                f"INSERT INTO line VALUES ({', '.join('?' * len(values))})", values
            )
        machine.disk.end_process("ash#1")
        machine.disk.full.add("ash")
        with pytest.raises(LedgerWriteFailed, match="could not be read"):
            second.lines()
        machine.disk.full.clear()
        assert second.lines() == []


def test_an_old_copy_that_is_put_back_under_a_running_process_is_noticed() -> None:
    machine = Machine(3, -1)
    with disk_from(machine.disk):
        ledger = Ledger.open(FILE)
        copy = machine.disk.copy(str(FILE))
        ledger.append("ash", "boot", values={"boot": 1})
        machine.disk.put_back(str(FILE), copy)
        with pytest.raises(LedgerWriteFailed, match="removed or replaced"):
            ledger.append("ash", "boot", values={"boot": 2})
