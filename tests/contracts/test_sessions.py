"""Every engine carries vertical and similarity sessions to the same models.

Engines that need processes of their own run the same contract in their folders; Dask carries none,
because roles need rows that lie with their party.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.refused import RefusedBy
from hedgerow.data.tables import Rows
from hedgerow.engines.local import local_federation
from hedgerow.party.limits import Limits
from hedgerow.party.sessions import PartySessions
from hedgerow.protocol.roles import RoleFactory
from hedgerow.testing import check_sessions
from tests.conftest import MIXED, mixed_rows, mixed_table

ROWS = mixed_rows(mixed_table(120, seed=3))
Roles = Mapping[str, RoleFactory]


def local(tables: Mapping[str, Rows], roles: Roles) -> Federation:
    limits = Limits(roles=frozenset(roles))
    return local_federation(tables, MIXED, trust="coordinator", limits=limits, roles=roles)


def packed(tables: Mapping[str, Rows], roles: Roles) -> Federation:
    limits = Limits(roles=frozenset(roles))
    return local_federation(
        tables, MIXED, trust="coordinator", limits=limits, roles=roles, packed=True
    )


ENGINES: dict[str, Callable[[Mapping[str, Rows], Roles], Federation]] = {
    "local": local,
    "packed": packed,
}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_carries_sessions_to_the_same_models(engine: str) -> None:
    check_sessions(ENGINES[engine], MIXED, ROWS)


def test_a_role_that_computes_something_else_is_found() -> None:
    def other(tables: Mapping[str, Rows], roles: Roles) -> Federation:
        fewer = {name: rows.take(np.arange(rows.n_rows - 1)) for name, rows in tables.items()}
        return local(fewer, roles)

    with pytest.raises(AssertionError, match="another model"):
        check_sessions(other, MIXED, ROWS)


def test_messages_that_are_not_sealed_end_a_session_where_they_travel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the packed engine adds is real, and the other one does without it."""
    monkeypatch.setattr(PartySessions, "_sealed", lambda self, *about: b"not sealed at all")
    check_sessions(local, MIXED, ROWS)
    with pytest.raises(RefusedBy, match="bad-message"):
        check_sessions(packed, MIXED, ROWS)
