"""An engine that swaps, repeats and keeps messages: without a key it gains and costs little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from hedgerow import Ledger
from hedgerow.coordinator.federation import Reply
from hedgerow.coordinator.gate import Gate
from hedgerow.engines.local import PackedEngine
from hedgerow.errors import FormatError, PlanError, SumFailed
from hedgerow.methods.maddock.boosting import grow
from hedgerow.model.tree import single_leaf
from hedgerow.packing import pack, unpack
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.verify import verify
from hedgerow.protocol import messages
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Message
from hedgerow.queries import NO_TREES, LabelSums, LeafSums
from hedgerow.testing import noise_off
from tests.attacks.rig import Packed, Rig, word
from tests.attacks.test_drop_outs import make


class Hostile(Packed):
    """Sees every message and reply, and may put others in their place."""

    def __init__(self, inner: PackedEngine) -> None:
        super().__init__(inner)
        self.seen: dict[tuple[str, str], bytes] = {}  # (party, type of message) -> first reply
        self.instead: dict[tuple[str, str], tuple[str, str]] = {}

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        type_ = Message.from_bytes(message).type
        replies = super().ask(names, message, timeout_seconds)
        for name, reply in replies.items():
            assert reply.body is not None
            self.seen.setdefault((name, type_), reply.body)
        for name in names:
            if (name, type_) in self.instead:
                replies[name] = Reply(self.seen[self.instead[name, type_]])
        return replies


def hostile(n: int) -> tuple[Gate, Hostile, Ledger, Ledger]:
    """A gate over a hostile engine, with the coordinator's and the parties' ledgers."""
    shared, own = Ledger.in_memory(), Ledger.in_memory()
    federation, _, plan = make(n, spare=2, ledger=shared)
    engine = Hostile(federation.engine)  # type: ignore[arg-type]
    federation.engine = engine
    return Gate(federation, plan, own), engine, own, shared


def test_an_old_reply_in_place_of_a_new_one_is_no_reply() -> None:
    gate, engine, own, shared = hostile(3)
    engine.instead = {("party-2", "join"): ("party-2", "open")}
    with pytest.raises(SumFailed, match="only 2 of 3 parties"):
        grow(gate)
    assert own.lines(kind="charge") == shared.lines(kind="charge") == []


def test_a_refusal_of_something_else_stands_for_nothing() -> None:
    gate, engine, own, _ = hostile(4)
    garbage = engine.parties["party-2"].handle(b"garbage")
    engine.seen["party-2", "garbage"] = garbage
    engine.instead = {("party-2", "ask"): ("party-2", "garbage")}
    grow(gate)  # goes on with the other three
    assert own.lines(kind="refuse") == []
    assert len(own.lines(kind="release")) == 7


def test_answers_of_two_parties_cannot_be_swapped() -> None:
    gate, engine, own, shared = hostile(4)
    engine.instead = {("party-1", "ask"): ("party-2", "ask")}
    grow(gate)
    assert {len(line.values["receipts"]) for line in own.lines(kind="release")} == {3}
    verify(own)
    verify(shared)


class Failing(Packed):
    """One party answers probes and joins, and never a question."""

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        replies = super().ask(names, message, timeout_seconds)
        if Message.from_bytes(message).type == "ask" and "party-1" in replies:
            replies["party-1"] = Reply(None, "out of memory")
        return replies


@pytest.mark.parametrize("n_parties", [3, 6])
def test_a_party_that_fails_again_and_again_does_not_burn_the_plan(n_parties: int) -> None:
    own = Ledger.in_memory()
    federation, engine, plan = make(n_parties, spare=3)
    federation.engine = Failing(engine)
    gate = Gate(federation, plan, own)
    if n_parties == 3:
        with pytest.raises(SumFailed, match="party-1 failed twice in this run"):
            grow(gate)
        assert len(own.lines(kind="charge")) == 2
        assert own.lines(kind="release") == []
    else:
        grow(gate)
        assert len(own.lines(kind="release")) == 7
        assert len(own.lines(kind="charge")) == 7 + 2  # it was tried in two slots, once each


def test_an_old_set_of_announcements_is_not_taken_again() -> None:
    rig = Rig()
    old = rig.announced
    rig.open(rig.plan)
    assert word(rig.join("a", old)) == "bad-announcement"
    assert rig.ask("a").type == "answer"  # the newer set still holds
    rig.check_books()


def test_a_question_names_the_announcements_that_all_have_to_use() -> None:
    rig = Rig()
    before = rig.question()
    rig.open(rig.plan)
    reply = rig.send("a", Message("ask", before.body()))
    assert word(reply) == "bad-announcement"
    assert rig.ledgers["a"].lines(kind="charge") == []


def test_an_opening_that_comes_twice_counts_once() -> None:
    rig = Rig(opened=False)
    values = {"plan": rig.plan.to_dict(), "roster": rig.roster.hash, "nonce": "n"}
    first, again = (rig.send("a", messages.plain("open", values)) for _ in range(2))
    assert first.body == again.body
    other = rig.send("a", messages.plain("open", {**values, "nonce": "m"}))
    numbers = [r.values["announcement"]["number"] for r in (first, other)]
    assert numbers == [1, 2]


@pytest.mark.parametrize("trust", ["coordinator", "parties", "nobody"])
def test_nobody_but_the_coordinator_reads_an_answer(trust: str) -> None:
    rig = Rig(trust=trust)
    asked = Message("ask", rig.question().body())
    reply = rig.send("a", asked)
    with pytest.raises(FormatError):
        unpack(reply.body)
    with pytest.raises(FormatError, match="sealed for another"):
        MaskKeys().unseal(rig.parties["a"]._keys.public, asked.hash, "a", reply.body)
    peer = rig.parties["b"]._keys  # another party that got hold of the same question
    with pytest.raises(FormatError, match="sealed for another"):
        peer.unseal(rig.parties["a"]._keys.public, asked.hash, "a", reply.body)
    values, _ = unpack(rig.keys.unseal(rig.parties["a"]._keys.public, asked.hash, "a", reply.body))
    assert values["party"] == "a"


def test_a_key_that_is_no_key_is_refused_before_any_charge() -> None:
    rig = Rig()
    for key in ("", "zz", "00" * 32, "ab"):
        assert rig.ask("a", reply_to=key).type == "refusal"
    assert rig.ledgers["a"].lines(kind="charge") == []


class Leaving(Packed):
    """A party is lost between accepting the plan and joining."""

    left = False

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        if Message.from_bytes(message).type == "join" and not self.left:
            there = [name for name in names if name != "party-2"]
            return {**super().ask(there, message, timeout_seconds), "party-2": Reply(None, "left")}
        return super().ask(names, message, timeout_seconds)


def test_no_party_reserves_a_run_that_the_coordinator_has_not_reserved() -> None:
    own = Ledger.in_memory()
    federation, engine, plan = make(3)
    leaving = Leaving(engine)
    federation.engine = leaving
    with pytest.raises(SumFailed):
        grow(Gate(federation, plan, own))
    reserved = Counter(line.owner for line in engine._ledger.lines(kind="reserve"))  # type: ignore[union-attr]
    assert reserved == {"party-0": 1, "party-1": 1}
    assert [line.run for line in own.lines(kind="reserve")] == [plan.run]
    leaving.left = True
    with noise_off():
        grow(Gate(federation, plan, own))  # the same run goes on
    assert len(engine._ledger.lines(kind="reserve")) == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("run", ["../roster", "", "a/b", ".x", "-x", "x" * 81, "a b", "[/b]"])
def test_a_run_that_is_no_name_is_no_plan(run: str) -> None:
    plan = Rig(opened=False).plan
    with pytest.raises(PlanError, match="no usable name"):
        replace(plan, run=run)
    with pytest.raises(PlanError):
        Plan.from_dict({**plan.to_dict(), "run": run})


@pytest.mark.parametrize(
    "changed",
    [{"rows": -1}, {"rows": "x"}, {"rows": True}, {"source": "a\x1b[2J"}, {"source": 3}],
)
def test_free_text_and_odd_counts_of_a_party_are_no_answer(changed: dict[str, object]) -> None:
    federation, _, plan = make(3, trust="nobody")
    seal = MaskKeys.seal

    def lying(self: MaskKeys, other: str, request: str, party: str, data: bytes) -> bytes:
        values, arrays = unpack(data)
        return seal(self, other, request, party, pack({**values, **changed}, arrays))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MaskKeys, "seal", lying)
        with pytest.raises(SumFailed, match="answered another question"):
            grow(Gate(federation, plan, Ledger.in_memory()))


def test_a_run_that_another_one_has_pushed_aside_asks_and_publishes_nothing_more() -> None:
    """Two runs over one federation would build on each other's trees and plan."""
    shared, own = Ledger.in_memory(), Ledger.in_memory()
    federation, _, plan = make(3, spare=0, ledger=shared)
    first = Gate(federation, plan, own)
    first.release(LabelSums(2))
    charged = len(own.lines(kind="charge")), len(shared.lines(kind="charge"))
    second = Gate(federation, plan, Ledger.in_memory())
    tree = single_leaf(np.ones(1))
    leaf_sums = LeafSums((tree.structure,), "logistic", first.ensemble)
    with pytest.raises(PlanError, match="another run was begun"):
        first.release(leaf_sums)
    with pytest.raises(PlanError, match="another run was begun"):
        first.publish(tree)
    assert second.ensemble == NO_TREES
    assert (len(own.lines(kind="charge")), len(shared.lines(kind="charge"))) == charged
