"""The engine between sites: one port at the coordinator, parties dial out. Needs the extra `grpc`.

Every party opens one stream over TLS, with the coordinator's certificate pinned, and holds it; both
sides prove their pinned signing keys on it before anything else is said. What is carried is signed
and sealed already: the engine moves bytes and knows who is there.

certificate.py   the certificate that parties pin, made at the coordinator's site
pieces.py        messages in pieces, and their limits
hello.py         the signed hello: who is at either end
deliveries.py    parties' streams, messages on their way, and who still owes a reply
server.py        the coordinator's port
strangers.py     who knocks without belonging here, logged at a bounded rate
client.py        a party's stream, dialled again whenever it ends
dialling.py      what a party is told when it cannot connect
"""

from __future__ import annotations

import importlib.util
import os

from hedgerow.errors import HedgerowError

METHOD = "/hedgerow.Federation/Connect"
SERVER_NAME = "coordinator.hedgerow"  # in every certificate; parties pin the certificate itself

# Else gRPC's core writes a line without an address for every stranger, as many as come.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def check_installed() -> None:
    """Say how to install gRPC where it is missing."""
    if importlib.util.find_spec("grpc") is None:
        raise HedgerowError(
            "federations between sites need gRPC, which is not installed. Nothing was done. "
            "Run: pip install 'hedgerow[grpc]'"
        )
