"""What a site remembers of earlier starts: limits that were used, and how far its ledger came."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hedgerow.cli.party import party_app
from hedgerow.deployment.ledger_head import LedgerHead
from hedgerow.deployment.limits_file import default_limits_text
from hedgerow.deployment.process import PartyProcess
from hedgerow.deployment.start import Start
from hedgerow.deployment.terminal import PartyTerminal
from hedgerow.errors import FormatError, HedgerowError, LedgerError, SettingsError
from hedgerow.party.limits import Event, Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.verify import verify
from tests.deployment.sites import Sites
from tests.privacy.ledger.test_ledger import a_plan

TIGHT = "format = 1\ndelta = 1e-6\nleast_parties = 3\n[epsilon]\nper_run = 0.5\ntotal = 1\n"


class StartedParty:
    """One party, started and stopped within this process."""

    def __init__(self, folder: Path) -> None:
        sites = Sites(folder, ("north", "south", "west"))
        sites.pin()
        self.folder, self.site = folder, sites.by_name["north"]
        self.limits = folder / "limits.toml"
        self.limits.write_text(TIGHT)
        self.meanwhile: Callable[[Ledger], None] = lambda ledger: None

    def serve(
        self, limits: Path | None = None, new_ledger: bool = False, terminal: bool = False
    ) -> str:
        """Start, stop as soon as it answers; what it said."""
        console = Console(
            record=True, width=2000, file=(self.folder / "o").open("w"), force_terminal=terminal
        )
        table, schema = self.folder / "north.csv", self.folder / "schema.toml"
        start = Start.remembered(self.site).updated(table, schema, limits)
        ended: list[PartyProcess] = []
        meanwhile = self.meanwhile

        class Brief(PartyTerminal):
            def say(self, text: str, style: str | None = None) -> None:
                super().say(text, style)
                if text.startswith("answering for"):
                    assert self._ledger is not None
                    meanwhile(self._ledger)
                    ended[0].stop()

        def terminal_for(allowed: Limits) -> PartyTerminal:
            return Brief(console, "north", allowed)

        with console.file:
            process = PartyProcess(self.site, start, terminal_for, None, False, new_ledger)
            ended.append(process)
            process.run()
            return console.export_text()

    def ledger(self) -> Ledger:
        return Ledger.open(self.site.ledger_path, create=False)

    def kinds(self) -> list[str]:
        with self.ledger() as ledger:
            verify(ledger)
            return [line.kind for line in ledger.lines()]


@pytest.fixture
def party(tmp_path: Path) -> StartedParty:
    return StartedParty(tmp_path)


def call(*words: object) -> str:
    return CliRunner().invoke(party_app, [str(word) for word in words]).stdout


# Limits


def test_limits_are_recorded_when_they_change_and_only_then(party: StartedParty) -> None:
    assert "not those of the last start" not in party.serve(party.limits)
    assert "not those of the last start" not in party.serve()
    assert party.kinds() == ["limits", "boot", "boot"]
    party.limits.write_text(TIGHT.replace("0.5", "0.4"))
    assert "the limits are not those of the last start" in party.serve()
    assert party.kinds() == ["limits", "boot", "boot", "limits", "boot"]
    log = json.loads(call("log", party.site.path, "--json"))
    first, second = (entry for entry in log if entry["what"] == "limits set")
    assert first["source"] == "named"
    assert first["hash"] != second["hash"]
    assert second["hash"][:12] in call("log", party.site.path)


def test_a_site_whose_limits_file_is_gone_does_not_start_with_the_defaults(
    party: StartedParty,
) -> None:
    own = party.site.folder / "limits.toml"
    own.write_text(TIGHT)
    party.serve()
    own.unlink()
    for _ in range(2):
        with pytest.raises(SettingsError, match=r"limits\.toml, and it is missing.*--write"):
            party.serve()
    (party.site.folder / "start.toml").unlink()  # the ledger remembers as well
    with pytest.raises(SettingsError, match=r"it is missing.*nothing was spent"):
        party.serve()
    assert party.kinds() == ["limits", "boot"]
    assert "Limits written" in CliRunner().invoke(
        party_app, ["limits", str(party.site.path), "--write"]
    ).output  # fmt: skip
    assert "not those of the last start" in party.serve()


def test_a_lost_start_file_does_not_lose_the_limits_that_it_named(party: StartedParty) -> None:
    party.serve(party.limits)
    (party.site.folder / "start.toml").unlink()
    with pytest.raises(SettingsError, match="Name it again with --limits FILE"):
        party.serve()
    (party.site.folder / "limits.toml").write_text(default_limits_text())
    with pytest.raises(SettingsError, match=r"the site's own limits\.toml would hold instead"):
        party.serve()
    assert party.kinds() == ["limits", "boot"]
    party.serve(party.limits)
    party.serve()
    assert party.kinds() == ["limits", "boot", "boot", "boot"]


def test_a_named_limits_file_that_is_gone_is_an_error(party: StartedParty) -> None:
    party.serve(party.limits)
    party.limits.unlink()
    with pytest.raises(SettingsError, match="there is no limits file"):
        party.serve()


def test_limits_are_remembered_also_without_the_ledger(party: StartedParty) -> None:
    own = party.site.folder / "limits.toml"
    own.write_text(TIGHT)
    party.serve()
    own.unlink()
    party.site.ledger_path.unlink()
    with pytest.raises(SettingsError, match="it is missing"):
        party.serve(new_ledger=True)


def test_the_defaults_may_be_replaced_by_a_file(party: StartedParty) -> None:
    party.serve()
    party.serve()
    (party.site.folder / "limits.toml").write_text(default_limits_text())
    assert "not those of the last start" not in party.serve()  # the same text
    party.serve(party.limits)
    assert party.kinds() == ["limits", "boot", "boot", "limits", "boot", "limits", "boot"]


# The ledger


def spend(party: StartedParty, run: str) -> None:
    with party.ledger() as ledger:
        Reservation(ledger, a_plan(1.0, run), "north")


def test_a_used_site_does_not_start_with_an_empty_ledger(party: StartedParty) -> None:
    party.serve()
    spend(party, "one")
    party.serve()
    party.site.ledger_path.unlink()
    with pytest.raises(LedgerError, match=r"is missing.*what was spent is forgotten.*--new-ledger"):
        party.serve()
    assert not party.site.ledger_path.exists()
    (party.site.folder / "last-line.toml").unlink()  # the start file says that it was used
    with pytest.raises(LedgerError, match="is missing"):
        party.serve()
    party.site.ledger_path.touch()
    with pytest.raises(LedgerError, match="has 0 lines"):
        party.serve()


def test_a_new_ledger_is_an_explicit_choice_on_record(party: StartedParty) -> None:
    for _ in range(3):
        party.serve()
    party.site.ledger_path.unlink()
    party.serve(new_ledger=True)
    # Others refuse a party whose count of starts fell, so the count goes on.
    assert party.kinds() == ["renew", "boot", "boot", "boot", "limits", "boot"]
    with party.ledger() as ledger:
        assert [line.values["boot"] for line in ledger.lines("north", "boot")] == [1, 2, 3, 4]
        assert ledger.lines("north", "renew")[0].values == {"kept": 0, "lines": 4}
    assert "what was spent is forgotten" in " ".join(call("log", party.site.path).split())
    party.serve()


def test_a_new_ledger_is_refused_where_none_is_needed(party: StartedParty) -> None:
    """So that nobody leaves the option in a script."""
    with pytest.raises(SettingsError, match="never started"):
        party.serve(new_ledger=True)
    assert not party.site.ledger_path.exists()
    party.serve()
    with pytest.raises(SettingsError, match=r"has all of its lines \(2\).*Leave it out"):
        party.serve(new_ledger=True)
    assert party.kinds() == ["limits", "boot"]


def test_an_old_copy_of_the_ledger_is_refused(party: StartedParty) -> None:
    party.serve()
    copy = party.folder / "backup"
    shutil.copy(party.site.ledger_path, copy)
    spend(party, "one")
    party.serve()
    shutil.copy(copy, party.site.ledger_path)
    with pytest.raises(LedgerError, match=r"has 2 lines and not .*\(line 4\).*old copy"):
        party.serve()
    # Another ledger that is longer is not the one either.
    with party.ledger() as ledger:
        for _ in range(9):
            ledger.append("north", "recover")
    with pytest.raises(LedgerError, match="old copy or another ledger"):
        party.serve()
    shutil.copy(copy, party.site.ledger_path)
    party.serve(new_ledger=True)
    assert party.kinds() == ["limits", "boot", "renew", "boot", "boot"]


def test_a_crash_leaves_an_older_note_which_is_still_true(party: StartedParty) -> None:
    party.serve()
    note = (party.site.folder / "last-line.toml").read_text()
    spend(party, "one")
    party.serve()
    (party.site.folder / "last-line.toml").write_text(note)
    party.serve()
    found = LedgerHead.noted(party.site)
    assert found is not None
    assert (found.lines, found.boots) == (5, 3)
    (party.site.folder / "last-line.toml").unlink()
    party.serve()  # the ledger is there and has lines
    (party.site.folder / "last-line.toml").write_text("lines = ")
    with pytest.raises(FormatError, match="which line the ledger had last"):
        party.serve()


def test_a_start_is_noted_before_it_answers_and_the_rest_when_it_stops(party: StartedParty) -> None:
    noted: list[LedgerHead | None] = []

    def meanwhile(ledger: Ledger) -> None:
        noted.append(LedgerHead.noted(party.site))
        ledger.append("north", "recover")

    party.meanwhile = meanwhile
    party.serve()
    noted.append(LedgerHead.noted(party.site))
    assert [(note.lines, note.boots) for note in noted if note] == [(2, 1), (3, 1)]


def test_a_reservation_is_noted_at_once(party: StartedParty) -> None:
    """A process that is killed later has still written down what counts."""
    party.serve()
    process = PartyProcess(
        party.site,
        Start.remembered(party.site),
        lambda allowed: PartyTerminal(Console(), "n", allowed),
        None,
    )
    told: list[Event] = []
    with party.ledger() as ledger:
        Reservation(ledger, a_plan(1.0, "one"), "north")
        process._told(ledger, told.append, Event("reserved", "one", plan=a_plan()))
    found = LedgerHead.noted(party.site)
    assert found is not None
    assert found.lines == 3
    assert [event.run for event in told] == ["one"]


def test_the_board_tells_a_lost_ledger_from_a_full_disk(tmp_path: Path) -> None:
    console = Console(record=True, width=300)
    party_console = PartyTerminal(console, "a", Limits())
    with Ledger.open(tmp_path / "l") as ledger, party_console.follow(ledger):
        (tmp_path / "l").unlink()
        party_console.event(Event("unwritten", "run"))
    assert "somebody removed or replaced the ledger file" in console.export_text()


@pytest.mark.parametrize("terminal", [True, False])
def test_exact_counts_are_on_the_operators_own_screen_alone(
    party: StartedParty, terminal: bool
) -> None:
    schema = party.folder / "schema.toml"
    schema.write_text(re.sub("upper = [0-9.]+", "upper = 0.001", schema.read_text(), count=1))
    told = party.serve(terminal=terminal)
    assert ("values lie above the upper bound 0.001" in told) is terminal
    assert ("hedgerow schema check" in told) is not terminal
    with party.ledger() as ledger:
        assert not any("0.001" in repr(line.values) for line in ledger.lines())


def test_every_refusal_to_start_says_that_nothing_was_spent(party: StartedParty) -> None:
    party.serve(party.limits)
    party.site.ledger_path.unlink()
    with pytest.raises(HedgerowError, match="Nothing was asked and nothing was spent"):
        party.serve()
