"""Who knocks at the port without belonging here: logged with address and reason, at most so often.

Connections that never get as far as a hello are closed inside gRPC without a word; their addresses
are read from the system's own list, once a second. One that closes itself before is not seen.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

from hedgerow import clock

log = logging.getLogger(__name__)
WINDOW_SECONDS = 60.0
MOST_LINES = 10  # in a window; the rest is summed up in one
MOST_WAITING = 8  # hellos under way from one address, or from one IPv6 network
MOST_KNOWN = 20_000  # remote ends that are remembered
_TABLES = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))
_CAME = ("01", "08")  # states: established, close-wait
_LEFT = ("04", "05", "06", "09", "0B")  # closed by us, in the steps that TCP has for it


def host_of(peer: str) -> str:
    """The address in what gRPC calls a peer, such as ipv4:10.0.0.7:53210.

    >>> host_of("ipv4:10.0.0.7:53210"), host_of("ipv6:%5B::1%5D:9")
    ('10.0.0.7', '::1')
    """
    return (
        peer.partition(":")[2].rpartition(":")[0].replace("%5B", "").replace("%5D", "").strip("[]")
    )


def origin_of(host: str) -> str:
    """By what hellos under way are counted: whoever has one IPv6 address has its network of 2**64.

    >>> origin_of("10.0.0.7"), origin_of("::ffff:10.0.0.7"), origin_of("2001:db8::1:7")
    ('10.0.0.7', '10.0.0.7', '2001:db8::/64')
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a kind of address that we do not know counts as itself
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


class Strangers:
    """Counts and logs strangers; holds back an address that opens many streams at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since, self._lines = clock.monotonic(), 0
        self._unlogged = Counter[str]()
        self._waiting = Counter[str]()
        self.total = 0

    def enter(self, peer: str) -> bool:
        """Whether one more hello from this address may begin."""
        origin = origin_of(host_of(peer))
        with self._lock:
            if self._waiting[origin] >= MOST_WAITING:
                return False
            self._waiting[origin] += 1
            return True

    def leave(self, peer: str) -> None:
        origin = origin_of(host_of(peer))
        with self._lock:
            self._waiting[origin] -= 1
            if self._waiting[origin] <= 0:
                del self._waiting[origin]

    def turned_away(self, host: str, reason: str) -> None:
        """Log one, or count it where many were logged already."""
        with self._lock:
            self.total += 1
            now = clock.monotonic()
            if now - self._since > WINDOW_SECONDS:
                self._begin(now)
            self._lines += 1
            if self._lines > MOST_LINES:
                if len(self._unlogged) < 1000 or host in self._unlogged:
                    self._unlogged[host] += 1
                return
        log.warning("turned away %s: %s", host, reason)

    def _begin(self, now: float) -> None:
        if self._unlogged:
            most = ", ".join(f"{host} ({n})" for host, n in self._unlogged.most_common(5))
            log.warning("turned away %d more: %s", self._unlogged.total(), most)
        self._since, self._lines = now, 0
        self._unlogged.clear()


class SilentConnections:
    """Finds connections to a port on which no hello was ever said, by the system's list."""

    def __init__(self, port: int, strangers: Strangers) -> None:
        self._port, self._strangers = port, strangers
        self._lock = threading.Lock()
        self._known = dict[str, float]()  # remote ends that said something, and when
        self._seen = dict[str, float]()  # remote ends that did not yet, and since when
        self._told = set[str]()

    def spoke(self, peer: str) -> None:
        """A stream was opened from here."""
        end = peer.partition(":")[2].replace("%5B", "[").replace("%5D", "]")
        with self._lock:
            if len(self._known) < MOST_KNOWN:
                self._known[end] = clock.monotonic()

    def look(self, after_seconds: float = 2.0) -> None:
        """Report ends that have been there for a while, or are gone again, without a stream."""
        now, here = clock.monotonic(), dict(_remote_ends(self._port))
        with self._lock:  # TCP remembers an end for a minute after it closed
            kept = {e: t for e, t in self._known.items() if e in here or now - t < 70}
            self._known = kept
            known = set(kept)
        self._seen = {end: self._seen.get(end, now) for end in here}
        self._told &= here.keys()
        for end, gone in here.items():
            waited = now - self._seen[end]
            if end in known or end in self._told or (not gone and waited < after_seconds):
                continue
            self._told.add(end)
            what = "closed without a hello" if gone else f"silent for {waited:.0f} s"
            self._strangers.turned_away(end.rpartition(":")[0], f"a connection {what}")


def _remote_ends(port: int) -> list[tuple[str, bool]]:
    """Remote ends of connections to a port of this machine, and whether each is closed already."""
    found = []
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text("ascii").splitlines()[1:5001]:
                local, remote, state = line.split()[1:4]
                if int(local.rpartition(":")[2], 16) == port and state in _CAME + _LEFT:
                    found.append((_end(remote), state in _LEFT))
    return found


def _end(text: str) -> str:
    address, _, port = text.partition(":")
    raw = b"".join(bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8))
    host = ipaddress.ip_address(raw)
    mapped = getattr(host, "ipv4_mapped", None)
    shown = str(mapped or host) if mapped or host.version == 4 else f"[{host}]"
    return f"{shown}:{int(port, 16)}"
