"""The engine between houses: every `ask` travels through one running NVFlare job.

A transport failure costs no attempt. Within the time-out the same bytes are sent again to the
parties that have not replied, which answer a repeated request with the bytes they stored; and a job
that died is submitted again.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from hedgerow import clock
from hedgerow.coordinator.federation import Reply
from hedgerow.engines.nvflare import check_installed, envelopes
from hedgerow.engines.nvflare.delivery import Delivery
from hedgerow.engines.nvflare.envelopes import Outcome, Round
from hedgerow.engines.nvflare.jobs import JobEnded, Jobs, NoCoordinator, NotRunning
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Unreachable, call
from hedgerow.errors import HedgerowError, SettingsError
from hedgerow.protocol.identity import check_names

log = logging.getLogger(__name__)
PROBE_SECONDS = 1.0  # for a party that was lost before to show that it is back
PAUSE_SECONDS = 0.3  # between rounds in which nothing came
LOST_SECONDS = 4.0  # without a sign; a killed job process is back after 3
LOOK_SECONDS = 5.0  # between looks whether a lost party's house is back
START_SECONDS = 30.0  # for a job to begin
RETURN_SECONDS = 20.0  # for parties to connect again before a job is submitted without them


class NoParty(NoCoordinator):
    """The coordinator runs, and none of the parties is connected to it."""


class NvflareEngine:
    """Carries messages to the parties of a kit's federation. Close it, or use it in `with`.

    Parameters
    ----------
    kit : the coordinator's kit, on the machine where `hedgerow coordinator start` runs
    names : the parties to carry to
    wait_seconds : how long to wait at the beginning for parties that are not there yet; after
        that the engine works with those that are
    """

    simulated = False

    def __init__(self, kit: Site, names: tuple[str, ...], wait_seconds: float = 60.0) -> None:
        check_installed()
        if kit.role != "coordinator":
            raise SettingsError(
                f"{kit.path} is the site folder of {kit.name}; the engine needs the coordinator's"
            )
        self._names = tuple(sorted(check_names(names)))
        self._kit, self._jobs = kit, Jobs(kit)
        self._job = ""
        self._gone: dict[str, float] = {}  # parties that were lost, and since when
        self._looked = 0.0
        self._lock: int | None = _lock_kit(kit)
        try:
            self._submit(wait_seconds, START_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        return self.ask_each(dict.fromkeys(names, message), timeout_seconds)

    def ask_each(self, messages: Mapping[str, bytes], timeout_seconds: float) -> dict[str, Reply]:
        """Carry each party its message, until all have replied or the time is over.

        Replacing a job that died is finished even if it takes longer than the time-out.
        """
        lost = [name for name in messages if name in self._gone]
        delivery = Delivery(messages, timeout_seconds, lost)
        self._probe(lost, delivery)
        while delivery.waiting and delivery.seconds_left > 0:
            try:
                further = self._round(delivery)
            except NoCoordinator as error:
                log.warning("%s", error)
                further = False
            if not further:
                clock.sleep(PAUSE_SECONDS)
        for name, state in delivery.states.items():
            if state == "done":
                self._gone.pop(name, None)
            elif state != "working":
                self._gone.setdefault(name, delivery.unreached_since(name) or clock.timestamp())
        return {name: delivery.reply(name) for name in messages}

    def close(self) -> None:
        """End the job and let others use the kit."""
        if self._job:
            with suppress(HedgerowError):
                call(self._kit.carrier_socket, envelopes.FINISH, 5.0)
            self._job = ""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> NvflareEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _round(self, delivery: Delivery) -> bool:
        """Send or ask once; whether any party got further."""
        try:
            if delivery.take(self._carry(delivery.round(), delivery.seconds_left + 30.0)):
                return True
        except Unreachable:
            if delivery.seconds_left > 0:
                log.warning("the job that carries messages died; submitting another one")
                self._submit(RETURN_SECONDS, delivery.seconds_left)
                delivery.send_again()
            return False
        lost = {n: delivery.unreached_since(n) for n in delivery.unreached(LOST_SECONDS)}
        if self._bring_back(lost):
            delivery.send_again()
        return False

    def _carry(self, asked: Round, timeout_seconds: float) -> dict[str, Outcome]:
        reply = call(self._kit.carrier_socket, asked.to_bytes(), timeout_seconds)
        return envelopes.unpack_outcomes(reply)

    def _probe(self, names: Sequence[str], delivery: Delivery) -> None:
        """Give parties that were lost before one short chance, not a time-out of each message."""
        if not names:
            return
        try:
            asked = Round(delivery.id, tuple(names), b"", 0.0, PROBE_SECONDS)
            outcomes = self._carry(asked, 30.0)
            lost = {n: self._gone[n] for n in names if outcomes[n].state != "unknown"}
            back = self._bring_back(lost)
        except (Unreachable, NoCoordinator):
            return  # the rounds that follow see to it
        if back:
            delivery.send_again()
        for name in lost:
            if name not in back:
                delivery.give_up(name, outcomes[name].state)

    def _bring_back(self, lost: dict[str, float]) -> list[str]:
        """Submit a new job if a lost party's house is back, which cannot rejoin the old one."""
        now = clock.monotonic()
        if not lost or now - self._looked < LOOK_SECONDS:
            return []
        self._looked = now
        with self._jobs.session() as session:
            heard = self._jobs.connected(session)
            there = [name for name, since in lost.items() if heard.get(name, 0.0) > since]
            back = self._jobs.without_job(session, there, self._job) if there else []
        if back:
            log.warning("%s came back; submitting a new job", ", ".join(back))
            for name in back:
                self._gone.pop(name, None)
            self._submit(RETURN_SECONDS, 0.0)
        return back

    def _submit(self, wait_seconds: float, retry_seconds: float) -> None:
        """Replace the job by a new one for the parties that are there."""
        first, deadline = not self._job, clock.monotonic() + retry_seconds
        while True:
            try:
                return self._submit_once(wait_seconds)
            except NoCoordinator as error:
                hopeless = first and isinstance(error, NotRunning | NoParty | JobEnded)
                if hopeless or clock.monotonic() + 1.0 > deadline:
                    raise
                clock.sleep(1.0)

    def _submit_once(self, wait_seconds: float) -> None:
        wanted = [name for name in self._names if name not in self._gone]
        with self._jobs.session() as session:
            self._jobs.end_all(session)
            names = self._jobs.await_parties(session, wanted, wait_seconds)
            heard = self._jobs.connected(session)
            names += [name for name, since in self._gone.items() if heard.get(name, 0.0) > since]
            if not names:
                raise NoParty(
                    f"none of {', '.join(self._names)} is connected to the coordinator after "
                    f"{wait_seconds:.0f} s. Nothing was asked. Start the parties, then run the "
                    "same command again."
                )
            self._job = self._jobs.submit(session, names)
            self._jobs.await_carrier(session, self._job, START_SECONDS)
        now = clock.timestamp()
        missing = [name for name in self._names if name not in names]
        self._gone = {name: self._gone.get(name, now) for name in missing}


def _lock_kit(kit: Site) -> int:
    """Hold the kit for this process; the carrier in the job sees by the lock that we live."""
    descriptor = os.open(kit.folder / "engine.lock", os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(10):  # a carrier looks at the lock for a moment now and then
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            clock.sleep(0.1)
    os.close(descriptor)
    raise HedgerowError(
        f"another run uses the site folder {kit.path}. Nothing was asked. Wait until it is over or "
        "stop it."
    )
