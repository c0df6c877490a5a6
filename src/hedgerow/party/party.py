"""A party: owns rows, running scores, its own ledger and limits; answers or refuses.

`handle` is the only way in and its return value the only way out. Nothing here trusts the
coordinator: every bound, set and price is recomputed before a charge is made.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.data.persons import rows_per_person
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import BudgetExceeded, HedgerowError, LedgerWriteFailed, PlanError, TableError
from hedgerow.failpoints import fail_point
from hedgerow.party.answering import answer_of, sampler_for, stored_answer
from hedgerow.party.approvals import (
    WaitingPlans,
    check_not_ended,
    check_not_withdrawn,
    check_standing,
)
from hedgerow.party.limits import Event, Limits
from hedgerow.party.run import Newest, OpenedRun, check_agreed
from hedgerow.party.running_scores import Holding, RunningScores
from hedgerow.party.sessions import PartySessions
from hedgerow.party.witnesses import PartyWitnesses
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.refusals import Refusals
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.noise import mechanisms
from hedgerow.protocol import messages
from hedgerow.protocol.handshake import (
    JOIN_RUN,
    JOIN_SESSION,
    JOINED,
    OPEN_RUN,
    OPEN_SESSION,
    PartyHandshake,
)
from hedgerow.protocol.identity import Identity, Roster
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Ask, Message, OtherVersion, Refusal
from hedgerow.protocol.replies import Answer, PartyReply, Replying, Steps, collect_replies
from hedgerow.protocol.roles import MemoryStore, RoleFactory, Store
from hedgerow.protocol.session_steps import STEP, StepReply
from hedgerow.protocol.witnesses import LEAVE, SHOW

log = logging.getLogger(__name__)


class Party:
    """One data holder.

    Parameters
    ----------
    name : party name, as in the roster
    rows : rows already checked against the schema (see `hedgerow.data.tables.rows_of`), or whatever
        holds them elsewhere and gives exact sums
    schema : the public schema all parties agreed on
    ledger : where this party's charges go; in-process parties may share one
    limits : what the party allows, whatever a plan says
    waiting : where plans wait for a person, if the limits ask for one
    watch : called with an `Event` after everything that the party did; it may not call this party,
        nor others that are asked together with it
    roles : what it can do together with other parties, without an epsilon (`protocol.roles`)
    store : where such roles keep what outlives them; by default nothing does
    witnesses : whether it and others witness each other's ledgers, as parties at sites do
    sampling_secret : what samples of rows are drawn with; by default it follows from the identity
    """

    def __init__(
        self,
        name: str,
        rows: Rows | Holding,
        schema: Schema,
        ledger: Ledger | None = None,
        identity: Identity | None = None,
        limits: Limits | None = None,
        waiting: WaitingPlans | None = None,
        watch: Callable[[Event], None] | None = None,
        sampling_secret: Callable[[], bytes] | None = None,
        roles: Mapping[str, RoleFactory] | None = None,
        store: Store | None = None,
        witnesses: bool = False,
    ) -> None:
        read_by = rows.schema if isinstance(rows, Rows) else ""
        if read_by not in ("", schema.hash):  # codes, labels and persons would be others
            raise TableError(
                f"the rows of {name!r} were read by another schema than the party has. Nothing was "
                "asked. Read them again with this one."
            )
        self.name, self.schema = name, schema
        self.identity = identity or Identity()
        self.roster: Roster | None = None
        self._limits = limits or Limits()
        self._ledger = ledger or Ledger.in_memory()
        self._waiting, self._watch = waiting, watch
        self._refusals = Refusals(self._ledger, name)
        self._keys = MaskKeys()
        self._sampling_secret = sampling_secret or self.identity.secret
        about = (name, schema.hash, self.identity, self._keys, self._ledger)
        self._handshake = PartyHandshake(*about, lasts=identity is not None)
        self._runs = Newest[OpenedRun]()
        about_heads = (name, self.identity, self._ledger, self._limits)
        self._witnesses = PartyWitnesses(*about_heads, witnesses)
        kept = store if store is not None else MemoryStore()
        mine = (self._ledger, self._keys, roles or {}, self._limits, kept, self._witnesses)
        self._sessions = PartySessions(name, schema, self._handshake, *mine)
        self._rows: Rows | None = None  # those that lie here
        if isinstance(rows, Rows):
            self._rows = rows_per_person(rows, schema)
            rows = RunningScores(self._rows, schema)
        self._scores: Holding = rows
        self._lock = threading.Lock()
        self._closed = self._unwritten = False

    @property
    def boot(self) -> int:
        """Which start of this party its process is; on its ledger."""
        return self._handshake.boot

    @property
    def _pinned(self) -> Roster:
        assert self.roster is not None  # or the message would not have been looked at
        return self.roster

    def pin(self, roster: Roster) -> None:
        """Accept a roster. Whoever runs the party does this, never the coordinator.

        Runs and sessions that were joined keep the roster they began with, but for parties whose
        keys are not pinned any more. Those that were only opened have to be opened again.
        """
        if roster.keys.get(self.name) != self.identity.public:
            raise HedgerowError(f"the roster has another key for {self.name!r}; do not pin it")
        self.roster = roster

    def close(self) -> None:
        """Wait for the question under way, then answer nothing more."""
        with self._lock:
            self._closed = True

    def handle(self, message: bytes) -> bytes:
        """Answer one message with what may travel: sealed and signed."""
        return collect_replies([self.hear(message)])[0].message.to_bytes()

    def hear(self, message: bytes | Message) -> Steps:
        """Answer one message, step by step; see `Steps`.

        It came as bytes, or an engine of one process handed it over as its writer has it. A
        refusal uses a fixed vocabulary and says nothing about rows.
        """
        with self._lock:
            reply: Message | Answer | StepReply
            heard = asked = None  # what came, and what the pinned coordinator is known to have sent
            try:
                heard = message if isinstance(message, Message) else Message.from_bytes(message)
                asked = self._checked(heard)
                self._recover()
                reply = yield from self._dispatch(asked)
            except Exception as error:  # whatever went wrong, nothing about it may leave
                reply = self._refuse(error, asked)
            request = heard.hash if heard is not None else ""
            return PartyReply(reply, request, self.identity, partial(self._sealed, heard))

    def _sealed(self, asked: Message | None, answer: bytes) -> bytes:
        """An answer for nobody but the coordinator: under some trusts it is exact."""
        assert asked is not None
        return self._keys.seal(asked.ask.reply_to, asked.hash, self.name, answer)

    def _checked(self, message: Message) -> Message:
        if self._closed:
            raise Refusal("failed")
        if self.roster is None:
            raise Refusal("other-roster")
        if not message.is_signed_by(self.roster.coordinator):
            raise Refusal("bad-signature")
        self._witnesses.check_whole()
        return message

    def _dispatch(self, message: Message) -> Replying:
        if message.type == "ask":
            return (yield from self._ask(message))
        if message.type == STEP:
            return self._sessions.step(message, self._pinned)
        if message.type == OPEN_SESSION:
            return self._sessions.agree(message.values, self._pinned)
        handlers = {"ready": self._ready, OPEN_RUN: self._open, JOIN_RUN: self._join}
        handlers |= {JOIN_SESSION: self._meet, SHOW: self._show, LEAVE: self._keep_heads}
        if message.type not in handlers:
            raise Refusal("bad-message")
        return handlers[message.type](message)

    def _recover(self) -> None:
        """After a line did not reach the disk: take part again only once one does.

        Otherwise every probe would bring the party back, and every attempt with it be lost.
        """
        if self._unwritten:
            self._ledger.append(self.name, "recover")
            self._unwritten = False

    def _refuse(self, error: Exception, asked: Message | None) -> Message:
        """One word of the vocabulary; on record if the pinned coordinator signed what was asked."""
        word = messages.word_of(error)
        self._unwritten |= isinstance(error, LedgerWriteFailed)
        with suppress(Exception):  # the record and the log may be on a full disk
            level = logging.INFO if asked is not None and self._watch else logging.WARNING
            why = str(error) if isinstance(error, OtherVersion) else type(error).__name__
            log.log(level, "party %s refused: %s (%s)", self.name, word, why)
            if asked is not None:  # anyone else could fill the disk
                self._note(word, *messages.about(asked), isinstance(error, LedgerWriteFailed))
        return messages.refusal(word)

    def _note(self, word: str, run: str, slot: int, unwritten: bool) -> None:
        if unwritten:
            self._tell(Event("unwritten", run, slot))
        elif self._refusals.record(run, word, slot):
            self._tell(Event("refused", run, slot, word=word))

    def _tell(self, event: Event) -> None:
        if self._watch is not None:
            with suppress(Exception):  # a screen that fails does not keep an answer back
                self._watch(event)

    def _ready(self, message: Message) -> Message:
        """The uncharged probe: is the party there, and does it still hold this run?"""
        run = self._runs.get(message.values.get("run"))
        joined = run is not None and run.is_joined
        return messages.plain("ready", {"joined": joined, "boot": self._handshake.boot})

    def _open(self, message: Message) -> Message:
        """Check plan, schema, roster and budget, and announce this process's key."""
        plan, values = message.plan, message.values
        roster = self._roster_of(self._runs.get(plan.run), values)
        self._handshake.check_roster(values, roster)
        check_agreed(plan, roster, self.schema)
        if self._rows is not None and self._rows.columns is not None:
            raise Refusal("some-columns")
        limits = self._limits
        limits.check_plan(plan, roster)
        if plan.budget.sampled:
            self._scores.check_samples()
        try:
            reservation = Reservation(
                self._ledger, plan, self.name, limits.budget, False, limits.per_month
            )
        except BudgetExceeded as error:
            raise Refusal("over-limits") from error
        except HedgerowError as error:
            raise Refusal("other-plan") from error
        self._check_wanted(plan)
        nonce, known = str(values.get("nonce")), self._runs.get(plan.run)
        run = known or OpenedRun(plan, reservation, roster)
        if (run.plan.hash, run.roster.hash) != (plan.hash, roster.hash):
            # Nothing is reserved for another plan, or the reservation would have refused this.
            # What is checked and what is charged must be one plan, and keys joined under another
            # roster may be revoked by now: nothing of what was opened before stays.
            run = OpenedRun(plan, reservation, roster)
        if not run.opening.is_of(nonce):  # else the same message came again
            opening = self._handshake.opened_again(run.opening, nonce)
            run = replace(run, reservation=reservation, roster=roster, opening=opening)
        self._runs.keep(plan.run, run)
        return self._handshake.announce(plan.hash, run.opening, roster)

    def _check_wanted(self, plan: Plan) -> None:
        """Refuse a plan that has ended, or that the people here do not want, or no longer."""
        check_not_ended(plan)
        if self._limits.approve:
            check_standing(plan, self._ledger, self.name, self._waiting)

    def _roster_of(self, run: OpenedRun | None, values: Mapping[str, Any]) -> Roster:
        """The roster that an opening is checked by: that of a joined run, if it names that one."""
        if run is not None and run.is_joined and values.get("roster") == run.roster.hash:
            return run.roster
        return self._pinned

    def _meet(self, message: Message) -> Message:
        if self._rows is None:  # roles need rows that lie here
            raise Refusal("not-allowed")
        agreement, reply = self._sessions.meet(message, self._pinned, self._rows)
        self._tell(Event("agreed", agreement.run, kind=agreement.role))
        return reply

    def _join(self, message: Message) -> Message:
        """Take the others' mask keys, each signed by its pinned key and never older; reserve."""
        values = message.values
        run = self._run(values.get("run"))
        self._check_wanted(run.plan)
        roster = run.roster
        if not run.is_joined and roster.hash != self._pinned.hash:
            raise Refusal("other-roster")  # pinned since: opening a run keeps no roster in force
        # Where nothing is masked the others' keys are of no use, but for what they know of us.
        alone = not (roster.trusted.masked or self._witnesses.take_part)
        about = (message, run.plan.hash, run.opening, roster, alone)
        joined = self._handshake.read(*about, older=self._witnesses.take_part)
        shown_by = self._witnesses.check(values.get("shows"), joined, roster)
        among = joined.everyone(roster) if roster.trusted.masked else None
        peers = [] if among is None else [one.name for one in among.neighbours(self.name)]
        self._handshake.accept(joined, peers, self._witnesses.take_part)
        new = not self._ledger.has_reserved(self.name, run.plan.run)
        try:
            run.reservation.reserve()  # all others have accepted, or nobody could join
        except BudgetExceeded as error:
            raise Refusal("over-limits") from error
        run.opening = replace(run.opening, joined=joined)
        self._runs.keep(run.plan.run, run)
        if new:
            self._tell(Event("reserved", run.plan.run, plan=run.plan))
        head = self._witnesses.leave(run.plan.run, joined, shown_by)  # of what is reserved, too
        return messages.plain(JOINED, {"run": run.plan.run, **head})

    def _show(self, message: Message) -> Message:
        """Before anybody joins: what this party keeps of the others' ledgers, for each of them."""
        name = message.values.get("run")
        if (run := self._runs.get(name)) is None:
            return self._witnesses.show(self._sessions.read(message))
        subject = (run.plan.hash, run.opening, run.roster)
        joined = self._handshake.read(message, *subject, older=True)
        self._witnesses.check_enough(joined, run.roster)
        return self._witnesses.show(joined)

    def _keep_heads(self, message: Message) -> Message:
        """After all have joined: what the others leave of their ledgers."""
        name = message.values.get("run")
        run = self._runs.get(name)
        joined, roster = self._sessions.joined(name) if run is None else run.opened_with()
        return self._witnesses.keep(message.values, joined, roster)

    def _ask(self, message: Message) -> Replying:
        """The stored answer to this very message, or a new one, charged before it is computed."""
        ask = message.ask
        run = self._checked_run(ask)
        charged = run.reservation.charged(ask.slot, ask.attempt)
        kept = (self.name, ask, self._ledger)
        if charged and (stored := stored_answer(*kept, charged, message.hash)) is not None:
            return stored
        wanted, scores, step = ask.query.ensemble, self._scores, ask.query.step_trees
        if not (yield partial(scores.sync, wanted, message.trees_from, message.trees, step)):
            if message.trees_from == 0 and len(message.trees) >= wanted.length:
                raise Refusal("bad-message")  # complete trees that are not the ones named
            return messages.plain("need-trees", {"length": scores.ref.length})
        exact = run.plan.privacy.trusted.exact_sums
        if not charged:
            run.charge(ask, message.hash)  # on disk before anything is computed
        elif not exact:
            # Charged, and it failed: whether it would again is not free.
            raise Refusal("old-attempt")
        sampler = sampler_for(self.name, ask, run, self._ledger, self._sampling_secret)
        exact_sums = yield partial(scores.exact, ask.query, ask.noise.bits, sampler)
        try:
            about = (self.name, ask, run, message.hash, exact_sums)
            reply = answer_of(*about, self._keys, self._scores.n_rows)
        except PlanError as error:  # charged: it cannot be the message's fault any more
            raise Refusal("failed") from error
        fail_point("answer")
        if not exact:
            body = {"body": np.frombuffer(reply.body, np.uint8)}
            values = {"request": message.hash}
            self._ledger.append(self.name, "answer", ask.run, ask.slot, ask.attempt, values, body)
        price = run.price(ask)
        self._tell(Event("answered", ask.run, ask.slot, ask.query.kind, price, plan=run.plan))
        return reply

    def _run(self, name: Any) -> OpenedRun:
        run = self._runs.get(name)
        if run is None:
            raise Refusal("unknown-run")
        return run

    def _checked_run(self, ask: Ask) -> OpenedRun:
        """The run, if all holds that must before a charge: plan, set, noise, recomputed here."""
        run = self._run(ask.run)
        if not run.is_joined:  # opened and never joined: nothing is reserved yet
            raise Refusal("unknown-run")
        check_not_ended(run.plan)
        if self._limits.approve:
            check_not_withdrawn(run.plan, self._ledger, self.name)
        run.check(ask, self.name, self.schema)
        if run.has_revoked(ask, self._pinned):
            raise Refusal("unknown-party")
        self._limits.check_set(ask, run.roster)
        self._keys.agree(ask.reply_to)  # a key that is no key is refused before any charge
        if run.plan.privacy.trusted.masked:
            for other in run.summed(ask).neighbours(self.name):
                self._keys.agree(other.key)
        each = run.plan.privacy.trusted.local  # every row has noise of its own
        if each and not mechanisms.can_draw(max(ask.noise.sigmas), self._scores.n_rows):
            raise Refusal("bad-message")
        return run
