"""The world of one history: time, disk, network counts, machines, faults and what is recorded."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from hedgerow.testing.simulation.disk import Crashed, SimulatedDisk
from hedgerow.testing.simulation.faults import BACKUPS, COORDINATOR, Fault
from hedgerow.testing.simulation.randomness import Dice
from hedgerow.testing.simulation.scheduler import MachineClock, Program, Scheduler

_POINTS = {"sync": "sync point"}  # fail points whose name is that of a write to a disk, too


class Violation(Exception):
    """A history broke a rule; the first one ends it."""


@dataclass
class Record:
    """What a history did, for whoever reads it and for the campaign's table."""

    trace: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    happened: list[Fault] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


class Machine(ABC):
    """A computer: its disk has a folder of its name, its clock may be wrong."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.clock = MachineClock(world.scheduler, world.pause)
        self.file = ""  # its ledger
        self.backups: list[bytes] = []

    def back_up(self) -> None:
        """Copy the ledger, where some operator will put an old copy back."""
        files = self.world.disk.files
        journal = files.get(f"{self.file}-journal")
        half_done = journal is not None and bool(journal.data)  # a copy of that would be damaged
        if self.world.keeps_backups and self.file in files and not half_done:
            self.backups.append(self.world.disk.copy(self.file))

    @abstractmethod
    def crash(self, power: bool) -> None:
        """All processes of this machine are gone, and without power what was not synced, too."""


class World:
    """Everything that a history consists of; nothing here looks at the real time or a real file."""

    def __init__(self, seed: int, faults: list[Fault]) -> None:
        self.seed = seed
        self.scheduler = Scheduler()
        self.dice = Dice(seed, "world")  # delays and service times
        self.record = Record()
        self.disk = SimulatedDisk(self._touched, self.sleep, Dice(seed, "disk"))
        self.disk.preempt, self.disk.count = self._preempted, self.count
        self.machines: dict[str, Machine] = {}
        self.process = ""  # whose code is running
        self.programs: dict[str, Program] = {}  # coordinator's, by process
        self.calm = False  # no more faults
        self.keeps_backups = any(fault.kind in BACKUPS for fault in faults)
        self.on_fault: Callable[[Fault], bool] = lambda fault: False
        self._passed = Counter[tuple[str, str]]()
        self._waiting: dict[tuple[str, str], list[Fault]] = defaultdict(list)
        for fault in faults:
            self._waiting[fault.machine, fault.place].append(fault)
        self.disk.watched = self._waiting

    # What is recorded

    def note(self, who: str, what: str) -> None:
        self.record.trace.append(f"{self.scheduler.now:10.3f}  {who:<14} {what}")

    def count(self, what: str) -> None:
        self.record.counts[what] += 1

    def require(self, holds: bool, rule: str, what: str = "") -> None:
        if not holds:
            words = f"{rule}: {what}" if what else rule
            self.record.violations.append(words)
            self.note("VIOLATION", words)

    # Who runs

    def run_as(self, process: str, action: Callable[[], None]) -> None:
        """Do something as a process; what it wakes runs as itself."""
        before = self.process
        self.process = self.disk.process = process
        try:
            action()
        finally:
            self.process = self.disk.process = before

    def start_program(self, process: str, main: Callable[[], None]) -> None:
        program = self.scheduler.program(main)
        self.programs[process] = program
        self.run_as(process, program.go_on)

    def wake(self, process: str, value: object = None) -> None:
        program = self.programs.get(process)
        if program is not None and not program.done:
            self.run_as(process, lambda: program.go_on(value))

    def wait(self) -> object:
        """Inside of a program: until it is woken."""
        return self.programs[self.process].wait()

    def sleep(self, seconds: float) -> None:
        process = self.process
        if not self.scheduler.in_program:
            raise Violation(f"{process or 'somebody'} sleeps while it answers")
        self.scheduler.after(seconds, lambda: self.wake(process))
        self.wait()

    def pause(self, seconds: float) -> None:
        """What real code does that waits for others."""
        self.count("waited for parties")
        self.sleep(seconds)

    def _preempted(self, begun: bool) -> None:
        if self.scheduler.in_program and self.dice.chance(0.3 if begun else 0.02):
            self.count("took turns inside of the ledger")
            self.sleep(self.dice.between(0.0, 0.5 if self.dice.chance(0.3) else 0.01))

    def kill(self, process: str) -> None:
        """End a process where it stands; raises Crashed if it is the one that runs."""
        self.disk.end_process(process)
        if process == self.process:
            raise Crashed(process)
        # One program cannot end another: what is thrown returns to the scheduler.
        self.scheduler.after(0.0, lambda: self._throw(process))

    def _throw(self, process: str) -> None:
        program = self.programs.get(process)
        if program is not None and not program.done:
            self.run_as(process, lambda: program.throw(Crashed(process)))

    # Where faults happen

    def fail_point(self, name: str) -> None:
        machine = self.process.partition("#")[0]
        role = COORDINATOR if machine == COORDINATOR else "party"
        self.count(f"fail point {name} at {role}")
        self.passed(machine, _POINTS.get(name, name))

    def _touched(self, machine: str, what: str) -> None:
        if self.process:  # else an operator looks at a file
            self.passed(machine, what)

    def passed(self, machine: str, place: str) -> list[Fault]:
        """Count a place. Faults that are due happen; those of a message are returned."""
        key = (machine, place)
        waiting = self._waiting.get(key)
        if not waiting or self.calm:
            return []
        self._passed[key] += 1
        due = [fault for fault in waiting if fault.number == self._passed[key]]
        return [fault for fault in due if self._happens(fault)]

    def _happens(self, fault: Fault) -> bool:
        """Whether it is left to whoever passed the place; else it has happened."""
        self.record.happened.append(fault)
        self.count(f"fault {fault.kind}")
        self.note("FAULT", str(fault))
        return not self.on_fault(fault)


class LogWatch(logging.Handler):
    """What hedgerow logs while a history runs; nothing of it may be about rows."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        self.lines.append(line)
        self.world.note(self.world.process, f"log: {line}")
