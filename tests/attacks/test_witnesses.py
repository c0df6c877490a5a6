"""Ledgers that were rolled back, and a coordinator or a party that helps to hide it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hedgerow.cli.app import app
from hedgerow.deployment.status import StatusService
from hedgerow.engines.site import Site
from hedgerow.errors import LedgerError
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.gaps import Ceilings, settle
from hedgerow.privacy.ledger.spending import spending
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.ledger.witnesses import (
    KeptHead,
    commitment_of,
    gaps_of,
    kept_head,
    own_heads,
)
from hedgerow.protocol.identity import Identity
from hedgerow.protocol.joined import Joined
from hedgerow.protocol.witnesses import Show, head_from, shows_in
from tests.attacks.rig import word
from tests.attacks.witness_rig import TOTAL, Shows, WitnessRig

ALL = {"a": "joined", "b": "joined", "c": "joined"}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[WitnessRig]:
    made = WitnessRig(tmp_path)
    yield made
    for ledger in made.ledgers.values():
        if not ledger.closed:
            verify(ledger)
            ledger.close()


def rolled_back(rig: WitnessRig) -> None:
    """Party a has lost its last run: file and notes were restored together."""
    assert rig.run() == ALL
    copy = rig.backup("a")
    assert rig.run() == ALL
    rig.restore("a", copy)


def test_a_lost_run_is_noticed_at_the_next_one_and_named(rig: WitnessRig) -> None:
    rolled_back(rig)
    assert rig.run() == {"a": "rolled-back", "b": "joined", "c": "joined"}
    (gap,) = gaps_of(rig.ledgers["a"], "a")
    assert (gap.count, gap.shown_by, gap.settled) == (2, "b", False)
    assert [line.values["word"] for line in rig.ledgers["a"].lines("a", "refuse")] == [
        "rolled-back"
    ]
    reserved = rig.ledgers["a"].lines("a", "reserve")
    assert len(reserved) == 1  # the new run was not reserved here
    # Nothing at all is answered from now on, also after a restart.
    rig.ledgers["a"].close()
    rig.start("a")
    with pytest.raises(AssertionError, match="rolled-back"):
        rig.announce()


@pytest.mark.parametrize("trust", ["parties", "coordinator", "nobody"])
def test_it_is_noticed_whoever_is_trusted(tmp_path: Path, trust: str) -> None:
    rig = WitnessRig(tmp_path, trust=trust)
    rolled_back(rig)
    assert rig.run()["a"] == "rolled-back"


def test_a_backup_that_has_the_last_witnessed_line_passes(rig: WitnessRig) -> None:
    assert rig.run() == ALL
    assert rig.run() == ALL
    rig.restore("a", rig.backup("a"))
    assert rig.run() == ALL
    assert gaps_of(rig.ledgers["a"], "a") == []


def test_lines_after_the_last_witness_can_be_lost_unnoticed(rig: WitnessRig) -> None:
    """What the documents say of it: the last head covers the reservation, not what is charged."""
    assert rig.run() == ALL
    copy = rig.backup("a")
    assert rig.ask("a").type == "answer"
    rig.restore("a", copy)
    assert rig.run() == ALL
    assert rig.ledgers["a"].lines("a", "charge") == []


def test_a_head_covers_the_reservation_of_its_own_run(rig: WitnessRig) -> None:
    copy = rig.backup("a")
    assert rig.run() == ALL
    rig.restore("a", copy)
    assert rig.run()["a"] == "rolled-back"


def test_withheld_shows_are_not_gone_without(rig: WitnessRig) -> None:
    rolled_back(rig)
    for kept in ([], ["b"], ["c"]):
        said = rig.run(lie=lambda name, shows, kept=kept: [s for s in shows if s["by"] in kept])
        assert said["a"] == "unwitnessed"


@pytest.mark.parametrize("trust", ["coordinator", "nobody"])
def test_a_run_with_fewer_others_than_all_but_c_is_refused(tmp_path: Path, trust: str) -> None:
    """Where a party would answer alone, a coordinator could leave out whoever knows better."""
    rig = WitnessRig(tmp_path, ("a", "b", "c", "d"), trust)
    assert set(rig.run().values()) == {"joined"}
    assert rig.run(("a",)) == {"a": "unwitnessed"}
    assert rig.run(("a", "b")) == {"a": "unwitnessed", "b": "unwitnessed"}
    assert set(rig.run(("a", "b", "c")).values()) == {"joined"}  # one may be away


def test_too_few_to_witness_is_said_before_anybody_is_shown_or_reserves_anything(
    tmp_path: Path,
) -> None:
    rig = WitnessRig(tmp_path, ("a", "b", "c", "d"), "coordinator")
    rig.new_plan()
    rig.announce(("a", "b"))
    for name in ("a", "b"):
        said = rig.shown((name,))[name]
        assert said == {"word": "unwitnessed"}
        assert rig.ledgers[name].lines(name, "reserve") == []
    rig.announce(("a", "b", "c"))  # one may be away
    assert all("word" not in said for said in rig.shown(("a", "b", "c")).values())


def test_the_operator_may_ask_for_fewer_or_more_witnesses(tmp_path: Path) -> None:
    for least, said in ((1, "joined"), (3, "unwitnessed")):
        folder = tmp_path / str(least)
        folder.mkdir()
        limits = Limits(budget=TOTAL, least_witnesses=least)
        rig = WitnessRig(folder, ("a", "b", "c", "d"), "nobody", limits)
        assert set(rig.run(("a", "b", "c")).values()) == {said}


def test_shows_for_another_party_or_of_another_ones_head_are_refused(rig: WitnessRig) -> None:
    rolled_back(rig)
    rig.new_plan()
    rig.announce()
    shown = rig.shown()
    right = {show["by"]: show for show in shows_in(shown, "a")}
    for_c = {show["by"]: show for show in shows_in(shown, "c")}
    swapped = [
        [right["b"], {**for_c["b"], "by": "c"}],  # what b shows c, in c's name
        [{**right["c"], "by": "b"}, right["c"]],
        [{**right["b"], "head": for_c["b"]["head"]}, right["c"]],  # c's head in the place of a's
        [{**right["b"], "head": {}}, right["c"]],
    ]
    for shows in swapped:
        assert word(rig.enter("a", shows)) == "bad-witness"
    assert word(rig.enter("a", list(right.values()))) == "rolled-back"


def test_shows_of_an_earlier_handshake_are_refused(rig: WitnessRig) -> None:
    rig.new_plan()
    rig.announce()
    early = shows_in(rig.shown(), "a")  # when nobody kept anything
    rolled_back(rig)
    assert rig.run(lie=lambda name, shows: early if name == "a" else shows)["a"] == "bad-witness"
    # The same run opened again is another handshake, too.
    rig.new_plan()
    rig.announce()
    before = shows_in(rig.shown(), "b")
    rig.announce(("b", "c"))
    assert word(rig.enter("b", before)) in ("bad-witness", "bad-announcement")


def test_forged_shows_and_heads_are_refused(rig: WitnessRig) -> None:
    rolled_back(rig)
    rig.new_plan()
    rig.announce()
    right = {show["by"]: show for show in shows_in(rig.shown(), "a")}
    joined = joined_hash(rig)
    older = kept_of_first_run(rig)
    b = rig.identities["b"]
    lies: list[Shows] = []
    for signer in (rig.coordinator, rig.identities["c"], Identity()):  # none of them is b
        none = Show("b", None).signed(signer, "a", joined)
        lies.append([none.to_dict(), right["c"]])
    # b itself, in league with the coordinator, makes heads up: a never signed them.
    changed = KeptHead(**{**vars(older), "count": 9})
    lies.append([Show("b", changed).signed(b, "a", joined).to_dict(), right["c"]])
    for lie in lies:
        assert word(rig.enter("a", lie)) == "bad-witness"
    assert word(rig.enter("a", list(right.values()))) == "rolled-back"


@pytest.mark.parametrize("keeps", ["nothing", "an older head"])
def test_one_liar_does_not_hide_it(rig: WitnessRig, keeps: str) -> None:
    rolled_back(rig)
    older = kept_of_first_run(rig) if keeps == "an older head" else None
    rig.new_plan()
    rig.announce()
    shown = shows_in(rig.shown(), "a")
    honest = next(show for show in shown if show["by"] == "c")
    lie = Show("b", older).signed(rig.identities["b"], "a", joined_hash(rig)).to_dict()
    assert word(rig.enter("a", [lie, honest])) == "rolled-back"
    assert gaps_of(rig.ledgers["a"], "a")[0].shown_by == "c"


def test_heads_that_are_replayed_swapped_or_forged_are_not_kept(rig: WitnessRig) -> None:
    assert rig.run() == ALL
    first = dict(rig.heads)
    assert rig.run(leaves=False) == ALL
    second = dict(rig.heads)
    kept = kept_head(rig.ledgers["b"], "b", "a")
    assert kept is not None
    lies: list[dict[str, Any]] = [
        first["a"],  # of the run before
        {**second["c"], "party": "a"},
        {**second["a"], "count": 77},
        {**second["a"], "commitment": "0" * 64},
        {**second["a"], "key": rig.coordinator.public},
    ]
    for lie in lies:
        assert rig.leave("b", [lie]) == "bad-witness"
        assert kept_head(rig.ledgers["b"], "b", "a") == kept
    assert rig.leave("b", [{**second["a"], "signature": 5}]) == "bad-message"
    # One that is right is kept although another beside it is not.
    assert rig.leave("b", [second["a"], first["c"]]) == "bad-witness"
    assert kept_head(rig.ledgers["b"], "b", "a") == head_from(second["a"])


def test_a_person_settles_it_at_full_limits_and_the_party_goes_on(rig: WitnessRig) -> None:
    assert rig.run() == ALL
    copy = rig.backup("a")
    assert rig.run() == ALL
    assert rig.run(("a", "b", "c"), leaves=False) == ALL  # lost as well, and nobody keeps it
    true = spending(rig.ledgers["a"], "a")
    rig.restore("a", copy)
    assert rig.run()["a"] == "rolled-back"
    ceilings = Ceilings(total=TOTAL)
    settled = settle(rig.ledgers["a"], "a", ceilings, "Ada Koch", "backup of Monday")
    after = spending(rig.ledgers["a"], "a")
    assert after.mu >= true.mu
    assert after.epsilon(1e-6) >= TOTAL.epsilon >= true.epsilon(1e-6)
    assert settled.bound == "all of 10 in total"
    with pytest.raises(LedgerError, match="no gap to settle"):
        settle(rig.ledgers["a"], "a", ceilings, "Ada Koch", "once more")
    # Nothing is left under the limit; a person who raises it lets the party take part again.
    with pytest.raises(AssertionError, match="over-limits"):
        rig.run()
    rig.limits = Limits()
    rig.restart("a")
    assert rig.run() == ALL  # b and c show the head that was lost, which is settled
    assert own_heads(rig.ledgers["a"], "a")[-1].count == 3  # above the lost one


def test_a_lost_head_that_comes_up_later_is_paid_for_by_the_same_settlement(
    tmp_path: Path,
) -> None:
    rig = WitnessRig(tmp_path, ("a", "b", "c", "d"), limits=Limits())
    everyone = rig.run()
    copy = rig.backup("a")
    assert set(rig.run().values()) == {"joined"}
    assert set(rig.run(("a", "b", "c")).values()) == {"joined"}  # d keeps the head before
    rig.restore("a", copy)
    assert rig.run(("a", "b", "c"))["a"] == "rolled-back"
    settle(rig.ledgers["a"], "a", Ceilings(total=TOTAL), "Ada Koch", "known")
    assert rig.run() == everyone
    assert len(gaps_of(rig.ledgers["a"], "a")) == 1


def test_a_replaced_key_does_not_hide_lost_lines(rig: WitnessRig) -> None:
    rolled_back(rig)
    rig.repin(a=Identity())
    assert rig.run()["a"] == "rolled-back"  # the chain knows the key that signed


def test_another_site_under_an_old_name_is_not_held_to_its_lines(rig: WitnessRig) -> None:
    assert rig.run() == ALL
    rig.renew("a")
    rig.repin(a=Identity())
    assert rig.run() == ALL


def test_a_new_party_and_a_first_run_have_nothing_to_show(tmp_path: Path) -> None:
    rig = WitnessRig(tmp_path, ("a", "b", "c", "d"))
    assert set(rig.run(("a", "b", "c")).values()) == {"joined"}
    assert set(rig.run().values()) == {"joined"}  # d is new


def test_a_renewed_ledger_with_the_same_key_is_noticed_and_can_go_on(rig: WitnessRig) -> None:
    assert rig.run() == ALL
    rig.renew("a")
    said = rig.run()
    assert said == {"a": "rolled-back", "b": "bad-announcement", "c": "bad-announcement"}
    gaps = gaps_of(rig.ledgers["a"], "a")
    assert [(gap.boot, gap.count) for gap in gaps] == [(0, 1), (1, 0)]
    settled = settle(rig.ledgers["a"], "a", Ceilings(total=TOTAL), "Ada Koch", "disk died")
    assert settled.since == ""
    rig.limits = Limits()
    rig.restart("a")
    assert rig.run() == ALL


def test_a_start_that_others_joined_with_is_missed_although_no_head_was_left(
    rig: WitnessRig,
) -> None:
    """A coordinator that withholds heads: the others still know the start that has joined."""
    assert rig.run() == ALL
    copy = rig.backup("a")
    for _ in range(3):
        rig.restart("a")
    assert rig.run(leaves=False) == ALL
    rig.restore("a", copy)  # start 2 of 4
    assert rig.run()["a"] == "rolled-back"
    (gap,) = gaps_of(rig.ledgers["a"], "a")
    assert (gap.boot, gap.commitment) == (4, "")
    settle(rig.ledgers["a"], "a", Ceilings(total=TOTAL), "Ada Koch", "backup of Monday")
    rig.limits = Limits()
    assert rig.parties["a"].boot == 2  # others know a later one, until it is started again
    rig.restart("a")
    assert rig.parties["a"].boot == 5  # above every start that others know
    assert rig.run() == ALL


def test_runs_that_overlap_leave_the_later_head(rig: WitnessRig) -> None:
    assert rig.run(leaves=False) == ALL
    first, plan, announced = dict(rig.heads), rig.plan, rig.announced
    assert rig.run() == ALL
    later = kept_head(rig.ledgers["b"], "b", "a")
    rig.plan, rig.announced = plan, announced
    assert rig.leave("b", list(first.values())) == "left"
    assert kept_head(rig.ledgers["b"], "b", "a") == later
    assert rig.run() == ALL


def test_a_head_hides_the_ledger_and_counts_heads_alone(rig: WitnessRig) -> None:
    assert rig.run() == ALL
    for number in range(5):  # other activity, which nobody else is told of
        rig.ledgers["a"].append("a", "limits", values={"hash": str(number), "source": "kit"})
    assert rig.run() == ALL
    one, two = own_heads(rig.ledgers["a"], "a")
    assert (one.count, two.count) == (1, 2)
    assert two.line > one.line + 5
    sent = set(rig.heads["a"])
    assert sent == {"party", "key", "commitment", "count", "time", "joined", "signature"}
    assert one.nonce != two.nonce
    assert len(bytes.fromhex(one.nonce)) == 32
    assert one.commitment == commitment_of(one.nonce, one.head, 1)
    assert one.commitment != commitment_of("", one.head, 1)


def test_verify_prints_head_and_witnesses_beside_a_running_party(rig: WitnessRig) -> None:
    rolled_back(rig)
    rig.run()
    found = CliRunner().invoke(app, ["ledger", "verify", str(rig.file("a"))])
    assert found.exit_code == 0, found.exception
    words = " ".join(found.stdout.split())
    lines, head = rig.ledgers["a"].last()  # which this process has open
    assert f"Head: line {lines}, {head}" in words
    assert "a left head 1 (up to line " in words
    assert "a keeps head 1 of b" in words
    assert "LOST LINES (NOT SETTLED): b keeps head 2 of a" in words
    status = StatusService(Site.create(rig.folder / "a", "a"), rig.ledgers["a"], Limits()).status()
    assert "the ledger has lost lines that b" in status["problem"]


def joined_hash(rig: WitnessRig) -> str:
    from hedgerow.protocol.identity import Announcement

    announced = [Announcement.from_dict(one) for one in rig.announced]
    return Joined({one.name: one for one in announced}).hash


def kept_of_first_run(rig: WitnessRig) -> KeptHead:
    """The first head of a that b kept, which a still has."""
    line = rig.ledgers["b"].lines("b", "witness", "a")[0]
    return KeptHead("a", **line.values)
