"""Processes of a runtime that a test has started: all of them end with it."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_process(
    command: Sequence[str], log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a process that writes to a file; Ctrl-C in the test's terminal does not reach it."""
    with log.open("wb") as written:
        return subprocess.Popen(
            command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=written,
            stderr=written, start_new_session=True,
        )  # fmt: skip


def end_processes(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """End these and whatever they have started, jobs in sessions of their own too."""
    family: list[psutil.Process] = []
    for process in started:
        try:
            parent = psutil.Process(process.pid)
            family += [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
    for process in family:
        try:
            process.terminate()
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs(family, timeout=5.0)
    for process in alive:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(alive, timeout=30.0)
    for process in started:
        process.wait(30.0)
