"""Three party processes, killed, starved of disk and started again, with no engine in between."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hedgerow.cli.party import party_app, process_for
from hedgerow.engines.cards import PinnedRoster
from hedgerow.errors import HedgerowError, SumFailed
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import spending
from hedgerow.protocol.identity import Identity
from hedgerow.protocol.messages import Message
from tests.deployment.sites import Sites

NAMES = ("north", "south", "west")
GENEROUS = "format = 1\ndelta = 1e-6\nleast_parties = 3\n[epsilon]\nper_run = 60\ntotal = 5000\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Three parties that run; tests leave them running. At the end every ledger must agree."""
    sites = Sites(tmp_path_factory.mktemp("sites"), NAMES)
    sites.pin()
    (sites.folder / "limits.toml").write_text(GENEROUS)
    try:
        sites.start_all(f"limits={sites.folder / 'limits.toml'}")
        yield sites
    finally:
        codes = sites.end()
    assert set(codes.values()) == {0}, codes
    sites.check_books()
    for name in NAMES:
        assert "stopped." in sites.said(name)
        assert "Traceback" not in sites.said(name)


def call(*words: object) -> str:
    found = CliRunner().invoke(party_app, [str(word) for word in words])
    assert found.exit_code in (0, 5), f"{found.output}{found.exception!r}"  # 5: not connected
    return found.stdout


def test_the_default_method_trains_over_three_processes(running: Sites) -> None:
    ledger, plan = Ledger.in_memory(), running.plan()
    with Ledger.open(running.by_name["north"].ledger_path, create=False) as book:
        before = spending(book, "north")  # of whichever tests ran earlier
    model = running.train(plan, ledger)
    assert model.statement.guarantee == "epsilon-delta"
    assert model.statement.parties == NAMES
    released = len(ledger.lines(kind="release"))
    assert released > 3

    status = json.loads(call("status", running.by_name["north"].path, "--json"))
    assert status["running"]
    (run,) = [run for run in status["runs"] if run["run"] == plan.run]
    assert run["charged_slots"] == released
    total = {row["limit"]: row for row in status["limits"]}["in total"]
    assert total["used"] == pytest.approx(before.with_plan(plan).epsilon(1e-6), rel=1e-6)
    entries = json.loads(call("log", running.by_name["north"].path, "--json"))
    mine = [entry for entry in entries if entry.get("run") == plan.run]
    charged = [entry for entry in mine if entry["what"] == "charged"]
    assert len(charged) == released
    assert all(entry["kind"] and entry["mu"] > 0 for entry in charged)
    running.await_words("north", "epsilon so far")  # shown a moment after the reply
    assert "fingerprint" in running.said("north")


def test_a_party_killed_in_the_middle_comes_back_and_the_run_is_resumed(running: Sites) -> None:
    ledger, plan = Ledger.in_memory(), running.plan(50.0, "random-trees")
    asked: list[str] = []

    def kill(message: bytes) -> None:
        asked.append(Message.from_bytes(message).type)
        if asked.count("ask") == 3 and asked[-1] == "ask":
            running.processes["south"].kill()
            running.processes["south"].wait()

    running.engine.before_ask = kill
    with pytest.raises(SumFailed, match=r"missing: south.*again"):
        running.train(plan, ledger)
    running.engine.before_ask = lambda message: None
    assert len(ledger.lines(kind="release")) == 2
    status = json.loads(call("status", running.by_name["south"].path, "--json"))
    assert not status["running"]
    running.restart("south")
    again = json.loads(call("status", running.by_name["south"].path, "--json"))
    assert again["running"]
    assert again["runs"] == status["runs"]
    model = running.train(plan, ledger)
    assert len(model.trees) == 6


def test_a_party_killed_between_charge_and_answer_does_not_answer_it_later(
    running: Sites,
) -> None:
    running.processes["west"].terminate()
    running.processes["west"].wait(300)
    before = running.said("west").count("answering for trial")
    running.start("west", fail_at="sync@2")
    running.await_words("west", "answering for trial", before + 1)
    ledger, plan = Ledger.in_memory(), running.plan(50.0, "random-trees")
    with pytest.raises(SumFailed, match="missing: west"):
        running.train(plan, ledger)
    assert running.processes["west"].wait(300) == -signal.SIGKILL
    running.restart("west")
    running.train(plan, ledger)
    assert len(ledger.lines(kind="release")) == 6


def test_a_full_disk_answers_nothing_and_goes_on_when_there_is_space(running: Sites) -> None:
    ledger, plan = Ledger.in_memory(), running.plan(50.0, "random-trees")
    process, asked = running.processes["north"], []

    def fill(message: bytes) -> None:
        asked.append(Message.from_bytes(message).type)
        if asked.count("ask") == 2 and asked[-1] == "ask":
            os.kill(process.pid, signal.SIGUSR1)
            running.await_disk(process.pid, 0)

    running.engine.before_ask = fill
    with pytest.raises(SumFailed, match="missing: north"):
        running.train(plan, ledger)
    running.engine.before_ask = lambda message: None
    running.await_words("north", "the ledger cannot be written")
    assert running.said("north").count("the ledger cannot be written") == 1
    assert "the ledger cannot be written" not in running.said("south")
    assert len(ledger.lines(kind="charge")) == 2  # not one attempt more than the one that was lost
    os.kill(process.pid, signal.SIGUSR2)
    running.await_disk(process.pid, -1)
    assert process.poll() is None
    running.train(plan, ledger)
    assert len(ledger.lines(kind="release")) == 6
    running.await_words("north", "the ledger can be written again")


def test_a_second_process_of_the_same_party_is_turned_away(running: Sites) -> None:
    first, before = running.processes["north"], running.said("north")
    running.start("north")
    assert running.code("north") == 2
    running.processes["north"] = first
    told = running.said("north")[len(before) :]
    assert "in use by another process" in told
    assert "Nothing was asked and nothing was spent" in told
    assert json.loads(call("status", running.by_name["north"].path, "--json"))["running"]


def test_a_changed_limits_file_is_noticed_and_not_used(running: Sites) -> None:
    file = running.folder / "limits.toml"
    file.write_text(GENEROUS.replace("per_run = 60", "per_run = 61"))
    running.await_words("west", "the limits file changed; this process still uses")
    status = json.loads(call("status", running.by_name["west"].path, "--json"))
    assert status["limits"][0]["epsilon"] == 60
    file.write_text(GENEROUS)


def error_of(sites: Sites, name: str, limits: Path | None = None, wait: bool = True) -> str:
    """What `party start` says when it cannot start."""
    table, schema = sites.folder / f"{name}.csv", sites.folder / "schema.toml"
    with pytest.raises(HedgerowError) as found:
        process_for(sites.by_name[name].path, table, schema, limits, wait, dials=False).run()
    return str(found.value)


def test_a_table_that_does_not_fit_stops_everything_else(tmp_path: Path) -> None:
    sites = Sites(tmp_path, ("north",))
    (tmp_path / "north.csv").write_text("age,dose\n1,2\n")
    assert "sick" in error_of(sites, "north")
    site = sites.by_name["north"]
    made = {"site.toml", "signing-key.pem", "tls-key.pem", "certificate.pem", "north.card.toml"}
    # All of it by `party init`, but for the line of the log that says why: no ledger, no start.
    assert {path.name for path in site.folder.iterdir()} == {*made, "logs"}


def test_no_count_of_rows_goes_into_a_log(tmp_path: Path) -> None:
    """What a service's journal keeps, others may read: there is no terminal here."""
    sites = Sites(tmp_path, ("north",))
    lines = (tmp_path / "north.csv").read_text().splitlines()
    wrong = ["?," + line.split(",", 1)[1] for line in lines[1:8]]
    (tmp_path / "north.csv").write_text("\n".join([lines[0], *wrong, *lines[8:]]))
    told = error_of(sites, "north").replace(str(tmp_path), "")
    assert not any(character.isdigit() for character in told)
    assert "hedgerow schema check" in told
    (tmp_path / "north.csv").write_text("\n".join(lines))
    sites.start("north")
    sites.await_words("north", "fits the schema")
    sites.await_words("north", "no roster is pinned yet")
    assert "rows" not in sites.said("north").split("fits the schema")[1].splitlines()[0]
    sites.end()


def test_without_a_roster_a_party_says_what_to_do_and_waits_for_it(tmp_path: Path) -> None:
    sites = Sites(tmp_path, NAMES)
    site = sites.by_name["north"]
    process = sites.start("north")
    sites.await_words("north", "no roster is pinned yet")
    sites.await_words("north", "hedgerow party pin")
    status = json.loads(call("status", site.path, "--json"))
    assert status["state"] == "waiting for a roster"
    process.send_signal(signal.SIGINT)
    assert sites.code("north") == 0
    assert "Exchange cards" in error_of(sites, "north", wait=False)

    process = sites.start("north")
    sites.await_words("north", "no roster is pinned yet", 2)
    site.pin(PinnedRoster("trial", sites.roster()))
    sites.await_words("north", "answering for trial")
    process.send_signal(signal.SIGINT)
    assert sites.code("north") == 0
    assert "default limits hold" in sites.said("north")


def test_a_roster_pinned_while_a_party_runs_holds_at_once(tmp_path: Path) -> None:
    sites = Sites(tmp_path, NAMES)
    sites.pin()
    process = sites.start("north")
    sites.await_words("north", "answering for trial")
    site, roster = sites.by_name["north"], sites.roster()
    further = tuple(sorted((*roster.parties, ("east", Identity().public))))
    site.pin(PinnedRoster("trial", replace(roster, parties=further)))
    sites.await_words("north", "a new roster holds: east is new.")
    assert json.loads(call("status", site.path, "--json"))["roster"] == site.roster().hash
    site.roster_file.write_text("broken")
    sites.await_words("north", "cannot be used; the one before holds")
    process.send_signal(signal.SIGINT)
    assert sites.code("north") == 0


def test_a_roster_that_the_limits_do_not_allow_is_an_error_at_the_start(tmp_path: Path) -> None:
    sites = Sites(tmp_path, NAMES)
    sites.pin()
    limits = tmp_path / "limits.toml"
    limits.write_text('format = 1\ndelta = 1e-6\n[[party]]\nname = "south"\n')
    told = error_of(sites, "north", limits)
    assert "the roster has the party west" in told
    assert "nothing was spent" in told
    limits.write_text(f'format = 1\ndelta = 1e-6\ncoordinator = "{"0000 " * 7}0000"\n')
    assert "the limits allow only 0000" in error_of(sites, "north")
    limits.write_text("format = 1\ndelta = 1e-6\nleast_parties = 4\n")
    told = error_of(sites, "north")
    assert "allows sums of 3 parties, and the limits ask for at least 4" in told


def test_start_needs_a_table_once(tmp_path: Path) -> None:
    sites = Sites(tmp_path, ("north",))
    found = CliRunner().invoke(party_app, ["start", str(sites.by_name["north"].path)])
    assert isinstance(found.exception, HedgerowError)
    assert "--data is not known yet" in str(found.exception)
    assert "nothing was spent" in str(found.exception)
