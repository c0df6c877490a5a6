"""The NVFlare engine: carries messages between houses over mutual TLS. Needs the extra `nvflare`.

Nothing here reads rows, ledgers or signing keys: on both ends an NVFlare process only relays bytes
to a process of ours through a socket file of the kit.
"""

from __future__ import annotations

import importlib.util

from hedgerow.errors import HedgerowError


def check_installed() -> None:
    """Say how to install NVFlare where it is missing."""
    if importlib.util.find_spec("nvflare") is None:
        raise HedgerowError(
            "federations between houses run on NVFlare, which is not installed. Nothing was done. "
            "Run: pip install 'hedgerow[nvflare]'"
        )
