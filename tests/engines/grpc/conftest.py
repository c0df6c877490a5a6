"""One coordinator with five parties for a module; tests leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.grpc.rig import NAMES, Rig


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    made = Rig()
    try:
        made.connect()
        yield made
        assert sorted(made.server.connected()) == list(NAMES)
    finally:
        made.close()
