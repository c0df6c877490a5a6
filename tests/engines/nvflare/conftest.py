"""One federation of real processes for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hedgerow.engines.nvflare.engine import NvflareEngine
from tests.engines.nvflare.houses import Houses


@pytest.fixture(scope="session")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Houses]:
    made = Houses(tmp_path_factory.mktemp("houses") / "with a space" / "trial")
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def engine(houses: Houses) -> Iterator[NvflareEngine]:
    with houses.engine() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "federation"
