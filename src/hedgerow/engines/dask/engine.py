"""The federation of one owner's cluster: one party, whose rows lie on workers."""

from __future__ import annotations

from collections.abc import Mapping

from hedgerow.coordinator.federation import Federation
from hedgerow.data.schema import Schema
from hedgerow.engines.dask.rows import ClusterRows
from hedgerow.engines.local import LocalEngine, local_federation
from hedgerow.errors import SettingsError
from hedgerow.model.trust import trust_named
from hedgerow.party.party import Party
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.messages import Message
from hedgerow.protocol.replies import PartyReply

NAME = "all"


class DaskEngine(LocalEngine):
    """Carries messages to the one party; a cluster that cannot go on ends the run at once.

    A party that fails may be asked again with a further attempt, which is charged. That would not
    bring back a cluster.
    """

    def __init__(self, party: Party, ledger: Ledger | None, rows: ClusterRows) -> None:
        super().__init__({party.name: party}, ledger)
        self.rows = rows

    def _replies(self, messages: Mapping[str, bytes | Message]) -> dict[str, PartyReply]:
        replies = super()._replies(messages)
        problem, self.rows.problem = self.rows.problem, None
        if problem is not None:
            raise problem
        return replies

    hand_over = _replies  # whichever way a message comes, the cluster's problem ends the run


def dask_federation(
    rows: ClusterRows, schema: Schema, privacy: Privacy, ledger: Ledger | None = None
) -> Federation:
    """One party whose rows lie on a cluster."""
    check_trust(privacy.trust)
    shared = ledger or Ledger.in_memory()
    colluding, least = privacy.colluding, privacy.minimum_parties
    federation = local_federation({NAME: rows}, schema, shared, colluding, least, privacy.trust)
    assert isinstance(federation.engine, LocalEngine)
    federation.engine = DaskEngine(federation.engine.parties[NAME], shared, rows)
    return federation


def check_trust(trust: str) -> None:
    """A cluster belongs to one owner, who starts every process of it and sees all."""
    if not trust_named(trust).exact_sums:
        raise SettingsError(
            f"trust is {trust!r}, and a Dask cluster has one owner, who sees every row and every "
            "sum on it: masks or noise of its own for every worker would protect nobody. Nothing "
            "was asked. Use trust = 'coordinator' (and a method for it), or another engine for "
            "parties that do not trust each other."
        )
