"""The NVFlare engine: carries messages between sites over mutual TLS. Needs the extra `nvflare`.

engine.py     the engine: every `ask` travels through one running job
delivery.py   messages on their way: who still owes a reply
envelopes.py  what the engine and its carrier say to each other
carriers.py   the two ends inside NVFlare's job processes
jobs.py       who is there, and submitting jobs
launcher.py   how NVFlare starts a job process here
processes.py  the NVFlare process as a child of ours
tether.py     a module that dies with the process that started it
provision.py  certificates and addresses of a new federation
room.py       the folder that NVFlare runs in
hardening.py  what this site lets NVFlare do
doors.py      which messages its processes take
fence.py      which files they see
"""

from __future__ import annotations

import importlib.util

from hedgerow.errors import HedgerowError


def check_installed() -> None:
    """Say how to install NVFlare where it is missing."""
    if importlib.util.find_spec("nvflare") is None:
        raise HedgerowError(
            "federations between sites run on NVFlare, which is not installed. Nothing was done. "
            "Run: pip install 'hedgerow[nvflare]'"
        )
