"""What a runtime's processes and the files of others may say: read, or refused in words."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.deployment.coordinator import _read_boots
from hedgerow.engines import sockets
from hedgerow.engines.cards import read_card, read_roster
from hedgerow.engines.party_end import MOST_PROBLEM, Answer, PartyEnd, Question
from hedgerow.engines.relay import RelayEngine, RelayService
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Listener
from hedgerow.errors import FormatError, HedgerowError, SettingsError
from hedgerow.packing import pack
from hedgerow.protocol.engine import Reply

TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
NUMBERS = st.integers(-(10**400), 10**400) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
ARRAYS = st.dictionaries(
    st.sampled_from(["body", "all", "a", "b"]), st.binary(max_size=9).map(
        lambda data: np.frombuffer(data, np.uint8)
    ), max_size=3,
)  # fmt: skip


class Silent:
    """A carrier that knows nobody."""

    def ask_each(self, messages: Mapping[str, bytes], timeout_seconds: float) -> dict[str, Reply]:
        assert 0 <= timeout_seconds <= 3600
        return {name: Reply(None, "nobody is there") for name in messages}

    def connected(self) -> Mapping[str, int] | None:
        return None


def read_or_refuse(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except FormatError:
        return None


@given(wait=JSON, arrays=ARRAYS)
def test_whatever_a_runtime_carries_to_a_party_is_read_or_refused(wait: Any, arrays: Any) -> None:
    data = pack({"format": 1, "wait": wait}, arrays)
    asked = read_or_refuse(lambda: Question.from_bytes(data))
    if asked is not None:
        assert 0 <= asked.wait_seconds <= 3600
    nobody = PartyEnd("a", "/nowhere/party.sock")
    answer = read_or_refuse(lambda: nobody.answer(data))
    assert (answer is None) == (asked is None)


@given(party=JSON, problem=JSON, arrays=ARRAYS)
def test_whatever_comes_back_from_a_node_is_read_or_refused(
    party: Any, problem: Any, arrays: Any
) -> None:
    data = pack({"format": 1, "party": party, "problem": problem}, arrays)
    answer = read_or_refuse(lambda: Answer.from_bytes(data))
    assert answer is None or (answer.party, answer.problem) == (party, problem)


@given(what=st.sampled_from(["ask", "who", ""]), names=JSON, timeout=JSON, arrays=ARRAYS)
def test_whatever_is_asked_of_a_carrier_is_answered_or_refused(
    what: str, names: Any, timeout: Any, arrays: Any
) -> None:
    values = {"format": 1, "what": what, "names": names, "timeout": timeout}
    read_or_refuse(lambda: RelayService(Silent()).handle(pack(values, arrays)))


@given(boots=JSON, problems=JSON)
def test_whatever_a_carrier_says_is_believed_or_refused_in_words(boots: Any, problems: Any) -> None:
    said = pack({"format": 1, "boots": boots, "problems": problems})
    engine = RelayEngine(Path("/nowhere/carrier.sock"), ["a"], "Start it.")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hedgerow.engines.relay.call", lambda *_: said)
        reply = engine.ask(["a"], b"x", 1.0)["a"]
        assert reply.body is None
        assert reply.problem.isprintable()
        assert len(reply.problem) <= MOST_PROBLEM
        try:
            there = engine.connected()
        except HedgerowError:
            return
        assert there is None or set(there) <= {"a"}


def as_toml(values: Any) -> bool:
    try:
        tomli_w.dumps(values)
    except (TypeError, ValueError, AttributeError):
        return False
    return True


CARD_KEYS = ("format", "name", "key", "certificate", "address", "mutual_tls", "signature")
ROSTER_KEYS = (
    "format", "federation", "trust", "colluding", "minimum_parties", "mutual_tls", "coordinator",
    "party",
)  # fmt: skip


@given(data=st.data())
def test_whatever_is_handed_over_as_a_card_or_roster_is_read_or_refused(data: Any) -> None:
    keys, read = data.draw(st.sampled_from([(CARD_KEYS, read_card), (ROSTER_KEYS, read_roster)]))
    values = st.fixed_dictionaries(
        {"format": st.just(2)}, optional=dict.fromkeys(keys[1:], JSON | st.just("a"))
    )
    written = data.draw(values.filter(as_toml))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "handed-over.toml"
        file.write_bytes(tomli_w.dumps(written).encode("utf-8", "surrogatepass"))
        with pytest.raises((FormatError, SettingsError)):  # nobody guesses a signature or a key
            read(file)


@given(JSON)
def test_a_damaged_note_of_starts_is_named_or_read(values: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), "coordinator")
        (site.folder / "boots.json").write_text(json.dumps(values))
        boots = read_or_refuse(lambda: _read_boots(site))
        assert boots is None or all(type(boot) is int for boot in boots.values())


def test_a_socket_that_was_exchanged_for_a_link_opens_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others may write to the folder, one of them puts a link to the party's key there."""
    import grp

    key, path = tmp_path / "signing-key.pem", tmp_path / "relay.sock"
    key.write_text("secret")
    key.chmod(0o600)
    share = sockets._share

    def exchanged(at: Path, group: str) -> None:
        at.unlink()
        at.symlink_to(key)
        share(at, group)

    monkeypatch.setattr(sockets, "_share", exchanged)
    group = grp.getgrgid(os.getgid()).gr_name
    with pytest.raises(SettingsError, match="somebody put something else in its place"):
        Listener(path, bytes.upper, group)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text() == "secret"
