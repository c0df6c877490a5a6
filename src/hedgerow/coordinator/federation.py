"""The parties seen as one thing that sums. `sum` is written once, over an engine's `ask`."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow import clock
from hedgerow.coordinator.driving import Driven
from hedgerow.coordinator.presence import Presence
from hedgerow.coordinator.refused import Loss, PartiesLost, raise_refusals, word_in
from hedgerow.coordinator.transport import Transport
from hedgerow.coordinator.witnesses import asking_to_show, joining_with_shows, leave_heads
from hedgerow.data.schema import Schema
from hedgerow.errors import FormatError, Refused, SumFailed
from hedgerow.failpoints import fail_point
from hedgerow.model.tree import Tree
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.protocol import messages
from hedgerow.protocol.engine import Engine as Engine
from hedgerow.protocol.engine import Reply as Reply
from hedgerow.protocol.handshake import (
    JOIN_RUN,
    JOINED,
    OPEN_RUN,
    OPENED,
    announced_in,
    joining_message,
    opening_message,
)
from hedgerow.protocol.identity import Announcement, Identity, Roster
from hedgerow.protocol.masks import MaskKeys, add_modulo
from hedgerow.protocol.messages import REFUSALS, Ask, Message
from hedgerow.protocol.replies import Answer, PartyReply, ReceivedReply
from hedgerow.protocol.witnesses import SHOWN
from hedgerow.queries import NO_TREES, EnsembleRef, SumQuery, size_of
from hedgerow.queries.calibration import Noise, made_for

log = logging.getLogger(__name__)
_PROBE_SECONDS = 5.0  # a lost party is probed before every sum, and may not hold it up
_PAUSE_SECONDS = 1.0
_FELL_OVER = ("failed", "cannot-write")  # said by parties that may be asked again later
_SOURCE = re.compile(r"[a-z ]{1,40}")


@dataclass(frozen=True, eq=False)
class Total:
    """A sum over a set of parties: exact under trust in the coordinator, else already noisy."""

    values: NDArray[np.uint64]
    parties: tuple[str, ...]
    source: str
    n_rows: int  # summed over the parties; 0 unless counts are public (trust `nobody`)
    receipts: dict[str, str]  # each party's signature over its answer, unless that is exact


class Federation(Driven):
    """A roster of parties behind an engine, driven by one coordinator."""

    def __init__(
        self,
        engine: Engine,
        schema: Schema,
        roster: Roster,
        coordinator: Identity,
        timeout_seconds: float = 60.0,
        wait_seconds: float = 0.0,
        trial: bool = False,
    ) -> None:
        self.schema, self.roster = schema, roster
        self.timeout_seconds = timeout_seconds  # for one message and its reply
        self.wait_seconds = wait_seconds  # for parties to come back when too few are left
        self.simulated = engine.simulated or trial  # one process or one account has everything
        self.turn = 0  # counts runs: trees and plan belong to the last one that began
        self.rounds = 0  # sums that were answered
        self.losses: list[Loss] = []  # parties that did not answer an attempt
        self.absent: dict[str, str] = {}  # parties that are in no sum at present, and why
        self.tell_absent: Callable[[Mapping[str, str]], None] = lambda absent: None  # of changes
        self._transport = Transport(engine, roster, coordinator)
        self._plan: Plan | None = None
        self._reserve: Callable[[], None] | None = None  # the coordinator's, until it is made
        self._presence = Presence()
        self._keys = MaskKeys()  # answers are sealed for this key, of this run in this process
        self._trees: list[Tree] = []
        self._refs: list[EnsembleRef] = [NO_TREES]
        self._known: dict[str, int] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return self.roster.names

    @property
    def engine(self) -> Engine:
        """What carries the messages."""
        return self._transport.engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self._transport.engine = engine

    @property
    def transport(self) -> Transport:
        """What carries messages, and counts them."""
        return self._transport

    @property
    def round_trips(self) -> int:
        """Messages with their replies: opening, joining and repeats as well."""
        return self._transport.round_trips

    @property
    def received(self) -> Counter[str]:
        """Bytes that each party received."""
        return self._transport.received

    @property
    def sent(self) -> Counter[str]:
        """Bytes that each party sent."""
        return self._transport.sent

    @property
    def bytes_to_parties(self) -> int:
        return self._transport.received.total()

    @property
    def bytes_from_parties(self) -> int:
        return self._transport.sent.total()

    @property
    def ensemble(self) -> EnsembleRef:
        """The trees published so far."""
        return self._refs[-1]

    def forget_trees(self) -> None:
        """Start without trees; whoever drives a run publishes its own, and is alone in that."""
        self._trees, self._refs, self._known = [], [NO_TREES], {}
        self.turn += 1

    def publish(self, tree: Tree) -> None:
        """Add a tree; parties get it with the next question."""
        self._trees.append(tree)
        self._refs.append(self._refs[-1].then(tree.to_bytes()))

    def open(self, plan: Plan, reserve: Callable[[], None] | None = None) -> None:
        """Open a run: every party checks the plan and announces its key; then all reserve it.

        `reserve` is the coordinator's own reservation: made when enough parties have accepted the
        plan, and before any of them reserves it, so that no party pays for a run unknown here.
        """
        if not made_for(plan, self.schema):
            raise Refused("the plan was made for another schema. Nothing was asked.")
        self._plan, self._presence, self._reserve = plan, Presence(), reserve
        # A new key: answers are repeated for the old one, and new noise on them would be unpaid.
        self._keys = MaskKeys()
        opened = self._opened_by(self.names)
        deadline = clock.monotonic() + self.wait_seconds
        while len(opened) < self.roster.least_set and clock.monotonic() < deadline:
            clock.sleep(_PAUSE_SECONDS)
            opened = self._opened_by(self.names)
        self._presence.too_few(opened)
        if len(opened) >= self.roster.least_set:
            self._join(opened)
        self.gather()

    def gather(self, slot: int = -1) -> None:
        """Take back parties that returned; wait a while where too few are left, then refuse.

        Refuses a sum over fewer parties than the roster allows before anything is charged.
        """
        deadline, presence = clock.monotonic() + self.wait_seconds, self._presence
        self._refresh(slot)
        while len(presence.active) < self.roster.least_set and clock.monotonic() < deadline:
            clock.sleep(_PAUSE_SECONDS)
            self._refresh(slot)
        self._note_absent()
        if len(presence.active) < self.roster.least_set:
            there = frozenset(presence.active or presence.there)
            gone = {name: self.absent.get(name) for name in self.names if name not in there}
            missing = [f"{name} ({why})" if why else name for name, why in gone.items()]
            banned = [f"{name} failed twice in this run" for name in presence.banned()]
            raise SumFailed(
                f"only {len(there)} of {len(self.names)} parties are there and a sum needs "
                f"{self.roster.least_set}; missing: {', '.join(missing) or 'none'}. "
                f"{'. '.join([*banned, ''])}What was released is stored. Run the same command "
                "again when they are back."
            )

    def _note_absent(self) -> None:
        if not self.absent and len(self._presence.active) == len(self.names):
            return
        there, why = frozenset(self._presence.active), self._transport.problems
        absent = {name: why.get(name, "") for name in self.names if name not in there}
        if absent != self.absent:
            self.absent = absent
            self.tell_absent(absent)

    def _refresh(self, slot: int) -> None:
        """Drop parties that left, take back those that returned; free of charge.

        Between sites everyone is probed: an attempt lost to a party that was restarted since the
        last sum would be charged, a probe is not. An engine that knows who is connected spares the
        probe: the process that joined is there or it is not.
        """
        plan, apart, presence = self._opened(), not self.engine.simulated, self._presence
        boots = self._transport.connected()
        if boots is not None:
            presence.seen(boots)
            asked = presence.to_probe(boots, clock.monotonic())
        else:
            active = frozenset(presence.active)
            asked = tuple(name for name in self.names if apart or name not in active)
        if not asked:
            return
        probe = messages.plain("ready", {"run": plan.run})
        replies = self._transport.send(dict.fromkeys(asked, probe), "ready", _PROBE_SECONDS)
        standing = self._without_fallen(replies)
        ready = {n: r.values for n, r in standing.items() if r.type == "ready"}
        presence.probed(ready, apart and boots is None)
        if boots is not None:
            presence.silent([name for name in asked if name not in ready], clock.monotonic())
        back = presence.returning(ready, slot, self.roster.least_set)
        if back and not self._would_refuse([*presence.active, *back]):
            opened = self._opened_by(tuple(sorted({*presence.active, *back})))
            if len(opened) >= self.roster.least_set:
                self._join(opened)
            else:  # joining reserves: nobody pays for a set too small
                presence.too_few(opened)

    def _would_refuse(self, names: Sequence[str]) -> bool:
        """Whether joining anew would end a run that can go on: too few to witness each other."""
        if self.engine.simulated or len(self._presence.active) < self.roster.least_set:
            return False
        return len(names) < len(self.names) - self.roster.colluding

    def sum(self, query: SumQuery, noise: Noise, slot: int, attempt: int) -> Total:
        """Sum one question over the active parties; raises PartiesLost if one is missing."""
        plan = self._opened()
        parties = self._presence.active
        fail_point("ask")
        trust = plan.privacy.trusted
        joined = self._presence.announced.hash if trust.masked else ""
        c, reply_to = self.roster.colluding, self._keys.public
        absent = self.roster.without(frozenset(parties))
        ask = Ask(plan.run, slot, attempt, absent, query, noise, c, joined, reply_to)
        message = Message("ask", ask.body(), written=ask)
        replies = self._send_with_trees(parties, message, query.ensemble)
        lost = [name for name in parties if name not in replies]
        if lost:
            self._presence.failed(lost, slot)
            problems = self._transport.problems
            self.losses += [Loss(slot, name, problems.get(name, "")) for name in lost]
            self._note_absent()
            raise PartiesLost(lost)
        # Nothing of an exact answer is kept, its signature neither.
        kept = () if trust.exact_sums else parties
        receipts = {name: replies[name].signature for name in kept}
        sources, n_rows, check = set[str](), list[int](), 0

        def vectors() -> Iterator[NDArray[np.uint64]]:
            for name in parties:
                nonlocal check
                answer = self._answer(name, replies.pop(name), message, query)
                check += answer.check
                sources.add(answer.source)
                n_rows.append(answer.n_rows)
                yield answer.total

        total = add_modulo(vectors())
        self.rounds += 1
        if check % 2**64:
            raise SumFailed(
                "the masks of this sum do not cancel, so a party used another set or another key. "
                "The attempt stays charged and nothing was released."
            )
        return Total(total, parties, " and ".join(sorted(sources)), sum(n_rows), receipts)

    def _opened(self) -> Plan:
        if self._plan is None:
            raise Refused("the federation has no open plan; call open(plan) first")
        return self._plan

    def _opened_by(self, names: tuple[str, ...]) -> dict[str, Announcement]:
        """Parties that accept the plan, with the keys they announce. Nothing is reserved yet."""
        plan = self._opened()
        opening = opening_message(OPEN_RUN, {"plan": plan.to_dict()}, self.roster, plan)
        replies = self._transport.send(dict.fromkeys(names, opening), OPENED, self.timeout_seconds)
        replies = self._without_fallen(replies)
        raise_refusals(replies)
        return announced_in(replies)

    def _join(self, opened: dict[str, Announcement]) -> None:
        """Let those that accepted the plan reserve it; the coordinator has, or does so first.

        Parties that were late for the opening join when they are taken back, so this is the one
        place that every reservation of a party passes.
        """
        run, seconds = self._opened().run, self.timeout_seconds
        by_name = dict.fromkeys(sorted(opened), joining_message(JOIN_RUN, run, opened))
        if not self.engine.simulated:
            opened, shown = self._shown_by(opened)
            if len(opened) < self.roster.least_set:
                self._presence.too_few(opened)
                return
            by_name = joining_with_shows(JOIN_RUN, run, opened, shown)
        if self._reserve is not None:
            self._reserve()
            self._reserve = None
        joined = self._without_fallen(self._transport.send(by_name, JOINED, seconds))
        raise_refusals(joined)
        leave_heads(self._transport, run, joined, seconds)
        self._presence.joined(joined, opened)
        self._known = {name: self._known.get(name, 0) for name in joined}

    def _shown_by(
        self, opened: dict[str, Announcement]
    ) -> tuple[dict[str, Announcement], dict[str, ReceivedReply]]:
        """What parties show each other of their ledgers, before any of them joins.

        It is shown for one set of announcements: where a party is lost, the others announce anew.
        """
        while True:
            showing = asking_to_show(self._opened().run, opened)
            by_name = dict.fromkeys(sorted(opened), showing)
            shown = self._transport.send(by_name, SHOWN, self.timeout_seconds)
            shown = self._without_fallen(shown)
            raise_refusals(shown)
            if shown.keys() == opened.keys() or len(shown) < self.roster.least_set:
                return {name: opened[name] for name in shown}, shown
            opened = self._opened_by(tuple(sorted(shown)))  # fewer each time, so it ends

    def _send_with_trees(
        self, names: tuple[str, ...], message: Message, ensemble: EnsembleRef
    ) -> dict[str, ReceivedReply]:
        known = 0
        if ensemble.length:
            known = min((self._known.get(name, 0) for name in names), default=0)
        send, seconds = self._transport.send, self.timeout_seconds
        carried = self._carrying(message, known, ensemble.length)
        replies = send(dict.fromkeys(names, carried), "answer", seconds)
        behind = tuple(n for n, reply in replies.items() if reply.type == "need-trees")
        if behind:
            carried = self._carrying(message, 0, ensemble.length)
            again = send(dict.fromkeys(behind, carried), "answer", seconds)
            replies = {n: r for n, r in replies.items() if n not in behind} | again
        # A party that was restarted or fell over is as good as lost; it may come back later.
        replies = self._without_fallen(replies, ("unknown-run", *_FELL_OVER))
        raise_refusals(replies)
        if ensemble.length:
            self._known.update(dict.fromkeys(replies, ensemble.length))
        return replies

    def _carrying(self, message: Message, first: int, stop: int) -> Message:
        trees = tuple(self._trees[first:stop])
        return replace(message, trees_from=first, trees=trees)

    def _without_fallen(
        self, replies: dict[str, ReceivedReply], words: Sequence[str] = _FELL_OVER
    ) -> dict[str, ReceivedReply]:
        """The replies but for those of parties that cannot go on; why is noted, as of silent ones.

        What a probe or a question is refused with may differ: only these words mean "not now".
        """
        fallen = {name: word for name, r in replies.items() if (word := word_in(r)) in words}
        for name, word in fallen.items():
            self._transport.problem(name, REFUSALS[word])
        return {name: reply for name, reply in replies.items() if name not in fallen}

    def _answer(self, name: str, reply: ReceivedReply, message: Message, query: SumQuery) -> Answer:
        answer = self._opened_answer(name, reply, message)
        if (
            answer is None
            or answer.party != name
            or answer.total.shape != (size_of(query),)
            or not _SOURCE.fullmatch(answer.source)
            or not 0 <= answer.n_rows < 2**48
        ):
            raise SumFailed(f"{name} answered another question. The attempt stays charged.")
        return answer

    def _opened_answer(self, name: str, reply: ReceivedReply, message: Message) -> Answer | None:
        if reply.type != "answer":
            return None
        if isinstance(reply, PartyReply):  # handed over in this process: never sealed
            return reply.reply if isinstance(reply.reply, Answer) else None
        try:
            key = self._presence.announced.announcements[name].key
            return Answer.from_body(self._keys.unseal(key, message.hash, name, reply.body))
        except (FormatError, KeyError):
            return None
