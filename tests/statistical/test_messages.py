"""What a masked party sends looks uniform, whatever its rows, and is unlike its other messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.data.tables import Rows
from hedgerow.engines.local import PackedEngine
from hedgerow.packing import unpack
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.accounting.plan import make_plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy, Settings
from hedgerow.protocol.masks import MaskKeys
from hedgerow.queries import ColumnCounts, size_of
from hedgerow.queries.calibration import noise_for
from hedgerow.testing import noise_off
from tests.attacks.rig import Packed
from tests.conftest import MIXED, federation_of, mixed_rows, mixed_table
from tests.statistical.measures import looks_uniform

QUERY = ColumnCounts.of(MIXED)
FEW = mixed_rows(mixed_table(1, seed=1))
MANY = mixed_rows(mixed_table(3000, seed=2))
N_SLOTS = 16  # numbers enough for 256 counts at each byte place


def messages_of(rows: Rows, attempts: Sequence[int] = (1,)) -> dict[int, NDArray[np.uint64]]:
    """What party "a" sends in each attempt, all slots after one another, without any noise."""
    privacy = Privacy(1.0, 1e-5, "parties", spare=100)
    declared = DeclaredQuery("listen", QUERY.kind, 1.0, size_of(QUERY), repeat=N_SLOTS)
    plan = make_plan(MIXED.hash, "listen", Settings(), privacy, [declared], seed=0)
    parts = {"a": rows, "b": FEW, "c": MANY.take(np.arange(50))}
    federation = federation_of(parts, MIXED, privacy, Ledger.in_memory())
    heard: list[NDArray[np.uint64]] = []
    assert isinstance(federation.engine, PackedEngine)
    federation.engine = Packed(federation.engine)  # so that answers travel
    federation.open(plan)  # from here on answers are sealed for the key of this run
    keys = federation._keys
    unseal = keys.unseal

    def listening(other: str, request: str, party: str, data: bytes) -> bytes:
        body = unseal(other, request, party, data)  # what the coordinator comes to see
        if party == "a":
            heard.append(unpack(body)[1]["total"])
        return body

    keys.unseal = listening  # type: ignore[method-assign]
    noise = noise_for(QUERY, plan.slots[0].mu, plan, MIXED)
    found = {}
    with noise_off():
        for attempt in attempts:
            for slot in range(N_SLOTS):
                federation.sum(QUERY, noise, slot, attempt)
            found[attempt] = np.concatenate(heard)
            heard.clear()
    return found


@pytest.mark.parametrize("rows", [FEW, MANY], ids=["one row", "many rows"])
def test_a_message_is_uniform_whatever_the_rows(rows: Rows) -> None:
    assert looks_uniform(messages_of(rows)[1])


def test_attempts_and_slots_have_unrelated_masks() -> None:
    found = messages_of(MANY, attempts=(1, 2))
    assert looks_uniform(found[1] - found[2])
    by_slot = found[1].reshape(N_SLOTS, -1)
    assert looks_uniform((by_slot[1:] - by_slot[:-1]).ravel())


def test_two_runs_have_unrelated_masks() -> None:
    assert looks_uniform(messages_of(MANY)[1] - messages_of(MANY)[1])


def test_a_message_without_mask_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MaskKeys, "mask", lambda self, me, c, size: np.zeros(size, np.uint64))
    assert not looks_uniform(messages_of(MANY)[1])


def test_one_mask_for_every_coordinate_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = MaskKeys.mask

    def repeated(*arguments: Any) -> NDArray[np.uint64]:
        mask = right(*arguments)
        return np.full_like(mask, mask[0])

    monkeypatch.setattr(MaskKeys, "mask", repeated)
    monkeypatch.setattr(
        "hedgerow.coordinator.federation.add_modulo", lambda v: sum(v) * np.uint64(0)
    )
    assert not looks_uniform(messages_of(MANY)[1])


def test_a_mask_used_for_every_attempt_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = MaskKeys._stream
    monkeypatch.setattr(
        MaskKeys,
        "_stream",
        lambda self, other, salt, info, size: right(self, other, b"", b"", size),
    )
    found = messages_of(MANY, attempts=(1, 2))
    assert not looks_uniform(found[1] - found[2])
