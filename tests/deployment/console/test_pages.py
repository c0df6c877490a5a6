"""What pages show to whom, and what forms do: over a real ledger, socket and server."""

from __future__ import annotations

import csv
import io
import re
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hedgerow.deployment.accounts import Accounts
from hedgerow.deployment.console.budget import Runs, budget_facts, calculated
from hedgerow.deployment.status import limits_used
from hedgerow.engines.site import Site
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.paging import Wanted, count_of
from hedgerow.privacy.ledger.spending import added, history_of, spending
from hedgerow.privacy.ledger.witnesses import Gap, note_gap
from tests.deployment.console.conftest import WAITING
from tests.deployment.console.rig import (
    N_ROWS,
    PEOPLE,
    Rig,
    asked_plan,
    console_before,
    make_site,
    wait_with,
)

PAGES = ("/", "/budget", "/plans", f"/plans/{WAITING.hash}", "/ledger", "/standing", "/refusals")
OFFICER, OPERATOR, READER = "Paula Privacy", "Olga Operator", "Rita Reader"
ROWS = (str(N_ROWS), f"{N_ROWS:,}")


def pdf_text(content: bytes) -> str:
    pypdf = pytest.importorskip("pypdf")
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(content)).pages)


@pytest.mark.parametrize("name", PEOPLE)
@pytest.mark.parametrize("path", PAGES)
def test_everybody_who_signed_in_sees_every_page(shown: Rig, path: str, name: str) -> None:
    reply = shown.get(path, name)
    assert reply.status == 200
    assert f"{name}, " in reply.text
    assert "http://" not in reply.text.replace("http://www.w3.org", "")  # nothing from elsewhere


def test_the_number_of_rows_is_for_operators_alone(shown: Rig) -> None:
    assert any(rows in shown.get("/", OPERATOR).text for rows in ROWS)
    for name in (OFFICER, READER):
        for path in (*PAGES, "/ledger.csv", "/ledger.pdf"):
            reply = shown.get(path, name)
            text = pdf_text(reply.content) if path.endswith("pdf") else reply.text
            assert not any(rows in text for rows in ROWS), path
    assert not any(rows in shown.log() for rows in ROWS)


def test_the_budget_says_what_the_ledger_says(shown: Rig) -> None:
    text = shown.get("/budget", READER).text
    total = spending(shown.ledger, "hospital-a").epsilon(1e-6)
    assert f"<b>{total:.4g}</b> in total" in text
    for row in limits_used(shown.ledger, "hospital-a", _limits(shown.site)):
        if row["used"] is not None:
            assert f"{row['used']:.4g}" in text
            assert f"{row['left']:.4g}" in text
    assert "Prof. Weber, University" in text
    assert "Readmission within 30 days" in text
    assert '<svg class="hedgerow"' in text


def _limits(site: Site):  # type: ignore[no-untyped-def]
    from hedgerow.deployment.start import Start

    return Start().in_force(site).limits


def test_the_curve_is_what_the_ledger_composes_after_each_run(shown: Rig) -> None:
    ledger, owner, limits = shown.ledger, "hospital-a", _limits(shown.site)
    facts = budget_facts(Runs(lambda: ledger, owner).all(), ledger, owner, limits)
    history = history_of(ledger, 1e-6, owner)
    assert [time for time, _ in facts["curve"]] == [run.time for run in history]
    expected = [run.total for run in history]
    assert [epsilon for _, epsilon in facts["curve"]] == pytest.approx(expected, rel=1e-9)
    (month,) = [row for row in facts["limits"] if row["limit"] == "in the last 31 days"]
    assert facts["month_curve"][-1][1] == pytest.approx(month["used"], rel=1e-9)
    assert facts["returns"][-1]["used"] == 0


def test_so_many_runs_fit_and_not_one_more(shown: Rig) -> None:
    ledger, owner, limits = shown.ledger, "hospital-a", _limits(shown.site)
    runs = Runs(lambda: ledger, owner).all()
    found = calculated(runs, ledger, owner, limits, None, None)
    (total,) = [row for row in found["limits"] if row["limit"] == "in total"]
    last = [run.reserved for run in runs]
    for many, fits in ((total["runs"], True), (total["runs"] + 1, False)):
        spent = added([*last, *[last[-1]] * many]).epsilon(1e-6)
        assert (spent <= 10.0) == fits


def test_the_calculator_says_whether_a_run_fits_and_spends_nothing(shown: Rig) -> None:
    before = shown.ledger.last()
    text = shown.get("/budget?epsilon=1.9&delta=1e-6", OFFICER).text
    assert "A run like epsilon = 1.9 at delta = 1e-06" in text
    assert re.search(r'id="asked">.*?fits', text, re.S)
    dear = shown.get("/budget?epsilon=2.5&delta=1e-6", OFFICER).text
    assert "does not fit" in dear.partition('id="asked"')[2]
    assert shown.get("/budget?epsilon=nan", OFFICER).status == 200
    assert shown.get("/budget?epsilon=-1", OFFICER).status == 409
    assert shown.ledger.last() == before


def test_a_plan_is_shown_in_words_beside_the_last_approved_one(shown: Rig) -> None:
    text = shown.get(f"/plans/{WAITING.hash}", OFFICER).text
    changes = text.partition('id="changes"')[2].partition("</table>")[0]
    assert "<td>purpose</td>" in changes
    assert "Sepsis, second stage" in changes
    assert "<td>settings.n_trees</td>" in changes
    assert "whoever saw all that leaves and guesses is right" in text
    assert "at best" in text
    for name in (OPERATOR, READER):
        assert "<textarea" not in shown.get(f"/plans/{WAITING.hash}", name).text


def test_an_officer_approves_with_name_and_reason_on_the_ledger(rig: Rig) -> None:
    fields = {"decision": "approve", "reason": "Vote 17/3 covers it"}
    assert rig.post(f"/plans/{WAITING.hash}", fields, OFFICER).status == 303
    (line,) = rig.ledger.lines("hospital-a", "approve", WAITING.run)
    assert line.values["name"] == OFFICER
    assert line.values["reason"] == "Vote 17/3 covers it"
    assert line.values["hash"] == WAITING.hash
    assert "Vote 17/3 covers it" in rig.get("/ledger", READER).text
    assert rig.get(f"/plans/{WAITING.hash}", OFFICER).status == 404  # it waits no longer
    withdrawal = {"decision": "withdraw", "reason": "The vote was taken back"}
    assert rig.post(f"/plans/{WAITING.hash}", withdrawal, OFFICER).status == 303
    assert rig.ledger.lines("hospital-a", "withdraw", WAITING.run)


def test_a_rejection_tells_the_coordinator_one_word_of_the_list(rig: Rig) -> None:
    fields = {"decision": "reject", "reason": "Secret of ours", "word": "rejected-purpose"}
    assert rig.post(f"/plans/{WAITING.hash}", fields, OFFICER).status == 303
    (line,) = rig.ledger.lines("hospital-a", "reject", WAITING.run)
    assert line.values["word"] == "rejected-purpose"


@pytest.mark.parametrize("name", [OPERATOR, READER])
def test_the_party_not_the_page_refuses_a_role_that_may_not_decide(rig: Rig, name: str) -> None:
    reply = rig.post(f"/plans/{WAITING.hash}", {"decision": "approve", "reason": "me"}, name)
    assert reply.status == 403
    assert "privacy-officer" in reply.text
    assert not rig.ledger.lines("hospital-a", "approve", WAITING.run)
    assert "403" in rig.log()


def test_of_two_approvers_at_once_one_is_told_that_it_is_decided(rig: Rig) -> None:
    Accounts(rig.site).put("Quentin Second", "privacy-officer")
    rig.sign_in(OFFICER), rig.sign_in("Quentin Second")
    statuses: list[int] = []

    def decide(name: str, what: str) -> None:
        fields = {"decision": what, "reason": f"by {name}"}
        statuses.append(rig.post(f"/plans/{WAITING.hash}", fields, name).status)

    people = ((OFFICER, "approve"), ("Quentin Second", "reject"))
    threads = [threading.Thread(target=decide, args=person) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [303, 409]
    decided = [rig.ledger.lines("hospital-a", kind, WAITING.run) for kind in ("approve", "reject")]
    assert sum(map(len, decided)) == 1


def test_a_decision_without_a_reason_or_choice_changes_nothing(rig: Rig) -> None:
    path = f"/plans/{WAITING.hash}"
    assert rig.post(path, {"decision": "approve", "reason": " "}, OFFICER).status == 409
    assert rig.post(path, {"decision": "", "reason": "x"}, OFFICER).status == 400
    assert not rig.ledger.lines("hospital-a", "approve", WAITING.run)


def test_a_link_signs_in_once_and_the_cookie_is_strict(rig: Rig) -> None:
    code = Accounts(rig.site).make_link(OFFICER)
    reply = rig.post("/enter", {"code": code})
    assert reply.status == 303
    assert "HttpOnly" in reply.headers["set-cookie"]
    assert "samesite=strict" in reply.headers["set-cookie"].lower()
    again = rig.post("/enter", {"code": code})
    assert again.status == 401
    assert "used already" in again.text
    assert "set-cookie" not in again.headers


def test_whoever_signs_out_has_no_session_any_more(rig: Rig) -> None:
    assert rig.get("/", READER).status == 200
    assert rig.post("/leave", {}, READER).status == 303
    assert rig.get("/", READER).status == 303
    assert rig.get("/", READER).headers["location"] == "/enter"


def test_a_session_ends_with_its_account_and_its_decision_is_not_taken(rig: Rig) -> None:
    rig.sign_in(OFFICER)
    Accounts(rig.site).remove(OFFICER)
    assert rig.get("/", OFFICER).headers["location"] == "/enter"
    fields = {"decision": "approve", "reason": "too late"}
    reply = rig.post(f"/plans/{WAITING.hash}", fields, OFFICER)
    assert reply.status == 401
    assert not rig.ledger.lines("hospital-a", "approve", WAITING.run)


def test_on_a_full_disk_the_decision_is_not_taken_and_the_page_says_so(rig: Rig) -> None:
    rig.sign_in(OFFICER)
    rig.ledger._connection.execute("PRAGMA query_only=ON")
    fields = {"decision": "approve", "reason": "in vain"}
    reply = rig.post(f"/plans/{WAITING.hash}", fields, OFFICER)
    rig.ledger._connection.execute("PRAGMA query_only=OFF")
    assert reply.status == 409
    assert "This was not done" in reply.text
    assert "ledger" in reply.text
    assert rig.get(f"/plans/{WAITING.hash}", OFFICER).status == 200  # it still waits


def test_missing_lines_are_named_on_the_pages_and_settled_with_a_word(rig: Rig) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    note_gap(rig.ledger, "hospital-a", Gap("ab" * 32, 3, now, "hospital-b", now))
    assert "Lines of the ledger are missing" in rig.get("/", READER).text
    assert 'id="settle"' in rig.get("/ledger", OFFICER).text
    assert rig.post("/ledger/settle", {"reason": "VM restored"}, OFFICER).status == 400
    before = spending(rig.ledger, "hospital-a").epsilon(1e-6)
    fields = {"reason": "VM restored", "sure": "yes"}
    assert rig.post("/ledger/settle", fields, READER).status == 403
    assert rig.post("/ledger/settle", fields, OFFICER).status == 303
    after = spending(rig.ledger, "hospital-a").epsilon(1e-6)
    assert after > before
    assert f"<b>{after:.4g}</b> in total" in rig.get("/budget", READER).text
    assert 'id="settle"' not in rig.get("/ledger", OFFICER).text


def test_a_form_of_another_session_is_refused(rig: Rig) -> None:
    fields = {"decision": "approve", "reason": "x", "token": rig.token(READER)}
    reply = rig.post(f"/plans/{WAITING.hash}", fields, OFFICER)
    assert reply.status == 403
    assert "Nothing was done" in reply.text
    assert not rig.ledger.lines("hospital-a", "approve", WAITING.run)


def test_a_party_that_is_down_gets_a_page_in_words(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    with console_before(site, Ledger.in_memory(), {}) as rig:
        rig.cookies[OFFICER] = f"{rig.server.door.cookie}=abc"
        reply = rig.get("/", OFFICER)
        assert reply.status == 503
        assert "hedgerow party start" in reply.text
        assert "nothing is spent" in reply.text
        assert rig.post("/enter", {"code": "x"}).status == 503


def test_the_ledger_is_verified_while_it_is_used_and_a_break_is_named(rig: Rig) -> None:
    text = rig.post("/ledger/verify", {}, READER).text
    count, head = rig.ledger.last()
    assert 'id="verified"' in text
    assert f"all {count} lines" in text
    assert head in text


def test_the_ledger_is_filtered_and_paged(rig: Rig) -> None:
    owner = "hospital-a"
    for number in range(230):
        rig.ledger.append(owner, "refuse", f"flood-{number}", values={"word": "bad-signature"})
    first = rig.get("/ledger?kind=refuse", READER).text
    assert first.count('class="tag refuse"') == 100
    assert f"{count_of(rig.ledger, Wanted(owner, 'refuse')):,} lines" in first
    assert "flood-229" in first
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older is not None
    second = rig.get(older[1].replace("&amp;", "&"), READER).text
    assert "flood-129" in second
    assert "flood-130" not in second
    assert "No such line" in rig.get("/ledger?run=none", READER).text
    assert rig.get("/ledger?since=2020-01-01&until=2020-02-01", READER).text.count("tag ") == 0


def test_the_csv_has_every_line_once_in_order_and_no_formula(rig: Rig) -> None:
    plan = asked_plan("run-0007", purpose="=HYPERLINK(1)", asker="@evil")
    wait_with(rig.site, plan)
    rig.post(f"/plans/{plan.hash}", {"decision": "reject", "reason": "=1+1"}, OFFICER)
    for run in ("=HYPERLINK(1)", "@x", "-1", "+1"):  # strangers choose names of runs
        rig.ledger.append("hospital-a", "refuse", run, values={"word": "bad-signature"})
    reply = rig.get("/ledger.csv", READER)
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert [int(row["seq"]) for row in rows] == list(range(1, rig.ledger.last()[0] + 1))
    assert rows[-1]["hash"] == rig.ledger.last()[1]
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    assert "attachment" in reply.headers["content-disposition"]


def test_the_pdf_has_the_numbers_of_the_ledger(shown: Rig) -> None:
    text = pdf_text(shown.get("/ledger.pdf", READER).content)
    count, head = shown.ledger.last()
    total = spending(shown.ledger, "hospital-a").epsilon(1e-6)
    assert f"epsilon = {total:.4g} in total" in " ".join(text.split())
    assert head in "".join(text.split())
    assert f"{count} lines" in text
    assert "run-0005" in text


def test_a_roster_is_compared_before_it_is_pinned(rig: Rig) -> None:
    pinned = rig.site.roster_file.read_text()
    text = rig.post("/standing", {"roster": pinned}, OPERATOR).text
    assert "It is the roster in force" in text
    other = pinned.replace('trust = "parties"', 'trust = "coordinator"')
    text = rig.post("/standing", {"roster": other}, OPERATOR).text
    assert "Trust is coordinator, and was parties." in text
    assert "pinned" in rig.post("/standing", {"roster": "no toml ["}, OPERATOR).text
    assert rig.site.roster_file.read_text() == pinned
    assert "Trust is parties, and was coordinator." in text  # of the history


def test_changed_limits_are_shown_with_their_effect_before_the_next_start(rig: Rig) -> None:
    assert 'id="changed"' not in rig.get("/standing", OPERATOR).text
    file = rig.site.folder / "limits.toml"
    file.write_text(file.read_text().replace("total = 10.0", "total = 3.0"))
    text = rig.get("/standing", OPERATOR).text.partition('id="changed"')[2]
    assert "no longer: Epsilon at most 10 in total" in text
    assert "new: Epsilon at most 3 in total" in text


def test_names_and_purposes_of_others_are_only_text(rig: Rig) -> None:
    evil = "<script>alert(1)</script>"
    plan = asked_plan("run-0008", purpose=evil, asker='"><img src=x>')
    wait_with(rig.site, plan)
    for path in ("/plans", f"/plans/{plan.hash}"):
        text = rig.get(path, OFFICER).text
        assert evil not in text
        assert "<img src=x>" not in text
        assert "&lt;script&gt;" in text
