"""Parties of this process behind sockets, as their own processes would be behind a relay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hedgerow.coordinator.federation import Federation
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.engines.relay import RelayEngine
from hedgerow.engines.sockets import Listener
from hedgerow.party.party import Party
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.identity import Identity, Roster
from hedgerow.protocol.roles import RoleFactory
from hedgerow.testing import noise_off

NAMES = ("north", "south", "west", "east", "middle")
Handler = Callable[[bytes], bytes]


def echo(message: bytes) -> bytes:
    return b"echo " + message


class PlayedParties:
    """One socket a party; what answers there is up to the test. Use it in `with`."""

    def __init__(self, folder: Path, names: Sequence[str] = NAMES) -> None:
        self.names = tuple(names)
        self.sockets = {name: folder / f"{name}.sock" for name in names}
        self.handlers: dict[str, Handler] = dict.fromkeys(names, echo)
        self.ledgers: dict[str, Ledger] = {}
        self._listeners: dict[str, Listener] = {}

    def __enter__(self) -> PlayedParties:
        for name in self.names:
            self.open(name)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._listeners):
            self.close(name)

    def open(self, name: str) -> None:
        self._listeners[name] = Listener(self.sockets[name], lambda m: self.handlers[name](m))

    def close(self, name: str) -> None:
        self._listeners.pop(name).close()

    def federation(
        self,
        relay: Path,
        parts: Sequence[Rows],
        schema: Schema,
        trust: str,
        roles: Mapping[str, RoleFactory] | None = None,
    ) -> Federation:
        """The first parties with these rows, new keys and ledgers, and without noise."""
        coordinator = Identity()
        names = self.names[: len(parts)]
        self.ledgers = {name: Ledger.in_memory() for name in names}
        parties = {
            name: Party(name, part, schema, self.ledgers[name], roles=roles)
            for name, part in zip(names, parts, strict=True)
        }
        keys = tuple((name, parties[name].identity.public) for name in sorted(parties))
        roster = Roster(keys, coordinator.public, 1, 3, trust)
        for name, party in parties.items():
            party.pin(roster)
            self.handlers[name] = without_noise(party)
        engine = RelayEngine(relay, roster.names, "Start the relay.")
        return Federation(engine, schema, roster, coordinator)


def without_noise(party: Party) -> Handler:
    def handle(message: bytes) -> bytes:
        with noise_off():  # of this thread
            return party.handle(message)

    return handle
