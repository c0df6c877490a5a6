"""Hosts of one machine: network namespaces, joined by a switch that delays, loses and slows frames.

Every host is a namespace with one TAP device. This process holds the other ends and forwards
Ethernet frames between them, so that a bad line needs no module of the kernel. It needs root, `ip`
and /dev/net/tun; `missing` says what is not there.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import select
import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

_TUNSETIFF, _TAP, _NO_PROTOCOL = 0x400454CA, 0x0002, 0x1000  # linux/if_tun.h
_DEVICE = "lan0"
_FRAME = 65536
_QUEUE_SECONDS = 2.0  # a slow line drops what would wait longer


def missing() -> str:
    """What this machine lacks for hosts of its own; empty if nothing."""
    if os.geteuid() != 0:
        return "root is needed for network namespaces"
    if shutil.which("ip") is None:
        return "the command ip (Debian's iproute2) is missing"
    return "" if Path("/dev/net/tun").exists() else "/dev/net/tun is missing"


@dataclass(frozen=True)
class Line:
    """What happens to frames from and to a host."""

    delay_seconds: float = 0.0  # one way
    loss: float = 0.0  # share of frames
    bytes_per_second: float = 0.0  # 0: as fast as it goes
    cut: bool = False


class Network:
    """Hosts by name; processes are started on one of them, and lines may change at any time."""

    def __init__(self, names: Sequence[str], seed: int = 1) -> None:
        self._places = {name: number for number, name in enumerate(names, 1)}
        self._prefix = f"hr{os.getpid()}-"
        self._switch = _Switch(Random(seed))

    def __enter__(self) -> Network:
        try:
            for name, place in self._places.items():
                self._add(name, place)
        except BaseException:
            self.__exit__()
            raise
        self._switch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._switch.stop()
        for name in self._places:
            _ip("netns", "del", self._prefix + name, check=False)

    def address(self, name: str) -> str:
        return f"10.77.0.{self._places[name]}"

    def start(self, name: str, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """A process on that host."""
        return subprocess.Popen(["ip", "netns", "exec", self._prefix + name, *command], **options)

    def set_lines(self, lines: Mapping[str, Line]) -> None:
        """How frames from and to these hosts fare from now on; other hosts stay as they are."""
        self._switch.lines = {**self._switch.lines, **lines}

    def _add(self, name: str, place: int) -> None:
        space = self._prefix + name
        _ip("netns", "add", space)
        mac = bytes([2, 0, 0, 0, 0, place])
        self._switch.add(name, mac, _tap_in(space))
        inside = ("-n", space)
        _ip(*inside, "link", "set", _DEVICE, "address", mac.hex(":"), "up")
        _ip(*inside, "link", "set", "lo", "up")
        _ip(*inside, "address", "add", f"{self.address(name)}/24", "dev", _DEVICE)


class _Switch:
    """Forwards frames by destination, each after what its line does to it."""

    def __init__(self, rng: Random) -> None:
        self.lines: dict[str, Line] = {}
        self._rng, self._taps = rng, dict[int, str]()
        self._by_mac: dict[bytes, int] = {}
        self._free: dict[str, float] = {}  # when a slow line has sent what waits
        self._waiting: list[tuple[float, int, int, bytes]] = []  # due, number, to, frame
        self._number, self._stopped = 0, threading.Event()
        self._thread = threading.Thread(target=self._forward, name="switch", daemon=True)

    def add(self, name: str, mac: bytes, tap: int) -> None:
        self._taps[tap], self._by_mac[mac] = name, tap

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        for tap in self._taps:
            os.close(tap)
        self._taps.clear()

    def _forward(self) -> None:
        poll = select.poll()
        for tap in self._taps:
            poll.register(tap, select.POLLIN)
        while not self._stopped.is_set():
            due = self._waiting[0][0] - time.monotonic() if self._waiting else 0.2
            for tap, _ in poll.poll(max(0.0, min(due, 0.2)) * 1000):
                self._take(tap)
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                _, _, to, frame = heapq.heappop(self._waiting)
                self._write(to, frame)

    def _take(self, tap: int) -> None:
        try:
            frame = os.read(tap, _FRAME)
        except OSError:
            return  # the device is down
        known = self._by_mac.get(frame[:6])
        for to in self._taps if known is None else (known,):  # unknown: broadcast, as ARP is
            if to != tap:
                self._send(tap, to, frame)

    def _send(self, tap: int, to: int, frame: bytes) -> None:
        sender, receiver = self._taps[tap], self._taps[to]
        lines = [self.lines.get(name, Line()) for name in (sender, receiver)]
        if any(line.cut or self._rng.random() < line.loss for line in lines):
            return
        due = now = time.monotonic()
        # Each direction of a slow line has its own queue.
        for direction, line in zip((f"{sender}>", f">{receiver}"), lines, strict=True):
            if line.bytes_per_second:
                due = max(due, self._free.get(direction, now))
                if due - now > _QUEUE_SECONDS:
                    return
                due = self._free[direction] = due + len(frame) / line.bytes_per_second
        due += max(line.delay_seconds for line in lines)
        if due == now:
            self._write(to, frame)
            return
        self._number += 1
        heapq.heappush(self._waiting, (due, self._number, to, frame))

    def _write(self, to: int, frame: bytes) -> None:
        try:
            os.write(to, frame)
        except OSError:
            return  # the device is down, as with a host that is switched off


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)


def _tap_in(space: str) -> int:
    """A TAP device inside of a namespace; this process keeps its other end."""
    with _inside(space):
        tap = os.open("/dev/net/tun", os.O_RDWR)
        request = struct.pack("16sH22x", _DEVICE.encode(), _TAP | _NO_PROTOCOL)
        fcntl.ioctl(tap, _TUNSETIFF, request)
    return tap


@contextmanager
def _inside(space: str) -> Iterator[None]:
    """This thread acts in a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{space}", os.O_RDONLY)
    try:
        for_network = 0x40000000  # CLONE_NEWNET
        if libc.setns(there, for_network):
            raise OSError(ctypes.get_errno(), f"the namespace {space} cannot be entered")
        try:
            yield
        finally:
            libc.setns(before, for_network)
    finally:
        os.close(there)
        os.close(before)
