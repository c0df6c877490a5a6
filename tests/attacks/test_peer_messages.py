"""Messages that the coordinator carries: it tries to read them by beginning runs again."""

from __future__ import annotations

import secrets
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from hedgerow.deployment.roles import role_factories
from hedgerow.engines.local import PackedEngine, local_federation
from hedgerow.errors import TableError
from hedgerow.methods.fedxgboost.run import agreement_for
from hedgerow.packing import pack, unpack
from hedgerow.party.run import MOST_OPENED
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol import messages
from hedgerow.protocol.identity import Identity
from hedgerow.protocol.masks import SEAL_BYTES, MaskKeys
from hedgerow.protocol.messages import Message
from hedgerow.protocol.roles import Agreement, Step
from tests.methods.fedxgboost.tables import schema_of, settings, shares, whole

N_ROWS = 120


class Carrier:
    """A coordinator that keeps every sealed message, and begins and breaks runs as it likes."""

    def __init__(self, agreement: Agreement) -> None:
        self.federation = local_federation(
            shares(whole(N_ROWS)), schema_of(), Ledger.in_memory(), trust="coordinator",
            roles=role_factories(),
        )  # fmt: skip
        self.agreement, self.keys = agreement, MaskKeys()
        self.kept: list[tuple[str, str, bytes]] = []  # sender, reader, sealed message
        self.announcements: list[Any] = []

    def send(self, by_name: dict[str, Message], wanted: str) -> dict[str, Message]:
        return self.federation.transport.send(by_name, wanted, 60.0)

    def to_all(self, type_: str, values: dict[str, Any], wanted: str) -> dict[str, Message]:
        message = messages.plain(type_, values)
        return self.send(dict.fromkeys(self.agreement.parties, message), wanted)

    def open(self) -> None:
        values = {
            "agreement": self.agreement.to_dict(), "roster": self.federation.roster.hash,
            "nonce": secrets.token_hex(8),
        }  # fmt: skip
        opened = self.to_all("agree", values, "opened")
        self.announcements = [r.values["announcement"] for r in opened.values()]
        self.step_number, self.messages = 0, {name: {} for name in self.agreement.parties}

    def meet(self) -> dict[str, Message]:
        values = {"run": self.agreement.run, "announcements": self.announcements}
        return self.to_all("meet", values, "joined")

    def lose(self) -> None:
        """Messages that were written do not arrive."""
        self.messages = {name: {} for name in self.agreement.parties}

    def step(self, *only: str) -> bool:
        """Carry the messages of one step, to all or to some; False if a party refuses."""
        sent, after = {}, {name: {} for name in self.agreement.parties}
        for name in only or self.agreement.parties:
            found = self.messages[name]
            values = {
                "run": self.agreement.run, "step": self.step_number + 1, "writers": sorted(found),
                "reply_to": self.keys.public,
            }  # fmt: skip
            arrays = {f"letter{i}": found[sender] for i, sender in enumerate(sorted(found))}
            sent[name] = Message("letters", pack(values, arrays))
        replies = self.send(sent, "letters")
        if len(replies) < len(sent) or any(r.type == "refusal" for r in replies.values()):
            return False
        for sender, reply in replies.items():
            values, arrays = unpack(reply.body)
            for i, reader in enumerate(values["readers"]):
                after[reader][sender] = arrays[f"letter{i}"]
                self.kept.append((sender, reader, arrays[f"letter{i}"].tobytes()[:-SEAL_BYTES]))
        self.step_number, self.messages = self.step_number + 1, after
        return True


def _agreement(**further: Any) -> Agreement:
    return agreement_for(schema_of(), settings(n_trees=1, max_depth=2, **further), "some-run")


def _mixed(one: bytes, other: bytes) -> bytes:
    n = min(len(one), len(other))
    first, second = (np.frombuffer(data[:n], np.uint8) for data in (one, other))
    return bytes(first ^ second)


def test_messages_of_a_run_begun_again_have_other_keys() -> None:
    """Two messages under one key, added bit by bit, are two texts added: equal headers cancel."""
    carrier = Carrier(_agreement())
    for _ in range(2):
        carrier.open()
        carrier.meet()
        while carrier.step() and carrier.step_number < 12:
            pass
    longer = [kept for kept in carrier.kept if len(kept[2]) >= 40]
    assert len(longer) > 20
    for (_, _, one), (_, _, other) in combinations(longer, 2):
        same = np.count_nonzero(np.frombuffer(_mixed(one[:40], other[:40]), np.uint8) == 0)
        assert same < 15  # of 40 bytes; by chance in one of 10^24 pairs


def test_labels_are_not_read_from_a_run_that_is_broken_and_begun_again() -> None:
    """The level of the root is known: nothing but zeros. Under its key it opens the gradients."""
    carrier = Carrier(_agreement())
    carrier.open()
    carrier.meet()
    while carrier.step() and carrier.step_number < 8:
        pass
    carrier.open()
    carrier.meet()
    for _ in range(2):  # steps in which nothing arrives, so that all that follows comes later
        carrier.step()
        carrier.lose()
    assert not carrier.step("bank")  # it fails, because answers are missing
    carrier.meet()
    while carrier.step() and carrier.step_number < 8:
        pass
    labels = np.asarray(whole(N_ROWS)["label"])
    known = pack(
        {"kind": "level"},
        {"node": np.zeros(N_ROWS, np.uint8), "parent": np.full(1, -1, np.int64)},
    )
    to_phone = [sealed for sender, reader, sealed in carrier.kept if (sender, reader) == PAIR]
    levels = [sealed for sealed in to_phone if len(sealed) == len(known)]
    assert levels
    for level in levels:
        for numbers in (sealed for sealed in to_phone if len(sealed) > N_ROWS * 8):
            text = _mixed(_mixed(level, known), numbers)  # of the gradients, as far as it reaches
            at = text.find(b"}}") + 2  # of its header, if that is readable
            found = np.frombuffer(text[at : at + 8 * ((len(text) - at) // 8)], "<i4")[::2] < 0
            assert b'"kind"' not in text, f"{np.mean(found == labels[: found.size]):.0%} labels"


def test_a_run_that_failed_is_not_taken_up_again_without_a_new_opening() -> None:
    carrier = Carrier(_agreement())
    carrier.open()
    assert {reply.type for reply in carrier.meet().values()} == {"joined"}
    assert {reply.type for reply in carrier.meet().values()} == {"joined"}  # the same, again
    for _ in range(2):
        assert carrier.step()
        carrier.lose()
    assert not carrier.step()  # answers are missing: the active party's role fails
    again = carrier.meet()
    assert again["bank"].values == {"word": "old-attempt"}


@pytest.mark.parametrize("run", ["", "a\nWARNING hedgerow: all is well", "x" * 81, "../a", "a b"])
def test_a_run_that_is_no_name_is_no_agreement(run: str) -> None:
    carrier = Carrier(replace(_agreement(), run=run))
    values = {"agreement": carrier.agreement.to_dict(), "roster": carrier.federation.roster.hash}
    replies = carrier.to_all("agree", {**values, "nonce": "1"}, "opened")
    assert {reply.values["word"] for reply in replies.values()} == {"bad-message"}


def test_no_message_writes_lines_into_the_log_of_another_site(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What the recipient of a message logs about it quotes it: on one line, and not at length.

    Here the active party, which is the one that asks, writes a message of a kind with line ends.
    """
    agreement = _agreement()
    carrier = Carrier(agreement)
    carrier.open()
    carrier.meet()
    carrier.step()
    bank = carrier.federation.engine.parties["bank"]._sessions
    session = bank._known.get(agreement.run)
    assert session is not None
    forged = pack({"kind": "a\n2030-01-01 WARNING hedgerow: all is well" * 999})
    sealed = bank._sealed(session, session.steps, "phone", forged)
    carrier.messages["phone"] = {"bank": np.frombuffer(sealed, np.uint8)}
    assert not carrier.step("phone")
    (told,) = [r.getMessage() for r in caplog.records if "ends run" in r.getMessage()]
    assert "\n" not in told
    assert len(told) < 800


PAIR = ("bank", "phone")


def test_a_key_that_is_revoked_in_the_middle_of_a_session_ends_it_at_the_next_step() -> None:
    carrier = Carrier(_agreement())
    carrier.open()
    carrier.meet()
    assert carrier.step()
    assert carrier.step()
    roster, engine = carrier.federation.roster, carrier.federation.engine
    assert isinstance(engine, PackedEngine)
    further = (*roster.parties, ("zoo", Identity().public))
    engine.parties["bank"].pin(replace(roster, parties=further))
    assert carrier.step()  # nobody of the session has another key
    revoked = tuple((n, Identity().public if n == "shop" else key) for n, key in roster.parties)
    engine.parties["bank"].pin(replace(roster, parties=revoked))
    values = {"run": "some-run", "step": carrier.step_number + 1, "writers": []}
    sent = carrier.send({"bank": messages.plain("letters", values)}, "letters")
    assert sent["bank"].type == "refusal"
    assert sent["bank"].values == {"word": "unknown-party"}
    assert not carrier.step()


def test_sessions_that_are_only_agreed_to_fill_no_memory() -> None:
    carrier = Carrier(_agreement())
    for number in range(3 * MOST_OPENED):
        carrier.agreement = replace(carrier.agreement, run=f"run-{number}")
        carrier.open()
    bank = carrier.federation.engine.parties["bank"]._sessions
    assert len(bank._known._kept) == MOST_OPENED
    carrier.meet()
    assert carrier.step()


def test_a_session_that_ends_says_no_count_of_rows_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without a terminal a log is a service's journal, which others than the owner may read."""
    for text, said in (
        ("of 120 ids 7 are missing", "TableError, with numbers that are shown on a terminal alone"),
        ("bank's ids cannot be compared", "bank's ids cannot be compared"),
    ):
        carrier = Carrier(_agreement())
        carrier.open()
        carrier.meet()
        session = carrier.federation.engine.parties["bank"]._sessions._known.get("some-run")
        session.role = Failing(text)
        caplog.clear()
        with caplog.at_level("WARNING"):
            assert not carrier.step()
        (told,) = [r.getMessage() for r in caplog.records if "ends run" in r.getMessage()]
        assert told == f"party bank ends run some-run: {said}"


class Failing:
    """A role that finds its table wanting."""

    def __init__(self, text: str) -> None:
        self._text = text

    def step(self, received: object) -> Step:
        raise TableError(self._text)
