"""Site folders of earlier versions open in this one, or say what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hedgerow.deployment.accounts import Accounts
from hedgerow.deployment.console.coordinator_questions import CoordinatorQuestions
from hedgerow.deployment.ledger_head import open_ledger
from hedgerow.deployment.logs import SiteLog
from hedgerow.deployment.runs import list_runs
from hedgerow.engines.site import Site
from hedgerow.errors import HedgerowError
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.verify import verify
from tests.deployment.console.rig import PEOPLE, served

STORED = Path(__file__).parents[1] / "stored_sites"
VERSIONS = sorted(path.name for path in STORED.iterdir())


def copied(version: str, name: str, folder: Path) -> Site:
    """A stored site folder; its keys, which are not stored, are made anew."""
    shutil.copytree(STORED / version / name, folder / name)
    return Site.open(folder / name)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_party_of_an_earlier_version_is_shown_with_all_it_has_spent(
    version: str, tmp_path: Path
) -> None:
    site = copied(version, "hospital-a", tmp_path)
    with open_ledger(site) as ledger:
        (found,) = verify(ledger)
        assert found.charges == 4
        for name, role in PEOPLE.items():
            Accounts(site).put(name, role)
        with served(site, ledger=ledger) as rig:
            pages = {
                path: rig.get(path, "Paula Privacy")
                for path in ("/", "/budget", "/plans", "/ledger", "/standing", "/refusals")
            }
            assert {reply.status for reply in pages.values()} == {200}
            assert "epsilon = <b>0.7</b> in total" in pages["/budget"].text
            assert "old-run-1" in pages["/ledger"].text
            assert "approved the plan" in pages["/ledger"].text
            assert rig.get("/ledger.pdf", "Paula Privacy").status == 200


@pytest.mark.parametrize("version", VERSIONS)
def test_a_coordinator_of_an_earlier_version_lists_its_runs(version: str, tmp_path: Path) -> None:
    site = copied(version, "coordinator", tmp_path)
    (record,) = list_runs(site)
    assert (record.run, record.state, record.command) == ("old-run-1", "finished", ())
    log = SiteLog(tmp_path / "log")
    questions = CoordinatorQuestions(site, lambda: {"parties": [], "strangers": 0}, log)
    answers = questions.questions()
    caller = None
    (run,) = answers["runs"][1]({}, caller)  # type: ignore[arg-type]
    assert run["charged_slots"] == 4
    with pytest.raises(HedgerowError, match="no model"):  # where it lies was not recorded then
        answers["model"][1]({"run": "old-run-1"}, caller)  # type: ignore[arg-type]
    questions.close()
    log.close()


def test_a_ledger_of_a_newer_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    import sqlite3

    site = copied(VERSIONS[-1], "hospital-a", tmp_path)
    with sqlite3.connect(site.ledger_path) as connection:
        connection.execute("UPDATE meta SET format = 99")
    connection.close()
    with pytest.raises(HedgerowError, match="99"):
        Ledger.open(site.ledger_path)
