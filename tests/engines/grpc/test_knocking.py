"""Many strangers at once, from the first byte on: none may end the coordinator's process.

gRPC frees the credentials of its port where they are replaced while it makes handshakes; with
credentials that were made anew for every handshake this test killed the process within seconds.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.engines.grpc.rig import NAMES

STRANGERS, CONNECTIONS = 4, 2_000  # at once, and of each
ROOT = Path(__file__).parents[3]
# The port and its parties live in a process of their own: it may die without the tests.
COORDINATOR = """
import sys
from tests.engines.grpc.rig import NAMES, Rig

rig = Rig(mutual_tls=sys.argv[1] == "mutual")
rig.connect()
print(rig.port, flush=True)
for line in sys.stdin:
    print(sum(reply.body is not None for reply in rig.ask(NAMES, b"x", 60.0).values()), flush=True)
rig.close()
"""


def knock(port: int) -> int:
    """Connections with garbage on them, some left open for a while, as scanners do."""
    reached, kept = 0, list[socket.socket]()
    for _ in range(CONNECTIONS):
        with suppress(OSError):
            kept.append(socket.create_connection(("127.0.0.1", port), 30))
            kept[-1].sendall(os.urandom(512))
            reached += 1
        if len(kept) > 20:
            kept.pop(0).close()
    for stranger in kept:
        stranger.close()
    return reached


@pytest.mark.parametrize("tls", ["pinned", "mutual"])
def test_thousands_of_strangers_at_once_do_not_end_the_process(tls: str) -> None:
    command = [sys.executable, "-c", COORDINATOR, tls]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:  # type: ignore[call-overload]
        port = int(process.stdout.readline())
        with ThreadPoolExecutor(STRANGERS) as pool:
            reached = sum(pool.map(knock, [port] * STRANGERS))
        assert process.poll() is None, f"it died with code {process.returncode}"
        said, _ = process.communicate("ask\n", 90)
    assert int(said) == len(NAMES)  # its parties were there all along
    assert process.returncode == 0
    assert reached > STRANGERS * CONNECTIONS / 2  # else nothing was shown
