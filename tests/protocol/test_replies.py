"""What a party says: handed over inside a process, sealed and signed once it travels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from hedgerow.coordinator.gate import Gate
from hedgerow.engines.local import LocalEngine, local_federation
from hedgerow.errors import FormatError
from hedgerow.kernels.threads import use_threads
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.packing import pack, packed_size, unpack
from hedgerow.party.running_scores import RunningScores
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol import messages
from hedgerow.protocol.identity import Identity
from hedgerow.protocol.messages import Ask, Message
from hedgerow.protocol.replies import Answer, PartyReply, Steps, collect_replies
from hedgerow.testing import noise_off
from tests.attacks.rig import SCHEMA, Packed, some_rows


@pytest.mark.parametrize("n", [0, 1, 9, 10, 1_000])
def test_a_size_is_that_of_the_bytes_which_it_does_not_make(n: int) -> None:
    values = {"party": "a-party", "rows": n}
    arrays = {"total": np.zeros(n, np.uint64), "cells": np.zeros((n, 3), np.float32)}
    shapes = {name: (array.dtype.name, array.shape) for name, array in arrays.items()}
    assert packed_size(values, shapes) == len(pack(values, arrays))


class Watched(LocalEngine):
    """A local engine that remembers what its parties replied."""

    def __init__(self, inner: LocalEngine) -> None:
        super().__init__(inner.parties, inner._ledger)
        self.replies: list[PartyReply] = []

    def hand_over(self, messages: Mapping[str, Message]) -> dict[str, PartyReply]:
        replies = super().hand_over(messages)
        self.replies += replies.values()
        return replies


def trained(trust: str, carrier: type[Any], ledger: Ledger | None = None) -> tuple[Any, Any, Any]:
    tables = {name: some_rows(40 + 5 * i, i) for i, name in enumerate(("a", "bb", "party-3"))}
    federation = local_federation(tables, SCHEMA, ledger, trust=trust)
    assert isinstance(federation.engine, LocalEngine)
    engine = federation.engine = carrier(federation.engine)
    privacy = Privacy(5.0, 1e-6, trust)  # type: ignore[arg-type]
    settings = {"n_trees": 4, "max_depth": 2}
    plan = plan_for(SCHEMA, privacy, "random-trees", settings, seed=1)
    with noise_off():
        model = method_named(plan.method).grow(Gate(federation, plan, Ledger.in_memory()))
    return model, federation, engine


@pytest.mark.parametrize("trust", ["coordinator", "parties", "nobody"])
def test_what_is_handed_over_counts_and_means_what_would_have_travelled(trust: str) -> None:
    (here, by_hand, watched), (there, by_post, _) = (trained(trust, c) for c in (Watched, Packed))
    assert here.trees == there.trees
    assert (by_hand.sent, by_hand.received) == (by_post.sent, by_post.received)
    assert {reply.type for reply in watched.replies} == {"opened", "joined", "answer"}
    for reply in watched.replies:
        assert reply.size == len(reply.message.to_bytes())


@pytest.mark.parametrize("carrier", [Watched, Packed])
def test_the_local_engine_alone_hands_over_what_was_written(
    carrier: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parties read nothing; with the packed engine every party reads every message."""
    read: list[str] = []
    for kind, reader in ((Message, "from_bytes"), (Ask, "from_body"), (Plan, "from_dict")):
        real = getattr(kind, reader)
        monkeypatch.setattr(
            kind, reader, lambda data, r=real, n=kind.__name__: (read.append(n), r(data))[1]
        )
    _, federation, _ = trained("coordinator", carrier)
    n = len(federation.names)
    # A reply is a message too; an exact answer is sealed with the key that its question names.
    every = {"Message": 2 * n * federation.round_trips, "Ask": n * federation.rounds, "Plan": n}
    assert Counter(read) == (Counter(every) if carrier is Packed else Counter())


def test_a_message_that_was_read_says_what_its_bytes_say() -> None:
    """What a writer claims beside the body stays in its process."""
    true, other = (plan_for(SCHEMA, Privacy(e, 1e-6), "random-trees", seed=1) for e in (1.0, 2.0))
    message = messages.plain("open", {"plan": true.to_dict()}, other)
    assert message.plan.hash == other.hash
    assert Message.from_bytes(message.to_bytes()).plan.hash == true.hash
    assert message.size_for("p0") == len(message.to_bytes())


def test_neither_questions_nor_exact_answers_are_signed_in_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signed: list[bytes] = []
    sign = Identity.sign
    monkeypatch.setattr(Identity, "sign", lambda self, m: signed.append(m) or sign(self, m))  # type: ignore[func-returns-value]
    _, federation, engine = trained("coordinator", Watched)
    assert len(signed) == len(federation.names)  # announcements of keys, which all parties keep
    assert any(isinstance(reply.reply, Answer) for reply in engine.replies)


def test_a_message_that_was_handed_over_is_signed_when_it_travels() -> None:
    writer, message = Identity(), messages.plain("ready", {"run": "r"})
    handed = message.handed_over_by(writer)
    assert handed.is_signed_by(writer.public)
    assert not handed.is_signed_by(Identity().public)
    assert not message.is_signed_by(writer.public)  # nobody has handed this one over
    assert handed.size_for("p0") == len(handed.to_bytes())
    read = Message.from_bytes(handed.to_bytes())
    assert read.is_signed_by(writer.public)
    assert read.hash == message.hash


def test_a_changed_copy_of_a_message_that_was_handed_over_is_signed_by_nobody() -> None:
    writer = Identity()
    handed = messages.plain("ready", {"run": "r"}).handed_over_by(writer)
    changed = replace(handed, body=messages.plain("ready", {"run": "s"}).body)
    assert not changed.is_signed_by(writer.public)
    assert not Message.from_bytes(changed.to_bytes()).is_signed_by(writer.public)


def test_what_travels_is_sealed_and_signed_by_the_party() -> None:
    _, federation, engine = trained("coordinator", Watched)
    for said in engine.replies:
        message = Message.from_bytes(said.message.to_bytes())
        key = said.identity.public
        assert key in federation.roster.keys.values()
        assert message.is_signed_by(key)
        assert (message.type, message.request) == (said.type, said.request)
        if isinstance(said.reply, Answer):
            assert said.reply.body not in message.body


def test_the_check_travels_behind_the_total() -> None:
    answer = Answer("a", "secure", np.arange(3, dtype=np.uint64), 2**64 - 1, 7)
    assert unpack(answer.body)[1]["total"].tolist() == [0, 1, 2, 2**64 - 1]
    read = Answer.from_body(answer.body)
    assert (read.total.tolist(), read.check, read.n_rows) == ([0, 1, 2], 2**64 - 1, 7)


@pytest.mark.parametrize(
    "total", [np.zeros(0, np.uint64), np.zeros((2, 2), np.uint64), np.zeros(3, np.int64)]
)
def test_answers_of_other_shapes_are_not_readable(total: Any) -> None:
    values = {"party": "a", "source": "none", "rows": 0}
    with pytest.raises(FormatError, match="not readable"):
        Answer.from_body(pack(values, {"total": total}))


def walker(name: str, log: list[str], work: Callable[[int], Any], steps: int = 2) -> Steps:
    """Steps of a made-up party that works so often, and says what came of it."""
    came = []
    try:
        for number in range(steps):
            try:
                came.append((yield partial(work, number)))
            except ValueError as error:
                came.append(f"caught {error}")
            log.append(f"{name}{number}")
    finally:
        log.append(f"{name} ends")
    return PartyReply(Message("plain", repr(came).encode()), "", Identity(), bytes)


def test_every_step_is_done_by_all_parties_before_the_next() -> None:
    log: list[str] = []
    parties = [walker(name, log, lambda n: n * 10, 3 if name == "b" else 2) for name in "abc"]
    said = collect_replies(parties)
    assert [one.reply.body for one in said] == [b"[0, 10]", b"[0, 10, 20]", b"[0, 10]"]
    assert log == ["a0", "b0", "c0", "a1", "a ends", "b1", "c1", "c ends", "b2", "b ends"]


@pytest.mark.parametrize("who", [0, 2])  # the first computes alone
def test_what_fails_at_one_party_is_its_own_affair(who: int) -> None:
    def failing(number: int) -> int:
        raise ValueError(f"planted {number}")

    log: list[str] = []
    works = [failing if i == who else (lambda n: n) for i in range(4)]
    said = collect_replies([walker(str(i), log, work) for i, work in enumerate(works)])
    bodies = [one.reply.body for one in said]
    assert bodies.pop(who) == b"['caught planted 0', 'caught planted 1']"
    assert bodies == [b"[0, 1]"] * 3


def test_an_interrupted_round_lets_go_of_every_party() -> None:
    def interrupted(number: int) -> None:
        raise KeyboardInterrupt

    log: list[str] = []
    parties = [walker("a", log, int), walker("b", log, interrupted), walker("c", log, int)]
    with pytest.raises(KeyboardInterrupt):
        collect_replies(parties)
    assert sorted(log) == ["a ends", "b ends", "c ends"]


def test_no_party_computes_a_sum_before_it_has_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, seen = Ledger.in_memory(), list[int]()
    exact = RunningScores.exact

    def watched(self: RunningScores, *given: Any) -> Any:
        seen.append(ledger.last()[0])  # of this thread: others wait for the round's transaction
        return exact(self, *given)

    monkeypatch.setattr(RunningScores, "exact", watched)
    before = use_threads(1)
    try:
        trained("coordinator", Watched, ledger)
    finally:
        use_threads(before)
    charged = [line.seq for line in ledger.lines(kind="charge")]
    assert len(charged) == len(seen)
    for first in range(0, len(seen), 3):  # three parties: all have charged before the first sum
        assert min(seen[first : first + 3]) >= max(charged[first : first + 3])


def test_parties_are_taken_in_one_order_whatever_order_they_are_named_in() -> None:
    """Two rounds that take the same parties in opposite orders would wait for each other."""
    taken: list[str] = []

    class Listening:
        def __init__(self, name: str) -> None:
            self.name = name

        def hear(self, message: Message) -> Steps:
            taken.append(self.name)
            return PartyReply(Message("ready", b""), "", Identity(), bytes)
            yield  # what makes it a way in steps

    engine = LocalEngine({name: Listening(name) for name in "abc"})  # type: ignore[misc]
    message = Message("ready", b"")
    assert list(engine.hand_over(dict.fromkeys("cab", message))) == ["c", "a", "b"]
    assert taken == ["a", "b", "c"]
