"""Parties whose ledgers witness each other, in files that can be rolled back, and a coordinator
that carries, withholds or changes what they show and leave each other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from hedgerow.methods.registry import plan_for
from hedgerow.party.limits import Limits
from hedgerow.party.party import Party
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import Budget
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol import messages
from hedgerow.protocol.identity import Identity, Roster
from hedgerow.protocol.witnesses import shows_in
from tests.attacks.rig import SCHEMA, Rig, some_rows, word

TOTAL = Budget(10.0, 1e-6)
Shows = list[dict[str, Any]]
Heads = dict[str, dict[str, Any]]


class WitnessRig(Rig):
    """Parties a, b and c with keys that last and ledgers in files."""

    def __init__(
        self,
        folder: Path,
        names: tuple[str, ...] = ("a", "b", "c"),
        trust: str = "parties",
        limits: Limits | None = None,
    ) -> None:
        super().__init__(names, trust, opened=False)
        self.folder, self.trust = folder, trust
        self.limits = limits or Limits(budget=TOTAL)
        self.identities = {name: self.parties[name].identity for name in names}
        for name in names:
            self.start(name)

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.sqlite"

    def start(self, name: str) -> None:
        """The party's process, started (again) over the ledger that is there."""
        self.ledgers[name] = Ledger.open(self.file(name))
        self.parties[name] = Party(
            name, some_rows(50, 0), SCHEMA, self.ledgers[name], self.identities[name],
            self.limits, witnesses=True,
        )  # fmt: skip
        self.parties[name].pin(self.roster)

    def restart(self, name: str) -> None:
        self.ledgers[name].close()
        self.start(name)

    def backup(self, name: str) -> Path:
        return Path(shutil.copy(self.file(name), self.folder / f"{name}-{token_hex(4)}.sqlite"))

    def restore(self, name: str, copy: Path) -> None:
        """The file is put back as it was, and the party started over it."""
        self.ledgers[name].close()
        shutil.copy(copy, self.file(name))
        self.start(name)

    def renew(self, name: str) -> None:
        """The ledger is lost, and a new one begun."""
        self.ledgers[name].close()
        self.file(name).unlink()
        self.start(name)

    def repin(self, **identities: Identity) -> None:
        """A roster with other keys of some parties, pinned everywhere."""
        self.identities |= identities
        keys = tuple((n, self.identities[n].public) for n in sorted(self.parties))
        self.roster = Roster(keys, self.coordinator.public, 1, 3, self.trust)
        for name in identities:
            self.ledgers[name].close()
            self.start(name)
        for party in self.parties.values():
            party.pin(self.roster)

    def new_plan(self, epsilon: float = 1.0) -> Plan:
        settings = {"n_trees": 3, "max_depth": 2}
        privacy = Privacy(epsilon, 1e-6, self.trust, spare=1)
        self.plan = plan_for(SCHEMA, privacy, "random-trees", settings, seed=1)
        return self.plan

    def announce(self, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
        values = {"plan": self.plan.to_dict(), "roster": self.roster.hash, "nonce": token_hex(16)}
        replies = {n: self.send(n, messages.plain("open", values)) for n in names or self.parties}
        refused = {name: word(reply) for name, reply in replies.items() if reply.type == "refusal"}
        assert not refused, refused
        self.announced = [reply.values["announcement"] for reply in replies.values()]
        return self.announced

    def shown(self, names: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
        """What each party shows the others, as the coordinator gets it."""
        values = {"run": self.plan.run, "announcements": self.announced}
        asked = messages.plain("show", values)
        return {name: self.send(name, asked).values for name in names or self.parties}

    def enter(self, name: str, shows: Shows) -> messages.Message:
        values = {"run": self.plan.run, "announcements": self.announced, "shows": shows}
        return self.send(name, messages.plain("join", values))

    def leave(self, name: str, heads: Sequence[dict[str, Any]]) -> str:
        values = {"run": self.plan.run, "heads": list(heads)}
        return word(self.send(name, messages.plain("leave", values)))

    def run(
        self,
        names: Sequence[str] | None = None,
        lie: Callable[[str, Shows], Shows] = lambda name, shows: shows,
        leaves: bool = True,
    ) -> dict[str, str]:
        """A whole handshake of a new plan; by name what the party said to the joining."""
        names = names or tuple(self.parties)
        self.new_plan()
        self.announce(names)
        shown = self.shown(names)
        replies = {n: self.enter(n, lie(n, shows_in(shown, n))) for n in names}
        joined = {n: r for n, r in replies.items() if r.type == "joined"}
        self.heads: Heads = {n: reply.values["head"] for n, reply in joined.items()}
        if leaves:
            for name in joined:
                assert self.leave(name, list(self.heads.values())) == "left"
        return {name: word(reply) for name, reply in replies.items()}
