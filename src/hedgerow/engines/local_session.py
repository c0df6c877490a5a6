"""Sessions among parties of one process, with real parties, limits and ledgers.

Between sites a party that fails tells the others one word. Here one owner has all tables and may
look at every role, so whatever a role raised is raised again as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.sessions import Reported, Session
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.engines.local import local_federation
from hedgerow.errors import HedgerowError, Refused
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.roles import Agreement, Role, RoleFactory, Step, Store

R = TypeVar("R", bound=Role)


@dataclass(frozen=True)
class LocalOutcome(Generic[R]):
    """What a session of one process left behind."""

    reports: Mapping[str, list[bytes]]  # by party
    roles: Mapping[str, R]  # by party, as they were when the session ended


def local_session(
    agreement: Agreement,
    make: Callable[[str, Rows, Schema, Agreement, Store], R],
    tables: Mapping[str, Rows],
    schema: Schema,
    ledger: Ledger | None = None,
    stores: Mapping[str, Store] | None = None,
    packed: bool = False,
    observe: Callable[[Reported], None] | None = None,
) -> LocalOutcome[R]:
    """Carry one session among tables of this process to its end.

    Parameters
    ----------
    agreement : what is done; the limits of the parties allow its role and no other
    make : makes each party's role
    ledger : of the coordinator and of all parties; by default one in memory
    stores : where roles keep what outlives them
    packed : whether every message is packed, sealed, signed and read, as between machines
    observe : called with what every step reported
    """
    ledger, roles = ledger or Ledger.in_memory(), dict[str, R]()

    def kept(name: str, rows: Rows, schema: Schema, about: Agreement, store: Store) -> R:
        roles[name] = make(name, rows, schema, about, store)
        return roles[name]

    makers: dict[str, RoleFactory] = {agreement.role: kept}
    with session_federation(tables, schema, ledger, makers, stores, packed) as federation:
        reports = Session(federation, agreement, ledger, observe).run()
    return LocalOutcome(reports, roles)


@contextmanager
def session_federation(
    tables: Mapping[str, Rows],
    schema: Schema,
    ledger: Ledger,
    roles: Mapping[str, RoleFactory],
    stores: Mapping[str, Store] | None = None,
    packed: bool = False,
) -> Iterator[Federation]:
    """Parties of one process that take these roles and no others."""
    errors: list[HedgerowError] = []
    watched = {name: _watched(make, errors) for name, make in roles.items()}
    limits = Limits(roles=frozenset(roles))
    try:
        yield local_federation(
            tables, schema, ledger, trust="coordinator", limits=limits, roles=watched,
            stores=stores, packed=packed,
        )  # fmt: skip
    except Refused as refused:
        if errors:
            raise errors[0] from refused
        raise


def _watched(make: RoleFactory, errors: list[HedgerowError]) -> RoleFactory:
    """The same roles, whose errors are kept."""

    class Watched:
        def __init__(self, role: Role) -> None:
            self._role = role

        def step(self, messages: Mapping[str, bytes]) -> Step:
            with _keeping(errors):
                return self._role.step(messages)

    def made(name: str, rows: Rows, schema: Schema, agreement: Agreement, store: Store) -> Role:
        with _keeping(errors):
            return Watched(make(name, rows, schema, agreement, store))

    return made


@contextmanager
def _keeping(errors: list[HedgerowError]) -> Iterator[None]:
    try:
        yield
    except HedgerowError as error:
        errors.append(error)
        raise
