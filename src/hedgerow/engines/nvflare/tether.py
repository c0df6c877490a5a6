"""Run a Python module so that it dies with the process that started it (Linux).

`python -m hedgerow.engines.nvflare.tether PARENT FENCE -m some.module ...` asks the kernel for
SIGKILL at the parent's death, checks that the parent still lives, puts itself behind the fence (see
`fence.py`) unless that is "null", and becomes the module.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import IO

from hedgerow.engines.nvflare.fence import Fence, enclose

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
# The kernel means the thread that started the child, so all are started by one that stays.
_starter = ThreadPoolExecutor(1, "tether")


def start_tethered(
    words: Sequence[str],
    environment: Mapping[str, str],
    folder: str | None = None,
    output: IO[bytes] | None = None,
    fence: Fence | None = None,
) -> subprocess.Popen[bytes]:
    """Start `python *words` in a session of its own; it is killed if this process dies."""
    fenced = json.dumps(None if fence is None else asdict(fence))
    command = [sys.executable, "-P", "-m", __spec__.name, str(os.getpid()), fenced, *words]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=None if output is None else subprocess.STDOUT,
            umask=0o077,
            start_new_session=True,  # Ctrl-C is for the owner, who stops its children in order
        )

    return _starter.submit(start).result()


def main() -> None:
    parent, fence, words = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel refused to tie this process to its parent")
    if os.getppid() != parent:  # it died before the kernel was asked
        sys.exit(1)
    if fence is not None and not enclose(Fence(**fence)):
        print("this kernel has no Landlock: the engine can read what its account can", flush=True)
    os.execv(sys.executable, [sys.executable, "-P", *words])  # no modules from the kit's folder


if __name__ == "__main__":
    main()
