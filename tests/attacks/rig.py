"""A small federation whose coordinator can be made to lie, message by message."""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex
from typing import Any

import numpy as np

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.engines.local import PackedEngine
from hedgerow.methods.registry import plan_for
from hedgerow.party.limits import Limits
from hedgerow.party.party import Party
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol import messages
from hedgerow.protocol.identity import Announcement, Identity, Roster, digest_of
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Ask, Message
from hedgerow.queries import LabelSums, SumQuery
from hedgerow.queries.calibration import noise_for

SCHEMA = Schema.from_bounds({"age": (0, 100), "dose": (0, 1)}, classes=[0, 1])


def some_rows(n: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    table = {"age": rng.uniform(0, 100, n), "dose": rng.uniform(0, 1, n)}
    return rows_of(table, SCHEMA, (table["age"] > 50).astype(int))


class Packed(PackedEngine):
    """The packed engine over the parties of another one; tests change what travels in it."""

    def __init__(self, inner: PackedEngine) -> None:
        super().__init__(inner.parties, inner._ledger)


class Rig:
    """Parties a to d, a coordinator key, and an open plan; `ask` sends whatever it is told."""

    def __init__(
        self,
        names: tuple[str, ...] = ("a", "b", "c", "d"),
        trust: str = "parties",
        spare: int = 1,
        limits: Limits | None = None,
        epsilon: float = 1.0,
        opened: bool = True,
    ) -> None:
        self.coordinator = Identity()
        self.ledgers = {name: Ledger.in_memory() for name in names}
        self.parties = {
            name: Party(name, some_rows(50, i), SCHEMA, self.ledgers[name], limits=limits)
            for i, name in enumerate(names)
        }
        keys = tuple((n, self.parties[n].identity.public) for n in sorted(names))
        self.roster = Roster(keys, self.coordinator.public, 1, 3, trust)
        for party in self.parties.values():
            party.pin(self.roster)
        privacy = Privacy(epsilon, 1e-6, trust, spare=spare)  # type: ignore[arg-type]
        self.plan = plan_for(
            SCHEMA, privacy, "random-trees", settings={"n_trees": 3, "max_depth": 2}, seed=1
        )
        self.keys = MaskKeys()
        self.key = self.keys.public
        self.announced: list[dict[str, Any]] = []
        if opened:
            self.open(self.plan)

    def send(self, name: str, message: Message, signer: Identity | None = None) -> Message:
        data = message.signed(signer or self.coordinator).to_bytes()
        return Message.from_bytes(self.parties[name].handle(data))

    def open(self, plan: Plan) -> list[dict[str, Any]]:
        values = {"plan": plan.to_dict(), "roster": self.roster.hash, "nonce": token_hex(16)}
        opening = messages.plain("open", values)
        announcements = []
        for name in self.parties:
            reply = self.send(name, opening)
            assert reply.type == "opened", word(reply)
            announcements.append(reply.values["announcement"])
        self.announced = announcements
        for name in self.parties:
            assert self.join(name, announcements).type == "joined"
        return announcements

    def join(self, name: str, announcements: list[dict[str, Any]]) -> Message:
        values = {"run": self.plan.run, "announcements": announcements}
        return self.send(name, messages.plain("join", values))

    def question(self, **changes: Any) -> Ask:
        """The honest first question of the plan, with whatever is changed.

        `parties` are those of the roster that are summed; all others are absent.
        """
        if "parties" in changes:
            changes["absent"] = self.roster.without(changes.pop("parties"))
        query: SumQuery = changes.pop("query", LabelSums(2))
        slot = changes.get("slot", 0)
        noise = noise_for(query, self.plan.slots[slot].mu, self.plan, SCHEMA)
        joined = digest_of({a["name"]: Announcement.from_dict(a) for a in self.announced})
        ask = Ask(self.plan.run, slot, 1, (), query, noise, 1, joined, self.key)
        return replace(ask, **changes)

    def ask(self, name: str, **changes: Any) -> Message:
        return self.send(name, Message("ask", self.question(**changes).body()))

    def unsealed(self, name: str, **changes: Any) -> bytes:
        """The body of an answer, as the coordinator reads it."""
        asked = Message("ask", self.question(**changes).body())
        reply = self.send(name, asked)
        assert reply.type == "answer", word(reply)
        return self.keys.unseal(self.parties[name]._keys.public, asked.hash, name, reply.body)

    def check_books(self) -> None:
        """Nothing was sent by a party without a charge, and no context was answered twice."""
        for name, ledger in self.ledgers.items():
            for owner in verify(ledger):
                assert owner.owner == name
            answers = ledger.lines(name, "answer")
            contexts = [(line.run, line.slot, line.attempt) for line in answers]
            assert len(contexts) == len(set(contexts))
            assert len(answers) <= len(ledger.lines(name, "charge"))


def word(reply: Message) -> str:
    """The refusal's word, or the reply's type."""
    return str(reply.values["word"]) if reply.type == "refusal" else reply.type
