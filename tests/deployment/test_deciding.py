"""A person decides: plans wait, are shown in words, approved, recorded; its status tells it all."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from hedgerow.cli.party import party_app
from hedgerow.deployment.approvals import (
    LONGEST_PLAN,
    MOST_PENDING,
    PlanFolder,
    plan_in_words,
    plan_named,
)
from hedgerow.deployment.hold import holding
from hedgerow.deployment.service import PartyService, ask_party
from hedgerow.deployment.status import StatusService, log_of
from hedgerow.deployment.terminal import PartyTerminal
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Listener
from hedgerow.errors import HedgerowError, LedgerError, SettingsError
from hedgerow.party.approvals import decide
from hedgerow.party.limits import Event, Limits
from hedgerow.party.party import Party
from hedgerow.privacy.accounting.accountant import Price
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.spending import Budget
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.ledger.witnesses import Gap, note_gap, now_text
from hedgerow.protocol import messages
from hedgerow.protocol.messages import Message
from tests.attacks.rig import SCHEMA, Rig, some_rows, word
from tests.privacy.ledger.test_ledger import a_plan

ASKING = Limits(per_run=Budget(2.0, 1e-6), budget=Budget(3.0, 1e-6), approve=True)
LIMITS = 'format = 1\ndelta = 1e-6\napprove = "each plan"\n[epsilon]\nper_run = 2\ntotal = 3\n'


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site.create(tmp_path / "a", "a")
    (made.folder / "limits.toml").write_text(LIMITS)
    return made


def asking_rig(site: Site) -> Rig:
    """Party a asks a person; its ledger is the site's."""
    rig = Rig(opened=False)
    rig.ledgers["a"] = Ledger.open(site.ledger_path)
    rig.parties["a"] = Party(
        "a", some_rows(50, 0), SCHEMA, rig.ledgers["a"], rig.parties["a"].identity, ASKING,
        PlanFolder.of(site),
    )  # fmt: skip
    rig.parties["a"].pin(rig.roster)
    return rig


def opening(rig: Rig) -> Message:
    return messages.plain("open", {"plan": rig.plan.to_dict(), "roster": rig.roster.hash})


def approved(rig: Rig) -> None:
    """A person says yes to the rig's plan."""
    decide(rig.ledgers["a"], "a", rig.plan, "approve", "Ada Koch", "study 12")


def call(*words: object) -> Result:
    return CliRunner().invoke(party_app, [str(word) for word in words])


def test_a_plan_waits_is_read_in_words_approved_and_recorded(site: Site) -> None:
    rig = asking_rig(site)
    assert word(rig.send("a", opening(rig))) == "not-approved"
    shown = " ".join(call("plans", site.path).stdout.split())
    assert f"Run {rig.plan.run}, method random-trees." in shown
    assert "reserves epsilon = 1 at delta = 1e-06" in shown
    assert "label-sums" in shown
    assert "leaf-sums" in shown
    assert "nobody sees a sum of this party alone" in shown
    assert f"party approve {site.path} {rig.plan.run[:12]}".replace(" ", "") in shown.replace(
        " ", ""
    )

    refused = call("approve", site.path, rig.plan.run[:6])
    assert "give --yes" in str(refused.exception)
    assert word(rig.send("a", opening(rig))) == "not-approved"
    words = ("--name", "Ada Koch", "--reason", "study 12", "--yes")
    assert call("approve", site.path, rig.plan.run[:6], *words).exit_code == 0
    assert "No plan waits" in call("plans", site.path).stdout
    rig.open(rig.plan)
    assert rig.ask("a").type == "answer"
    kinds = [line.kind for line in rig.ledgers["a"].lines("a", run=rig.plan.run)]
    assert kinds[:3] == ["refuse", "approve", "reserve"]
    (line,) = rig.ledgers["a"].lines("a", "approve")
    said = {"hash": rig.plan.hash, "name": "Ada Koch", "reason": "study 12"}
    assert line.values == {**said, "plan": rig.plan.table}
    rig.check_books()


def test_an_approval_is_of_one_plan_and_is_not_asked_for_twice(site: Site) -> None:
    rig = asking_rig(site)
    first = rig.plan
    approved(rig)
    rig.open(rig.plan)
    dearer = replace(rig.plan, seed=rig.plan.seed + 1, run="another")
    rig.plan = dearer
    assert word(rig.send("a", opening(rig))) == "not-approved"
    rig.plan = first
    rig.open(rig.plan)
    assert len(rig.ledgers["a"].lines("a", "approve")) == 1


def test_a_plan_beyond_the_limits_does_not_bother_anybody(site: Site) -> None:
    rig = asking_rig(site)
    rig.plan = Rig(epsilon=2.5, opened=False).plan
    assert word(rig.send("a", opening(rig))) == "over-limits"
    assert PlanFolder.of(site).pending() == []


def test_without_anywhere_to_wait_no_plan_is_approved() -> None:
    rig = Rig(limits=Limits(approve=True), opened=False)
    assert word(rig.send("a", opening(rig))) == "not-approved"


def test_waiting_plans_cannot_fill_the_disk(site: Site) -> None:
    folder = PlanFolder.of(site)
    for i in range(MOST_PENDING + 5):
        folder.keep(a_plan(run=f"run-{i:02}"))
    assert [plan.run for plan in folder.pending()] == [f"run-{i:02}" for i in range(5, 21)]
    folder.keep(replace(a_plan(), method="x" * LONGEST_PLAN))
    assert len(folder.pending()) == MOST_PENDING
    assert len(list(folder.folder.iterdir())) == MOST_PENDING


def test_a_run_is_named_by_its_beginning_and_only_if_that_is_one(site: Site) -> None:
    folder, ledger = PlanFolder.of(site), Ledger.in_memory()
    for run in ("run", "run-1", "other"):
        folder.keep(a_plan(run=run))
    assert plan_named(site, ledger, "o").run == "other"
    assert plan_named(site, ledger, "run").run == "run"
    assert plan_named(site, ledger, a_plan(run="run-1").hash).run == "run-1"
    for wrong in ("ru", "x", ""):
        with pytest.raises(SettingsError, match=r"known: run, run-1, other.*nothing was spent"):
            plan_named(site, ledger, wrong)


def test_a_changed_file_is_not_the_plan_that_waited(site: Site) -> None:
    folder = PlanFolder.of(site)
    folder.keep(a_plan(1.0))
    (file,) = folder.folder.iterdir()
    a_plan(2.0).write(file)
    assert folder.pending() == []


def test_names_from_outside_cannot_steer_the_terminal(site: Site) -> None:
    bad = replace(a_plan(), method="r\x1b[2J\nApproved.")
    assert all(text.isprintable() for text in plan_in_words(bad))
    console = Console(record=True, width=200)
    party_console = PartyTerminal(console, "a", Limits())
    party_console.event(Event("refused", "x\x1b[31m\ny", word="over-limits"))
    text = console.export_text()
    assert "\x1b" not in text
    assert text.count("\n") == 1


def test_the_words_count_at_the_partys_own_delta() -> None:
    words = " ".join(plan_in_words(a_plan(1.0), 1e-9))
    assert "counted at this party's delta = 1e-09: epsilon = 1." in words
    assert "counted at" not in " ".join(plan_in_words(a_plan(1.0), 1e-5))


def used_site(site: Site) -> Rig:
    """A party that reserved a run, answered twice, and refused two things."""
    rig = asking_rig(site)
    approved(rig)
    rig.open(rig.plan)
    assert rig.ask("a").type == "answer"
    assert rig.ask("a", attempt=2).type == "answer"
    rig.ask("a", parties=("a",))
    rig.ask("a", run="other")
    return rig


def test_status_log_and_limits_from_the_ledger_file(site: Site) -> None:
    rig = used_site(site)
    running = StatusService(site, rig.ledgers["a"], ASKING, lambda: "running").status()
    rig.ledgers["a"].close()
    status = json.loads(call("status", site.path, "--json").stdout)
    assert {**running, "running": False, "state": "not running"} == status
    (run,) = status["runs"]
    assert (run["charged_slots"], run["charged_attempts"], run["slots"]) == (1, 2, 4)
    assert status["refused"] == {"too-few-parties": 1, "unknown-run": 1}
    per_run, total = status["limits"]
    assert per_run["used"] is None
    assert total["used"] == pytest.approx(1.0, rel=1e-6)
    assert total["left"] == pytest.approx(2.0, rel=1e-6)
    assert 2.0 < total["next_run"] < 3.0  # squares of mu add up, not epsilons

    entries = json.loads(call("log", site.path, "--json").stdout)
    kinds = ["started", "approved", "reserved", "charged", "charged", "refused", "refused"]
    assert [entry["what"] for entry in entries] == kinds
    assert entries[3]["kind"] == "label-sums"
    assert entries[4]["attempt"] == 2
    assert entries[5]["word"] == "too-few-parties"
    assert all(entry["time"].endswith("+00:00") for entry in entries)

    words = call("status", site.path).stdout
    assert "not running" in words
    assert "Refused 1 x unknown-run." in words
    assert "too-few-parties" in call("log", site.path).stdout
    limits = call("limits", site.path).stdout
    assert "Epsilon at most 2 a run, counted at delta = 1e-06." in limits
    assert "A person must approve each plan." in limits
    found = json.loads(call("limits", site.path, "--json").stdout)
    assert found["limits"] == status["limits"]


def test_the_process_of_a_running_party_is_asked_first(site: Site) -> None:
    rig = used_site(site)
    service = PartyService(StatusService(site, rig.ledgers["a"], ASKING, lambda: "running"))
    with Listener(site.status_socket, service.handle):
        assert ask_party(site, Limits(), "status")["state"] == "running"
        assert ask_party(site, Limits(), "log") == log_of(rig.ledgers["a"], "a")
        assert ask_party(site, Limits(), "pending") == []
        with pytest.raises(HedgerowError, match="answers: status, log, pending"):
            ask_party(site, Limits(), "rows")
    # One that does not listen does not keep others from reading its ledger.
    assert ask_party(site, Limits(), "status")["state"] == "not running"
    with holding(site, "hedgerow party start"):
        assert ask_party(site, Limits(), "status")["state"] == "running, and not answering yet"
        assert ask_party(site, Limits(), "log") == log_of(rig.ledgers["a"], "a")
    rig.ledgers["a"].close()


def test_a_party_that_never_started_has_an_empty_status(site: Site) -> None:
    status = json.loads(call("status", site.path, "--json").stdout)
    assert (status["runs"], status["refused"], status["running"]) == ([], {}, False)
    assert not site.ledger_path.exists()


def test_a_limits_file_is_written_once(site: Site) -> None:
    again = call("limits", site.path, "--write")
    assert "exists and was not changed" in str(again.exception)
    (site.folder / "limits.toml").unlink()
    assert "the defaults" in call("limits", site.path).stdout
    assert call("limits", site.path, "--write").exit_code == 0
    assert (site.folder / "limits.toml").stat().st_mode & 0o077 == 0
    assert "per_month" in (site.folder / "limits.toml").read_text()


def test_the_card_is_shown_again_and_is_the_same(site: Site) -> None:
    first = json.loads(call("card", site.path, "--json").stdout)
    shown = call("card", site.path)
    assert first["phrase"] in shown.stderr
    assert first["phrase"] not in shown.stdout  # that is the file
    assert Path(first["card"]).is_file()
    assert json.loads(call("card", site.path, "--json").stdout) == first
    with pytest.raises(SettingsError, match="needs a party's"):
        Site.open(Site.create(site.path.parent / "c", "coordinator").path, "party")


@pytest.mark.parametrize(
    ("kind", "values", "defect"),
    [
        ("refuse", {}, "does not say what was refused"),
        ("answer", {"request": "x"}, "not charged before"),
    ],
)
def test_new_kinds_of_lines_do_not_hide_a_defect(
    site: Site, kind: str, values: dict[str, Any], defect: str
) -> None:
    rig = used_site(site)
    ledger = rig.ledgers["a"]
    (found,) = verify(ledger)
    assert (found.charges, found.answers) == (2, 2)
    ledger.append("a", kind, rig.plan.run, 3, 7, values)
    with pytest.raises(LedgerError, match=defect):
        verify(ledger)


def test_a_reservation_of_another_plan_than_the_approved_one_is_found() -> None:
    from hedgerow.privacy.ledger.reservation import Reservation

    ledger = Ledger.in_memory()
    ledger.append("a", "approve", "run-1", values={"hash": a_plan(2.0).hash})
    Reservation(ledger, a_plan(1.0), "a")
    with pytest.raises(LedgerError, match="another plan than the one that a person approved"):
        verify(ledger)


def test_the_board_says_what_was_asked_and_what_is_left(site: Site) -> None:
    console = Console(record=True, width=300)
    party_console = PartyTerminal(console, "a", ASKING)
    rig = asking_rig(site)
    approved(rig)
    with party_console.follow(rig.ledgers["a"]):
        rig.parties["a"]._watch = party_console.event
        rig.open(rig.plan)
        rig.ask("a")
        rig.ask("a")  # the same again: free, and not told
        rig.ask("a", parties=("a",))
        rig.ask("a", parties=("a",))
    text = console.export_text()
    assert text.count("reserved epsilon = 1 at delta = 1e-06") == 1
    assert "1 of 3 used in total (next run at most 2." in text
    assert text.count("answered slot 0, label-sums (random-trees), mu = ") == 1
    assert text.count("refused (too-few-parties)") == 1


@pytest.mark.parametrize("terminal", [True, False])
def test_answers_wait_for_no_screen_and_every_one_is_shown(site: Site, terminal: bool) -> None:
    console = Console(force_terminal=terminal, color_system=None, record=True, width=300)
    party_console = PartyTerminal(console, "a", ASKING)
    rig, screen = asking_rig(site), threading.Lock()
    approved(rig)
    shows = party_console.events

    def held_up(events: Sequence[Event]) -> None:
        with screen:
            shows(events)

    with party_console.follow(rig.ledgers["a"]):
        party_console.events = held_up  # type: ignore[method-assign]
        with ExitStack() as stack:
            rig.parties["a"]._watch = stack.enter_context(party_console.aside())
            with screen:  # as long as this is held nothing can be shown
                rig.open(rig.plan)
                assert rig.ask("a") is not None
                rig.ask("a", parties=("a",))
                assert "answered" not in console.export_text(clear=False)
    text = console.export_text()
    words = ["reserved epsilon", "answered slot 0, label-sums", "refused (too-few-parties)"]
    assert [text.count(word) for word in words] == [1, 1, 1]
    assert sorted(words, key=text.index) == words


def test_answers_of_one_run_that_come_together_are_one_line() -> None:
    console, ledger = Console(record=True, width=300), Ledger.in_memory()
    party_console, plan = PartyTerminal(console, "a", ASKING), a_plan(run="run-1")
    reservation = Reservation(ledger, plan, "a")
    for slot in range(3):
        reservation.charge(slot, f"request {slot}")
    spent = [
        Event("answered", "run-1", slot, f"kind-{slot // 2}", Price(plan.slots[slot].mu), plan=plan)
        for slot in range(3)
    ]
    with party_console.follow(ledger):
        party_console.events([*spent, Event("refused", "run-1", word="old-attempt"), spent[0]])
    text = console.export_text()
    line = f"run run-1: answered 3 queries, slots 0 to 2, kind-0, kind-1 ({plan.method}); epsilon"
    assert text.count(": answered") == 2
    assert text.index(line) < text.index("refused (old-attempt)") < text.index("answered slot 0,")


def test_on_a_terminal_a_table_stays_in_view(site: Site) -> None:
    console = Console(force_terminal=True, width=120, record=True)
    party_console = PartyTerminal(console, "a", ASKING)
    rig = asking_rig(site)
    approved(rig)
    with party_console.follow(rig.ledgers["a"]):
        rig.parties["a"]._watch = party_console.event
        rig.open(rig.plan)
        rig.ask("a")
    text = console.export_text()
    assert "Party a" in text
    assert "1 queries" in text


@pytest.mark.parametrize("boot", [0, 3])
def test_whoever_settles_a_lost_start_is_told_to_start_the_party_again(
    site: Site, boot: int
) -> None:
    limits, now = Limits(budget=Budget(5.0, 1e-6)), now_text()
    with Ledger.open(site.ledger_path) as ledger:
        note_gap(ledger, "a", Gap("" if boot else "00", 1 - bool(boot), now, "b", now, boot=boot))
    settled = ask_party(site, limits, "settle", reason="an old copy", **{"as": "Kim"})
    assert settled["start_again"] is bool(boot)
    with Ledger.open(site.ledger_path) as ledger:
        assert len(ledger.lines("a", "boot")) == boot  # so the next start is above it
