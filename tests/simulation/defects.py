"""Defects planted into the real code, each of which the simulator must find.

``python -m tests.simulation.defects`` looks for each of them from seed 0 on and writes down how
many histories it took. They are planted here, by replacing functions, and nowhere in the package.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hedgerow import clock
from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.coordinator.presence import Presence
from hedgerow.coordinator.transport import Transport
from hedgerow.errors import LedgerWriteFailed
from hedgerow.party import party as party_module
from hedgerow.party.party import Party
from hedgerow.party.run import Newest, OpenedRun
from hedgerow.party.witnesses import PartyWitnesses
from hedgerow.privacy.accounting import budget, plan_reading
from hedgerow.privacy.ledger import spending, store
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.noise import mechanisms
from hedgerow.protocol import messages
from hedgerow.protocol.masks import Context
from hedgerow.protocol.messages import Ask, Message
from hedgerow.testing.simulation import simulate
from hedgerow.testing.simulation.disk import SimulatedConnection

MOST = 5_000  # histories within which each is found
RESULT = Path(__file__).parents[2] / "benchmarks" / "results" / "simulation_defects.json"
Plant = Callable[[ExitStack], None]


def _replace(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    stack.enter_context(patch.object(owner, name, value))


def charge_after_ask(stack: ExitStack) -> None:
    charge, store = Reservation.charge, Reservation.store
    put_off: dict[tuple[str, int], tuple[Any, ...]] = {}

    def later(self: Reservation, slot: int, request: str, *about: Any, **more: Any) -> int:
        if self.owner != COORDINATOR:
            return charge(self, slot, request, *about, **more)
        put_off[self.plan.run, slot] = (request, about, more)
        return self.last_attempt(slot) + 1

    def stored(self: Reservation, slot: int, *about: Any, **more: Any) -> Any:
        request, given, named = put_off[self.plan.run, slot]
        charge(self, slot, request, *given, **named)
        return store(self, slot, *about, **more)

    _replace(stack, Reservation, "charge", later)
    _replace(stack, Reservation, "store", stored)


def answer_without_charge(stack: ExitStack) -> None:
    _replace(stack, OpenedRun, "charge", lambda self, ask, request: None)


def mask_reused_on_retry(stack: ExitStack) -> None:
    info = Context.info.fget  # type: ignore[attr-defined]
    forgetful = property(lambda self: info(replace(self, attempt=0, request="")))
    _replace(stack, Context, "info", forgetful)


def stored_answer_lost(stack: ExitStack) -> None:
    """Asked the same again, a party draws its noise and mask anew."""
    charge = OpenedRun.charge

    def tolerant(self: OpenedRun, ask: Ask, request: str) -> None:
        if self.reservation.last_attempt(ask.slot) < ask.attempt:
            charge(self, ask, request)

    _replace(stack, OpenedRun, "charge", tolerant)
    charged = Reservation.charged

    def forgotten(self: Reservation, slot: int, attempt: int) -> Any:
        return None if self.owner != COORDINATOR else charged(self, slot, attempt)

    _replace(stack, Reservation, "charged", forgotten)


def spare_not_counted(stack: ExitStack) -> None:
    _replace(stack, Reservation, "_check_spare", lambda self, slot, last, charges: None)


def lock_forgotten(stack: ExitStack) -> None:
    execute = SimulatedConnection.execute

    def deferred(self: Any, sql: str, parameters: Any = ()) -> Any:
        return execute(self, sql.replace("BEGIN IMMEDIATE", "BEGIN"), parameters)

    _replace(stack, SimulatedConnection, "execute", deferred)


def reservation_before_join(stack: ExitStack) -> None:
    opened_by = Federation._opened_by

    def eager(self: Federation, names: tuple[str, ...]) -> Any:
        if self._reserve is not None:
            self._reserve()
            self._reserve = None
        return opened_by(self, names)

    _replace(stack, Federation, "_opened_by", eager)


def parties_pay_first(stack: ExitStack) -> None:
    """As it was: parties that were late joined without the coordinator's reservation."""
    join = Federation._join

    def without(self: Federation, opened: Any) -> None:
        reserve, self._reserve = self._reserve, None
        join(self, opened)
        if reserve is not None:
            reserve()

    _replace(stack, Federation, "_join", without)


def late_parties_join_unreserved(stack: ExitStack) -> None:
    """A bug that was found here: after an opening that too few heard, nobody reserved any more."""
    gather = Federation.gather

    def forgetful(self: Federation, slot: int = -1) -> None:
        self._reserve = None
        gather(self, slot)

    _replace(stack, Federation, "gather", forgetful)


def reading_errors_escape(stack: ExitStack) -> None:
    """Another: reading a ledger undoes what a killed process left half done, and that may fail."""
    _replace(stack, store, "not_read", lambda error: error)


def wrong_month(stack: ExitStack) -> None:
    _replace(stack, spending, "MONTH", timedelta(days=3))


def clock_trusted(stack: ExitStack) -> None:
    def of_month(ledger: Any, owner: str, kind: str) -> list[Any]:
        now = clock.utc_now()
        lines = ledger.lines(owner, kind)
        times = [(line, datetime.fromisoformat(line.time)) for line in lines]
        return [line for line, time in times if now - spending.MONTH < time <= now]

    _replace(stack, spending, "of_month", of_month)


def _pragma(stack: ExitStack, old: str, new: str) -> None:
    execute = SimulatedConnection.execute

    def changed(self: Any, sql: str, parameters: Any = ()) -> Any:
        return execute(self, sql.replace(old, new), parameters)

    _replace(stack, SimulatedConnection, "execute", changed)


def charges_not_synced(stack: ExitStack) -> None:
    _pragma(stack, "synchronous=FULL", "synchronous=OFF")


def journal_unlinked(stack: ExitStack) -> None:
    _pragma(stack, "journal_mode=TRUNCATE", "journal_mode=DELETE")


def noise_forgotten(stack: ExitStack) -> None:
    def none(total: Any, blocks: Any, sigmas: Any, share: float = 1.0) -> Any:
        return total

    _replace(stack, mechanisms, "add_gaussian", none)


def small_sets_answered(stack: ExitStack) -> None:
    _replace(stack, Ask, "n_parties", lambda self, roster: len(roster.parties))


def signatures_not_checked(stack: ExitStack) -> None:
    _replace(stack, Message, "is_signed_by", lambda self, public: True)


def full_disk_for_ever(stack: ExitStack) -> None:
    def stuck(self: Party) -> None:
        if self._unwritten:
            raise LedgerWriteFailed("still unwritten")

    _replace(stack, Party, "_recover", stuck)


def lost_party_probed_every_round(stack: ExitStack) -> None:
    _replace(stack, Presence, "silent", lambda self, names, now: None)


def runs_remembered_for_ever(stack: ExitStack) -> None:
    def keep(self: Newest[Any], run: str, opened: Any) -> None:
        self._kept[run] = opened

    _replace(stack, Newest, "keep", keep)


def train_hangs(stack: ExitStack) -> None:
    gather = Federation.gather

    def patient(self: Federation, slot: int = -1) -> None:
        self.wait_seconds = 1e9
        gather(self, slot)

    _replace(stack, Federation, "gather", patient)


def release_not_stored(stack: ExitStack) -> None:
    def kept_in_mind(self: Reservation, slot: int, attempt: int, release: Any, *_: Any) -> Any:
        return release

    _replace(stack, Reservation, "store", kept_in_mind)


def attempt_asked_again(stack: ExitStack) -> None:
    """A further attempt has the number of the one before, and costs nothing."""
    charge = Reservation.charge

    def free(self: Reservation, slot: int, *about: Any, **more: Any) -> int:
        if self.owner == COORDINATOR and (last := self.last_attempt(slot)):
            return last
        return charge(self, slot, *about, **more)

    _replace(stack, Reservation, "charge", free)


def nobody_approves(stack: ExitStack) -> None:
    _replace(stack, party_module, "check_standing", lambda *_: None)


def refusal_tells_why(stack: ExitStack) -> None:
    def talkative(word: str) -> Message:
        return messages.plain("refusal", {"word": word, "why": "row 3 of 12"})

    _replace(stack, messages, "refusal", talkative)


def attendance_not_told(stack: ExitStack) -> None:
    _replace(stack, Gate, "attendance", property(lambda self: {}))


def budget_per_process(stack: ExitStack) -> None:
    """A party's ceiling forgets runs that were reserved before its last start."""
    lines = Ledger.lines

    def recent(self: Ledger, owner: Any = None, kind: Any = None, *about: Any, **more: Any) -> Any:
        found = lines(self, owner, kind, *about, **more)
        if kind != "reserve" or owner == COORDINATOR or about or more:
            return found
        boots = lines(self, owner, "boot")
        return [line for line in found if line.seq > boots[-1].seq] if boots else found

    _replace(stack, Ledger, "lines", recent)


def witnesses_not_heard(stack: ExitStack) -> None:
    """Operators put older ledgers back, and parties pass over what others show them."""
    _replace(stack, PartyWitnesses, "_lost", lambda self, show, joined: [])


def later_starts_passed_over(stack: ExitStack) -> None:
    """A party that lost a start of its own, which left no head, goes on."""
    _replace(stack, PartyWitnesses, "_is_own", lambda self, start: False)


def counted_too_late(stack: ExitStack) -> None:
    """As it was: that too few others can witness was said to whoever had reserved already."""
    _replace(stack, PartyWitnesses, "check_enough", lambda self, joined, roster: None)


def ended_plans_answered(stack: ExitStack) -> None:
    _replace(stack, party_module, "check_not_ended", lambda plan: None)


def overlapping_fits_forgotten(stack: ExitStack) -> None:
    """A party goes on with its newest run alone: two at once burn what they reserved."""

    def keep(self: Newest[Any], run: str, opened: Any) -> None:
        self._kept.clear()
        self._kept[run] = opened

    _replace(stack, Newest, "keep", keep)


def first_answers_given_up(stack: ExitStack) -> None:
    """As it was: a site whose first answer takes half a minute, as loops compile, is lost."""
    send = Transport.send

    def hasty(self: Transport, about: Any, wanted: str, seconds: float) -> Any:
        return send(self, about, wanted, 15.0 if wanted == "answer" else seconds)

    _replace(stack, Transport, "send", hasty)


def dear_plans_read(stack: ExitStack) -> None:
    """As it was: a short message makes a party keep a million slots."""
    for module in (budget, plan_reading):
        _replace(stack, module, "MAX_SLOTS", 2_000_000)


DEFECTS: dict[str, Plant] = {
    "charge after ask": charge_after_ask,
    "answer without charge": answer_without_charge,
    "mask reused on retry": mask_reused_on_retry,
    "stored answer lost": stored_answer_lost,
    "spare not counted": spare_not_counted,
    "lock forgotten": lock_forgotten,
    "reservation before parties accept": reservation_before_join,
    "parties pay before the coordinator": parties_pay_first,
    "late parties join unreserved": late_parties_join_unreserved,
    "limits of the wrong month": wrong_month,
    "clock trusted": clock_trusted,
    "charges not synced": charges_not_synced,
    "journal unlinked, not cut": journal_unlinked,
    "noise forgotten": noise_forgotten,
    "small sets answered": small_sets_answered,
    "signatures not checked": signatures_not_checked,
    "full disk for ever": full_disk_for_ever,
    "lost party probed every round": lost_party_probed_every_round,
    "runs remembered for ever": runs_remembered_for_ever,
    "train hangs": train_hangs,
    "release not stored": release_not_stored,
    "attempt asked again": attempt_asked_again,
    "plans nobody approved": nobody_approves,
    "refusal tells why": refusal_tells_why,
    "attendance not told": attendance_not_told,
    "budget of this process alone": budget_per_process,
    "roll-back accepted": witnesses_not_heard,
    "witnesses counted too late": counted_too_late,
    "plans answered after their end": ended_plans_answered,
    "overlapping fits forgotten": overlapping_fits_forgotten,
    "slow first answers given up": first_answers_given_up,
    "dear plans read": dear_plans_read,
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The real code with one defect, inside the block."""
    with ExitStack() as stack:
        DEFECTS[name](stack)
        yield


def find(name: str, most: int = MOST) -> tuple[int, str]:
    """How many histories it takes to find a defect, and which rule it breaks; 0 if none does."""
    with planted(name):
        for seed in range(most):
            found = simulate(seed)
            if found.violations:
                return seed + 1, found.violations[0].partition(":")[0]
    return 0, ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.defects")
    parser.add_argument("--only", choices=DEFECTS, nargs="*", default=list(DEFECTS))
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    found = json.loads(given.out.read_text())["defects"] if given.out.exists() else {}
    for name in given.only:
        histories, rule = find(name, given.most)
        found[name] = {"histories": histories, "rule": rule}
        print(f"{histories or 'not found':>9}  {name}: {rule}", flush=True)
        text = json.dumps({"most": given.most, "defects": found}, indent=1) + "\n"
        given.out.write_text(text)


if __name__ == "__main__":
    main()
