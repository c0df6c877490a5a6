"""The local engine: parties in this process, asked one after another with the real messages.

What they say is handed over as it is; sealing it would hide nothing from anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from hedgerow.coordinator.federation import Federation, Reply
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.model.trust import usual_trust
from hedgerow.party.limits import Limits
from hedgerow.party.party import Party
from hedgerow.party.running_scores import Holding
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.noise.poisson_sampling import kept_key
from hedgerow.protocol.identity import Identity, Roster, check_names
from hedgerow.protocol.replies import finished
from hedgerow.protocol.roles import ProgramFactory, Shelf


class LocalEngine:
    """Carries messages by calling the parties.

    What they compute over rows they compute at the same time; all else they do one after another.
    """

    simulated = True

    def __init__(self, parties: Mapping[str, Party], ledger: Ledger | None = None) -> None:
        self.parties = dict(parties)
        self._ledger = ledger

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.parties))

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        # Parties that share one ledger file commit once a round, before any reply is seen.
        # A round holds all of its parties at once, always taken in the same order.
        order = sorted(names)
        with nullcontext() if self._ledger is None else self._ledger.transaction():
            said = finished([self.parties[name].hear(message) for name in order])
        replies = {name: Reply(None, said=one) for name, one in zip(order, said, strict=True)}
        return {name: replies[name] for name in names}


def local_federation(
    tables: Mapping[str, Rows | Holding],
    schema: Schema,
    ledger: Ledger | None = None,
    colluding: int = 1,
    minimum_parties: int = 3,
    trust: str | None = None,
    limits: Limits | None = None,
    programs: Mapping[str, ProgramFactory] | None = None,
    shelves: Mapping[str, Shelf] | None = None,
) -> Federation:
    """Parties of one process under real keys, masks and messages; trust is simulated.

    Parameters
    ----------
    tables : rows of each party by name, or what holds them elsewhere
    trust : what the roster says; by default the parties where there are several
    ledger : shared by all parties; by default one in memory
    limits : what each party allows, if anything is to be limited
    programs : what the parties can do together without an epsilon
    shelves : where each party's programs keep what outlives them
    """
    check_names(list(tables))
    shared = ledger or Ledger.in_memory()
    coins = None
    if shared.path is not None:  # a run that is resumed draws the same rows
        path = Path(f"{shared.path}.coins")
        coins = partial(kept_key, path)
        if path.exists():
            coins()  # one that others may know is refused before anything is asked
    made = partial(Party, schema=schema, ledger=shared, limits=limits, coins=coins)
    with shared.transaction():  # that each of them was started, in one commit
        parties = {
            name: made(name, rows, programs=programs, shelf=(shelves or {}).get(name))
            for name, rows in tables.items()
        }
    coordinator = Identity()
    trust = trust or usual_trust(len(tables))
    keys = tuple((name, parties[name].identity.public) for name in sorted(parties))
    roster = Roster(keys, coordinator.public, colluding, minimum_parties, trust)
    for party in parties.values():
        party.pin(roster)
    return Federation(LocalEngine(parties, shared), schema, roster, coordinator)
