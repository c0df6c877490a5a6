"""Every engine gives the same exact sums; adding an engine adds its line here.

Dask and gRPC need processes of their own: their folders beside this one run the same contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.coordinator import federation
from hedgerow.coordinator.federation import Federation
from hedgerow.data.tables import Rows
from hedgerow.engines.local import local_federation
from hedgerow.errors import SumFailed
from hedgerow.protocol.masks import MaskKeys
from hedgerow.testing import check_federation
from tests.conftest import MIXED, mixed_rows, mixed_table

ROWS = mixed_rows(mixed_table(60, seed=1))


def local(parts: Sequence[Rows], trust: str) -> Federation:
    return local_federation({f"p{i}": part for i, part in enumerate(parts)}, MIXED, trust=trust)


def packed(parts: Sequence[Rows], trust: str) -> Federation:
    tables = {f"p{i}": part for i, part in enumerate(parts)}
    return local_federation(tables, MIXED, trust=trust, packed=True)


ENGINES: dict[str, Callable[[Sequence[Rows], str], Federation]] = {"local": local, "packed": packed}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_exact_sum(engine: str) -> None:
    check_federation(ENGINES[engine], MIXED, ROWS)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sum_that_forgets_a_party_is_found(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = federation.add_modulo

    def forgetful(vectors: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
        all_of_them = list(vectors)
        return right(all_of_them[1:] if len(all_of_them) == 3 else all_of_them)

    monkeypatch.setattr(federation, "add_modulo", forgetful)
    with pytest.raises((AssertionError, SumFailed)):
        check_federation(ENGINES[engine], MIXED, ROWS)


@pytest.mark.parametrize("engine", ENGINES)
def test_masks_that_do_not_cancel_are_found(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = MaskKeys.mask
    monkeypatch.setattr(MaskKeys, "mask", lambda *a: right(*a) + np.uint64(1))
    with pytest.raises(SumFailed, match="do not cancel"):
        check_federation(ENGINES[engine], MIXED, ROWS)
