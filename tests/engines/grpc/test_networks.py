"""Lines that go dead without a word, and proxies."""

from __future__ import annotations

import time

import pytest

from hedgerow.engines.grpc import client
from tests.engines.grpc.middle import Line
from tests.engines.grpc.rig import Rig, until
from tests.slow import slow


@slow
def test_a_line_that_goes_dead_is_noticed_by_both_ends_and_dialled_again() -> None:
    rig = Rig(("p0", "p1", "p2"))
    try:
        with Line(rig.port) as line:
            rig.links["p0"] = rig.link("p0", address=f"127.0.0.1:{line.port}")
            until(lambda: "p0" in rig.server.connected())
            line.die()
            before = time.monotonic()
            reply = rig.ask(["p0"], b"x", 60.0)["p0"]
            assert reply.body is None
            assert "it is not connected" in reply.problem  # long before the 60 seconds are over
            assert time.monotonic() - before < 45
            until(lambda: not rig.links["p0"].state.connected)
            line.live()
            until(lambda: "p0" in rig.server.connected())
            assert rig.ask(["p0"], b"y", 30.0)["p0"].body == b"echo y"
            rig.links["p0"].stop()
    finally:
        rig.close()


def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(("p0", "p1", "p2"))
    try:
        with Line(rig.port, proxy=True) as proxy:
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
            monkeypatch.delenv("no_proxy", raising=False)
            monkeypatch.delenv("NO_PROXY", raising=False)
            rig.connect("p0")
            assert proxy.asked == []
            monkeypatch.setattr(client, "is_loopback", lambda address: False)
            rig.links["p1"] = rig.link("p1")
            until(lambda: "p1" in rig.server.connected())
            assert proxy.asked == [f"CONNECT 127.0.0.1:{rig.port} HTTP/1.1"]
            assert rig.ask(["p1"], b"x", 30.0)["p1"].body == b"echo x"
            rig.links["p1"].stop()
    finally:
        rig.close()
