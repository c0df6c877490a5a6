"""What large messages cost the coordinator's process, which is one of its own here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from hedgerow.deployment.trial import free_port, hedgerow, pin_everywhere
from hedgerow.engines.grpc.client import Link, Target
from hedgerow.engines.relay import RelayEngine
from hedgerow.engines.site import COORDINATOR, Site

NAMES = ("p0", "p1", "p2")
# It takes 250 MB, and 333 were seen once on a busy machine, where more pieces wait at once. It took
# 627 when memory of large messages was kept for later; that is what this would notice.
MOST_MB = 450.0


def test_memory_of_large_messages_is_given_back(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    site = Site.create(tmp_path / COORDINATOR, COORDINATOR, address)
    sites = {COORDINATOR: site, **{name: Site.create(tmp_path / name, name) for name in NAMES}}
    pin_everywhere(sites)
    target = Target(address, site.certificate()[1], site.roster())
    links = [Link(n, sites[n].identity(), 1, lambda m: m[::-1], lambda: target) for n in NAMES]
    process = subprocess.Popen(hedgerow(["coordinator", "start", str(site.path)]))
    try:
        for link in links:
            link.start()
        engine, message = RelayEngine(site.carrier_socket, NAMES, ""), os.urandom(10_000_000)
        assert engine.await_parties(300.0) == []
        for _ in range(4):
            replies = engine.ask(NAMES, message, 300.0)
            assert all(reply.body == message[::-1] for reply in replies.values())
        status = Path(f"/proc/{process.pid}/status").read_text("ascii")
        assert int(status.partition("VmHWM:")[2].split()[0]) / 1024 < MOST_MB
    finally:
        for link in links:
            link.stop()
        process.terminate()
        process.wait(60)
