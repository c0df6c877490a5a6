"""Local engines: parties in this process. One hands messages over, the other one packs them all."""

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
from hedgerow.privacy.noise.poisson_sampling import KEY_SUFFIX, stored_key
from hedgerow.protocol.identity import Identity, Roster, check_names
from hedgerow.protocol.messages import Message
from hedgerow.protocol.replies import PartyReply, collect_replies
from hedgerow.protocol.roles import RoleFactory, Store


class PackedEngine:
    """Carries messages to parties of this process as bytes: packed, sealed, signed and read.

    What parties compute over rows they compute at the same time; all else they do one after
    another.
    """

    simulated = True

    def __init__(self, parties: Mapping[str, Party], ledger: Ledger | None = None) -> None:
        self.parties = dict(parties)
        self._ledger = ledger

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.parties))

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        replies = self._replies(dict.fromkeys(names, message))
        return {name: Reply(reply.message.to_bytes()) for name, reply in replies.items()}

    def _replies(self, messages: Mapping[str, bytes | Message]) -> dict[str, PartyReply]:
        # Parties that share one ledger file commit together: their charges before any of them
        # computes, their answers before any reply is seen.
        # A round holds all of its parties at once, always taken in the same order.
        order = sorted(messages)
        together = nullcontext if self._ledger is None else self._ledger.together
        parties = [self.parties[name].hear(messages[name]) for name in order]
        replies = collect_replies(parties, together)
        by_name = dict(zip(order, replies, strict=True))
        return {name: by_name[name] for name in messages}


class LocalEngine(PackedEngine):
    """Hands messages and replies over as they are; sealing them would hide nothing from anybody."""

    hand_over = PackedEngine._replies


def local_federation(
    tables: Mapping[str, Rows | Holding],
    schema: Schema,
    ledger: Ledger | None = None,
    colluding: int = 1,
    minimum_parties: int = 3,
    trust: str | None = None,
    limits: Limits | None = None,
    roles: Mapping[str, RoleFactory] | None = None,
    stores: Mapping[str, Store] | None = None,
    packed: bool = False,
) -> Federation:
    """Parties of one process under real keys, masks and messages; trust is simulated.

    Parameters
    ----------
    tables : rows of each party by name, or what holds them elsewhere
    trust : what the roster says; by default the parties where there are several
    ledger : shared by all parties; by default one in memory
    limits : what each party allows, if anything is to be limited
    roles : what the parties can do together without an epsilon
    stores : where each party's roles keep what outlives them
    packed : whether every message is packed, sealed, signed and read, as between machines
    """
    check_names(list(tables))
    shared = ledger or Ledger.in_memory()
    sampling_secret = None
    if shared.path is not None:  # a run that is resumed draws the same rows
        path = Path(f"{shared.path}{KEY_SUFFIX}")
        sampling_secret = partial(stored_key, path)
        if path.exists():
            sampling_secret()  # one that others may know is refused before anything is asked
    made = partial(
        Party, schema=schema, ledger=shared, limits=limits, sampling_secret=sampling_secret
    )
    with shared.transaction():  # that each of them was started, in one commit
        parties = {
            name: made(name, rows, roles=roles, store=(stores or {}).get(name))
            for name, rows in tables.items()
        }
    coordinator = Identity()
    trust = trust or usual_trust(len(tables))
    keys = tuple((name, parties[name].identity.public) for name in sorted(parties))
    roster = Roster(keys, coordinator.public, colluding, minimum_parties, trust)
    for party in parties.values():
        party.pin(roster)
    engine = PackedEngine if packed else LocalEngine
    return Federation(engine(parties, shared), schema, roster, coordinator)
