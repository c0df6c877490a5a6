"""Intersection of ids: exact, in one common order, and nothing about other ids is sent."""

from __future__ import annotations

import doctest
from collections.abc import Callable

import numpy as np
import private_set_intersection.python as library
import pytest

from hedgerow.errors import FormatError, HedgerowError, SessionFailed, SettingsError, TableError
from hedgerow.methods.fedxgboost import alignment
from hedgerow.methods.fedxgboost.alignment import (
    ActiveAlignment,
    PassiveAlignment,
    disclosures_of_alignment,
)
from hedgerow.methods.fedxgboost.ids import check_agreed_ids, checked_ids, fresh_salt, seal_ids
from hedgerow.packing import pack, unpack


def people(numbers: range, seed: int) -> list[str]:
    order = np.random.default_rng(seed).permutation(len(numbers))
    return [f"person {numbers[i]} é" for i in order]


def aligned(active_ids: list[str], *passive_ids: list[str]) -> tuple[list[list[str]], list[int]]:
    """The common ids as every party has them in its rows, and the pairwise counts."""
    active = ActiveAlignment(active_ids)
    sides = {f"p{i}": PassiveAlignment(ids) for i, ids in enumerate(passive_ids)}
    requests = {name: active.request(name) for name in sides}
    counts = [active.receive(name, side.answer(requests[name])) for name, side in sides.items()]
    told, rows = active.finish()
    found = [[side.ids[i] for i in side.rows(told)] for side in sides.values()]
    return [[active_ids[i] for i in rows], *found], counts


def test_all_parties_end_with_the_ids_that_all_hold_in_one_order() -> None:
    tables = [people(range(80), 0), people(range(30, 120), 1), people(range(10, 60), 2)]
    found, counts = aligned(*tables)
    assert found[0] == found[1] == found[2]
    assert set(found[0]) == set.intersection(*map(set, tables))
    assert counts == [50, 50]
    again, _ = aligned(*tables)
    assert again[0] != found[0]  # the key is new, so is the order
    assert sorted(again[0]) == sorted(found[0])


def test_what_is_told_holds_a_hash_of_common_ids_alone() -> None:
    active = ActiveAlignment(["a", "b", "c"])
    both, one = PassiveAlignment(["a", "b"]), PassiveAlignment(["b", "c", "z"])
    active.receive("both", both.answer(active.request("both")))
    active.receive("one", one.answer(active.request("one")))
    told, _ = active.finish()
    values, parts = unpack(told)
    key = bytes.fromhex(values["key"])
    assert parts["hashes"].tobytes() == alignment._hashes(key, ["b"]).tobytes()


def test_messages_show_neither_ids_nor_the_order_of_rows() -> None:
    ids = people(range(40), 3)
    active, passive = ActiveAlignment(ids), PassiveAlignment(ids)
    request = active.request("p")
    answer = passive.answer(request)
    setup = library.ServerSetup()
    setup.ParseFromString(unpack(answer)[1]["setup"].tobytes())
    points = list(setup.raw.encrypted_elements)
    assert points == sorted(points)  # by what they look like, not by row
    active.receive("p", answer)
    told, _ = active.finish()
    for message in (request, answer, told):
        assert b"person" not in message
    assert active.request("q") != request  # another key for another party
    assert passive.answer(request) != answer


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["a", "b", "a", "a"], "2 occur in an earlier row"),
        (["a", "", "  "], "2 are empty"),
        (["a", None, float("nan"), np.float64("nan")], "3 are missing"),
        (["a", 7, b"b"], "2 are not text"),
        (["a", "\ud800"], "1 cannot be written"),
        ([], "no rows"),
    ],
)
def test_ids_that_are_none_are_refused_by_number(ids: list[object], said: str) -> None:
    with pytest.raises(TableError, match=said):
        checked_ids(ids)
    with pytest.raises(TableError, match="Nothing was sent"):
        ActiveAlignment(ids)


def test_errors_do_not_name_ids() -> None:
    with pytest.raises(TableError) as caught:
        checked_ids(["secret-1", "secret-1", 993311])
    assert "secret" not in str(caught.value)
    assert "993311" not in str(caught.value)


def test_too_few_common_ids_stop_the_run() -> None:
    active, passive = ActiveAlignment(["a", "b"]), PassiveAlignment(["B", "c"])
    active.receive("p", passive.answer(active.request("p")))
    with pytest.raises(TableError, match=r"0 ids are held by all parties.*p 0.*No row was shown"):
        active.finish()


def test_a_passive_party_can_limit_how_many_ids_it_is_asked_about() -> None:
    request = ActiveAlignment(people(range(20), 0)).request("p")
    with pytest.raises(SessionFailed, match=r"about 20 ids.*at most 19"):
        PassiveAlignment(["a"], most_asked=19).answer(request)
    assert PassiveAlignment(["a"], most_asked=20).answer(request)


def test_steps_out_of_turn_are_refused() -> None:
    active, passive = ActiveAlignment(["a", "b"]), PassiveAlignment(["a"])
    with pytest.raises(SessionFailed, match="have not answered"):
        active.finish()
    answer = passive.answer(active.request("p"))
    with pytest.raises(SessionFailed, match="sent to p already"):
        active.request("p")
    with pytest.raises(SessionFailed, match="without having been asked"):
        active.receive("q", answer)
    active.request("q")
    active.receive("p", answer)
    with pytest.raises(SessionFailed, match="1 parties have not answered"):
        active.finish()
    other = ActiveAlignment(["b"])
    other.receive("p", PassiveAlignment(["b"]).answer(other.request("p")))
    with pytest.raises(SessionFailed, match="1 are not held here"):
        passive.rows(other.finish()[0])


def garbled(make: Callable[[ActiveAlignment, PassiveAlignment], object]) -> None:
    with pytest.raises(HedgerowError):
        make(ActiveAlignment(["a", "b"]), PassiveAlignment(["a", "c"]))


def test_bytes_that_are_no_messages_are_refused() -> None:
    def receive(answer: bytes) -> Callable[[ActiveAlignment, PassiveAlignment], object]:
        return lambda active, _: (active.request("p"), active.receive("p", answer))

    garbled(lambda _, passive: passive.answer(b"\xff" * 40))
    garbled(lambda _, passive: passive.answer(b""))
    garbled(lambda _, passive: passive.rows(pack({"key": "zz"})))
    garbled(lambda _, passive: passive.rows(pack({"key": "00" * 32})))
    garbled(receive(b"nonsense"))
    garbled(receive(pack({}, {"setup": np.zeros(9, np.uint8), "response": np.zeros(9, np.uint8)})))
    asked = library.Request(reveal_intersection=True, encrypted_elements=[b"\x02" + b"\xff" * 32])
    garbled(lambda _, passive: passive.answer(asked.SerializeToString()))


def test_an_answer_with_false_positives_or_about_fewer_ids_is_refused() -> None:
    def answer(request: bytes, kind: object, kept: int) -> bytes:
        asked, side = library.Request(), library.server.CreateWithNewKey(True)
        asked.ParseFromString(request)
        response = side.ProcessRequest(asked)
        del response.encrypted_elements[kept:]
        setup = side.CreateSetupMessage(0.5, 2, ["a"], kind)
        parts = {"setup": setup.SerializeToString(), "response": response.SerializeToString()}
        return pack({}, {name: np.frombuffer(raw, np.uint8) for name, raw in parts.items()})

    active = ActiveAlignment(["a", "b"])
    request = active.request("p")
    with pytest.raises(FormatError, match="not exact"):
        active.receive("p", answer(request, library.DataStructure.GCS, 2))
    with pytest.raises(FormatError, match="not about the ids"):
        active.receive("p", answer(request, library.DataStructure.RAW, 1))
    assert active.receive("p", answer(request, library.DataStructure.RAW, 2)) == 1


def test_agreed_ids_must_be_the_same_in_the_same_order() -> None:
    salt = fresh_salt()
    own = seal_ids(["a", "b", "c"], salt)
    check_agreed_ids(own, {"p": seal_ids(np.array(["a", "b", "c"]), salt)})
    other = {
        "p": seal_ids(["a", "c", "b"], salt),
        "q": seal_ids(["a", "b", "x"], salt),
        "r": seal_ids(["a", "b"], salt),
    }
    with pytest.raises(TableError, match="p has the same ids in another order; q has other ids; r"):
        check_agreed_ids(own, other)
    # Lengths are part of the hash: the same messages cut elsewhere are other ids.
    with pytest.raises(TableError, match="other ids"):
        check_agreed_ids(seal_ids(["ab", "c"], salt), {"p": seal_ids(["a", "bc"], salt)})
    assert seal_ids(["a"], fresh_salt()) != seal_ids(["a"], salt)


def test_disclosures_say_who_learns_what() -> None:
    shown = disclosures_of_alignment("intersection", "bank", ["shop", "lab"])
    assert ("shop", "bank", "the number of ids it holds") in shown
    assert sum(seen == "bank" for seen, _, _ in shown) == 2
    assert any("all hold" in what for seen, _, what in shown if seen == "lab")
    assert [seen for seen, _, _ in disclosures_of_alignment("agreed", "bank", ["lab"])] == ["bank"]
    with pytest.raises(SettingsError, match="'agreed'"):
        disclosures_of_alignment("guessed")


def test_the_example_of_the_module_runs() -> None:
    assert doctest.testmod(alignment).failed == 0
    assert doctest.testmod(alignment).attempted > 0
