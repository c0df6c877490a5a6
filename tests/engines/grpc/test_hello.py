"""Who may come in: pinned keys and nobody else, refused in words where they are known."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hedgerow.engines.grpc import hello as hellos
from hedgerow.engines.grpc.certificate import certificate_hash, make_certificate
from hedgerow.engines.grpc.hello import Binding, Members, PartyHello, Stranger, Unwelcome, Verdict
from hedgerow.engines.grpc.server import Server
from hedgerow.protocol.identity import Identity, Roster
from tests.engines.grpc.raw_http2 import RawHttp2
from tests.engines.grpc.rig import RawStream, Rig, until


@pytest.fixture
def small() -> Iterator[Rig]:
    made = Rig(("p0", "p1", "p2"))
    try:
        yield made
    finally:
        made.close()


def binding_of(rig: Rig, stream: RawStream) -> Binding:
    certificate = certificate_hash(rig.certificate)
    return Binding(stream.challenge.decode(), certificate, rig.coordinator.public)


def hello_of(rig: Rig, name: str = "p0", boot: int = 1) -> PartyHello:
    key = rig.identities[name].public
    return PartyHello(name, key, boot, "a", rig.roster.hash, "00" * 32)


def verdict_on(rig: Rig, hello: PartyHello, identity: Identity | None = None) -> Verdict | None:
    """What the coordinator says to this hello, signed for this very stream; None if nothing."""
    stream = RawStream(rig)
    try:
        binding = binding_of(rig, stream)
        signed = hello.signed(identity or rig.identities[hello.name], binding)
        stream.say(hellos.to_frame(signed))
        heard = stream.hear()
        return None if heard is None else hellos._read(Verdict, hellos._VERDICT, heard)
    finally:
        stream.close()


def test_a_pinned_key_is_welcome(small: Rig) -> None:
    verdict = verdict_on(small, hello_of(small))
    assert verdict is not None
    assert (verdict.welcome, verdict.words) == (True, "")


@pytest.mark.parametrize(
    "lie",
    [
        lambda rig, h, binding: h.signed(Identity(), binding),  # another key signed it
        lambda rig, h, binding: replace(h, key=Identity().public).signed(Identity(), binding),
        lambda rig, h, binding: replace(h, name="p1").signed(rig.identities["p0"], binding),
        lambda rig, h, binding: h.signed(
            rig.identities["p0"], replace(binding, certificate="00" * 32)
        ),
        lambda rig, h, binding: h.signed(
            rig.identities["p0"], replace(binding, challenge="00" * 32)
        ),
        lambda rig, h, binding: replace(h.signed(rig.identities["p0"], binding), boot=9),
        lambda rig, h, binding: replace(h.signed(rig.identities["p0"], binding), roster="x"),
    ],
)
def test_a_stranger_is_told_nothing_and_logged(
    small: Rig, lie: object, caplog: pytest.LogCaptureFixture
) -> None:
    stream = RawStream(small)
    said = lie(small, hello_of(small), binding_of(small, stream))  # type: ignore[operator]
    with caplog.at_level(logging.WARNING):
        stream.say(hellos.to_frame(said))
        assert stream.hear() is None
    stream.close()
    assert "turned away 127.0.0.1: " in caplog.text
    assert small.server.connected() == {}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_older_tls_is_told_nothing(small: Rig, version: ssl.TLSVersion) -> None:
    stream = RawHttp2(small.port, version)
    stream.call()
    challenge = stream.hear()
    assert challenge is not None
    binding = Binding(challenge.decode(), certificate_hash(small.certificate),
                      small.coordinator.public)  # fmt: skip
    stream.say(hellos.to_frame(hello_of(small).signed(small.identities["p0"], binding)))
    assert (stream.hear() is None) == (version is ssl.TLSVersion.TLSv1_2)
    assert small.boots.keys() == (set() if version is ssl.TLSVersion.TLSv1_2
                                  else {small.identities["p0"].public})  # fmt: skip
    stream.close()


def test_a_hello_that_was_listened_to_is_worth_nothing_on_another_stream(small: Rig) -> None:
    first, second = RawStream(small), RawStream(small)
    frame = hellos.to_frame(
        hello_of(small).signed(small.identities["p0"], binding_of(small, first))
    )
    second.say(frame)
    assert second.hear() is None
    first.say(frame)
    assert first.hear() is not None
    first.close()
    second.close()


def test_an_older_start_of_a_party_and_a_copy_of_it_are_told_in_words(small: Rig) -> None:
    assert verdict_on(small, hello_of(small, boot=5)) is not None
    until(lambda: "p0" not in small.server.connected())
    older = verdict_on(small, hello_of(small, boot=4))  # restored: the others have to show it
    assert older is not None
    assert older.welcome
    assert "start 5 of p0 was seen before, and this is start 4" in older.words
    assert small.boots == {small.identities["p0"].public: 5}
    small.links["p1"] = small.link("p1", boot=3)
    until(lambda: "p1" in small.server.connected())
    behind = verdict_on(small, hello_of(small, "p1", boot=2))
    assert behind is not None
    assert not behind.welcome
    assert "start 3 of p1 was seen before and is connected, and this is start 2" in behind.words
    copy = verdict_on(small, hello_of(small, "p1", boot=3))
    assert copy is not None
    assert "is connected from another process already" in copy.words
    assert small.links["p1"].state.connected
    newer = verdict_on(small, hello_of(small, "p1", boot=4))  # it was started again
    assert newer is not None
    assert newer.welcome


def changed(value: object) -> object:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}0"


def test_a_hello_holds_for_what_it_says_and_where_it_was_said() -> None:
    """Neither half is of use once anything of it, or of what both ends know, is another."""
    coordinator, party = Identity(), Identity()
    binding = Binding("00" * 32, "aa" * 32, coordinator.public)
    roster = Roster((("p0", party.public),), coordinator.public, 1, 1, "parties")
    hello = PartyHello("p0", party.public, 3, "a", roster.hash, "11" * 32).signed(party, binding)
    verdict = Verdict(True, "", roster.hash).signed(coordinator, hello, binding)
    members = Members(roster)
    assert members.judge(hello, binding) == ""
    assert hellos.read_verdict(hellos.to_frame(verdict), hello, binding) == verdict
    for name, value in binding.__dict__.items():
        other = replace(binding, **{name: changed(value)})
        with pytest.raises(Stranger, match="not valid on this stream"):
            members.judge(hello, other)
        with pytest.raises(Unwelcome, match="did not prove its pinned signing key"):
            hellos.read_verdict(hellos.to_frame(verdict), hello, other)
    for name, value in hello.__dict__.items():
        lie = replace(hello, **{name: changed(value)})
        with pytest.raises(Stranger):
            members.judge(lie, binding)
        with pytest.raises(Unwelcome, match="did not prove its pinned signing key"):
            hellos.read_verdict(hellos.to_frame(verdict), lie, binding)
    for name, value in verdict.__dict__.items():
        false = replace(verdict, **{name: changed(value)})
        with pytest.raises(Unwelcome, match="did not prove its pinned signing key"):
            hellos.read_verdict(hellos.to_frame(false), hello, binding)


@pytest.mark.parametrize("software", ["1.0\nLedger: verified", chr(27) + "[2J", "", "1" * 61])
def test_a_version_is_a_version_on_either_side(small: Rig, software: str) -> None:
    """It stands in the status of whoever is at the other end."""
    hello = replace(hello_of(small), software=software)
    assert verdict_on(small, hello) is None
    binding = Binding("00" * 32, "aa", small.coordinator.public)
    known = hello_of(small).signed(small.identities["p0"], binding)
    verdict = Verdict(True, "", "r", software=software).signed(small.coordinator, known, binding)
    with pytest.raises(Unwelcome, match="not readable"):
        hellos.read_verdict(hellos.to_frame(verdict), known, binding)


def test_versions_that_do_not_speak_to_each_other_are_named(small: Rig) -> None:
    old = verdict_on(small, replace(hello_of(small), version=0))
    assert old is not None
    assert "Upgrade the party" in old.words
    new = verdict_on(small, replace(hello_of(small), least=99, version=99))
    assert new is not None
    assert "Upgrade the coordinator" in new.words


def test_another_roster_and_a_wrong_clock_are_told_to_both_sides(small: Rig) -> None:
    other = small.roster_of({**small.identities, "p9": Identity()})
    small.links["p0"] = small.link("p0", roster=other)
    until(lambda: small.links["p0"].state.connected)
    words = "have pinned different rosters"
    assert words in small.links["p0"].state.words
    # The party has the verdict before the coordinator has put it down.
    until(lambda: words in small.server.status()[0]["remarks"])
    slow = verdict_on(small, replace(hello_of(small, "p1"), time=1.0))
    assert slow is not None
    assert slow.welcome
    assert "clocks differ by" in slow.words


@pytest.mark.parametrize("renewed", [True, False])
def test_a_removed_key_is_disconnected_and_told_why(small: Rig, renewed: bool) -> None:
    """Whether its party is gone or has another key by now."""
    small.connect()
    others = {name: one for name, one in small.identities.items() if name != "p2"}
    rest = small.roster_of({**others, "p2": Identity()} if renewed else others)
    small.server.accept(Members(rest, {small.identities["p2"].public: "p2"}))
    until(lambda: "not in the roster any more" in small.links["p2"].state.words)
    assert sorted(small.server.connected()) == ["p0", "p1"]
    assert small.ask(["p0"], b"x", 30.0)["p0"].body == b"echo x"


def test_a_party_does_not_speak_to_another_certificate_or_key(small: Rig) -> None:
    _, certificate = make_certificate("another")
    small.links["p0"] = small.link("p0", certificate=certificate)
    until(lambda: "pinned certificate" in small.links["p0"].state.words)
    small.server.close()
    impostor = Identity()  # with the coordinator's certificate and without its signing key
    with Server(
        "127.0.0.1:0", small.certificate, small.key, impostor, Members(small.roster)
    ) as fake:
        address = f"127.0.0.1:{fake.port}"
        small.links["p1"] = small.link("p1", address=address)
        until(lambda: small.links["p1"].state.attempts > 1)
        assert not small.links["p1"].state.connected
        assert fake.connected() == {}


def test_a_verdict_for_another_party_or_stream_is_not_believed() -> None:
    coordinator, party = Identity(), Identity()
    binding = Binding("11" * 32, "c" * 64, coordinator.public)
    hello = PartyHello("a", party.public, 1, "i", "r", "22" * 32).signed(party, binding)
    verdict = Verdict(True, "", "r").signed(coordinator, hello, binding)
    assert hellos.read_verdict(hellos.to_frame(verdict), hello, binding).welcome
    others = (
        (replace(hello, name="b"), binding),
        (replace(hello, nonce="33" * 32), binding),
        (hello, replace(binding, challenge="44" * 32)),
        (hello, replace(binding, certificate="d" * 64)),
        (hello, replace(binding, coordinator=Identity().public)),
    )
    for another, elsewhere in others:
        with pytest.raises(Unwelcome, match="did not prove its pinned signing key"):
            hellos.read_verdict(hellos.to_frame(verdict), another, elsewhere)
    with pytest.raises(Unwelcome, match="not readable"):
        hellos.read_verdict(b"{", hello, binding)


def test_certificates_of_both_sides_are_those_of_the_cards() -> None:
    rig = Rig(("p0", "p1", "p2"), mutual_tls=True)
    try:
        rig.connect("p0", "p1")
        rig.links["p2"] = rig.link("p2", own=rig.own["p1"])  # pinned, and another party's
        rig.links["p3"] = rig.link("p3", identity=Identity(), own=make_certificate("p3"))
        rig.links["p4"] = rig.link("p4", identity=Identity(), own=None)
        for name in ("p2", "p3", "p4"):
            until(lambda name=name: rig.links[name].state.attempts > 1)
            assert not rig.links[name].state.connected
        assert sorted(rig.server.connected()) == ["p0", "p1"]
        # Nor is its start on record: whoever has a key without its certificate could name one so
        # high that the party itself would be taken for an older copy from then on.
        assert set(rig.boots) == {rig.identities[name].public for name in ("p0", "p1")}
        added = {**rig.identities, "p3": rig.links["p3"]._identity}
        rig.own["p3"] = make_certificate("p3")
        rig.links["p3"].stop()
        rig.roster = rig.roster_of(added)
        rig.server.accept(rig.members(rig.roster))  # a further party, without a new start
        rig.links["p3"] = rig.link("p3", identity=added["p3"])
        until(lambda: sorted(rig.server.connected()) == ["p0", "p1", "p3"])
        rig.handlers["p3"] = rig.handlers["p0"]
        replies = rig.ask(["p0", "p3"], b"x", 30.0)
        assert {name: reply.body for name, reply in replies.items()} == {
            "p0": b"echo x",
            "p3": b"echo x",
        }
    finally:
        rig.close()


def test_a_coordinator_that_is_not_there_is_named_and_dialled_until_it_is(small: Rig) -> None:
    small.server.close()
    small.links["p0"] = small.link("p0")
    until(lambda: "nobody listens at" in small.links["p0"].state.words)
    small.server = small.listen(f"127.0.0.1:{small.port}")
    until(lambda: small.links["p0"].state.connected)
    assert small.told["p0"][-1].startswith("connected to the coordinator at ")
