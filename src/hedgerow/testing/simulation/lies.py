"""A coordinator that lies, with its own pinned key: what it sends beside the honest questions.

Most lies begin with a message that was really sent and change one thing in it. What parties say to
them goes through the same rules as every other reply.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hedgerow.errors import FormatError
from hedgerow.packing import pack
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.protocol import messages
from hedgerow.protocol.identity import Identity, Roster
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Ask, Message
from hedgerow.queries import LabelSums
from hedgerow.testing.simulation.faults import Fault
from hedgerow.testing.simulation.network import Network
from hedgerow.testing.simulation.randomness import Dice
from hedgerow.testing.simulation.reading import read
from hedgerow.testing.simulation.scenarios import BINARY, REGRESSION, Scenario, training_plan
from hedgerow.testing.simulation.world import World

MANY = 1_000_000  # slots of a plan: more than any may have
FLOOD = 90  # runs that a liar opens at once: more than a party remembers


class Liar:
    """Sends lies to one party; each is named, so that a campaign counts them."""

    def __init__(
        self, world: World, network: Network, identity: Identity, scenario: Scenario,
        roster: Roster, foreign: set[bytes],
    ) -> None:  # fmt: skip
        self._world, self._network, self._identity = world, network, identity
        self._scenario, self._roster, self._foreign = scenario, roster, foreign
        self._dice = Dice(world.seed, "lies")
        self._keys = MaskKeys()
        self._told = 0

    def lie(self, fault: Fault) -> None:
        """Tell a party the lie that the fault draws."""
        names = [*list(LIES)[:-1], "a false drop-out", "a dear plan", "replay"]
        name = names[int(fault.drawn * len(names))]
        self._world.count(f"lie: {name}")
        self._world.note("liar", f"to {fault.machine}: {name}")
        for number, message in enumerate(LIES[name](self, fault.machine)):
            data = message
            if isinstance(message, Message):
                signed = message if message.signature else message.signed(self._identity)
                data = signed.to_bytes()
            assert isinstance(data, bytes)
            self._world.scheduler.after(
                0.01 + 0.02 * number,
                lambda data=data: self._network.send(fault.machine, data, self._heard),  # type: ignore[misc]
            )

    def _heard(self, reply: bytes | None) -> None:
        """The liar reads what comes; the rules have seen it before."""

    # Messages that were really sent

    def _sent(self, party: str, kind: str = "") -> Message | None:
        for name, data in reversed(self._network.heard):
            message = read(data)
            if message is None or name != party or message.type != (kind or message.type):
                continue
            with suppress(FormatError):  # a lie of its own may have been unreadable
                if message.type != "ask" or message.ask:
                    return message
        return None

    def _asked(self, party: str, **changes: Any) -> list[Message | bytes]:
        """The last question to a party, with something changed."""
        message = self._sent(party, "ask")
        if message is None:
            return []
        changed = replace(message.ask, **changes)
        return [replace(message, body=changed.body(), signature="", written=None)]

    def _question(self, party: str) -> Ask | None:
        message = self._sent(party, "ask")
        return None if message is None else message.ask

    def _others(self, party: str) -> list[str]:
        return [name for name in self._scenario.parties if name != party]

    # Lies

    def _replay(self, party: str) -> list[Message | bytes]:
        sent = [data for name, data in self._network.heard if name == party]
        return [self._dice.choice(sent)] if sent else []

    def _of_another(self, party: str) -> list[Message | bytes]:
        sent = [data for name, data in self._network.heard if name != party]
        return [self._dice.choice(sent)] if sent else []

    def _other_set(self, party: str) -> list[Message | bytes]:
        return self._asked(party, absent=tuple(self._others(party)[-1:]))

    def _small_set(self, party: str) -> list[Message | bytes]:
        ask = self._question(party)
        if ask is None:
            return []
        return self._asked(party, absent=tuple(self._others(party)[1:]), attempt=ask.attempt + 1)

    def _sybil(self, party: str) -> list[Message | bytes]:
        absent = self._dice.choice((("sybil",), (party,), ("oak", "ash")))
        return self._asked(party, absent=absent)

    def _false_drop_out(self, party: str) -> list[Message | bytes]:
        ask = self._question(party)
        if ask is None:
            return []
        absent = tuple(self._others(party)[-1:]) if self._dice.chance(0.5) else ask.absent
        return self._asked(party, attempt=ask.attempt + 1, absent=absent)

    def _false_drop_outs(self, party: str) -> list[Message | bytes]:
        ask = self._question(party)
        if ask is None:
            return []
        found = [self._asked(party, attempt=ask.attempt + n) for n in (2, 1, 3, 4, 5)]
        return [message for one in found for message in one]

    def _less_noise(self, party: str) -> list[Message | bytes]:
        ask = self._question(party)
        if ask is None:
            return []
        weaker = replace(ask.noise, sigmas=tuple(0.5 * sigma for sigma in ask.noise.sigmas))
        changes = self._dice.choice(({"noise": weaker}, {"colluding": 0}, {"colluding": -50}))
        return self._asked(party, attempt=ask.attempt + 1, **changes)

    def _other_question(self, party: str) -> list[Message | bytes]:
        return self._asked(party, query=LabelSums(2))

    def _other_slot(self, party: str) -> list[Message | bytes]:
        ask = self._question(party)
        if ask is None:
            return []
        return self._asked(party, slot=self._dice.choice((-1, 99, ask.slot + 1, ask.slot - 1)))

    def _other_key(self, party: str) -> list[Message | bytes]:
        return self._asked(party, reply_to=self._keys.public)

    def _opening(self, plan: Plan, roster: str = "") -> Message:
        values = {
            "plan": plan.to_dict(), "roster": roster or self._roster.hash,
            "nonce": self._dice.bytes(16).hex(),
        }  # fmt: skip
        return messages.plain("open", values)

    def _plan(self, run: str) -> Plan:
        trust = self._scenario.trust
        return training_plan("dp-tr-newton", trust, self._scenario.schema, 3, run, 1)

    def _other_plan(self, party: str) -> list[Message | bytes]:
        opening = self._opening(self._plan(self._scenario.works[0].run))
        return [opening, *self._asked(party)]

    def _other_schema(self, party: str) -> list[Message | bytes]:
        schema = BINARY if self._scenario.schema is REGRESSION else REGRESSION
        plan = training_plan("dp-tr-newton", self._scenario.trust, schema, 3, "lie", 1)
        return [self._opening(plan)]

    def _other_roster(self, party: str) -> list[Message | bytes]:
        weaker = replace(self._roster, minimum=1)
        return [self._opening(self._plan("lie"), weaker.hash)]

    def _own_run(self, party: str) -> list[Message | bytes]:
        """Nothing is wrong with it but that the other parties know nothing of it."""
        self._told += 1
        run = f"lie-{self._told}"
        plan = self._plan(run)
        empty = Message("join", pack({"run": run, "announcements": []}))
        ask = self._asked(party, run=run, slot=0, attempt=1)
        return [self._opening(plan), empty, *ask]

    def _old_joining(self, party: str) -> list[Message | bytes]:
        joins = [
            data
            for name, data in self._network.heard
            if name == party and (message := read(data)) is not None and message.type == "join"
        ]
        return [joins[0], *self._asked(party)] if joins else []

    def _forged_joining(self, party: str) -> list[Message | bytes]:
        message = self._sent(party, "join")
        if message is None:
            return []
        entries = [dict(entry) for entry in message.values["announcements"]]
        for entry in entries:
            if entry["name"] != party:
                entry["key"] = self._keys.public
        if self._dice.chance(0.5):
            entries = [entry for entry in entries if entry["name"] != party]
        return [Message("join", pack({**message.values, "announcements": entries}))]

    def _forged_shows(self, party: str) -> list[Message | bytes]:
        """What others keep of a party's ledger is changed on the way, or kept back."""
        message = self._sent(party, "join")
        if message is None or not message.values.get("shows"):
            return []
        shows = [dict(show) for show in message.values["shows"]]
        if self._dice.chance(0.3):
            del shows[0]
        else:
            shows[0]["signature"] = self._dice.bytes(64).hex()
        return [Message("join", pack({**message.values, "shows": shows}))]

    def _forged_heads(self, party: str) -> list[Message | bytes]:
        """A head that its party did not leave."""
        message = self._sent(party, "leave")
        if message is None:
            return []
        heads = [dict(head) for head in message.values["heads"]]
        for head in heads:
            if head["party"] != party:
                head["count"] += 1
        return [Message("leave", pack({**message.values, "heads": heads}))]

    def _garbage(self, party: str) -> list[Message | bytes]:
        known = self._sent(party)
        lies: list[Message | bytes] = [
            self._dice.bytes(100), b"", Message("give", pack({"all": True})),
            Message("ask", pack({"run": "run-1"})),
        ]  # fmt: skip
        if known is not None:
            unsigned = replace(known, signature="00" * 64).to_bytes()
            self._foreign.add(unsigned)
            lies.append(unsigned)
        return [self._dice.choice(lies)]

    def _stranger(self, party: str) -> list[Message | bytes]:
        known = self._sent(party)
        if known is None:
            return []
        signed = known.signed(Identity()).to_bytes()
        self._foreign.add(signed)
        return [signed]

    def _flood(self, party: str) -> list[Message | bytes]:
        """Plans that are opened and never joined; a party must not remember them all."""
        one = self._plan("flood").to_dict()
        found: list[Message | bytes] = []
        for number in range(FLOOD):
            values = {
                "plan": {**one, "run": f"flood-{number}"}, "roster": self._roster.hash,
                "nonce": f"{number}",
            }  # fmt: skip
            found.append(messages.plain("open", values))
        return found

    def _dear_plan(self, party: str) -> list[Message | bytes]:
        """Few bytes that would cost whoever reads them much: very many slots in one line."""
        document = self._plan("lie").to_dict()
        many = {**document["slot"][0], "mu": 1e-9, "repeat": MANY}
        values = {
            "plan": {**document, "slot": [many]}, "roster": self._roster.hash,
            "nonce": self._dice.bytes(16).hex(),
        }  # fmt: skip
        return [messages.plain("open", values)]


LIES: dict[str, Callable[[Liar, str], list[Message | bytes]]] = {
    "replay": Liar._replay,
    "another party's message": Liar._of_another,
    "another set": Liar._other_set,
    "a small set": Liar._small_set,
    "a party that is not there": Liar._sybil,
    "a false drop-out": Liar._false_drop_out,
    "three false drop-outs": Liar._false_drop_outs,
    "less noise": Liar._less_noise,
    "another question": Liar._other_question,
    "another slot": Liar._other_slot,
    "an answer for another key": Liar._other_key,
    "another plan of the same run": Liar._other_plan,
    "a plan of another schema": Liar._other_schema,
    "another roster": Liar._other_roster,
    "a run of its own": Liar._own_run,
    "an old joining": Liar._old_joining,
    "a forged joining": Liar._forged_joining,
    "forged shows": Liar._forged_shows,
    "forged heads": Liar._forged_heads,
    "no message": Liar._garbage,
    "a stranger's message": Liar._stranger,
    "a flood of plans": Liar._flood,
    "a dear plan": Liar._dear_plan,
}
