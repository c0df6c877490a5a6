"""One history: a scenario and its faults from one seed, with an operator who looks after it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedgerow.clock import clock_from
from hedgerow.coordinator.federation import Federation, RefusedBy
from hedgerow.errors import BudgetExceeded, HedgerowError, PlanError, SlotSpent
from hedgerow.failpoints import fail_points_told
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.disk import disk_from
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.identity import Identity
from hedgerow.testing.noise import noise_off
from hedgerow.testing.simulation.commands import Attempted, replayed, run_command, same_result
from hedgerow.testing.simulation.disk import Crashed
from hedgerow.testing.simulation.faults import (
    BACKUPS,
    COORDINATOR,
    FROM,
    TO,
    Fault,
    draw_faults,
)
from hedgerow.testing.simulation.invariants import Invariants
from hedgerow.testing.simulation.lies import Liar
from hedgerow.testing.simulation.machines import (
    CoordinatorMachine,
    PartyMachine,
    roster_of,
)
from hedgerow.testing.simulation.network import Network
from hedgerow.testing.simulation.randomness import Dice, secrets_from
from hedgerow.testing.simulation.scenarios import (
    REGRESSION,
    Scenario,
    draw_scenario,
    row_words,
    start_of,
    undisturbed,
)
from hedgerow.testing.simulation.world import LogWatch, World

DEBUG = False
TRIES = 3  # of a command while things go wrong; then its operator waits for better times
CALM_TRIES = 3  # of a command once nothing goes wrong any more
MOST_STEPS = 20_000
CALM_SECONDS = 1_800.0  # within which a command ends once nothing goes wrong
_MESSAGES = ("lose", "duplicate", "delay", "corrupt", "stale reply")


@dataclass
class Outcome:
    """What came of one seed."""

    seed: int
    counts: Counter[str]
    happened: list[Fault]
    violations: list[str]
    trace: list[str] = field(repr=False)
    seconds: float = 0.0  # simulated


def simulate(
    seed: int,
    faults: Sequence[Fault] | None = None,
    backups: bool = False,
    rolled_back_is_noticed: bool = False,
) -> Outcome:
    """Run the history of a seed; with other faults than its own where some are given."""
    scenario = draw_scenario(Dice(seed, "scenario"))
    if faults is None:
        faults = draw_faults(Dice(seed, "faults"), scenario.parties, backups)
    _prepare(scenario)
    world = World(seed, list(faults))
    with _simulated(world, scenario):
        history = History(world, scenario, rolled_back_is_noticed)
        try:
            history.run()
        except Exception as error:  # a bug of the simulator or of what it runs: both are findings
            if DEBUG:
                raise
            world.require(False, "no error goes unnoticed", f"{type(error).__name__}: {error}")
    record = world.record
    return Outcome(
        seed, record.counts, record.happened, record.violations, record.trace,
        world.scheduler.now,
    )  # fmt: skip


def _prepare(scenario: Scenario) -> None:
    """Make the models that this history is compared with, before anything is simulated."""
    for work in scenario.works:
        start_of(work, scenario.schema)
        if work.kind == "train" and not scenario.noise and not scenario.columns:
            _expected(scenario, work.plan)


def _expected(scenario: Scenario, plan: Plan | None) -> Ensemble:
    assert plan is not None
    regression = scenario.schema is REGRESSION
    about = (regression, plan.seed, plan.privacy.spare)
    return undisturbed(plan.method, scenario.parties, scenario.trust, *about)


@contextmanager
def _simulated(world: World, scenario: Scenario) -> Iterator[None]:
    """Secrets, disk, noise, fail points and logs of this process are those of the history."""
    logger = logging.getLogger("hedgerow")
    watch = LogWatch(world)
    before = (logger.propagate, logger.level)
    with ExitStack() as stack:
        stack.enter_context(secrets_from(Dice(world.seed, "secrets")))
        stack.enter_context(disk_from(world.disk))
        stack.enter_context(fail_points_told(world.fail_point))
        if not scenario.noise:
            stack.enter_context(noise_off())
        logger.addHandler(watch)
        logger.propagate, level = False, logger.setLevel(logging.WARNING)
        assert level is None
        try:
            yield
        finally:
            logger.removeHandler(watch)
            world.disk.shut()
            logger.propagate = before[0]
            logger.setLevel(before[1])


class History:
    """A federation, its commands, and the operator who starts, restarts and repairs."""

    def __init__(self, world: World, scenario: Scenario, rolled_back_is_noticed: bool) -> None:
        self.world, self.scenario = world, scenario
        self.rules = Invariants(world, rolled_back_is_noticed)
        self.rules.secret_words = row_words(scenario)
        self.coordinator = CoordinatorMachine(world)
        tables = scenario.tables
        self.parties = {
            name: PartyMachine(
                world, name, tables[name], scenario.schema, scenario.limits[name]
            )
            for name in scenario.parties
        }
        world.machines = {**self.parties, COORDINATOR: self.coordinator}
        world.disk.shared = scenario.interleaved
        world.on_fault = self._fault
        self.network = Network(world, self.parties, scenario.connected)
        self.network.on_reply = lambda name, asked, reply: self.rules.replied(
            name, self.parties[name], asked, reply
        )
        self.roster = roster_of(self.parties, self.coordinator.identity, scenario.trust)
        self.liar = Liar(
            world, self.network, self.coordinator.identity, scenario, self.roster,
            self.rules.foreign,
        )  # fmt: skip
        self.commands = [Attempted(work) for work in scenario.works]
        self.deceived = False  # parties were lied to, or an operator meddled
        self.given_up: set[str] = set()

    def run(self) -> None:
        self._describe()
        for machine in self.parties.values():
            machine.on_start, machine.on_event = self.rules.watch_party, self.rules.party_event
            machine.on_role = self.rules.role_taken
            machine.pin(self.roster)
            machine.start()
        for command in self.commands:
            self.world.scheduler.after(command.work.after, lambda c=command: self._begin(c))  # type: ignore[misc]
        ended = self.world.scheduler.run(self._idle, MOST_STEPS, 200 * 86_400.0)
        self.world.require(ended, "commands end", "while things go wrong")
        self._calm_down()
        for command in self.commands:
            self._finish(command)
        self._check_end()

    def _describe(self) -> None:
        world, scenario = self.world, self.scenario
        world.note("seed", f"{world.seed}: {len(scenario.parties)} parties, trust {scenario.trust}")
        for work in scenario.works:
            method = work.plan.method if work.plan else work.kind
            world.note("seed", f"{work.run}: {work.kind} {method}, after {work.after:.1f} s")
            world.count(f"work {work.kind}")
            world.count(f"method {method}")
        world.count(f"trust {scenario.trust}")

    def _idle(self) -> bool:
        return all(
            not command.running and (command.finished or command.work.run in self.given_up)
            for command in self.commands
        )

    # Commands

    def _begin(self, command: Attempted) -> None:
        """An operator enters the command, the first time or again."""
        if command.running or command.finished or command.work.run in self.given_up:
            return
        command.tries += 1
        command.process, command.running = self.coordinator.new_process(), True
        command.error = None
        command.parties.clear()
        self.world.note(command.process, f"begins {command.work.run}, try {command.tries}")
        if command.tries > 1:
            self.world.count("command run again")
        self.world.start_program(command.process, lambda: self._command(command))

    def _command(self, command: Attempted) -> None:
        name = command.work.run
        try:
            with clock_from(self.coordinator.clock):
                command.result = run_command(
                    command, self.scenario, self.coordinator, self.network, self.roster,
                    self._watch,
                )  # fmt: skip
            self.world.note(command.process, f"{name} is finished")
        except Crashed as error:
            command.error = error
            self.world.note(command.process, "is gone")
            self.world.count("coordinator's process was killed")
        except HedgerowError as error:
            command.error = error
            self.world.note(command.process, f"{name} ends: {type(error).__name__}: {error}")
            self.world.count(f"ended by {type(error).__name__}")
            self.rules.check_words(str(error), command.process)
            starved = "held the ledger for too long" in str(error)
            self.world.require(not starved, "processes that share a ledger take turns", name)
        finally:
            command.running = False
            self.world.disk.end_process(command.process)
        if not command.finished:
            self._after_error(command)

    def _watch(self, federation: Federation, ledger: Ledger, command: Attempted) -> None:
        self.rules.check_ledger(COORDINATOR, ledger)
        run = command.work.run
        self.rules.watch_coordinator(self.coordinator, federation, ledger, run)
        inner = federation.sum

        def summed(*asked: Any) -> Any:
            total = inner(*asked)
            command.parties.append(total.parties)
            return total

        federation.sum = summed  # type: ignore[method-assign]

    def _after_error(self, command: Attempted) -> None:
        """What an operator does who reads the message: repair what it names, then try again."""
        if self.world.calm:
            return
        if command.tries >= TRIES or _is_final(command.error):
            self.given_up.add(command.work.run)
            return
        pause = self.world.dice.between(0.5, 40.0)
        self.world.scheduler.after(pause, lambda: self._try_again(command))

    def _try_again(self, command: Attempted) -> None:
        error = command.error
        if isinstance(error, RefusedBy) and error.party in self.parties:
            self._settle(self.parties[error.party], error.word)
        self._begin(command)

    def _settle(self, machine: PartyMachine, word: str) -> None:
        """Two operators on the telephone."""
        if word == "not-approved":
            for plan in machine.approvals.pending.values():
                machine.approvals.approved.add(plan.hash)
            self.world.note(machine.name, "its operator approves")
            self.world.count("approved")
        if word in ("other-roster", "bad-signature", "unknown-party"):
            machine.pin(self.roster)
            self.world.note(machine.name, "its operator pins the roster again")
            self.world.count("pinned again")

    # What goes wrong

    def _fault(self, fault: Fault) -> bool:
        """Let a fault happen; False if it is left to whoever carries the message."""
        if fault.kind in _MESSAGES:
            return False
        at_party = fault.machine != COORDINATOR
        machine = self.parties[fault.machine] if at_party else None
        if fault.kind.startswith("partition"):
            one_way = (TO,) if fault.drawn < 0.5 else (FROM,)
            self.network.block(
                fault.machine, one_way if "one way" in fault.kind else (TO, FROM), fault.seconds
            )
        elif fault.kind == "slow":
            self.network.slow[fault.machine] = self.world.scheduler.now + fault.seconds
        elif fault.kind == "lie":
            self.deceived = True
            self.liar.lie(fault)
        elif fault.kind.startswith("full disk"):
            self.world.disk.full.add(fault.machine)
            self.world.scheduler.after(fault.seconds, lambda: self._freed(fault.machine))
        elif fault.kind == "clock set":
            self._set_clock(fault)
        elif fault.kind in BACKUPS or fault.kind in ("new key", "other roster"):
            self._meddle(fault)
        elif machine is not None:
            machine.crash("power" in fault.kind, fault.seconds)
        else:
            self.coordinator.crash("power" in fault.kind, self.world.process)
        return True

    def _freed(self, machine: str) -> None:
        self.world.disk.full.discard(machine)
        self.world.note(machine, "its disk has room again")
        self.world.count("disk freed")

    def _set_clock(self, fault: Fault) -> None:
        days = (fault.drawn - 0.7) * 60  # more often back than ahead
        for name in (fault.machine, COORDINATOR) if fault.drawn < 0.3 else (fault.machine,):
            self.world.machines[name].clock.wrong_by += days * 86_400
            if days > 0:
                self.rules.clocks_ahead.add(name)

    def _meddle(self, fault: Fault) -> None:
        """An operator does something that later needs another one."""
        self.deceived = True
        machine = self.parties[fault.machine]
        if fault.kind == "new key":
            machine.identity = Identity()
            machine.roster = None
            self.roster = roster_of(self.parties, self.coordinator.identity, self.scenario.trust)
            for name, other in self.parties.items():
                if name != machine.name and (fault.drawn < 0.5 or name < machine.name):
                    other.pin(self.roster)
            self.world.scheduler.after(0.0, lambda: self._with_new_key(machine))
        elif fault.kind == "other roster":
            keys = tuple(self.roster.parties)
            other_trust = "coordinator" if self.roster.trust != "coordinator" else "parties"
            changed = type(self.roster)(keys, self.roster.coordinator, 1, 3, other_trust)
            machine.pin(changed)
        else:
            at_party = fault.kind.endswith("party")
            self.world.scheduler.after(0.0, lambda: self._restore(machine if at_party else None))

    def _with_new_key(self, machine: PartyMachine) -> None:
        machine.crash(power=False)
        machine.roster = self.roster

    def _restore(self, machine: PartyMachine | None) -> None:
        """An operator puts the ledger of the first day back, while nothing runs."""
        name = COORDINATOR if machine is None else machine.name
        self.rules.restored.add(name)
        if machine is not None:
            machine.crash(power=False)
            self.world.disk.files.pop(machine.file, None)
            self.world.disk.files.pop(f"{machine.file}-journal", None)
            return
        self.coordinator.crash(power=True)
        self.world.disk.files.pop(self.coordinator.file, None)
        self.world.disk.files.pop(f"{self.coordinator.file}-journal", None)

    # Once nothing goes wrong any more

    def _calm_down(self) -> None:
        world = self.world
        world.calm = True
        world.note("operator", "nothing goes wrong from here on")
        world.disk.full.clear()
        self.network.blocked.clear()
        self.network.slow.clear()
        for machine in world.machines.values():
            machine.clock.wrong_by = 0.0
        for machine in self.parties.values():
            machine.pin(self.roster) if machine.roster is not None else None
            machine.roster = self.roster
            machine.start()
            if machine.party is not None:
                machine.party.pin(self.roster)
        world.scheduler.run(lambda: False, 200, 60.0)  # what was under way arrives

    def _finish(self, command: Attempted) -> None:
        """Every command finishes, or says what a person must do."""
        if command.finished or command.running:
            self.world.require(not command.running, "commands end", command.work.run)
            return
        self.given_up.discard(command.work.run)
        for _ in range(CALM_TRIES):
            error = command.error
            if isinstance(error, RefusedBy) and error.party in self.parties:
                self._settle(self.parties[error.party], error.word)
            self._begin(command)
            ended = self.world.scheduler.run(
                lambda: not command.running, MOST_STEPS, CALM_SECONDS
            )
            if not ended:
                self.world.require(False, "commands end", f"{command.work.run}, in calm")
                return
            if command.finished or _is_final(command.error):
                break
        if not command.finished:
            self._check_verdict(command)

    def _check_verdict(self, command: Attempted) -> None:
        """A command that does not finish in calm has a reason that only a person can remove."""
        error = command.error
        self.world.count(f"person needed: {_reason(error)}")
        fair = _is_final(error) or (
            isinstance(error, RefusedBy) and (self.deceived or error.word in _PERSONS)
        )
        self.world.require(
            fair, "once faults stop a command finishes or a person is needed",
            f"{command.work.run}: {type(error).__name__}: {error}",
        )  # fmt: skip

    # The end

    def _check_end(self) -> None:
        scenario = self.scenario
        ledger = Ledger.open(Path(self.coordinator.file))
        for command in self.commands:
            plan = command.work.plan
            if plan is not None:
                self.rules.stored(ledger, plan, scenario.schema)
            if command.finished:
                self.world.count("finished")
                self._check_result(command, ledger)
        ledger.close()
        self.rules.end(self.parties, self.coordinator)
        for line in [line for line in self.world.record.trace if " log: " in line]:
            self.rules.check_words(line[28:], "log")

    def _check_result(self, command: Attempted, ledger: Ledger) -> None:
        """The same again from the ledger; and what an undisturbed run gives, if all took part."""
        plan, result = command.work.plan, command.result
        if plan is None:
            return
        lost = self._slots_lost(ledger, plan.run)
        if COORDINATOR not in self.rules.restored and not lost:
            again = replayed(command.work, self.scenario, self.coordinator, self.roster, ledger)
            same = same_result(result, again)
            self.world.require(same, "a resumed run gives the same model", plan.run)
        sums = [parties for key, (parties, *_) in self.rules.sums.items() if key[0] == plan.run]
        whole = all(parties == self.scenario.parties for parties in sums)
        if isinstance(result, Ensemble):
            self._check_attendance(command, result)
            if whole and not lost and not self.scenario.noise and not self.rules.restored:
                same = result.trees == _expected(self.scenario, plan).trees
                self.world.require(same, "the model is that of an undisturbed run", plan.run)
                self.world.count("equal to an undisturbed run")

    def _slots_lost(self, ledger: Ledger, run: str) -> int:
        charged = {line.slot for line in ledger.lines(COORDINATOR, "charge", run)}
        released = {line.slot for line in ledger.lines(COORDINATOR, "release", run)}
        return len(charged - released)

    def _check_attendance(self, command: Attempted, model: Ensemble) -> None:
        """A party that fell out is named in the model, with the releases that went without it."""
        said = model.record.get("attendance", {}).get("over", [])
        over = Counter({tuple(one["parties"]): one["releases"] for one in said})
        same = over == Counter(command.parties)
        self.world.require(same, "the model says who took part", command.work.run)
        if any(parties != self.scenario.parties for parties in command.parties):
            self.world.count("went on without a party")


_PERSONS = ("over-limits", "not-allowed", "some-columns", "not-approved")


def _is_final(error: BaseException | None) -> bool:
    """Whether the message says that the same command will not do it."""
    if isinstance(error, RefusedBy):
        return error.word in ("over-limits", "not-allowed", "some-columns")
    return isinstance(error, BudgetExceeded | SlotSpent | PlanError)


def _reason(error: BaseException | None) -> str:
    if isinstance(error, RefusedBy):
        return error.word
    return type(error).__name__

