"""Loaded by every worker of a cluster started here, so that it does not hear Ctrl-C.

A terminal sends it to all processes. The coordinator then ends the run between two releases, and
needs its workers until it has the one under way.
"""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Dask calls it when the worker starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
