"""A coordinator that lies gains nothing: one test a lie."""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex
from typing import Any

import numpy as np
import pytest

from hedgerow.data.schema import Schema
from hedgerow.methods.registry import plan_for
from hedgerow.packing import pack, unpack
from hedgerow.party import party as party_module
from hedgerow.party.limits import Limits
from hedgerow.party.party import Party
from hedgerow.privacy.ledger.spending import Budget
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol import messages
from hedgerow.protocol.identity import Announcement, Identity, Roster
from hedgerow.protocol.messages import Message
from hedgerow.queries import ColumnCounts, LabelSums
from tests.attacks.rig import SCHEMA, Rig, some_rows, word


def charges(rig: Rig, name: str = "a") -> int:
    return len(rig.ledgers[name].lines(name, "charge"))


def test_an_honest_question_is_answered_and_charged() -> None:
    rig = Rig()
    assert [rig.ask(name).type for name in rig.parties] == ["answer"] * 4
    assert [charges(rig, name) for name in rig.parties] == [1] * 4
    rig.check_books()


def test_a_false_drop_out_is_one_more_charge_and_then_none_is_left() -> None:
    rig = Rig(spare=1)
    assert rig.ask("a").type == "answer"
    assert rig.ask("a", attempt=2, parties=("a", "b", "c")).type == "answer"
    assert word(rig.ask("a", attempt=3, parties=("a", "b", "d"))) == "no-attempts-left"
    assert charges(rig) == 2
    rig.check_books()


def test_two_sets_in_one_attempt_are_refused() -> None:
    rig = Rig()
    assert rig.ask("a").type == "answer"
    assert word(rig.ask("a", parties=("a", "b", "c"))) == "answered-differently"
    assert charges(rig) == 1


def test_two_questions_in_one_attempt_are_refused() -> None:
    rig = Rig()
    first = rig.question(slot=1)
    assert word(rig.send("a", Message("ask", first.body()))) == "not-in-plan"
    assert rig.ask("a").type == "answer"
    assert word(rig.ask("a", query=LabelSums(2), colluding=0)) == "too-little-noise"
    other = replace(rig.question(), noise=replace(rig.question().noise, mu=9.0))
    assert word(rig.send("a", Message("ask", other.body()))) == "too-little-noise"
    rig.check_books()


def test_a_replayed_request_gets_the_same_bytes_for_free() -> None:
    rig = Rig()
    first, second = rig.ask("a"), rig.ask("a")
    assert first.body == second.body
    assert charges(rig) == 1


def test_an_attempt_number_may_not_fall() -> None:
    rig = Rig(spare=5)
    assert rig.ask("a", attempt=3).type == "answer"
    assert word(rig.ask("a", attempt=2)) == "old-attempt"


@pytest.mark.parametrize("factor", [0.0, 0.5, 0.999999, 2.0])
def test_less_noise_is_refused(factor: float) -> None:
    rig = Rig()
    noise = rig.question().noise
    weaker = replace(noise, sigmas=tuple(factor * s for s in noise.sigmas))
    assert word(rig.ask("a", noise=weaker)) == "too-little-noise"
    assert charges(rig) == 0


def test_noise_shared_among_more_parties_than_there_are_is_refused() -> None:
    rig = Rig()
    assert word(rig.ask("a", colluding=-100)) == "too-little-noise"
    assert word(rig.ask("a", colluding=0)) == "too-little-noise"


def test_another_plan_for_the_same_run_is_refused() -> None:
    rig = Rig()
    dearer = Rig(epsilon=50.0, opened=False).plan
    swapped = replace(dearer, run=rig.plan.run)
    opening = messages.plain("open", {"plan": swapped.to_dict(), "roster": rig.roster.hash})
    assert word(rig.send("a", opening)) == "other-plan"


def test_a_plan_whose_slots_cost_more_than_it_promises_is_not_a_plan() -> None:
    rig = Rig(opened=False)
    document = rig.plan.to_dict()
    for slot in document["slot"]:
        slot["mu"] *= 3
    opening = messages.plain("open", {"plan": document, "roster": rig.roster.hash})
    assert word(rig.send("a", opening)) == "bad-message"


def test_another_schema_is_refused() -> None:
    rig = Rig(opened=False)
    other = replace(rig.plan, schema_hash=Schema.from_bounds({"x": (0, 1)}, classes=[0, 1]).hash)
    opening = messages.plain("open", {"plan": other.to_dict(), "roster": rig.roster.hash})
    assert word(rig.send("a", opening)) == "other-schema"


def test_another_roster_is_refused() -> None:
    rig = Rig(opened=False)
    opening = messages.plain("open", {"plan": rig.plan.to_dict(), "roster": "0" * 64})
    assert word(rig.send("a", opening)) == "other-roster"
    weaker = replace(rig.roster, minimum=1)
    opening = messages.plain("open", {"plan": rig.plan.to_dict(), "roster": weaker.hash})
    assert word(rig.send("a", opening)) == "other-roster"


def test_a_plan_that_lowers_the_rosters_minimum_is_refused() -> None:
    rig = Rig(opened=False)
    privacy = replace(rig.plan.privacy, minimum_parties=2)
    plan = replace(rig.plan, budget=replace(rig.plan.budget, privacy=privacy))
    opening = messages.plain("open", {"plan": plan.to_dict(), "roster": rig.roster.hash})
    assert word(rig.send("a", opening)) == "other-roster"


def test_sybil_parties_are_refused() -> None:
    rig = Rig()
    assert word(rig.ask("a", absent=("sybil",))) == "unknown-party"  # the others are in the sum
    assert word(rig.ask("a", absent=("d", "d"))) == "unknown-party"
    assert word(rig.ask("a", absent=("d", "c"))) == "unknown-party"  # one set is written one way
    assert word(rig.ask("a", parties=("b", "c", "d"))) == "unknown-party"


def test_sets_that_are_too_small_are_refused() -> None:
    rig = Rig()
    assert word(rig.ask("a", parties=("a",))) == "too-few-parties"
    assert word(rig.ask("a", parties=("a", "b"))) == "too-few-parties"
    six = Rig(names=("a", "b", "c", "d", "e", "f"))
    assert word(six.ask("a", parties=("a", "b", "c"))) == "too-few-parties"  # not over half


def announcements_of(rig: Rig) -> list[dict[str, Any]]:
    return rig.open(rig.plan)


def test_a_swapped_key_is_refused() -> None:
    rig = Rig()
    announced = announcements_of(rig)
    own = Party("b", some_rows(5, 9), SCHEMA)  # the coordinator's own key in b's place
    forged = {**announced[1], "key": own._keys.public}
    assert word(rig.join("a", [announced[0], forged, *announced[2:]])) == "bad-announcement"
    resigned = Announcement.from_dict(forged).signed(rig.coordinator).to_dict()
    assert word(rig.join("a", [announced[0], resigned, *announced[2:]])) == "bad-announcement"


def test_an_old_key_is_refused() -> None:
    rig = Rig()
    before = announcements_of(rig)
    ledger, identity = rig.ledgers["b"], rig.parties["b"].identity
    rig.parties["b"] = Party("b", some_rows(50, 1), SCHEMA, ledger, identity)
    rig.parties["b"].pin(rig.roster)
    after = announcements_of(rig)
    assert after[1]["boot"] == before[1]["boot"] + 1
    assert word(rig.join("a", [after[0], before[1], *after[2:]])) == "bad-announcement"
    assert rig.join("a", after).type == "joined"


def test_a_missing_or_foreign_announcement_is_refused() -> None:
    rig = Rig()
    announced = announcements_of(rig)
    assert word(rig.join("a", announced[1:])) == "bad-announcement"
    for name in ("a", "b", "c"):
        assert rig.join(name, announced[:3]).type == "joined"
    assert word(rig.ask("a")) == "bad-announcement"  # d has not announced a key
    assert charges(rig) == 0


def test_messages_not_signed_by_the_pinned_coordinator_are_refused() -> None:
    rig = Rig()
    message = Message("ask", rig.question().body())
    assert word(rig.send("a", message, signer=Identity())) == "bad-signature"
    raw = message.to_bytes()
    assert word(Message.from_bytes(rig.parties["a"].handle(raw))) == "bad-signature"


def test_an_altered_message_is_refused() -> None:
    rig = Rig()
    signed = Message("ask", rig.question().body()).signed(rig.coordinator)
    altered = Message("ask", rig.question(attempt=2).body(), signed.signature)
    reply = Message.from_bytes(rig.parties["a"].handle(altered.to_bytes()))
    assert word(reply) == "bad-signature"


def test_a_party_without_a_pinned_roster_answers_nothing() -> None:
    rig = Rig()
    rig.parties["a"] = Party("a", some_rows(5, 0), SCHEMA)
    assert word(rig.ask("a")) == "other-roster"


def test_a_party_refuses_to_pin_a_roster_with_another_key_for_itself() -> None:
    party = Party("a", some_rows(5, 0), SCHEMA)
    keys = tuple((name, Identity().public) for name in "abc")
    with pytest.raises(Exception, match="another key"):
        party.pin(Roster(keys, Identity().public, 1, 3, "parties"))


def test_questions_outside_of_the_plan_are_refused() -> None:
    rig = Rig()
    assert word(rig.ask("a", slot=0, query=ColumnCounts.of(SCHEMA))) == "not-in-plan"
    honest = rig.question()
    assert word(rig.send("a", Message("ask", replace(honest, slot=99).body()))) == "not-in-plan"
    assert word(rig.send("a", Message("ask", replace(honest, slot=-1).body()))) == "not-in-plan"
    assert word(rig.ask("a", attempt=0)) == "not-in-plan"
    assert word(rig.ask("a", run="another")) == "unknown-run"


@pytest.mark.parametrize(
    "limits",
    [
        Limits(per_run=Budget(0.5, 1e-6)),
        Limits(kinds=frozenset({"label-sums"})),
        Limits(least_parties=4),
        Limits(budget=Budget(0.5, 1e-6)),
    ],
)
def test_a_partys_own_limits_hold(limits: Limits) -> None:
    rig = Rig(limits=limits, opened=False)
    opening = messages.plain("open", {"plan": rig.plan.to_dict(), "roster": rig.roster.hash})
    assert word(rig.send("a", opening)) == "over-limits"
    assert rig.ledgers["a"].lines("a", "reserve") == []


def test_trees_that_are_not_the_ones_named_are_refused() -> None:
    from hedgerow.methods.maddock.boosting import _structure
    from hedgerow.methods.maddock.candidates import uniform
    from hedgerow.model.tree import single_leaf
    from hedgerow.queries import NO_TREES, LeafSums

    rig = Rig()
    named, other = single_leaf(np.array([0.5])), single_leaf(np.array([0.25]))
    query = LeafSums(
        (_structure(SCHEMA, rig.plan, uniform(SCHEMA, 32), 0),),
        "logistic",
        NO_TREES.then(named.to_bytes()),
    )
    ask = Message("ask", rig.question(slot=1, query=query).body())
    assert rig.send("a", ask).type == "need-trees"
    wrong = Message("ask", ask.body, trees=(other,))
    assert word(rig.send("a", wrong)) == "bad-message"
    assert charges(rig) == 0
    right = Message("ask", ask.body, trees=(named,))
    assert rig.send("a", right).type == "answer"
    rig.check_books()


def test_refusals_say_nothing_about_rows() -> None:
    rig = Rig()
    for name, rows in (("a", 50), ("b", 50)):
        assert rows == 50
        reply = rig.ask(name, parties=(name,))
        values, arrays = unpack(reply.body)
        assert set(values) == {"word"}
        assert arrays == {}
        assert values["word"] in messages.REFUSALS


def test_row_counts_leave_only_where_nobody_is_trusted() -> None:
    for trust, visible in (("coordinator", 0), ("parties", 0), ("nobody", 50)):
        values, _ = unpack(Rig(trust=trust).unsealed("a"))
        assert values["rows"] == visible


def test_garbage_is_refused_and_free() -> None:
    rig = Rig()
    for data in (b"", b"\x00" * 40, pack({}), pack({"version": 99, "type": "ask"})):
        reply = Message.from_bytes(rig.parties["a"].handle(data))
        assert word(reply) == "bad-message"
    assert charges(rig) == 0


def test_a_plan_cannot_switch_off_masks_and_noise() -> None:
    rig = Rig(opened=False)
    for trust in ("coordinator", "nobody"):
        privacy = replace(rig.plan.privacy, trust=trust)
        budget = replace(rig.plan.budget, privacy=privacy)
        plan = replace(rig.plan, budget=budget, run=f"exact-{trust}")
        opening = messages.plain("open", {"plan": plan.to_dict(), "roster": rig.roster.hash})
        assert word(rig.send("a", opening)) == "other-roster"
    assert rig.ledgers["a"].lines("a", "reserve") == []


def test_a_key_that_makes_the_mask_predictable_is_refused_before_any_charge() -> None:
    rig = Rig()
    announced = announcements_of(rig)
    weak = Announcement.from_dict({**announced[1], "key": "00" * 32, "boot": 9})
    signed = weak.signed(rig.parties["b"].identity).to_dict()
    assert word(rig.join("a", [announced[0], signed, *announced[2:]])) == "bad-message"
    assert charges(rig) == 0


def test_a_party_that_fails_has_charged_and_does_not_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether a question fails may depend on rows, so finding out is not free, nor repeatable."""
    rig = Rig(spare=1)
    honest = party_module.answer_of

    def broken(*arguments: Any) -> Message:
        honest(*arguments)
        raise RuntimeError("planted")

    monkeypatch.setattr(party_module, "answer_of", broken)
    assert [word(rig.ask("a")) for _ in range(3)] == ["failed", "old-attempt", "old-attempt"]
    assert charges(rig) == 1
    monkeypatch.setattr(party_module, "answer_of", honest)
    first, second = rig.ask("a", attempt=2), rig.ask("a", attempt=2)
    assert first.type == "answer"
    assert first.body == second.body
    assert charges(rig) == 2
    rig.check_books()


@pytest.mark.parametrize("mu", [1e-10, 1e-18, 1e-200])
@pytest.mark.parametrize("trust", ["parties", "coordinator", "nobody"])
def test_noise_too_wide_to_be_drawn_is_no_plan(mu: float, trust: str) -> None:
    """Saturated draws are two fixed numbers; a tiny price would buy the exact sum."""
    rig = Rig(trust=trust, opened=False)
    document = rig.plan.to_dict()
    for slot in document["slot"]:
        slot["mu"] = mu
    opening = messages.plain("open", {"plan": document, "roster": rig.roster.hash})
    assert word(rig.send("a", opening)) == "bad-message"
    assert rig.ledgers["a"].lines("a", "reserve") == []


def test_questions_have_a_public_size_limit() -> None:
    rig = Rig(opened=False)
    document = rig.plan.to_dict()
    document["slot"][0]["coordinates"] = 2**30
    opening = messages.plain("open", {"plan": document, "roster": rig.roster.hash})
    assert word(rig.send("a", opening)) == "bad-message"


def test_a_plan_for_another_unit_is_refused() -> None:
    rig = Rig(opened=False)
    other = replace(rig.plan, unit="person with at most 3 rows")
    opening = messages.plain("open", {"plan": other.to_dict(), "roster": rig.roster.hash})
    assert word(rig.send("a", opening)) == "other-schema"


def test_a_plan_that_says_otherwise_how_often_rows_count_is_refused() -> None:
    """The noise follows from the schema; a person who approves the plan reads what that says."""
    rig = Rig(opened=False)
    other = replace(rig.plan, max_weight=2.0)
    opening = messages.plain("open", {"plan": other.to_dict(), "roster": rig.roster.hash})
    assert word(rig.send("a", opening)) == "other-schema"


def test_a_run_limit_is_counted_at_the_partys_own_delta() -> None:
    """A plan of small epsilon and huge delta costs much at a sensible delta."""
    rig = Rig(limits=Limits(per_run=Budget(0.5, 1e-6)), opened=False)
    privacy = replace(rig.plan.privacy, epsilon=0.01, delta=0.49)
    cheap = plan_for(
        SCHEMA, privacy, "random-trees", settings={"n_trees": 3, "max_depth": 2}, seed=1
    )
    assert cheap.mu > rig.plan.mu
    opening = messages.plain("open", {"plan": cheap.to_dict(), "roster": rig.roster.hash})
    assert word(rig.send("a", opening)) == "over-limits"


def test_two_plans_under_one_name_do_not_share_a_price() -> None:
    """Checked by the plan that was opened first, charged by the one opened next: never."""
    rig = Rig(opened=False)
    settings = {"n_trees": 3, "max_depth": 2}
    dear = plan_for(SCHEMA, Privacy(0.9, 1e-6, "parties"), "random-trees", settings, seed=1)
    cheap = plan_for(SCHEMA, Privacy(1e-3, 1e-6, "parties"), "random-trees", settings, seed=1)
    cheap = replace(cheap, run=dear.run)
    for plan in (dear, cheap):
        values = {"plan": plan.to_dict(), "roster": rig.roster.hash, "nonce": token_hex(16)}
        replies = {name: rig.send(name, messages.plain("open", values)) for name in rig.parties}
    rig.announced = [reply.values["announcement"] for reply in replies.values()]
    rig.plan = dear
    for name in rig.parties:
        assert word(rig.join(name, rig.announced)) == "joined"
        assert word(rig.ask(name)) == "too-little-noise"
        assert not rig.ledgers[name].lines(name, "charge")
    rig.plan = cheap  # the plan that was reserved is the one that is answered
    for name in rig.parties:
        assert word(rig.ask(name)) == "answer"
        (charge,) = rig.ledgers[name].lines(name, "charge")
        assert charge.values["mu"] == cheap.slots[0].mu
    rig.check_books()
