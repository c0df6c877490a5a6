"""Approvals that are used for what they are not for, and people who may not give them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hedgerow.deployment.accounts import SESSION_IDLES, NotAllowed
from hedgerow.deployment.approvals import PlanFolder
from hedgerow.deployment.service import PartyService, ask_console, ask_party
from hedgerow.deployment.status import StatusService
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Listener
from hedgerow.errors import HedgerowError, PlanError
from hedgerow.party.approvals import decide, decisions_on
from hedgerow.party.limits import Limits
from hedgerow.party.party import Party
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.accounting.request import Request
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol import messages
from hedgerow.testing.clock import manual_clock
from tests.attacks.rig import SCHEMA, Rig, some_rows, word

ASKING = Limits(approve=True)
OFFICER, READER, OPERATOR = "Ada Koch", "Rob Reader", "Olga Operator"


class Asked(Rig):
    """Party a asks people first; its process answers at the sockets of its site."""

    def __init__(self, folder: Path) -> None:
        super().__init__(opened=False)
        self.site = Site.create(folder / "a", "a")
        self.ledgers["a"] = Ledger.open(self.site.ledger_path)
        self.parties["a"] = Party(
            "a", some_rows(50, 0), SCHEMA, self.ledgers["a"], self.parties["a"].identity, ASKING,
            PlanFolder.of(self.site),
        )  # fmt: skip
        self.parties["a"].pin(self.roster)
        self.service = PartyService(StatusService(self.site, self.ledgers["a"], ASKING))

    def put(self, plan: Plan) -> str:
        """What the party says when the coordinator opens a plan."""
        values = {"plan": plan.to_dict(), "roster": self.roster.hash, "nonce": "0" * 32}
        return word(self.send("a", messages.plain("open", values)))

    def decide(self, what: Any, plan: Plan | None = None) -> None:
        decide(self.ledgers["a"], "a", plan or self.plan, what, OFFICER, "study 12")

    def owner(self, question: str, **values: Any) -> Any:
        return ask_party(self.site, ASKING, question, **values)

    def console(self, question: str, session: str = "", **values: Any) -> Any:
        return ask_console(self.site.console_socket, question, session, **values)

    def sign_in(self, name: str) -> str:
        code = self.owner("account", what="link", name=name)["code"]
        return str(self.console("sign-in", code=code)["session"])


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    rig = Asked(tmp_path)
    with (
        Listener(rig.site.status_socket, rig.service.handle),
        Listener(rig.site.console_socket, rig.service.handle_console),
    ):
        yield rig
    rig.ledgers["a"].close()


@pytest.fixture
def people(asked: Asked) -> Asked:
    for name, role in ((OFFICER, "privacy-officer"), (READER, "reader"), (OPERATOR, "operator")):
        asked.owner("account", what="put", name=name, role=role)
    return asked


def other_plans(plan: Plan) -> dict[str, Plan]:
    """Plans that look like one that was approved, and are none."""
    return {
        "seed": replace(plan, seed=plan.seed + 1),
        "run": replace(plan, run="another"),
        "purpose": replace(plan, request=Request(purpose="something else")),
        "asker": replace(plan, request=Request(asker="somebody else")),
        "end": replace(plan, request=Request(ends="2999-12-31")),
        "cost": Rig(epsilon=1.5, opened=False).plan,
    }


@pytest.mark.parametrize("changed", ["seed", "run", "purpose", "asker", "end", "cost"])
def test_an_approval_is_not_worth_anything_for_another_plan(asked: Asked, changed: str) -> None:
    assert asked.put(asked.plan) == "not-approved"
    asked.decide("approve")
    assert asked.put(other_plans(asked.plan)[changed]) == "not-approved"
    assert asked.ledgers["a"].lines("a", "reserve") == []
    assert asked.put(asked.plan) == "opened"


def test_another_plan_cannot_be_put_in_the_place_of_the_opened_one(asked: Asked) -> None:
    asked.decide("approve")
    asked.open(asked.plan)
    lie = replace(asked.plan, seed=asked.plan.seed + 1)
    assert asked.put(lie) in ("other-plan", "not-approved")
    assert asked.ask("a").type == "answer"  # the approved one still is


def test_a_rejection_gives_its_word_and_a_withdrawal_ends_a_run_half_way(asked: Asked) -> None:
    ledger, rejected = asked.ledgers["a"], replace(asked.plan, run="rejected")
    decide(ledger, "a", rejected, "reject", OFFICER, "no board", word="rejected-cost")
    assert asked.put(rejected) == "rejected-cost"
    asked.decide("approve")
    asked.open(asked.plan)
    assert asked.ask("a").type == "answer"
    asked.decide("withdraw")
    assert word(asked.ask("a", slot=1)) == "withdrawn"
    assert word(asked.ask("a")) == "withdrawn"  # also what is stored
    assert asked.put(asked.plan) == "withdrawn"
    with pytest.raises(PlanError, match="decided already: withdrawn by Ada Koch"):
        asked.decide("approve")
    with pytest.raises(PlanError, match="is none of: rejected, rejected-purpose"):
        decide(ledger, "a", asked.plan, "reject", OFFICER, "x", word="over-limits")


def test_a_plan_after_its_last_day_is_refused_also_half_way(asked: Asked) -> None:
    with manual_clock(datetime(2026, 11, 18, 23, 0, tzinfo=UTC)) as clock:
        asked.plan = replace(asked.plan, request=Request(ends="2026-11-18"))
        asked.decide("approve")
        asked.open(asked.plan)
        assert asked.ask("a").type == "answer"
        clock.move(hours=2)
        assert word(asked.ask("a", slot=1)) == "expired"
        assert asked.put(asked.plan) == "expired"
        late = replace(asked.plan, run="late")
        assert asked.put(late) == "expired"
        with pytest.raises(PlanError, match="ended on 2026-11-18"):
            decide(asked.ledgers["a"], "a", late, "approve", OFFICER, "too late")
    # Where nobody is asked a last day holds as well.
    rig = Rig(opened=False)
    rig.plan = replace(rig.plan, request=Request(ends="2020-01-01"))
    values = {"plan": rig.plan.to_dict(), "roster": rig.roster.hash, "nonce": "0" * 32}
    assert word(rig.send("a", messages.plain("open", values))) == "expired"


def test_two_people_at_once_decide_once(asked: Asked) -> None:
    asked.put(asked.plan)
    barrier, said = threading.Barrier(8), []

    def one(number: int) -> None:
        barrier.wait()
        try:
            asked.owner("approve", plan=asked.plan.hash, reason="yes", **{"as": f"p{number}"})
            said.append("approved")
        except HedgerowError as error:
            said.append(str(error))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said.count("approved") == 1
    assert len(asked.ledgers["a"].lines("a", "approve")) == 1


def test_the_process_checks_roles_whatever_a_client_says(people: Asked) -> None:
    people.put(people.plan)
    plan = people.plan.hash
    for name in (READER, OPERATOR):
        session = people.sign_in(name)
        for question in ("approve", "reject", "withdraw", "settle"):
            claims = {"plan": plan, "reason": "x", "as": OFFICER, "role": "privacy-officer"}
            with pytest.raises(NotAllowed, match="this is for: privacy-officer"):
                people.console(question, session, **claims)
        assert people.console("pending", session)[0]["hash"] == plan
        with pytest.raises(HedgerowError, match="process answers"):
            people.console("account", session, what="put", name=name, role="privacy-officer")
    for session in ("", "0" * 43):
        with pytest.raises(NotAllowed, match="nobody is signed in"):
            people.console("status", session)
    with pytest.raises(NotAllowed, match="names the account"):
        people.owner("approve", plan=plan, reason="x")
    with pytest.raises(NotAllowed, match="no account 'Nobody'"):
        people.owner("approve", plan=plan, reason="x", **{"as": "Nobody"})
    assert decisions_on(people.ledgers["a"], "a") == []
    decision = people.console("approve", people.sign_in(OFFICER), plan=plan, reason="study 12")
    assert (decision["name"], decision["role"]) == (OFFICER, "privacy-officer")


def test_a_link_works_once_and_a_session_ends(people: Asked) -> None:
    code = people.owner("account", what="link", name=OFFICER)["code"]
    session = people.console("sign-in", code=code)["session"]
    stored = (people.site.folder / "accounts.toml").read_text()
    assert code not in stored
    for wrong in (code, "", "0" * 43):
        with pytest.raises(NotAllowed, match="was used already"):
            people.console("sign-in", code=wrong)
    assert people.console("who", session) == {"name": OFFICER, "role": "privacy-officer"}
    people.owner("account", what="put", name=OFFICER, role="reader")  # holds at once
    assert people.console("who", session)["role"] == "reader"
    people.console("sign-out", session)
    with pytest.raises(NotAllowed):
        people.console("who", session)
    again = people.sign_in(READER)
    people.owner("account", what="remove", name=READER)
    with pytest.raises(NotAllowed):
        people.console("who", again)
    changes = [line.values["what"] for line in people.ledgers["a"].lines("a", "account")]
    assert changes == ["put", "put", "put", "put", "remove"]


def test_links_and_sessions_grow_old(people: Asked) -> None:
    accounts, sessions = people.service.accounts, people.service.sessions
    with manual_clock(datetime(2026, 11, 18, tzinfo=UTC)) as clock:
        code = accounts.make_link(OFFICER)
        clock.move(days=1, seconds=1)
        with pytest.raises(NotAllowed, match="older than a day"):
            sessions.sign_in(code)
        session, _ = sessions.sign_in(accounts.make_link(OFFICER))
        for _ in range(3):
            clock.move(seconds=SESSION_IDLES.total_seconds() - 1)
            assert sessions.caller(session).name == OFFICER
        clock.move(seconds=SESSION_IDLES.total_seconds())
        with pytest.raises(NotAllowed):
            sessions.caller(session)
        session, _ = sessions.sign_in(accounts.make_link(OFFICER))
        for _ in range(24):
            clock.move(minutes=29)
            sessions.caller(session)
        clock.move(minutes=29)  # twelve hours are over, however busy it was
        with pytest.raises(NotAllowed):
            sessions.caller(session)


@pytest.mark.parametrize(
    "message",
    [b"", b"[]", b"{", b"null", b'{"question": 7}', b'{"question": {"a": 1}}', b"\xff" * 50,
     b'{"question": "approve", "plan": ["x"]}', b"[" * 100_000, b"0" * 200_000],
)  # fmt: skip
def test_requests_that_are_none_get_an_error_and_decide_nothing(
    asked: Asked, message: bytes
) -> None:
    for handle in (asked.service.handle, asked.service.handle_console):
        assert "error" in json.loads(handle(message))
    assert decisions_on(asked.ledgers["a"], "a") == []


def test_an_approval_that_nobody_gave_cannot_be_withdrawn() -> None:
    rig = Rig(opened=False)
    with pytest.raises(PlanError, match="nobody has approved it"):
        decide(rig.ledgers["a"], "a", rig.plan, "withdraw", "Ada Koch", "a second thought")
    assert decisions_on(rig.ledgers["a"], "a") == []
