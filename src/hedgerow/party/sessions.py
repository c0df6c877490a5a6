"""A party's side of sessions: what it agreed to, and its roles, step by step.

The coordinator carries messages between parties and cannot read or change them: each is sealed
with the keys of sender and recipient, for one step of one agreement. An agreement is on the ledger
before the first step is taken.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import HedgerowError
from hedgerow.party.limits import Limits
from hedgerow.party.run import Newest
from hedgerow.party.witnesses import PartyWitnesses
from hedgerow.privacy.ledger.labels import label_spending
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol import messages
from hedgerow.protocol.handshake import JOINED, Opening, PartyHandshake
from hedgerow.protocol.identity import Announcement, Roster
from hedgerow.protocol.joined import Joined
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Message, Refusal
from hedgerow.protocol.roles import Agreement, Role, RoleFactory, Store, check_recipients
from hedgerow.protocol.session_steps import Delivery, StepReply, messages_in, seal_label

LONGEST_REASON = 600  # in the log, on one line: messages of others are quoted in it
log = logging.getLogger(__name__)


@dataclass
class _Session:
    agreement: Agreement
    opening: Opening
    roster: Roster  # pinned when it was opened
    begun: bool = False  # a role was made; one that failed is not made again in this opening
    role: Role | None = None
    steps: int = 0
    # The hash of the message that was answered last, and the reply.
    last: tuple[str, StepReply] | None = None

    def label(self, step: int, recipient: str) -> str:
        """What a message to this party is sealed for, sent in this step."""
        joined = self.opening.joined
        return seal_label(self.agreement.hash, joined.hash if joined else "", step, recipient)

    def check_keys(self, pinned: Roster) -> None:
        """Refuse to go on with a party whose key was revoked or replaced since it was opened."""
        known = self.roster.keys
        if any(pinned.keys.get(name) != known.get(name) for name in self.agreement.parties):
            raise Refusal("unknown-party")

    @property
    def announced(self) -> Mapping[str, Announcement]:
        """By name, once it has joined."""
        return {} if self.opening.joined is None else self.opening.joined.announcements


class PartySessions:
    """What one party remembers of its sessions while its process lives.

    Parameters
    ----------
    roles : what the party can do, by name
    limits : which of them its operator lets it take, and with whom
    store : where roles keep what outlives them
    """

    def __init__(
        self,
        name: str,
        schema: Schema,
        handshake: PartyHandshake,
        ledger: Ledger,
        keys: MaskKeys,
        roles: Mapping[str, RoleFactory],
        limits: Limits,
        store: Store,
        witnesses: PartyWitnesses,
    ) -> None:
        self._name, self._schema, self._handshake = name, schema, handshake
        self._ledger, self._keys, self._roles = ledger, keys, dict(roles)
        self._limits, self._store, self._witnesses = limits, store, witnesses
        self._known = Newest[_Session]()

    def agree(self, values: Mapping[str, Any], roster: Roster) -> Message:
        """Check what is to be done, and announce this process's key."""
        agreement = Agreement.from_dict(values.get("agreement", {}))
        self._handshake.check_roster(values, roster)
        if agreement.schema_hash != self._schema.hash:
            raise Refusal("other-schema")
        if self._name not in agreement.parties or not roster.keys.keys() >= set(agreement.parties):
            raise Refusal("unknown-party")
        if agreement.role not in self._roles:
            raise Refusal("not-allowed")
        self._limits.check_role(agreement.role, roster)
        self._check_labels(agreement)
        known, nonce = self._known.get(agreement.run), str(values.get("nonce"))
        self._is_recorded(agreement)
        if known is None or not known.opening.is_of(nonce):  # another opening begins anew
            self._check_fresh(agreement)
            opening = self._handshake.opened_again(Opening(), nonce)
            known = _Session(agreement, opening, roster)
            self._known.keep(agreement.run, known)
        return self._handshake.announce(agreement.hash, known.opening, roster)

    def _check_labels(self, agreement: Agreement) -> None:
        """What this party's labels would pay must fit its limits, beside all they have paid."""
        epsilon = agreement.spends.get(self._name, 0.0)
        if epsilon and not self._ledger.lines(self._name, "disclose", agreement.run):
            paid = (label_spending(self._ledger, self._name, monthly) for monthly in (True, False))
            self._limits.check_labels(epsilon, *paid)

    def _is_recorded(self, agreement: Agreement) -> bool:
        """Whether it is on the ledger; refused if another one is, under the same name."""
        recorded = self._ledger.lines(self._name, "disclose", agreement.run)
        if recorded and recorded[0].values["hash"] != agreement.hash:
            raise Refusal("other-plan")
        return bool(recorded)

    def _check_fresh(self, agreement: Agreement) -> None:
        """Noise of a run is drawn once: a second time the two would tell more than was paid."""
        begun = self._ledger.lines(self._name, "disclose", agreement.run)
        if begun and agreement.spends.get(self._name):
            raise Refusal("old-attempt")

    def meet(self, message: Message, roster: Roster, rows: Rows) -> tuple[Agreement, Message]:
        """Take the others' keys; from here on the agreement is on record, and its role is taken."""
        session = self._session(message.values.get("run"))
        agreement, opening, known = session.agreement, session.opening, session.opening.joined
        session.check_keys(roster)
        older = self._witnesses.take_part  # what `accept` refuses comes after what is shown
        about = (message, agreement.hash, opening, session.roster)
        fresh = self._handshake.read(*about, older=older)
        if set(fresh.announcements) != set(agreement.parties):
            raise Refusal("bad-announcement")
        shows = message.values.get("shows")
        shown_by = self._witnesses.check(shows, fresh, session.roster, agreed=True)
        same = known is not None and known.hash == fresh.hash
        if session.begun and (session.role is None or not same):
            raise Refusal("old-attempt")  # a failed run, or other keys half-way
        self._handshake.accept(fresh, agreement.parties, self._witnesses.take_part)
        if not session.begun:
            self._enter(agreement)
            session.begun, session.opening = True, replace(opening, joined=fresh)
            self._known.keep(agreement.run, session)
            make = self._roles[agreement.role]
            session.role = make(self._name, rows, self._schema, agreement, self._store)
        head = self._witnesses.leave(agreement.run, fresh, shown_by)
        return agreement, messages.plain(JOINED, {"run": agreement.run, **head})

    def read(self, message: Message) -> Joined:
        """The announcements of a session that was opened, before it is joined."""
        session = self._session(message.values.get("run"))
        about = (session.agreement.hash, session.opening, session.roster)
        return self._handshake.read(message, *about, older=True)

    def joined(self, run: Any) -> tuple[Joined, Roster]:
        """What a session was joined with, and its roster; refused before that."""
        session = self._session(run)
        if session.opening.joined is None:
            raise Refusal("unknown-run")
        return session.opening.joined, session.roster

    def _enter(self, agreement: Agreement) -> None:
        """Put an agreement on record, unless another took its place or its budget since."""
        record = {"hash": agreement.hash, "agreement": agreement.to_dict()}
        with self._ledger.transaction():  # what is checked and what is entered belong together
            self._check_labels(agreement)
            self._check_fresh(agreement)
            if not self._is_recorded(agreement):
                self._ledger.append(self._name, "disclose", agreement.run, values=record)

    def step(self, message: Message, roster: Roster) -> StepReply:
        """Take one step with the messages of the peers; the same one gets the same reply.

        `roster` is the pinned one: nothing more is sealed for a key that is not in it any more.
        """
        values = message.values
        session = self._session(values.get("run"))
        session.check_keys(roster)
        if session.last is not None and session.last[0] == message.hash:
            return session.last[1]
        if session.role is None or values.get("step") != session.steps + 1:
            raise Refusal("old-attempt")
        if isinstance(message.written, Delivery):  # handed over in this process: never sealed
            received = message.written.inboxes[self._name]
        else:
            sealed = zip(values.get("writers", []), messages_in(message.body), strict=True)
            received = {sender: self._unsealed(session, sender, one) for sender, one in sealed}
        role, session.role = session.role, None  # one that fails half-way is not asked again
        try:
            taken = role.step(received)
        except HedgerowError as error:  # the others get a word; the reason stays at this site
            about = session.agreement
            reason = error.for_a_log(about.run, *about.parties)[:LONGEST_REASON]
            log.warning("party %s ends run %s: %s", self._name, about.run, reason)
            log.info("in full: %s", " ".join(str(error).split())[:LONGEST_REASON])
            raise
        session.role = role
        check_recipients(self._name, taken.messages, session.agreement.parties)
        session.steps += 1
        report = partial(self._keys.seal, str(values.get("reply_to")), message.hash, self._name)
        reply = StepReply(taken, partial(self._sealed, session, session.steps), report)
        session.last = (message.hash, reply)
        return reply

    def _unsealed(self, session: _Session, sender: str, sealed: bytes) -> bytes:
        announced = session.announced
        if sender == self._name or sender not in announced:
            raise Refusal("unknown-party")
        label = session.label(session.steps, self._name)
        return self._keys.unseal(announced[sender].key, label, sender, sealed)

    def _sealed(self, session: _Session, step: int, recipient: str, message: bytes) -> bytes:
        key = session.announced[recipient].key
        return self._keys.seal(key, session.label(step, recipient), self._name, message)

    def _session(self, run: Any) -> _Session:
        session = self._known.get(run)
        if session is None:
            raise Refusal("unknown-run")
        return session
