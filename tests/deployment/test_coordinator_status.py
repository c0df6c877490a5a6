"""What a coordinator's operator is told of parties: refused, of another clock, crashing, absent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hedgerow.deployment.coordinator import CRASH_LOOP_STARTS, StatusService
from hedgerow.deployment.hold import holding
from hedgerow.deployment.roster import roster_of
from hedgerow.deployment.runs import list_runs, recorded
from hedgerow.engines.grpc.hello import to_frame
from hedgerow.engines.site import Site
from hedgerow.methods.registry import plan_for
from hedgerow.privacy.settings import Privacy
from tests.conftest import MIXED
from tests.engines.grpc.rig import RawStream, Rig, until
from tests.engines.grpc.test_hello import binding_of, hello_of, verdict_on

NAMES = ("p0", "p1", "p2")


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig(NAMES)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    coordinator = Site.create(tmp_path / "coordinator", "coordinator", "127.0.0.1:1")
    cards = [Site.create(tmp_path / name, name).card() for name in NAMES]
    coordinator.pin(roster_of([coordinator.card(), *cards], "trial"))
    return coordinator


def problems(site: Site, rig: Rig) -> dict[str, str]:
    told: dict[str, Any] = json.loads(StatusService(site, rig.server).handle(b"status"))
    return {party["name"]: "; ".join(party["problems"]) for party in told["parties"]}


def test_a_party_that_was_refused_is_shown_with_the_reason_until_it_is_let_in(
    site: Site, rig: Rig
) -> None:
    assert "has not connected" in problems(site, rig)["p0"]
    verdict_on(rig, replace(hello_of(rig), version=0))
    until(lambda: "Upgrade the party" in problems(site, rig)["p0"])
    assert "refused: p0 speaks version 0" in problems(site, rig)["p0"]
    rig.links["p0"] = rig.link("p0")
    until(lambda: problems(site, rig)["p0"] == "")


def test_a_clock_that_is_off_is_shown_while_the_party_is_connected(site: Site, rig: Rig) -> None:
    stream = RawStream(rig)
    hello = replace(hello_of(rig, "p2"), time=1.0)
    stream.say(to_frame(hello.signed(rig.identities["p2"], binding_of(rig, stream))))
    until(lambda: "their clocks differ by" in problems(site, rig)["p2"])
    stream.close()
    until(lambda: "its process or its network is gone" in problems(site, rig)["p2"])


def test_a_crash_loop_is_shown(site: Site, rig: Rig) -> None:
    for boot in range(1, CRASH_LOOP_STARTS + 1):
        rig.links["p1"] = rig.link("p1", boot=boot)
        until(lambda boot=boot: rig.server.connected().get("p1") == boot)
        rig.links["p1"].stop()
    until(lambda: "started 4 times in ten minutes: it keeps crashing" in problems(site, rig)["p1"])
    stream_ended = "its process or its network is gone"
    until(lambda: stream_ended in problems(site, rig)["p1"])
    assert "keeps crashing" not in problems(site, rig)["p2"]


def test_a_party_that_is_absent_from_a_run_is_shown_while_the_run_lasts(
    site: Site, rig: Rig
) -> None:
    rig.connect()
    plan = plan_for(MIXED, Privacy(1.0, 1e-5, "parties"), "random-trees", {"n_trees": 2}, seed=1)
    with holding(site, "hedgerow train"), recorded(site, plan) as tell_absent:
        assert problems(site, rig) == dict.fromkeys(NAMES, "")
        tell_absent({"p2": "its disk is full"})
        wanted = f"not in the sums of run {plan.run}: its disk is full"
        assert problems(site, rig) == {"p0": "", "p1": "", "p2": wanted}
        tell_absent({})
        assert problems(site, rig)["p2"] == ""
        tell_absent({"p2": "its disk is full"})
    assert problems(site, rig)["p2"] == ""  # the run is over
    (record,) = list_runs(site)
    assert (record.state, dict(record.absent)) == ("finished", {"p2": "its disk is full"})
