"""Sessions of parties: carried, sealed, on record first, and over when one of them fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow.coordinator.federation import Federation, Reply
from hedgerow.coordinator.refused import RefusedBy
from hedgerow.coordinator.sessions import Session
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.engines.local import local_federation
from hedgerow.errors import FormatError, PlanError, SessionFailed
from hedgerow.model.statement import Disclosure
from hedgerow.packing import pack, unpack
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.protocol.messages import Message
from hedgerow.protocol.roles import Agreement, Role, Step, check_recipients
from tests.conftest import MIXED, mixed_rows, mixed_table, split_rows

PARTS = split_rows(mixed_rows(mixed_table(60, seed=2)), [10, 20])
SHOWN = (Disclosure("every party", "every other party", "how many rows it has"),)
SECRET = b"only for the reader"
AGREEMENT = Agreement("r1", "counting", MIXED.hash, tuple(sorted(PARTS)), {"steps": 3}, SHOWN)


class Counting:
    """Every party tells every other how many rows it has, some steps long, and reports the sum."""

    def __init__(
        self, me: str, rows: Rows, schema: Schema, agreement: Agreement, store: object = None
    ) -> None:
        self.others = [name for name in agreement.parties if name != me]
        self.left, self.n_rows = int(agreement.settings["steps"]), rows.n_rows

    def step(self, messages: Mapping[str, bytes]) -> Step:
        heard = sum(int(message.removeprefix(SECRET)) for message in messages.values())
        self.left -= 1
        if self.left == 0:
            return Step(report=str(heard + self.n_rows).encode(), done=True)
        return Step({other: SECRET + str(self.n_rows).encode() for other in self.others})


class Failing(Counting):
    def step(self, messages: Mapping[str, bytes]) -> Step:
        if messages and self.n_rows == 20:
            raise ValueError("a row says 17")
        return super().step(messages)


def federation_of(
    role: Callable[..., Role] = Counting,
    ledger: Ledger | None = None,
    limits: Limits | None = None,
    packed: bool = False,
) -> Federation:
    roles = {"counting": role}
    return local_federation(PARTS, MIXED, ledger, limits=limits, roles=roles, packed=packed)


class Watching:
    """An engine that sees everything the coordinator sees, and may change it on the way."""

    simulated = True

    def __init__(self, engine: Any, change: Callable[[bytes], bytes] = lambda data: data) -> None:
        self._engine, self._change, self.seen = engine, change, []

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._engine.names)

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        self.seen.append(message)
        replies = self._engine.ask(names, self._change(message), timeout_seconds)
        self.seen += [reply.body for reply in replies.values()]
        return dict(replies)


def watched(
    federation: Federation, change: Callable[[bytes], bytes] = lambda data: data
) -> Watching:
    engine = Watching(federation.engine, change)
    federation.transport.engine = engine
    return engine


@pytest.mark.parametrize("packed", [False, True])
def test_a_session_ends_with_the_reports_of_all(packed: bool) -> None:
    ledger = Ledger.in_memory()
    federation = federation_of(ledger=ledger, packed=packed)
    found = Session(federation, AGREEMENT, ledger).run()
    assert found == {name: [b"60"] for name in PARTS}


def test_bytes_are_counted_alike_whether_or_not_messages_travel() -> None:
    counts = []
    for packed in (False, True):
        federation = federation_of(packed=packed)
        Session(federation, AGREEMENT, Ledger.in_memory()).run()
        counts.append((federation.received, federation.sent))
    assert counts[0] == counts[1]


def test_the_agreement_is_on_every_ledger_before_the_first_step() -> None:
    ledger = Ledger.in_memory()
    when: list[int] = []

    class Looking(Counting):
        def step(self, messages: Mapping[str, bytes]) -> Step:
            when.append(len(ledger.lines(kind="disclose")))
            return super().step(messages)

    Session(federation_of(Looking, ledger), AGREEMENT, ledger).run()
    assert set(when) == {len(PARTS) + 1}
    owners = {line.owner for line in ledger.lines(kind="disclose")}
    assert owners == {COORDINATOR, *PARTS}
    shown = ledger.lines(COORDINATOR, "disclose")[0].values["agreement"]["disclosures"]
    assert shown[0]["what"] == "how many rows it has"
    verify(ledger)


def test_the_coordinator_cannot_read_messages() -> None:
    federation = federation_of()
    engine = watched(federation)
    Session(federation, AGREEMENT, Ledger.in_memory()).run()
    assert len(engine.seen) > 10
    assert not any(SECRET in data for data in engine.seen)


def test_a_message_changed_on_the_way_is_refused() -> None:
    federation = federation_of()

    def change(data: bytes) -> bytes:
        message = Message.from_bytes(data)
        if message.type != "letters":
            return data
        values, arrays = unpack(message.body)
        if not values["writers"]:
            return data
        arrays = {name: np.bitwise_xor(array, 1) for name, array in arrays.items()}
        forged = replace(message, body=pack(values, arrays), signature="")
        return forged.signed(federation.transport._identity).to_bytes()

    watched(federation, change)
    with pytest.raises((RefusedBy, SessionFailed)):
        Session(federation, AGREEMENT, Ledger.in_memory()).run()


def test_a_message_of_another_writer_or_step_is_refused() -> None:
    federation = federation_of()

    def swap(data: bytes) -> bytes:
        message = Message.from_bytes(data)
        if message.type != "letters":
            return data
        values, arrays = unpack(message.body)
        if len(values["writers"]) < 2:
            return data
        values = {**values, "writers": values["writers"][::-1]}
        forged = replace(message, body=pack(values, arrays), signature="")
        return forged.signed(federation.transport._identity).to_bytes()

    watched(federation, swap)
    with pytest.raises((RefusedBy, SessionFailed)):
        Session(federation, AGREEMENT, Ledger.in_memory()).run()


def test_the_same_message_gets_the_same_reply_and_an_old_step_none() -> None:
    federation = federation_of()
    party = federation.engine.parties["p0"]  # type: ignore[attr-defined]
    engine = watched(federation)
    Session(federation, AGREEMENT, Ledger.in_memory()).run()
    asked = [m for m in engine.seen if m and Message.from_bytes(m).type == "letters"]
    steps = [m for m in asked if "writers" in unpack(Message.from_bytes(m).body)[0]]
    own = [m for m in steps if party.handle(m) in engine.seen]
    assert own  # its last message: the reply that it gave before
    first = Message.from_bytes(party.handle(steps[0]))
    assert first.type == "refusal"


def test_what_the_operator_did_not_allow_is_refused_before_anything_is_shown() -> None:
    ledger = Ledger.in_memory()
    federation = federation_of(ledger=ledger, limits=Limits(roles=frozenset({"other"})))
    with pytest.raises(RefusedBy, match="not-allowed"):
        Session(federation, AGREEMENT, ledger).run()
    assert ledger.lines(kind="disclose") == []


def test_where_a_person_approves_each_plan_nothing_goes_past_them() -> None:
    federation = federation_of(limits=Limits(approve=True))
    with pytest.raises(RefusedBy, match="not-approved"):
        Session(federation, AGREEMENT, Ledger.in_memory()).run()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"role": "unheard"}, "not-allowed"),
        ({"schema_hash": "0" * 64}, "other-schema"),
        ({"parties": ("p0", "p1", "p2", "stranger")}, "unknown-party"),
    ],
)
def test_an_agreement_that_does_not_fit_is_refused(change: dict[str, Any], word: str) -> None:
    federation, agreement = federation_of(), replace(AGREEMENT, **change)
    asked = replace(agreement, parties=AGREEMENT.parties)
    session = Session(federation, asked, Ledger.in_memory())
    session._agreement = agreement
    if "parties" in change:  # the coordinator cannot reach a stranger; the parties know of none
        names = dict.fromkeys(AGREEMENT.parties, None)
        values = {"agreement": agreement.to_dict(), "roster": federation.roster.hash, "nonce": "n"}
        message = Message("agree", pack(values))
        replies = federation.transport.send(dict.fromkeys(names, message), "opened", 1.0)
        assert {r.values["word"] for r in replies.values()} == {word}
        return
    with pytest.raises(RefusedBy, match=word):
        session.run()


def test_another_agreement_under_the_same_run_is_refused() -> None:
    ledger = Ledger.in_memory()
    federation = federation_of(ledger=ledger)
    Session(federation, AGREEMENT, ledger).run()
    other = replace(AGREEMENT, settings={"steps": 2})
    with pytest.raises(RefusedBy, match="other-plan"):
        Session(federation, other, Ledger.in_memory()).run()


def test_an_agreement_entered_by_another_process_meanwhile_is_not_taken_for_this_one() -> None:
    """Both may use one ledger: what is shown here must be what stands there."""
    ledger = Ledger.in_memory()
    federation, of_another = (federation_of(ledger=ledger) for _ in range(2))
    other = replace(AGREEMENT, settings={"steps": 2})
    between, send = [Session(of_another, other, Ledger.in_memory())], federation.transport.send

    def sending(messages: Any, wanted: str, seconds: float) -> Any:
        if wanted == "joined" and between:
            between.pop().run()
        return send(messages, wanted, seconds)

    federation.transport.send = sending  # type: ignore[method-assign]
    with pytest.raises(RefusedBy, match="other-plan"):
        Session(federation, AGREEMENT, Ledger.in_memory()).run()


def test_a_coordinator_has_one_agreement_of_a_name_on_record() -> None:
    """Its ledger is its own here: the parties cannot notice."""
    ledger = Ledger.in_memory()
    Session(federation_of(), AGREEMENT, ledger).run()
    other = replace(AGREEMENT, settings={"steps": 2})
    with pytest.raises(PlanError, match="another agreement"):
        Session(federation_of(), other, ledger).run()
    Session(federation_of(), AGREEMENT, ledger).run()


def test_a_party_that_fails_ends_it_and_says_nothing_of_its_rows() -> None:
    federation = federation_of(Failing)
    engine = watched(federation)
    with pytest.raises(RefusedBy, match="failed"):
        Session(federation, AGREEMENT, Ledger.in_memory()).run()
    assert not any(b"17" in data and b"a row" in data for data in engine.seen)


def test_a_party_that_is_not_there_ends_it() -> None:
    federation = federation_of()

    class Deaf(Watching):
        def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> Any:
            replies = super().ask(names, message, timeout_seconds)
            return {n: Reply(None, "away") if n == "p1" else r for n, r in replies.items()}

    federation.transport.engine = Deaf(federation.engine)
    with pytest.raises(SessionFailed, match="no answer from p1"):
        Session(federation, AGREEMENT, Ledger.in_memory()).run()


def test_roles_that_never_end_or_write_to_strangers_are_stopped() -> None:
    class Endless(Counting):
        def step(self, messages: Mapping[str, bytes]) -> Step:
            return Step()

    class Stray(Counting):
        def step(self, messages: Mapping[str, bytes]) -> Step:
            return Step({"nobody": b"x"})

    with pytest.raises(SessionFailed, match="not done after 5"):
        Session(federation_of(Endless), AGREEMENT, Ledger.in_memory()).run(most_steps=5)
    with pytest.raises(RefusedBy):
        Session(federation_of(Stray), AGREEMENT, Ledger.in_memory()).run()
    with pytest.raises(FormatError, match="wrote a message to 'nobody', who takes no part"):
        check_recipients("p0", {"nobody": b"x"}, AGREEMENT.parties)


@pytest.mark.parametrize(
    "broken",
    [{}, {"parties": ["b", "a"]}, {"disclosures": [{"who": "x"}]}, {"settings": 3}],
    ids=str,
)
def test_an_unreadable_agreement_is_a_format_error(broken: dict[str, Any]) -> None:
    values = {**AGREEMENT.to_dict(), **broken} if broken else {}
    with pytest.raises(FormatError):
        Agreement.from_dict(values)
    assert Agreement.from_dict(AGREEMENT.to_dict()) == AGREEMENT
