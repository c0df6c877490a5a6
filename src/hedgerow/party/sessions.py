"""A party's side of conversations: what it agreed to, and its programs, step by step.

The coordinator carries letters between parties and cannot read or change them: each is sealed with
the keys of writer and reader, for one step of one agreement. An agreement is on the ledger before
the first step is taken.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import HedgerowError
from hedgerow.packing import digest, pack, unpack
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import label_spending
from hedgerow.protocol import messages
from hedgerow.protocol.identity import Announcement, Identity, Roster, digest_of
from hedgerow.protocol.mask_keys import Peers
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Message, Refusal
from hedgerow.protocol.roles import Agreement, Program, ProgramFactory, Shelf, Step, check_letters

MOST_LETTERS = 10_000
LONGEST_REASON = 600  # in the log, on one line: letters of others are quoted in it
log = logging.getLogger(__name__)


@dataclass
class _Talk:
    agreement: Agreement
    number: int = 0  # openings so far
    nonce: str = ""
    announcements: dict[str, Announcement] = field(default_factory=dict)
    joined: str = ""  # hash of these announcements
    begun: bool = False  # a program was made; one that failed is not made again in this opening
    program: Program | None = None
    steps: int = 0
    last: tuple[str, Message] | None = None  # hash of the message that was answered, and the reply


def seal_label(agreement: str, joined: str, step: int, reader: str) -> str:
    """What a letter is sealed for; the writer's name is bound in beside it.

    A seal's nonce is fixed, so no label may come twice with two texts. `joined` has the number of
    the writer's opening in it, which rises: a run that is begun again has other labels.
    """
    return digest("hedgerow letter 2", agreement, joined, str(step), reader)


class Talks:
    """What one party remembers of its conversations while its process lives.

    Parameters
    ----------
    programs : what the party can do, by name
    limits : which of them its operator lets it take part in, and with whom
    shelf : where programs keep what outlives them
    """

    def __init__(
        self,
        name: str,
        schema: Schema,
        identity: Identity,
        ledger: Ledger,
        keys: MaskKeys,
        programs: Mapping[str, ProgramFactory],
        limits: Limits,
        shelf: Shelf,
    ) -> None:
        self._name, self._schema, self._identity = name, schema, identity
        self._ledger, self._keys, self._programs = ledger, keys, dict(programs)
        self._limits, self._shelf = limits, shelf
        self._peers = Peers(ledger, name)
        self._known: dict[str, _Talk] = {}

    def agree(self, values: dict[str, Any], roster: Roster, boot: int) -> Message:
        """Check what is to be done, and announce this process's key."""
        agreement = Agreement.from_dict(values.get("agreement", {}))
        if values.get("roster") != roster.hash:
            raise Refusal("other-roster")
        if agreement.schema_hash != self._schema.hash:
            raise Refusal("other-schema")
        if self._name not in agreement.parties or not roster.keys.keys() >= set(agreement.parties):
            raise Refusal("unknown-party")
        if agreement.program not in self._programs:
            raise Refusal("not-allowed")
        self._limits.check_program(agreement.program, agreement.parties, roster)
        self._check_labels(agreement)
        known, nonce = self._known.get(agreement.run), str(values.get("nonce"))
        recorded = self._ledger.lines(self._name, "disclose", agreement.run)
        if recorded and recorded[0].values["hash"] != agreement.hash:
            raise Refusal("other-plan")
        if known is None or known.nonce != nonce:  # another opening begins from the start
            self._check_fresh(agreement)
            number = 1 if known is None else known.number + 1
            known = _Talk(agreement, number, nonce)
            self._known[agreement.run] = known
        mine = self._announcement(known, roster, boot).signed(self._identity)
        return messages.plain("opened", {"announcement": mine.to_dict()})

    def _check_labels(self, agreement: Agreement) -> None:
        """What this party's labels would pay must fit its limits, beside all they have paid."""
        epsilon = agreement.spends.get(self._name, 0.0)
        if epsilon and not self._ledger.lines(self._name, "disclose", agreement.run):
            paid = (label_spending(self._ledger, self._name, monthly) for monthly in (True, False))
            self._limits.check_labels(epsilon, *paid)

    def _check_fresh(self, agreement: Agreement) -> None:
        """Noise of a run is drawn once: a second time the two would tell more than was paid."""
        begun = self._ledger.lines(self._name, "disclose", agreement.run)
        if begun and agreement.spends.get(self._name):
            raise Refusal("old-attempt")

    def _announcement(self, talk: _Talk, roster: Roster, boot: int) -> Announcement:
        hashes = (talk.agreement.hash, self._schema.hash, roster.hash)
        return Announcement(self._name, boot, talk.number, self._keys.public, *hashes)

    def meet(
        self, values: dict[str, Any], roster: Roster, boot: int, rows: Rows
    ) -> tuple[Agreement, Message]:
        """Take the others' keys; from here on the agreement is on record, and its program runs."""
        talk = self._talk(values.get("run"))
        mine = self._announcement(talk, roster, boot)
        fresh = self._peers.read(values.get("announcements", []), mine, roster)
        if fresh is None or set(fresh) != set(talk.agreement.parties):
            raise Refusal("bad-announcement")
        if talk.begun and (talk.program is None or talk.joined != digest_of(fresh)):
            raise Refusal("old-attempt")  # a failed run, or other keys half-way
        for announced in fresh.values():
            self._keys.agree(announced.key)
        for announced in fresh.values():
            self._peers.remember(announced)
        if not talk.begun:
            self._check_labels(talk.agreement)  # others may have been entered since
            self._check_fresh(talk.agreement)
            record = {"hash": talk.agreement.hash, "agreement": talk.agreement.to_dict()}
            if not self._ledger.lines(self._name, "disclose", talk.agreement.run):
                self._ledger.append(self._name, "disclose", talk.agreement.run, values=record)
            talk.begun, talk.announcements, talk.joined = True, fresh, digest_of(fresh)
            make = self._programs[talk.agreement.program]
            talk.program = make(self._name, rows, self._schema, talk.agreement, self._shelf)
        return talk.agreement, messages.plain("joined", {"run": talk.agreement.run})

    def step(self, message: Message) -> Message:
        """Take one step with the letters of the others; the same message gets the same reply."""
        values, arrays = unpack(message.body)
        talk = self._talk(values.get("run"))
        if talk.last is not None and talk.last[0] == message.hash:
            return talk.last[1]
        if talk.program is None or values.get("step") != talk.steps + 1:
            raise Refusal("old-attempt")
        letters = {
            writer: self._opened(talk, writer, sealed.tobytes())
            for writer, sealed in zip(values.get("writers", []), _rows(arrays), strict=True)
        }
        program, talk.program = talk.program, None  # one that fails half-way is not asked again
        try:
            taken = program.step(letters)
        except HedgerowError as error:  # the others get a word; the reason stays at this site
            reason = " ".join(str(error).split())[:LONGEST_REASON]
            log.warning("party %s ends run %s: %s", self._name, talk.agreement.run, reason)
            raise
        talk.program = program
        check_letters(self._name, taken.letters, talk.agreement.parties)
        talk.steps += 1
        reply = self._sealed(talk, taken, str(values.get("reply_to")), message.hash)
        talk.last = (message.hash, reply)
        return reply

    def _opened(self, talk: _Talk, writer: str, sealed: bytes) -> bytes:
        if writer == self._name or writer not in talk.announcements:
            raise Refusal("unknown-party")
        label = seal_label(talk.agreement.hash, talk.joined, talk.steps, self._name)
        return self._keys.unseal(talk.announcements[writer].key, label, writer, sealed)

    def _sealed(self, talk: _Talk, taken: Step, reply_to: str, request: str) -> Message:
        arrays = {}
        readers = sorted(taken.letters)
        for i, reader in enumerate(readers):
            label = seal_label(talk.agreement.hash, talk.joined, talk.steps, reader)
            key = talk.announcements[reader].key
            arrays[f"letter{i}"] = _bytes(
                self._keys.seal(key, label, self._name, taken.letters[reader])
            )
        arrays["report"] = _bytes(self._keys.seal(reply_to, request, self._name, taken.report))
        return Message("letters", pack({"readers": readers, "done": taken.done}, arrays))

    def _talk(self, run: Any) -> _Talk:
        if not isinstance(run, str) or run not in self._known:
            raise Refusal("unknown-run")
        return self._known[run]


def _rows(arrays: Mapping[str, Any]) -> list[Any]:
    """letter0, letter1, ... in their order."""
    names = [name for name in arrays if name.startswith("letter")]
    if len(names) > MOST_LETTERS:
        raise Refusal("bad-message")
    return [arrays[f"letter{i}"] for i in range(len(names))]


def _bytes(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8)
