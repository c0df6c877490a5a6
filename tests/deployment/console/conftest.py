"""One console over a filled ledger for tests that only look, and a fresh one for those that act."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hedgerow.privacy.ledger.ledger import Ledger
from tests.deployment.console.rig import Rig, asked_plan, fill, make_site, served, wait_with

WAITING = asked_plan(
    "run-0006", 0.8, 5, purpose="Sepsis, second stage", asker="Dr. Okafor", ends="2099-03-31"
)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A party with five runs, and one plan that waits."""
    site = make_site(tmp_path)
    with Ledger.open(site.ledger_path) as ledger:
        fill(site, ledger)
        wait_with(site, WAITING)
        with served(site, ledger=ledger) as made:
            yield made


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """The same for a whole file of tests."""
    site = make_site(tmp_path_factory.mktemp("console"))
    with Ledger.open(site.ledger_path) as ledger:
        fill(site, ledger)
        wait_with(site, WAITING)
        with served(site, ledger=ledger) as made:
            yield made
