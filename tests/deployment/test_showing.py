"""Names from outside on an operator's screen: no markup, no control characters, nothing hidden."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hedgerow.cli.party import party_app
from hedgerow.cli.runs import runs
from hedgerow.deployment.approvals import PlanFolder, plan_in_words
from hedgerow.deployment.runs import recorded
from hedgerow.deployment.terminal import PartyTerminal
from hedgerow.engines.site import Site
from hedgerow.errors import HedgerowError
from hedgerow.model.tradeoff import epsilon_of
from hedgerow.party.limits import Event, Limits
from hedgerow.privacy.accounting.accountant import Price
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.refusals import MOST, Refusals
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.settings import AutoSettings
from tests.privacy.ledger.test_ledger import a_plan

NAMES = ("[/b]", "[conceal]abc", "x\x1b[2J", "a\x9b2Jb", "a\u202eb", "[link=file:]")
SHOWN = ("[/b]", "[conceal]abc", "x?[2J", "a?2Jb", "a?b", "[link=file:]")
PAIRS = list(zip(NAMES, SHOWN, strict=True))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.create(tmp_path / "a", "a")


def call(*words: object) -> str:
    found = CliRunner().invoke(party_app, [str(word) for word in words])
    assert found.exit_code in (0, 5), repr(found.exception)  # 5: it does not run
    return found.stdout


def clean(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize(("run", "shown"), PAIRS)
def test_log_status_and_plans_show_a_name_as_it_is(site: Site, run: str, shown: str) -> None:
    plan = replace(a_plan(), method=run)
    with Ledger.open(site.ledger_path) as ledger:
        Reservation(ledger, plan, "a").charge(0, "request", kind=run)
        ledger.append("a", "refuse", run, values={"word": "unknown-run"})
    PlanFolder.of(site).keep(plan)
    for command in ("log", "status", "plans"):
        text = call(command, site.path)
        assert shown in text, command
        assert clean(text), command


@pytest.mark.parametrize(("run", "shown"), PAIRS)
@pytest.mark.parametrize("terminal", [True, False])
def test_the_board_shows_a_name_as_it_is(run: str, shown: str, terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, color_system=None, width=200, record=True)
    party_console, ledger = PartyTerminal(console, "a", Limits()), Ledger.in_memory()
    plan = replace(a_plan(), method=run)
    Reservation(ledger, plan, "a").charge(0, "request")
    # Plans have names without such characters; the console does not rely on it.
    object.__setattr__(plan, "run", run)
    with party_console.follow(ledger):
        party_console.say(f"a new roster holds: {run}")
        party_console.event(Event("reserved", run, plan=plan))
        party_console.event(Event("answered", run, 0, run, Price(plan.slots[0].mu), plan=plan))
        party_console.event(Event("refused", run, word="unknown-run"))
    text = console.export_text(styles=False)
    assert text.count(f"run {shown}") >= 3 + terminal
    assert " queries" in text or not terminal
    assert "\x9b" not in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()


@pytest.mark.parametrize("text", NAMES[:5])
def test_the_list_of_runs_shows_names_and_reasons_as_they_are(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site.create(tmp_path / "c", "coordinator")

    def fails() -> None:
        with recorded(site, replace(a_plan(run="run-1"), method=text)):
            raise HedgerowError(f"why: {text}")

    with pytest.raises(HedgerowError):
        fails()
    runs(site.path)
    out = capsys.readouterr().out
    assert clean(out)
    assert "".join(out.split()).count(SHOWN[NAMES.index(text)]) == 2


def test_refusals_that_are_not_listed_are_counted(site: Site) -> None:
    with Ledger.open(site.ledger_path) as ledger:
        refusals = Refusals(ledger, "a")
        for i in range(MOST + 120):
            refusals.record(f"x{i}", "unknown-run")
    status = json.loads(call("status", site.path, "--json"))
    assert status["refused"] == {"unknown-run": MOST + 100}  # counted at 1, 10 and 100
    assert "unknown-run, 100 not listed" in " ".join(call("log", site.path).split())


# A plan in words


def words_with(**settings: object) -> str:
    plan = a_plan()
    changed: Plan = replace(plan, settings=AutoSettings(**settings))  # type: ignore[arg-type]
    return " ".join(plan_in_words(changed))


def test_the_words_tell_of_a_model_that_a_run_builds_on() -> None:
    told = words_with(warm_start="ab12" * 16, warm_start_says="epsilon = 3 per row")
    assert f"builds on the model {'ab12' * 16}" in told
    assert "promises: epsilon = 3 per row." in told
    assert "public" in words_with(warm_start="ab", warm_start_says="public")
    assert words_with(warm_start="a\x1b[2J", warm_start_says="b\x9bc").isprintable()
    assert "builds on" not in words_with()


def test_the_words_tell_what_a_changed_label_and_a_family_cost() -> None:
    plan = a_plan()
    told = " ".join(plan_in_words(plan))
    for units, words in ((2, "all of it)"), (5, "5 rows added or removed"), (10, "10 rows")):
        cost = epsilon_of(units * plan.mu, plan.privacy.delta, 2**42)
        assert f"{words}{' added or removed' if units == 10 else ''}: epsilon = {cost:.3g}" in told
    local = replace(plan.budget, privacy=replace(plan.privacy, trust="nobody"))
    assert "5 rows replaced: epsilon" in " ".join(plan_in_words(replace(plan, budget=local)))


def test_the_words_tell_of_a_number_of_rows_taken_for_public() -> None:
    assert "number of rows of all parties together for public: 12,345." in words_with(
        rows_hint=12345
    )
    assert "for public" not in words_with()


@pytest.mark.parametrize("limit", ["", "[epsilon]\ntotal = 9\n", "[epsilon]\nper_month = 9\n"])
def test_approve_counts_at_the_partys_own_delta_whatever_is_limited(site: Site, limit: str) -> None:
    (site.folder / "limits.toml").write_text(f"format = 1\ndelta = 1e-9\n{limit}")
    PlanFolder.of(site).keep(a_plan())
    for words in (("plans", site.path), ("approve", site.path, "run-1", "--yes")):
        shown = " ".join(call(*words).split())
        assert "counted at this party's delta = 1e-09: epsilon = 1." in shown


def test_another_accounting_does_not_hide_the_cost_at_the_own_delta() -> None:
    plan = a_plan()
    privacy = replace(plan.privacy, accounting="renyi", epsilon=5.0)
    renyi = replace(plan, budget=replace(plan.budget, privacy=privacy))
    assert "counted at this party's delta = 1e-05" in " ".join(plan_in_words(renyi, 1e-5))
