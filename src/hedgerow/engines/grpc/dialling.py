"""What a party is told when it cannot connect, in words that say what to do."""

from __future__ import annotations

import ipaddress

import grpc

from hedgerow.engines.sockets import one_line

CONNECT_SECONDS = 10.0  # for a connection and the hello
TOLD_NOTHING = (
    "the coordinator does not know this party's key and ended the stream without a word. It may "
    "not have pinned the roster with your card yet: ask its operator"
)


def words_of(error: grpc.RpcError, address: str) -> str:
    """What a failed attempt means, for a person."""
    code, details = error.code(), (error.details() or "").lower()
    words = one_line(details) or "no reason given"
    if code == grpc.StatusCode.UNAUTHENTICATED:
        return TOLD_NOTHING
    if "certificate" in details or "handshake" in details or "ssl" in details or "tls" in details:
        return (
            f"whatever listens at {address} does not show the pinned certificate: the coordinator "
            "made a new one, or this is another machine. Ask its operator for its card"
        )
    if "refused" in details:
        return f"nobody listens at {address} (connection refused): is the coordinator started?"
    if "dns" in details or "name resolution" in details or "resolv" in details:
        return f"the name in {address} cannot be resolved: check the address and this site's DNS"
    if "proxy" in details:
        return f"the proxy does not lead to {address}: {words}"
    if code in (grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED):
        return f"no hello from {address} within {CONNECT_SECONDS:.0f} s, or the stream was ended"
    if code == grpc.StatusCode.UNAVAILABLE:
        return f"{address} cannot be reached, or the connection broke: {words}"
    return f"the stream to {address} ended ({code.name.lower()}): {words}"


def is_loopback(address: str) -> bool:
    """Whether host:port is this machine's own.

    >>> is_loopback("localhost:8002"), is_loopback("127.0.0.1:1"), is_loopback("a.example:2")
    (True, True, False)
    """
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
