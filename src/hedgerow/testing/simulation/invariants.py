"""The rules that every history must keep, checked while it runs and once more at its end.

Nothing here is asked of production code but what it wrote to its ledgers and sent: charges are
looked for on the disk, answers on the wire, masks where they are made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.coordinator.federation import Federation, Total
from hedgerow.errors import HedgerowError, LedgerWriteFailed
from hedgerow.party import party as answering
from hedgerow.party.answering import answer_of
from hedgerow.party.approvals import standing_of
from hedgerow.party.limits import Event
from hedgerow.party.party import Party
from hedgerow.party.run import MOST_JOINED, MOST_OPENED
from hedgerow.privacy.accounting.budget import MAX_SLOTS
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import MONTH, Spending, spending
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.noise import mechanisms
from hedgerow.protocol.handshake import JOINED
from hedgerow.protocol.identity import Announcement
from hedgerow.protocol.masks import Context, MaskKeys
from hedgerow.protocol.messages import REFUSALS, Ask
from hedgerow.protocol.roles import Agreement
from hedgerow.protocol.witnesses import LEFT
from hedgerow.queries import SumQuery
from hedgerow.queries.calibration import Noise
from hedgerow.testing.simulation.faults import COORDINATOR
from hedgerow.testing.simulation.kept_heads import KeptHeads
from hedgerow.testing.simulation.machines import CoordinatorMachine, PartyMachine
from hedgerow.testing.simulation.reading import read
from hedgerow.testing.simulation.world import World

Context3 = tuple[str, int, int]  # run, slot, attempt
WIDE = 9.0  # deviations that no noise of a history is away from zero


class Invariants:
    """What was seen of one history, and what must hold of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.restored: set[str] = set()  # machines whose operator put an older ledger back
        self.clocks_ahead: set[str] = set()
        self.sent: dict[tuple[str, Context3], tuple[str, dict[str, bytes]]] = {}  # bytes by key
        self.texts: dict[tuple[str, str], bytes] = {}  # party and request: what was sealed
        self.asked: set[Context3] = set()  # by the honest coordinator
        self.exact: dict[tuple[str, Context3], Any] = {}  # sums before noise and mask
        self.masks: set[tuple[str, bytes, bytes]] = set()
        self.sums: dict[Context3, tuple[tuple[str, ...], SumQuery, Noise]] = {}
        self.released: dict[tuple[str, int], int] = {}  # run and slot: digest of its numbers
        self.reserved: dict[str, list[tuple[float, Plan]]] = defaultdict(list)  # true times
        self.secret_words: list[str] = []
        self.opened: dict[str, set[str]] = defaultdict(set)  # by run: parties that accepted it
        self.on_record: set[str] = set()  # runs that the coordinator reserved
        self.foreign: set[bytes] = set()  # messages that the coordinator did not sign
        self._ledgers: dict[str, Ledger] = {}  # of each party's newest process
        self.roles: set[tuple[str, str]] = set()  # parties and runs whose labels have paid
        self.kept = KeptHeads()
        self.joined: set[tuple[str, str]] = set()  # parties and runs
        self.honest_joins: set[bytes] = set()  # that the coordinator sent, who is no liar in them

    # Where parties answer

    def watch_party(self, machine: PartyMachine, party: Party, ledger: Ledger) -> None:
        """Look at a process of a party from inside; called when it starts."""
        if machine.starts > 1:
            self.check_ledger(machine.name, ledger)
        self._ledgers[party.name] = ledger
        mask = party._keys.mask

        def masked(me: str, context: Context, size: int) -> Any:
            key = (party._keys.public, context.salt, context.info)
            self._require(key not in self.masks, "a mask is used once", f"{me} {context.slot}")
            self.masks.add(key)
            return mask(me, context, size)

        party._keys.mask = masked  # type: ignore[method-assign]
        seal = party._keys.seal

        def sealed(other: str, request: str, party: str, data: bytes) -> bytes:
            # A party that was started again seals with another key; what it says stays the same.
            same = self.texts.setdefault((party, request), data) == data
            self._require(same or party in self.restored, "one request, one text", party)
            return seal(other, request, party, data)

        party._keys.seal = sealed  # type: ignore[method-assign]

    @contextmanager
    def watching_answers(self) -> Iterator[None]:
        """Look at exact sums where parties add their noise and masks, inside the block."""
        answer = answer_of

        def answered(
            name: str, ask: Ask, run: Any, request: str, exact: Any, keys: MaskKeys, rows: int
        ) -> Any:
            key = (ask.run, ask.slot, ask.attempt)
            lines = self._ledgers[name].lines(name, "charge", ask.run, ask.slot)
            charged = any(
                line.attempt == ask.attempt and line.values["request"] == request for line in lines
            )
            self._require(charged, "a party computes after its charge", f"{name} {key}")
            self.exact[name, key] = exact.copy()
            return answer(name, ask, run, request, exact, keys, rows)

        setattr(answering, "answer_of", answered)  # noqa: B010 - it is imported there
        try:
            yield
        finally:
            setattr(answering, "answer_of", answer)  # noqa: B010

    def replied(self, name: str, machine: PartyMachine, asked: bytes, reply: bytes) -> None:
        """A reply leaves a party."""
        message, question = read(reply), read(asked)
        if message is None:
            self._require(False, "a party's replies are readable", name)
            return
        if message.type == "refusal":
            word = message.values.get("word")
            self.world.count(f"refusal {word}")
            self.world.note(name, f"refuses: {word}")
            self._require(word in REFUSALS, "a refusal is a word of the vocabulary", name)
            self._require(set(message.values) == {"word"}, "a refusal is one word", name)
            self._refused(name, str(word), asked)
            return
        self._require(asked not in self.foreign, "a party hears its coordinator alone", name)
        self.world.note(name, message.type)
        party = machine.party
        if party is not None:
            kept = list(party._runs._kept.values())
            joined = sum(run.opening.joined is not None for run in kept)
            small = joined <= MOST_JOINED and len(kept) - joined <= MOST_OPENED
            self._require(small, "a party remembers a bounded number of runs", name)
            few = all(run.plan.n_slots <= MAX_SLOTS for run in kept)
            self._require(few, "a party remembers a bounded number of slots", name)
        if message.type == "need-trees":
            self.world.count("trees wanted")
        if message.type == "opened" and question is not None and question.type == "open":
            self.opened[question.plan.run].add(name)
        if message.type == LEFT and question is not None:
            self.kept.keep(name, question.values["heads"])
        if message.type == JOINED and question is not None and machine.ledger is not None:
            entries = map(Announcement.from_dict, question.values["announcements"])
            if (name, question.values["run"]) in self.joined:
                self.world.count("joined again")
            self.joined.add((name, question.values["run"]))
            self._joined(machine, machine.ledger, {entry.name: entry for entry in entries})
        if message.type == "answer" and question is not None:
            self._answer_left(name, machine, question.ask, question.hash, message.body)

    def _joined(
        self, machine: PartyMachine, ledger: Ledger, announced: dict[str, Announcement]
    ) -> None:
        """A party takes part: whatever the others in the run keep of its ledger is there."""
        name, key = machine.name, machine.identity.public
        now = datetime.fromtimestamp(machine.clock.timestamp(), UTC)
        said = now.isoformat(timespec="milliseconds")
        others = announced.keys() - {name} - self.restored
        missed = self.kept.missed(name, key, ledger, others)
        if name in announced:
            missed += self.kept.missed_starts(announced[name], key, ledger, others, said)
        rule = "lost lines are settled before a party goes on"
        self._require(not missed, rule, f"{name} {', '.join(missed)}")
        self.kept.saw(name, announced.values(), said)

    def _refused(self, name: str, word: str, asked: bytes) -> None:
        if word == "rolled-back":
            accused = name in self.restored
            self._require(accused, "nobody has lost lines whose ledger is as it was", name)
        if word == "unwitnessed":
            late = asked in self.honest_joins
            self._require(not late, "too few witnesses are known before anybody reserves", name)

    def _answer_left(
        self, name: str, machine: PartyMachine, ask: Ask, request: str, body: bytes
    ) -> None:
        key = (ask.run, ask.slot, ask.attempt)
        ledger, party = machine.ledger, machine.party
        if ledger is None or party is None:
            return
        opened = party._runs.get(ask.run)
        assert opened is not None
        roster = opened.roster
        lines = ledger.lines(name, "charge", ask.run, ask.slot)
        charged = any(line.attempt == ask.attempt for line in lines)
        self._require(charged, "no answer without the party's charge", f"{name} {key}")
        synced = not self.world.disk.unsynced(machine.file)
        self._require(synced, "no answer before its charge is on disk", f"{name} {key}")
        today = datetime.fromtimestamp(machine.clock.timestamp(), UTC).date()
        ended = opened.plan.request.has_ended(today)
        self._require(not ended, "no answer after the plan's last day", f"{name} {key}")
        if machine.limits.approve:
            word = standing_of(ledger, name, opened.plan)
            approved = word is not None and word.what == "approve"
            self._require(approved, "no answer to a plan that nobody approved", f"{name} {key}")
        if roster.trusted.masked:
            enough = len(roster.parties) - len(ask.absent) >= max(3, len(roster.parties) // 2 + 1)
            self._require(enough, "no sum over fewer parties than allowed", f"{name} {key}")
        question, bodies = self.sent.setdefault((name, key), (request, {}))
        if machine.name not in self.restored:
            if party._keys.public in bodies:
                self.world.count("answered again")
            before = bodies.setdefault(party._keys.public, body)
            self._require(question == request, "one context, one question", f"{name} {key}")
            self._require(before == body, "one context, one message", f"{name} {key}")
        self.world.count("answers")

    def party_event(self, machine: PartyMachine, event: Event) -> None:
        if event.what != "reserved" or event.plan is None or machine.party is None:
            return
        self.reserved[machine.name].append((self.world.scheduler.now, event.plan))
        known = event.run in self.on_record or event.run.startswith("lie")
        known |= COORDINATOR in self.restored
        self._require(known, "no party pays for a run unknown to the coordinator", event.run)
        self._check_limits(machine, machine.party._ledger)

    def _check_limits(self, machine: PartyMachine, ledger: Ledger) -> None:
        limits, name = machine.limits, machine.name
        if name in self.restored:
            return
        if limits.budget is not None:
            spent = limits.budget.counts(spending(ledger, name))
            within = spent <= limits.budget.epsilon * (1 + 1e-9)
            self._require(within, "charges of a party stay within its budget", f"{name} {spent}")
        if limits.per_month is None or name in self.clocks_ahead:
            return
        now, month = self.world.scheduler.now, MONTH.total_seconds()
        recent = [plan for at, plan in self.reserved[name] if at > now - month]
        total = Spending(0.0, 0, 0)
        for plan in recent:
            total = total.with_plan(plan)
        spent = limits.per_month.counts(total)
        within = spent <= limits.per_month.epsilon * (1 + 1e-9)
        self._require(within, "charges of a party stay within its month", f"{name} {spent}")

    # Where the coordinator asks

    def watch_coordinator(
        self, machine: CoordinatorMachine, federation: Federation, ledger: Ledger, run: str
    ) -> None:
        """Look at a process of the coordinator from inside."""
        add, append, least = federation.sum, ledger.append, federation.roster.least_set

        def appended(owner: str, kind: str, *about: Any, **more: Any) -> Any:
            if kind == "reserve":
                enough = len(self.opened[run]) >= least
                self._require(enough, "nothing is reserved before parties accept", run)
                self.on_record.add(run)
            return append(owner, kind, *about, **more)

        ledger.append = appended  # type: ignore[method-assign]

        def summed(query: SumQuery, noise: Noise, slot: int, attempt: int) -> Total:
            key = (run, slot, attempt)
            lines = ledger.lines(COORDINATOR, "charge", run, slot)
            charged = any(line.attempt == attempt for line in lines)
            self._require(charged, "nobody is asked before the coordinator's charge", str(key))
            synced = not self.world.disk.unsynced(machine.file)
            self._require(synced, "nobody is asked before the charge is on disk", str(key))
            fresh = key not in self.asked or COORDINATOR in self.restored
            self._require(fresh, "an attempt is asked once", str(key))
            self.asked.add(key)
            if attempt > 1:
                self.world.count("further attempt")
            total = add(query, noise, slot, attempt)
            self.sums[key] = (total.parties, query, noise)
            return total

        federation.sum = summed  # type: ignore[method-assign]

    def stored(self, ledger: Ledger, plan: Plan) -> None:
        """Every release of a run: it is the sum over its parties, with noise as agreed on."""
        for line in ledger.lines(COORDINATOR, "release", plan.run):
            key = (plan.run, line.slot, line.attempt)
            kept = hash(line.body)
            first = self.released.setdefault((plan.run, line.slot), kept)
            if COORDINATOR not in self.restored:
                self._require(first == kept, "a release stays what it was", str(key))
            if key not in self.sums:
                self._require(COORDINATOR in self.restored, "a release was asked for", str(key))
                continue
            parties, query, noise = self.sums[key]
            self.world.count("releases")
            if noise.mechanism in mechanisms.SELECTORS or query.finishes:
                continue
            exact = [self.exact.get((name, key)) for name in parties]
            if any(one is None for one in exact):
                self._require(bool(self.restored), "all parties of a sum computed it", str(key))
                continue
            self._check_release(key, line.arrays["total"], exact, noise, line.values)

    def _check_release(
        self, key: Context3, total: Any, exact: list[Any], noise: Noise, values: Any
    ) -> None:
        with np.errstate(over="ignore"):
            summed = sum((one.view(np.uint64) for one in exact[1:]), exact[0].view(np.uint64))
            off = np.abs((total.view(np.uint64) - summed).view(np.int64).astype(float))
        if values["source"] == "switched off":
            self._require(not off.any(), "a release is the sum of its parties", str(key))
            return
        widest = max(float(sigma) for sigma in values["sigmas"]) * 2.0**noise.bits
        close = float(off.max()) <= WIDE * widest * (1.0 if noise.mechanism != "laplace" else 4.0)
        self._require(close, "a release is the sum of its parties and noise", str(key))
        noisy = noise.mechanism == "laplace" or bool(off.any())
        self._require(noisy, "a release has noise", str(key))

    def role_taken(self, name: str, agreement: Agreement) -> None:
        """Labels that pay an epsilon are randomised once a run."""
        if agreement.spends.get(name):
            fresh = (name, agreement.run) not in self.roles or bool(self.restored)
            self._require(fresh, "labels are randomised once a run", f"{name} {agreement.run}")
            self.roles.add((name, agreement.run))

    # Ledgers

    def check_ledger(self, name: str, ledger: Ledger) -> None:
        """A ledger adds up, and has a line for everything that ever left its owner."""
        try:
            verify(ledger)
        except LedgerWriteFailed:
            raise  # a full disk: whoever looks into the ledger meets it, too
        except HedgerowError as error:
            self._require(False, "ledgers verify", f"{name}: {error}")
            return
        if name in self.restored:
            return
        # Taken before the ledger is read: meanwhile another process may charge and ask.
        asked, sent = {*self.asked}, list(self.sent.items())
        charges = ledger.lines(name, "charge")
        if name == COORDINATOR:
            have = {(line.run, line.slot, line.attempt) for line in charges}
            self._require(have >= asked, "charges of the coordinator outlive it", name)
            return
        paid = {(line.run, line.slot, line.attempt): line.values["request"] for line in charges}
        for (party, key), (request, _) in sent:
            if party == name:
                kept = paid.get(key) == request
                self._require(kept, "charges of a party outlive it", f"{name} {key}")

    def check_words(self, words: str, where: str) -> None:
        """Nothing about rows in a log, a refusal or an error."""
        for secret in self.secret_words:
            if secret in words:
                self._require(False, "nothing about rows in words", f"{where}: {words}")
                return

    def end(self, parties: dict[str, PartyMachine]) -> None:
        """What must hold of the parties' ledgers once everything has ended."""
        for machine in parties.values():
            ledger = Ledger.open(Path(machine.file))
            self.check_ledger(machine.name, ledger)
            self._check_limits(machine, ledger)
            for _ in ledger.lines(machine.name, "recover"):
                self.world.count("answers again")
            ledger.close()

    def _require(self, holds: bool, rule: str, what: str = "") -> None:
        self.world.require(holds, rule, what)
