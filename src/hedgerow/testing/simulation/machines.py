"""Machines of a history: the parties' with real `Party` objects, and the coordinator's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hedgerow import clock
from hedgerow.clock import clock_from
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.deployment.service import ceilings_of
from hedgerow.errors import HedgerowError, LedgerError
from hedgerow.methods.fedxgboost.run import vertical_role
from hedgerow.methods.simfl.run import similarity_role
from hedgerow.party.approvals import decide, standing_of
from hedgerow.party.limits import Event, Limits
from hedgerow.party.party import Party
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.gaps import settle
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.witnesses import open_gaps
from hedgerow.protocol.identity import Identity, Roster
from hedgerow.protocol.messages import REJECTIONS
from hedgerow.protocol.roles import Agreement, MemoryStore, Role, RoleFactory, Store
from hedgerow.testing.simulation.disk import Crashed
from hedgerow.testing.simulation.faults import COORDINATOR
from hedgerow.testing.simulation.world import Machine, World

REJECTED, WITHDRAWN = 0.2, 0.12  # how often people want none of a plan, or no longer
STOP_SECONDS = 2.0  # until a process that was asked to stop has ended
RETRY_SECONDS = 10.0  # after which a supervisor starts a process again that did not come up
ROLES: dict[str, RoleFactory] = {
    "simfl": similarity_role,
    "fedxgboost-none-merged": vertical_role,
    "fedxgboost-ldp-merged": vertical_role,
}


class Waiting:
    """Plans that wait for a person, kept over restarts."""

    def __init__(self) -> None:
        self.pending: dict[str, Plan] = {}

    def keep(self, plan: Plan) -> None:
        self.pending[plan.hash] = plan


class PartyMachine(Machine):
    """A party's computer: what outlives its processes, and the process that runs, if one does."""

    def __init__(self, world: World, name: str, rows: Rows, schema: Schema, limits: Limits) -> None:
        super().__init__(world, name)
        self.identity = Identity()
        self.roster: Roster | None = None
        self.rows, self.schema, self.limits = rows, schema, limits
        self.waiting, self.store = Waiting(), MemoryStore()
        self.file = f"{name}/party.ledger"
        self.party: Party | None = None
        self.ledger: Ledger | None = None
        self.starts = 0
        self.supervised = True
        self.on_start: Callable[[PartyMachine, Party, Ledger], None] = lambda *_: None
        self.on_event: Callable[[PartyMachine, Event], None] = lambda *_: None
        self.on_role: Callable[[str, Agreement], None] = lambda *_: None

    @property
    def process(self) -> str:
        return f"{self.name}#{self.starts}"

    @property
    def boot(self) -> int | None:
        return None if self.party is None else self.party.boot

    def start(self) -> None:
        """Start the party's process, as its supervisor does; try again later if it fails."""
        if self.party is not None:
            return
        self.starts += 1
        try:
            with clock_from(self.clock):
                self.world.run_as(self.process, self._start)
            self.world.note(self.name, f"started, boot {self.boot}")
            self.back_up()
        except (Crashed, HedgerowError, OSError) as error:
            self.gone()
            self.world.note(self.name, f"did not start: {type(error).__name__}: {error}")
            self.world.count("party did not start")
            self.world.scheduler.after(RETRY_SECONDS, self.start)

    def _start(self) -> None:
        ledger = Ledger.open(Path(self.file))
        party = Party(
            self.name, self.rows, self.schema, ledger, self.identity, self.limits,
            self.waiting, lambda event: self.on_event(self, event),
            roles={name: self._watched(make) for name, make in ROLES.items()}, store=self.store,
            witnesses=True,
        )  # fmt: skip
        if self.roster is not None:
            party.pin(self.roster)
        self.on_start(self, party, ledger)
        self.party, self.ledger = party, ledger

    def _watched(self, make: RoleFactory) -> RoleFactory:
        def made(name: str, rows: Rows, schema: Schema, agreement: Agreement, store: Store) -> Role:
            self.on_role(name, agreement)
            return make(name, rows, schema, agreement, store)

        return made

    def receive(self, data: bytes) -> bytes | None:
        party = self.party
        if party is None:
            return None
        reply: list[bytes] = []
        try:
            with clock_from(self.clock):
                self.world.run_as(self.process, lambda: reply.append(party.handle(data)))
        except Crashed:
            self.gone()
            return None
        return reply[0] if self.party is not None else None

    def approve(self) -> None:
        """A person decides on what waits: most is approved, and some of that is withdrawn later."""
        for plan in self.waiting.pending.values():
            self._decided(lambda ledger, plan=plan: self._look_at(ledger, plan))  # type: ignore[misc]

    def _look_at(self, ledger: Ledger, plan: Plan) -> None:
        if standing_of(ledger, self.name, plan) is not None:
            return
        dice = self.world.dice
        if dice.chance(REJECTED):
            about = ("operator", "looked at", "", dice.choice(REJECTIONS))
            decide(ledger, self.name, plan, "reject", *about)
            self.world.note(self.name, f"its operator rejects {plan.run}")
            self.world.count("rejected")
            return
        if plan.request.has_ended(clock.utc_now().date()):  # by a clock that may be wrong
            self.world.note(self.name, f"its operator is told that {plan.run} has ended")
            return
        decide(ledger, self.name, plan, "approve", "operator", "looked at")
        self.world.note(self.name, f"its operator approves {plan.run}")
        self.world.count("approved")
        if dice.chance(WITHDRAWN):
            self.world.scheduler.after(dice.between(0.1, 20.0), lambda: self._withdraw(plan))

    def _withdraw(self, plan: Plan) -> None:
        def withdrawn(ledger: Ledger) -> None:
            last = standing_of(ledger, self.name, plan)
            if last is not None and last.what == "approve":
                decide(ledger, self.name, plan, "withdraw", "operator", "thought again")
                self.world.note(self.name, f"its operator withdraws the approval of {plan.run}")
                self.world.count("withdrawn")

        self._decided(withdrawn)

    def settle(self) -> None:
        """A person says that lines are lost; what they may have cost is booked."""

        def settled(ledger: Ledger) -> None:
            if gaps := open_gaps(ledger, self.name):
                settle(ledger, self.name, ceilings_of(self.limits), "operator", "an old copy")
                self.world.note(self.name, "its operator settles what its ledger has lost")
                self.world.count("settled")
                if any(gap.boot for gap in gaps):  # others know a later start than this one
                    self.world.scheduler.after(0.0, lambda: self.crash(power=False))

        self._decided(settled)

    def _decided(self, action: Callable[[Ledger], None]) -> None:
        """Let the party's process put a person's word on its ledger, if it runs."""
        ledger = self.ledger
        if ledger is None:
            return
        try:
            with clock_from(self.clock):
                self.world.run_as(self.process, lambda: action(ledger))
        except Crashed:
            self.gone()
        except LedgerError as error:  # a full disk; or no limit bounds what was lost
            self.world.note(self.name, f"its operator's word was not written: {error}")

    def pin(self, roster: Roster) -> None:
        self.roster = roster
        # A process that still has the machine's old key is about to be started again, and reads it.
        if self.party is not None and self.party.identity is self.identity:
            self.party.pin(roster)

    def crash(self, power: bool, back_after: float = 1.0) -> None:
        """The process ends where it stands; without power unsynced writes are lost, too."""
        self.world.disk.end_process(self.process)
        if power:
            self.world.disk.lose_power(self.name)
        self.world.scheduler.after(back_after, self.start)
        running = self.world.process == self.process
        self.gone()
        if running:
            raise Crashed(self.process)

    def stop(self, back_after: float) -> None:
        """Its operator restarts it in order: it answers nothing more, and then its process ends."""
        if self.party is not None:
            self.party.close()
            self.world.note(self.name, "is being stopped")
        process = self.process
        self.world.scheduler.after(STOP_SECONDS, lambda: self._stopped(process, back_after))

    def _stopped(self, process: str, back_after: float) -> None:
        if self.process == process:  # else it was killed meanwhile
            self.crash(power=False, back_after=0.0 if self.world.calm else back_after)

    def gone(self) -> None:
        self.world.disk.end_process(self.process)
        self.party = self.ledger = None


class CoordinatorMachine(Machine):
    """The coordinator's computer; each of its commands is a process of its own."""

    def __init__(self, world: World) -> None:
        super().__init__(world, COORDINATOR)
        self.identity = Identity()
        self.file = f"{COORDINATOR}/coordinator.ledger"
        self.starts = 0

    def new_process(self) -> str:
        self.starts += 1
        return f"{COORDINATOR}#{self.starts}"

    def crash(self, power: bool, process: str = "") -> None:
        """One of its processes ends, or all of them where the power fails."""
        running = [name for name, program in self.world.programs.items() if not program.done]
        ended = running if power else [process] if process in running else running[:1]
        for name in ended:
            self.world.disk.end_process(name)
        if power:
            self.world.disk.lose_power(COORDINATOR)
        for name in ended:
            if name != self.world.process:
                self.world.kill(name)
        if self.world.process in ended:
            raise Crashed(self.world.process)


def roster_of(
    parties: Mapping[str, PartyMachine], coordinator: Identity, trust: str, minimum: int = 3
) -> Roster:
    keys = tuple((name, parties[name].identity.public) for name in sorted(parties))
    return Roster(keys, coordinator.public, 1, minimum, trust)
