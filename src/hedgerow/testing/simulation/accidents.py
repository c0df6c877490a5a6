"""What happens when a fault is due: machines that die, operators who meddle, clocks and disks."""

from __future__ import annotations

from hedgerow.protocol.identity import Identity
from hedgerow.testing.simulation.faults import BACKUPS, COORDINATOR, FROM, TO, Fault
from hedgerow.testing.simulation.machines import PartyMachine, roster_of
from hedgerow.testing.simulation.setting import Setting

_MESSAGES = ("lose", "duplicate", "delay", "corrupt", "stale reply")


class Accidents:
    """Lets faults happen to a federation."""

    def __init__(self, setting: Setting) -> None:
        self._setting, self._world = setting, setting.world

    def happen(self, fault: Fault) -> bool:
        """Let a fault happen; False if it is left to whoever carries the message."""
        if fault.kind in _MESSAGES:
            return False
        at_party = fault.machine != COORDINATOR
        machine = self._setting.parties[fault.machine] if at_party else None
        if fault.kind.startswith("partition"):
            one_way = (TO,) if fault.drawn < 0.5 else (FROM,)
            self._setting.network.block(
                fault.machine, one_way if "one way" in fault.kind else (TO, FROM), fault.seconds
            )
        elif fault.kind == "lose answers":
            self._setting.network.losing[fault.machine] = self._world.scheduler.now + fault.seconds
        elif fault.kind == "slow":
            self._setting.network.slow[fault.machine] = self._world.scheduler.now + fault.seconds
        elif fault.kind == "lie":
            self._setting.deceived = True
            self._setting.liar.lie(fault)
        elif fault.kind.startswith("full disk"):
            self._world.disk.full.add(fault.machine)
            self._world.scheduler.after(fault.seconds, lambda: self._freed(fault.machine))
        elif fault.kind == "clock set":
            self._set_clock(fault)
        elif fault.kind in BACKUPS or fault.kind in ("new key", "other roster"):
            self._meddle(fault)
        elif fault.kind == "restart party" and machine is not None:
            machine.stop(fault.seconds)
        elif machine is not None:
            machine.crash("power" in fault.kind, fault.seconds)
        else:
            self._setting.coordinator.crash("power" in fault.kind, self._world.process)
        return True

    def _freed(self, machine: str) -> None:
        self._world.disk.full.discard(machine)
        self._world.note(machine, "its disk has room again")
        self._world.count("disk freed")

    def _set_clock(self, fault: Fault) -> None:
        days = (fault.drawn - 0.7) * 60  # more often back than ahead
        for name in (fault.machine, COORDINATOR) if fault.drawn < 0.3 else (fault.machine,):
            self._world.machines[name].clock.wrong_by += days * 86_400
            if days > 0:
                self._setting.rules.clocks_ahead.add(name)

    def _meddle(self, fault: Fault) -> None:
        """An operator does something that later needs another one."""
        self._setting.deceived = True
        machine = self._setting.parties[fault.machine]
        if fault.kind == "new key":
            machine.identity = Identity()
            machine.roster = None
            self._setting.roster = roster_of(
                self._setting.parties,
                self._setting.coordinator.identity,
                self._setting.scenario.trust,
            )
            for name, others in self._setting.parties.items():
                if name != machine.name and (fault.drawn < 0.5 or name < machine.name):
                    others.pin(self._setting.roster)
            self._world.scheduler.after(0.0, lambda: self._with_new_key(machine))
        elif fault.kind == "other roster":
            keys = tuple(self._setting.roster.parties)
            other_trust = (
                "coordinator" if self._setting.roster.trust != "coordinator" else "parties"
            )
            changed = type(self._setting.roster)(
                keys, self._setting.roster.coordinator, 1, 3, other_trust
            )
            machine.pin(changed)
        else:
            at_party = fault.kind.endswith("party")
            self._world.scheduler.after(0.0, lambda: self._restore(machine if at_party else None))

    def _with_new_key(self, machine: PartyMachine) -> None:
        machine.crash(power=False)
        machine.roster = self._setting.roster

    def _restore(self, machine: PartyMachine | None) -> None:
        """An operator puts an old copy of a ledger back, while nothing runs on its machine."""
        owner = self._setting.coordinator if machine is None else machine
        if not owner.backups:
            return
        self._setting.rules.restored.add(owner.name)
        owner.crash(power=machine is None)
        self._world.disk.put_back(owner.file, owner.backups[0])
