"""`hedgerow party start SITE [NAME=PATH]...` that dials nobody: the sockets are all there is.

SIGUSR1 fills the disk (no file may grow), SIGUSR2 frees it again.
"""

from __future__ import annotations

import resource
import signal
import sys
from pathlib import Path

from hedgerow.cli.party import process_for
from hedgerow.cli.screen import start_logging
from hedgerow.deployment.process import stopped_by_signals
from hedgerow.errors import HedgerowError


def _disk(limit: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))


def drive(site: str, *given: str) -> int:
    start_logging(verbose=False)
    signal.signal(signal.SIGUSR1, lambda *_: _disk(0))
    signal.signal(signal.SIGUSR2, lambda *_: _disk(resource.RLIM_INFINITY))
    paths = {name: Path(path) for name, path in (word.split("=", 1) for word in given)}
    try:
        process = process_for(
            Path(site), paths.get("data"), paths.get("schema"), paths.get("limits"),
            wait=True, dials=False,
        )  # fmt: skip
        with stopped_by_signals(process):
            process.run()
    except HedgerowError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(drive(*sys.argv[1:]))
