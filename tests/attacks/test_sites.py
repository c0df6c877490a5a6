"""Parties at their own sites: each refusal that limits, identity and approval add, on record.

Lies that a party finds out without limits of its own are in `test_lies.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from hedgerow.data.schema import Schema
from hedgerow.engines.cards import PinnedRoster
from hedgerow.engines.site import Site
from hedgerow.methods.registry import plan_for
from hedgerow.party.limits import Limits
from hedgerow.party.party import Party
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.ledger.refusals import MOST
from hedgerow.privacy.ledger.spending import Budget
from hedgerow.privacy.settings import AutoSettings
from hedgerow.protocol import messages
from hedgerow.protocol.identity import Announcement, Identity, Roster, fingerprint
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Message
from tests.attacks.rig import SCHEMA, Rig, some_rows, word


def opening(rig: Rig, plan: Plan | None = None) -> Message:
    document = (plan or rig.plan).to_dict()
    return messages.plain("open", {"plan": document, "roster": rig.roster.hash})


def recorded(rig: Rig, name: str = "a") -> list[Line]:
    """Refusals in a party's ledger; it must verify, and hold no reservation and no charge."""
    rig.check_books()
    return rig.ledgers[name].lines(name, "refuse")


def limited(**limits: Any) -> Rig:
    return Rig(limits=Limits(**limits), opened=False)


def fresh_plan(rig: Rig, run: str) -> Plan:
    """The rig's plan once more under another name."""
    return replace(rig.plan, run=run)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"per_run": Budget(0.5, 1e-6)}, "over-limits"),
        ({"per_month": Budget(0.5, 1e-6)}, "over-limits"),
        ({"budget": Budget(0.5, 1e-6)}, "over-limits"),
        ({"methods": frozenset({"auto"})}, "over-limits"),
        ({"kinds": frozenset({"label-sums"})}, "over-limits"),
        ({"least_parties": 4}, "over-limits"),
        ({"coordinator": fingerprint(Identity().public)}, "not-allowed"),
        ({"parties": (("a", ""), ("b", ""), ("c", ""))}, "not-allowed"),
        ({"parties": tuple((n, fingerprint("00")) for n in "abcd")}, "not-allowed"),
        ({"approve": True}, "not-approved"),
    ],
)
def test_a_plan_outside_of_the_limits_is_refused_and_recorded(
    limits: dict[str, Any], expected: str
) -> None:
    rig = limited(**limits)
    assert word(rig.send("a", opening(rig))) == expected
    (line,) = recorded(rig)
    assert (line.run, line.values) == (rig.plan.run, {"word": expected})
    assert rig.ledgers["a"].lines("a", "reserve") == []
    assert word(rig.ask("a")) == "unknown-run"  # and nothing can be asked under it


def test_limits_that_allow_exactly_this_federation_let_it_through() -> None:
    rig = Rig(opened=False)
    keys = tuple((name, fingerprint(key)) for name, key in rig.roster.parties)
    allowed = Limits(
        budget=Budget(1.0, 1e-6),
        per_run=Budget(1.0, 1e-6),
        per_month=Budget(1.0, 1e-6),
        least_parties=3,
        kinds=frozenset(rig.plan.budget.kinds()),
        methods=frozenset({"random-trees"}),
        coordinator=fingerprint(rig.roster.coordinator),
        parties=keys,
    )
    for party in rig.parties.values():
        party._limits = allowed
    rig.open(rig.plan)
    assert rig.ask("a").type == "answer"
    assert recorded(rig) == []
    assert word(rig.send("a", opening(rig, fresh_plan(rig, "second")))) == "over-limits"


def test_a_second_plan_is_refused_by_the_month_alone() -> None:
    rig = Rig(limits=Limits(per_run=Budget(1.0, 1e-6), per_month=Budget(1.2, 1e-6)))
    assert word(rig.send("a", opening(rig, fresh_plan(rig, "second")))) == "over-limits"
    assert rig.ask("a").type == "answer"  # the first run goes on


def test_a_set_with_a_party_that_is_not_allowed_is_refused_at_the_question() -> None:
    rig = Rig()
    rig.parties["a"]._limits = Limits(parties=(("a", ""), ("b", ""), ("c", "")))
    assert word(rig.ask("a")) == "not-allowed"
    assert rig.ask("a", parties=("a", "b", "c")).type == "answer"
    rig.parties["a"]._limits = Limits(least_parties=4)
    assert word(rig.ask("a", slot=0, attempt=2, parties=("a", "b", "c"))) == "too-few-parties"
    assert [line.values["word"] for line in recorded(rig)] == ["not-allowed", "too-few-parties"]


LIES: dict[str, Callable[[Rig], Message]] = {
    "too-little-noise": lambda rig: Message(
        "ask",
        rig.question(noise=replace(rig.question().noise, sigmas=(1.0,) * 9)).body(),
    ),
    "too-few-parties": lambda rig: Message("ask", rig.question(parties=("a", "b")).body()),
    "unknown-party": lambda rig: Message("ask", rig.question(absent=("x",)).body()),
    "not-in-plan": lambda rig: Message("ask", replace(rig.question(), slot=99).body()),
    "unknown-run": lambda rig: Message("ask", rig.question(run="other").body()),
    "other-schema": lambda rig: opening(
        rig,
        replace(rig.plan, schema_hash=Schema.from_bounds({"x": (0, 1)}, classes=[0, 1]).hash),
    ),
    "other-roster": lambda rig: messages.plain(
        "open", {"plan": rig.plan.to_dict(), "roster": "0" * 64}
    ),
    "bad-message": lambda rig: messages.plain("dance", {"run": rig.plan.run}),
    "bad-announcement": lambda rig: messages.plain(
        "join", {"run": rig.plan.run, "announcements": []}
    ),
}


@pytest.mark.parametrize("expected", LIES)
def test_every_lie_of_the_coordinator_is_on_record_once(expected: str) -> None:
    rig = Rig()
    lie = LIES[expected](rig)
    assert [word(rig.send("a", lie)) for _ in range(3)] == [expected] * 3
    (line,) = recorded(rig)
    asked = lie.type == "ask"
    assert line.values == {"word": expected}
    assert line.run == ("other" if expected == "unknown-run" else rig.plan.run)
    assert line.slot == ((99 if expected == "not-in-plan" else 0) if asked else -1)
    assert rig.ledgers["a"].lines("a", "charge") == []


def test_a_replayed_answer_and_an_old_attempt_are_told_apart_on_record() -> None:
    rig = Rig(spare=5)
    first = rig.ask("a", attempt=3)
    assert rig.ask("a", attempt=3).body == first.body  # the same bytes again, free
    assert word(rig.ask("a", attempt=2)) == "old-attempt"
    assert word(rig.ask("a", attempt=3, parties=("a", "b", "c"))) == "answered-differently"
    words = [line.values["word"] for line in recorded(rig)]
    assert words == ["old-attempt", "answered-differently"]


def test_what_the_pinned_coordinator_did_not_sign_is_refused_and_leaves_no_line() -> None:
    """Nobody else may fill a party's disk."""
    rig = Rig()
    before = len(rig.ledgers["a"].lines())
    honest = Message("ask", rig.question().body())
    altered = Message(
        "ask", rig.question(attempt=2).body(), honest.signed(rig.coordinator).signature
    )
    assert word(rig.send("a", honest, signer=Identity())) == "bad-signature"
    for data in (altered.to_bytes(), honest.to_bytes()):
        assert word(Message.from_bytes(rig.parties["a"].handle(data))) == "bad-signature"
    assert word(Message.from_bytes(rig.parties["a"].handle(b"garbage"))) == "bad-message"
    assert len(rig.ledgers["a"].lines()) == before


def test_a_coordinator_cannot_fill_the_disk_with_names_of_runs() -> None:
    rig = Rig()
    for i in range(MOST + 50):
        rig.send("a", messages.plain("join", {"run": f"{i} " + "x" * 1000}))
    lines = recorded(rig)
    assert len(lines) == MOST
    assert max(len(line.run) for line in lines) == 80


@pytest.mark.parametrize(
    "body",
    [{}, {"run": 5}, {"run": ["x"], "slot": "y"}, {"plan": 3}, {"run": "r", "slot": 2**70}],
)
def test_a_message_that_names_no_run_is_recorded_without_one(body: dict[str, Any]) -> None:
    rig = Rig()
    assert rig.send("a", messages.plain("dance", body)).type == "refusal"
    (line,) = recorded(rig)
    assert line.run in ("", "r")
    assert line.slot == -1


def transport_keys(sites: dict[str, Site]) -> list[Identity]:
    """What whoever provisioned holds: the private key of every site folder's certificate."""
    keys = []
    for site in sites.values():
        file = site.path / "startup" / "client.key"
        file.parent.mkdir(parents=True)
        made = Ed25519PrivateKey.generate()
        pem = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write_bytes(pem)
        read = load_pem_private_key(file.read_bytes(), None)
        assert isinstance(read, Ed25519PrivateKey)
        keys.append(Identity(read))
    return keys


def test_a_man_in_the_middle_with_every_transport_key_cannot_swap_mask_keys(
    tmp_path: Path,
) -> None:
    """It sits in the coordinator's place, signs as the coordinator, and holds all certificates."""
    names = ("a", "b", "c", "d")
    sites = {n: Site.create(tmp_path / n, n) for n in (*names, "coordinator")}
    held = transport_keys(sites)
    rig = Rig(names, opened=False)
    rig.coordinator = sites["coordinator"].identity()
    rig.parties = {
        n: Party(n, some_rows(50, i), SCHEMA, rig.ledgers[n], sites[n].identity())
        for i, n in enumerate(names)
    }
    keys = tuple((n, sites[n].identity().public) for n in names)
    rig.roster = Roster(keys, rig.coordinator.public, 1, 3, "parties")
    for name, party in rig.parties.items():
        sites[name].pin(PinnedRoster("trial", rig.roster))
        party.pin(sites[name].roster())
    assert rig.roster.coordinator not in {identity.public for identity in held}

    announced = [rig.send(n, opening(rig)).values["announcement"] for n in names]
    between = MaskKeys()  # a would share its mask of b with the man in the middle
    swapped = Announcement.from_dict({**announced[1], "key": between.public})
    forged = [swapped, *(swapped.signed(identity) for identity in (*held, rig.coordinator))]
    older = Announcement.from_dict({**swapped.to_dict(), "boot": 99})
    forged += [older.signed(identity) for identity in held]
    for lie in forged:
        told = [announced[0], lie.to_dict(), *announced[2:]]
        assert word(rig.join("a", told)) == "bad-announcement"
    assert rig.ledgers["a"].lines("a", "reserve") == []
    assert [line.values["word"] for line in recorded(rig)] == ["bad-announcement"]
    for name in names:
        assert rig.join(name, announced).type == "joined"  # the real ones are accepted


def test_a_roster_of_the_provisioner_with_its_own_keys_is_not_pinned(tmp_path: Path) -> None:
    site = Site.create(tmp_path / "a", "a")
    own = Identity()
    keys = tuple((name, Identity().public) for name in ("a", "b", "c"))
    with pytest.raises(Exception, match="somebody stands in between"):
        site.pin(PinnedRoster("trial", Roster(keys, own.public, 1, 3, "parties")))
    assert not (site.folder / "roster.toml").exists()


def test_a_party_whose_ledger_cannot_be_written_says_nothing_until_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from hedgerow.errors import LedgerWriteFailed

    rig = Rig()

    def full(*_: Any, **__: Any) -> Line:
        raise LedgerWriteFailed("planted")

    probe = messages.plain("ready", {"run": rig.plan.run})
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", full)
        assert word(rig.ask("a")) == "cannot-write"
        assert word(rig.send("a", probe)) == "cannot-write"  # no probe brings it back
    assert rig.ledgers["a"].lines("a", "charge") == []
    assert rig.send("a", probe).type == "ready"
    assert rig.ask("a").type == "answer"
    assert len(rig.ledgers["a"].lines("a", "recover")) == 1
    assert recorded(rig) == []


def test_an_open_run_keeps_its_roster_and_a_revoked_key_ends_its_sets() -> None:
    rig = Rig(spare=5)
    before = rig.roster
    further = (*before.parties, ("e", Identity().public))
    rig.parties["a"].pin(replace(before, parties=further))
    assert rig.ask("a").type == "answer"  # opened under the roster before
    assert word(rig.send("a", opening(rig, fresh_plan(rig, "second")))) == "other-roster"
    again = messages.plain("open", {"plan": rig.plan.to_dict(), "roster": before.hash})
    assert rig.send("a", again).type == "opened"  # whoever comes back may join it again
    without = tuple((n, Identity().public if n == "d" else k) for n, k in before.parties)
    rig.parties["a"].pin(replace(before, parties=without))
    assert word(rig.ask("a", attempt=2)) == "unknown-party"
    assert rig.ask("a", attempt=2, parties=("a", "b", "c")).type == "answer"
    rig.parties["a"].pin(replace(before, coordinator=Identity().public))
    assert word(rig.ask("a", attempt=3, parties=("a", "b", "c"))) == "bad-signature"


def test_a_watcher_that_fails_keeps_no_answer_back() -> None:
    def broken(event: object) -> None:
        raise OSError("planted")

    rig = Rig(opened=False)
    rig.parties["a"]._watch = broken
    rig.open(rig.plan)
    assert rig.ask("a").type == "answer"
    assert word(rig.ask("a", parties=("a",))) == "too-few-parties"


def test_a_method_is_judged_by_the_name_in_the_plan_and_by_its_kinds_of_queries() -> None:
    """A false name does not help: what may be asked is limited by the kinds."""
    rig = limited(methods=frozenset({"auto"}), kinds=frozenset({"label-sums"}))
    disguised = replace(rig.plan, method="auto")
    assert word(rig.send("a", opening(rig, disguised))) == "bad-message"  # settings of another
    disguised = replace(disguised, settings=AutoSettings())
    assert word(rig.send("a", opening(rig, disguised))) == "over-limits"
    honest = plan_for(SCHEMA, rig.plan.privacy, "auto", seed=1)
    assert word(rig.send("a", opening(rig, honest))) == "over-limits"
