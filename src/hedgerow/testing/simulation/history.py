"""One history: a scenario and its faults from one seed, with an operator who looks after it."""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from hedgerow.clock import clock_from
from hedgerow.coordinator.federation import Federation, Total
from hedgerow.coordinator.refused import RefusedBy
from hedgerow.errors import HedgerowError
from hedgerow.failpoints import fail_points_told
from hedgerow.privacy.ledger.disk import disk_from
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.queries import SumQuery
from hedgerow.queries.calibration import Noise
from hedgerow.testing.noise import noise_off
from hedgerow.testing.simulation.accidents import Accidents
from hedgerow.testing.simulation.commands import Attempted, run_command
from hedgerow.testing.simulation.disk import Crashed
from hedgerow.testing.simulation.endings import check_end, expected, is_final
from hedgerow.testing.simulation.faults import COORDINATOR, Fault, draw_faults
from hedgerow.testing.simulation.machines import PartyMachine
from hedgerow.testing.simulation.randomness import Dice, secrets_from
from hedgerow.testing.simulation.reading import read_once
from hedgerow.testing.simulation.scenarios import Scenario, draw_scenario, start_of
from hedgerow.testing.simulation.setting import Setting
from hedgerow.testing.simulation.world import LogWatch, World

TRIES = 3  # of a command while things go wrong; then its operator waits for better times
CALM_TRIES = 8  # of a command in calm: a telephone call with each party, and one more
MOST_STEPS = 20_000
CALM_SECONDS = 1_800.0  # within which a command ends once nothing goes wrong
RESTART_SECONDS = 5.0  # within which a party that its operator starts again is back


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
) -> Outcome:
    """Run the history of a seed; with other faults than its own where some are given."""
    scenario = draw_scenario(seed)
    if faults is None:
        faults = draw_faults(Dice(seed, "faults"), scenario.parties, backups or scenario.backups)
    _prepare(scenario)
    world = World(seed, list(faults))
    with _simulated(world, scenario):
        history = History(world, scenario)
        try:
            with history.rules.watching_answers():
                history.run()
        except Exception as error:  # a bug of the simulator or of what it runs: both are findings
            for line in traceback.format_exc().splitlines():
                world.note("error", line)
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
            expected(scenario, work.plan)


@contextmanager
def _simulated(world: World, scenario: Scenario) -> Iterator[None]:
    """Secrets, disk, noise, fail points and logs of this process are those of the history."""
    logger = logging.getLogger("hedgerow")
    watch = LogWatch(world)
    before = (logger.propagate, logger.level)
    with ExitStack() as stack:
        stack.enter_context(secrets_from(Dice(world.seed, "secrets")))
        stack.enter_context(disk_from(world.disk))
        stack.enter_context(read_once())
        stack.enter_context(fail_points_told(world.fail_point))
        if not scenario.noise:
            stack.enter_context(noise_off())
        logger.addHandler(watch)
        logger.propagate = False
        logger.setLevel(logging.WARNING)
        try:
            yield
        finally:
            logger.removeHandler(watch)
            world.disk.shut()
            logger.propagate = before[0]
            logger.setLevel(before[1])


class History(Setting):
    """The commands of a history, and the operator who enters them, repairs and tries again."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        super().__init__(world, scenario)
        world.on_fault = Accidents(self).happen
        self.commands = [Attempted(work) for work in scenario.works]
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
        check_end(self, self.commands)

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
        self.coordinator.back_up()
        command.process, command.running = self.coordinator.new_process(), True
        command.error = None
        command.parties.clear()
        command.slots.clear()
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
            assert command.error is not None
            command.troubles.append(command.error)
            self._after_error(command)

    def _watch(self, federation: Federation, ledger: Ledger, command: Attempted) -> None:
        self.rules.check_ledger(COORDINATOR, ledger)
        run = command.work.run
        self.rules.watch_coordinator(self.coordinator, federation, ledger, run)
        inner = federation.sum

        def summed(query: SumQuery, noise: Noise, slot: int, attempt: int) -> Total:
            total = inner(query, noise, slot, attempt)
            command.parties.append(total.parties)
            command.slots.add(slot)
            if federation._presence.banned():
                self.world.count("failed twice")
            return total

        federation.sum = summed  # type: ignore[method-assign]

    def _after_error(self, command: Attempted) -> None:
        """What an operator does who reads the message: repair what it names, then try again."""
        if self.world.calm:
            return
        if command.tries >= TRIES or is_final(command.error):
            self.given_up.add(command.work.run)
            return
        pause = self.world.dice.between(0.5, 40.0)
        self.world.scheduler.after(pause, lambda: self._try_again(command))

    def _try_again(self, command: Attempted) -> None:
        error = command.error
        if isinstance(error, RefusedBy):  # which may name several that wait for their people
            for name in error.party.split(", "):
                if name in self.parties:
                    self._settle(self.parties[name], error.word)
        self._begin(command)

    def _settle(self, machine: PartyMachine, word: str) -> None:
        """Two operators on the telephone."""
        if word == "not-approved":
            machine.approve()
        if word == "rolled-back":
            machine.settle()
        if word in ("other-roster", "bad-signature", "unknown-party"):
            machine.pin(self.roster)
            self.world.note(machine.name, "its operator pins the roster again")
            self.world.count("pinned again")

    # Once nothing goes wrong any more

    def _calm_down(self) -> None:
        world = self.world
        world.calm = True
        world.note("operator", "nothing goes wrong from here on")
        world.disk.full.clear()
        self.network.blocked.clear()
        self.network.slow.clear()
        self.network.losing.clear()
        for machine in world.machines.values():
            machine.clock.wrong_by = 0.0
        for machine in self.parties.values():
            machine.pin(self.roster)
            machine.start()
        world.scheduler.run(lambda: False, MOST_STEPS, 60.0)  # what was under way arrives

    def _finish(self, command: Attempted) -> None:
        """Every command finishes, or says what a person must do."""
        if command.finished or command.running:
            self.world.require(not command.running, "commands end", command.work.run)
            return
        self.given_up.discard(command.work.run)
        for _ in range(0 if is_final(command.error) else CALM_TRIES):
            error = command.error
            if isinstance(error, RefusedBy) and error.party in self.parties:
                self._settle(self.parties[error.party], error.word)
                # Whoever settles lost lines starts the party again before hanging up.
                self.world.scheduler.run(lambda: False, MOST_STEPS, RESTART_SECONDS)
            self._begin(command)
            ended = self.world.scheduler.run(lambda: not command.running, MOST_STEPS, CALM_SECONDS)
            if not ended:
                self.world.require(False, "commands end", f"{command.work.run}, in calm")
                return
            if command.finished or not isinstance(command.error, RefusedBy):
                break  # nobody has to be called on the telephone: it does not help to try again
            if is_final(command.error):
                break
        if not command.finished:
            self._check_verdict(command)

    def _check_verdict(self, command: Attempted) -> None:
        """A command that does not finish in calm has a reason that only a person can remove."""
        error = command.error
        self.world.count(f"person needed: {_reason(error)}")
        fair = is_final(error) or (
            isinstance(error, RefusedBy) and (self.deceived or error.word in _PERSONS)
        )
        self.world.require(
            fair, "once faults stop a command finishes or a person is needed",
            f"{command.work.run}: {type(error).__name__}: {error}",
        )  # fmt: skip


_PERSONS = ("over-limits", "not-allowed", "some-columns", "not-approved")


def _reason(error: BaseException | None) -> str:
    if isinstance(error, RefusedBy):
        return error.word
    return type(error).__name__
