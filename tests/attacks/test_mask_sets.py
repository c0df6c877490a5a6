"""Coordinators that tell parties different sets, or pick sets to leave a party alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from hedgerow import Ledger
from hedgerow.coordinator.federation import Federation, Total
from hedgerow.coordinator.gate import Gate
from hedgerow.errors import SumFailed
from hedgerow.methods.maddock.boosting import grow
from hedgerow.party.running_scores import RunningScores
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.protocol import messages
from hedgerow.protocol.identity import Announcement, Identity, Roster
from hedgerow.protocol.joined import Joined, SumSet
from hedgerow.protocol.masks import Context, MaskKeys
from hedgerow.protocol.replies import Answer
from hedgerow.queries import SumQuery
from hedgerow.queries.calibration import Noise
from hedgerow.testing import noise_off
from tests.attacks.rig import SCHEMA, Rig, word
from tests.attacks.test_drop_outs import make

NAMES = tuple(f"p{i:02d}" for i in range(20))  # more than are all neighbours of each other


def checks_of(rig: Rig, told: dict[str, tuple[str, ...]]) -> dict[str, int]:
    """The masked zero of every party, each told who is absent."""
    found = {}
    for name, absent in told.items():
        answer = Answer.from_body(rig.unsealed(name, absent=absent))
        found[name] = answer.check
    return found


@pytest.fixture(scope="module")
def signed() -> tuple[dict[str, MaskKeys], dict[str, Announcement]]:
    keys = {name: MaskKeys() for name in NAMES}
    announced = {
        name: Announcement(name, 1, 1, keys[name].public, "plan", "schema", "roster").signed(
            Identity()
        )
        for name in NAMES
    }
    return keys, announced


def test_one_set_told_to_all_cancels() -> None:
    rig = Rig(NAMES)
    assert sum(checks_of(rig, dict.fromkeys(NAMES, ())).values()) % 2**64 == 0
    rig.check_books()


def test_masks_of_different_sets_do_not_cancel() -> None:
    """Whoever is told the larger or the smaller set: no part of the answers adds up to anything."""
    rig = Rig(NAMES)
    told = {name: () if name < "p10" else ("p19",) for name in NAMES[:-1]}
    checks = checks_of(rig, told)
    whole, few = ([checks[n] for n in told if told[n] == absent] for absent in ((), ("p19",)))
    for part in (whole, few, [*whole, *few]):
        assert sum(part) % 2**64 != 0
    rig.check_books()


def test_a_sum_in_which_one_party_has_another_set_releases_nothing() -> None:
    federation, engine, plan = make(20)
    gate = Gate(federation, plan, ledger := Ledger.in_memory())
    party, open_ = engine.parties["party-7"], federation.open

    def opened(*arguments: Any) -> None:
        open_(*arguments)
        fewer = [pair for pair in federation.roster.parties if pair[0] != "party-3"]
        run = party._runs.get(plan.run)
        assert run is not None
        run.roster = party.roster = replace(federation.roster, parties=tuple(fewer))

    federation.open = opened  # type: ignore[method-assign]
    with pytest.raises(SumFailed, match="do not cancel"):
        grow(gate)
    assert ledger.lines(kind="release") == []
    assert len(ledger.lines(kind="charge")) == 1


def test_another_order_or_degree_is_another_mask(
    signed: tuple[dict[str, MaskKeys], dict[str, Announcement]],
) -> None:
    keys, announced = signed
    joined, swapped = Joined(announced), (NAMES[1], NAMES[0], *NAMES[2:])
    about = Context("plan", "schema", 0, 1, "request", SumSet(joined, NAMES, 1))
    mask = keys["p05"].mask("p05", about, 50)
    for among in (SumSet(joined, swapped, 1), SumSet(joined, NAMES, 9)):
        other = replace(about, among=among)
        assert not np.any(mask == keys["p05"].mask("p05", other, 50))
        assert about.info != other.info  # bound, not only made of other streams


def test_a_set_is_written_in_one_way() -> None:
    rig = Rig(NAMES)
    assert word(rig.ask("p00", absent=("p05", "p04"))) == "unknown-party"
    assert word(rig.ask("p00", absent=("p04", "p04"))) == "unknown-party"
    assert rig.ask("p00", absent=("p04", "p05")).type == "answer"


def test_a_party_whose_set_is_changed_within_an_attempt_refuses() -> None:
    rig = Rig(NAMES)
    assert rig.ask("p00").type == "answer"
    for absent in (("p01",), ("p19",), ("p01", "p19")):
        assert word(rig.ask("p00", absent=absent)) == "answered-differently"


def roster_of(n_parties: int, colluding: int) -> Roster:
    keys = tuple((f"p{i:02d}", f"{i:064x}") for i in range(n_parties))
    return Roster(keys, "f" * 64, colluding, 3, "parties")


@pytest.mark.parametrize("colluding", [1, 2, 7])
def test_no_set_surrounds_a_party_with_those_that_collude(colluding: int) -> None:
    """Whoever is left out between a party and those that collude: it keeps honest neighbours.

    A coordinator may leave out fewer than half. It leaves out, from the party's place on, all that
    do not collude, so that those that do come as near as they can.
    """
    roster = roster_of(40, colluding)
    joined = Joined({name: _announced(name) for name in roster.names})
    spare = len(roster.names) - roster.least_set
    for places in [
        range(1, colluding + 1),
        range(20, 20 + colluding),
        range(39, 39 - colluding, -1),
    ]:
        colluders = {roster.names[place] for place in places}
        honest = [name for name in roster.names[1:] if name not in colluders]
        for left_out in (honest[:spare], honest[-spare:], honest[::2][:spare]):
            among = joined.without(tuple(sorted(left_out)), roster)
            assert among is not None
            others = {one.name for one in among.neighbours("p00")}
            assert len(others - colluders) >= 16 - colluding
            assert reach(among, colluders) == set(among.names) - colluders


def test_any_two_that_collude_leave_the_others_connected() -> None:
    roster = roster_of(20, 2)
    among = Joined({name: _announced(name) for name in roster.names}).everyone(roster)
    assert among is not None
    assert len(among.neighbours("p00")) == 16
    for pair in combinations(roster.names, 2):
        assert reach(among, set(pair)) == set(roster.names) - set(pair)


def test_what_a_question_says_of_colluding_parties_changes_no_graph() -> None:
    """The number comes from the roster; another one is refused before anything is charged."""
    rig = Rig(NAMES)
    for claimed in (0, 2, 19):
        assert word(rig.ask("p00", colluding=claimed)) == "too-little-noise"
    assert rig.ledgers["p00"].lines("p00", "charge") == []


def test_a_key_that_is_no_key_is_refused_before_the_charge() -> None:
    """Of a neighbour; it was signed by the party, which colludes."""
    rig = Rig(NAMES, opened=False)
    rig.parties["p01"]._keys.public = "00" * 32
    with pytest.raises(AssertionError):
        rig.open(rig.plan)
    assert word(rig.join("p00", rig.announced)) == "bad-message"
    assert rig.join("p10", rig.announced).type == "joined"  # which is no neighbour of p01
    assert rig.ledgers["p00"].lines("p00", "reserve") == []


def _announced(name: str) -> Announcement:
    return Announcement(name, 1, 1, "", "plan", "schema", "roster", "00")


def reach(among: SumSet, without: set[str]) -> set[str]:
    """Whom the first party that does not collude reaches over others that do not."""
    first = next(name for name in among.names if name not in without)
    reached, last = {first}, [first]
    while last:
        near = {one.name for name in last for one in among.neighbours(name)}
        last = sorted(near - reached - without)
        reached |= set(last)
    return reached


def plain_sum(federation: Federation, names: tuple[str, ...], query: SumQuery, bits: int) -> Any:
    """The answer over the rows of these parties, without a federation."""
    total: Any = 0
    for name in names:
        party = federation.engine.parties[name]  # type: ignore[attr-defined]
        assert party._rows is not None
        scores = RunningScores(party._rows, SCHEMA)
        assert scores.sync(query.ensemble, 0, tuple(federation._trees), query.step_trees)
        total = total + scores.exact(query, bits)
    return total


def test_where_parties_are_lost_every_release_is_the_sum_over_those_it_names() -> None:
    federation, engine, plan = make(24, spare=3)
    engine.lose = {2: {"party-1"}, 4: {"party-1", "party-2", "party-23"}, 7: set()}
    totals: list[Total] = []
    sum_ = federation.sum

    def summed(query: SumQuery, noise: Noise, slot: int, attempt: int) -> Total:
        total = sum_(query, noise, slot, attempt)
        expected = plain_sum(federation, total.parties, query, noise.bits)
        assert np.array_equal(total.values.view(np.int64), expected)
        totals.append(total)
        return total

    federation.sum = summed  # type: ignore[method-assign]
    with noise_off():
        grow(Gate(federation, plan, ledger := Ledger.in_memory()))
    sizes = [len(total.parties) for total in totals]
    assert sizes == [24, 23, 21, 21, 21, 24, 24]
    released = ledger.lines(kind="release")
    assert [set(line.values["receipts"]) for line in released] == [set(t.parties) for t in totals]
    assert len(ledger.lines(kind="charge")) == len(released) + 2  # lost attempts stay charged


def test_opening_again_under_another_roster_brings_no_revoked_key_back() -> None:
    """The coordinator opens the run anew and asks without joining, as if old keys still held."""
    rig = Rig(("a", "b", "c", "d"))
    keys = [(name, Identity().public if name == "d" else key) for name, key in rig.roster.parties]
    renewed = replace(rig.roster, parties=tuple(keys))
    rig.parties["a"].pin(renewed)
    values = {"plan": rig.plan.to_dict(), "roster": renewed.hash, "nonce": "00" * 16}
    assert rig.send("a", messages.plain("open", values)).type == "opened"
    assert word(rig.ask("a")) == "unknown-run"
    assert rig.ledgers["a"].lines(kind="charge") == []


@pytest.mark.parametrize("way", ["join", "open again"])
def test_a_run_that_was_only_opened_does_not_outlive_the_roster_it_was_opened_under(
    way: str,
) -> None:
    """Opening costs nothing: a coordinator opens runs in store, for the day when trust is less."""
    rig = Rig(trust="coordinator", opened=False)
    values = {"plan": rig.plan.to_dict(), "roster": rig.roster.hash, "nonce": "00" * 16}
    opened = rig.send("a", messages.plain("open", values))
    assert opened.type == "opened"
    rig.parties["a"].pin(replace(rig.roster, trust="parties"))
    announced = [opened.values["announcement"]]
    if way == "open again":
        reply = rig.send("a", messages.plain("open", {**values, "nonce": "11" * 16}))
        assert word(reply) == "other-roster"
    assert word(rig.join("a", announced)) == "other-roster"
    rig.announced = announced
    assert word(rig.ask("a")) == "unknown-run"  # and no exact sum leaves
    assert rig.ledgers["a"].lines(kind="reserve") == []


def opened_at_all(rig: Rig, plan: Plan, nonce: str) -> list[dict[str, Any]]:
    """What all parties announce at one opening of a run."""
    values = {"plan": plan.to_dict(), "roster": rig.roster.hash, "nonce": nonce * 16}
    opening = messages.plain("open", values)
    return [rig.send(name, opening).values["announcement"] for name in rig.parties]


def test_an_old_set_of_announcements_is_not_brought_back() -> None:
    rig = Rig(opened=False)
    first, second = (opened_at_all(rig, rig.plan, nonce) for nonce in ("00", "11"))
    assert word(rig.join("a", first)) == "bad-announcement"
    mixed = [*first[:1], *second[1:]]  # its own is the old one, and all others are fresh
    assert word(rig.join("a", mixed)) == "bad-announcement"
    assert rig.join("a", second).type == "joined"


def test_announcements_for_another_plan_are_not_taken() -> None:
    """Keys are the same for all runs of a process; what they were announced for is not."""
    rig = Rig(opened=False)
    other = replace(rig.plan, run="another-run")
    for_this, for_other = (opened_at_all(rig, plan, "00") for plan in (rig.plan, other))
    assert word(rig.join("a", [*for_this[:1], *for_other[1:]])) == "bad-announcement"
    assert word(rig.join("a", for_other)) == "bad-announcement"
    assert rig.join("a", for_this).type == "joined"
