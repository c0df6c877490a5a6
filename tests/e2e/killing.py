"""Finds and kills the processes of sites that run on this machine, by kind."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import psutil

from hedgerow.engines.site import Site

KINDS = ("own process", "engine's parent", "engine's job")


@dataclass(frozen=True)
class Found:
    """One process of a site."""

    site: str
    kind: str
    pid: int


def processes_of(sites: Iterable[Site]) -> list[Found]:
    """Every process whose command names one of these sites."""
    paths = {str(site.path): site.name for site in sites}
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        named = (n for w in words for p, n in paths.items() if f"{w}/".startswith(f"{p}/"))
        site = next(named, "")
        kind = _kind(words)
        if site and kind:
            found.append(Found(site, kind, process.pid))
    return found


def _kind(words: list[str]) -> str:
    text = " ".join(words)
    if "client_train" in text or "server_train" in text:
        return "engine's parent"
    if "worker_process" in text or "runner_process" in text:
        return "engine's job"
    if "hedgerow" in text and "start" in words:
        return "own process"
    return ""


def kill(found: Found) -> None:
    """SIGKILL; a process that ended meanwhile is fine."""
    with suppress(psutil.NoSuchProcess):
        psutil.Process(found.pid).kill()
