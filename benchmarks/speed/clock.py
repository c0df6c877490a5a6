"""Wall and CPU seconds, peak memory, and what is worth knowing about the machine.

CPU seconds are those of all threads of the process: on a machine that does other work too, they
say more than the wall clock.
"""

from __future__ import annotations

import gc
import hashlib
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import hedgerow

FOLDER = Path(__file__).resolve().parents[1]
PACKAGES = (
    "hedgerow", "numba", "numpy", "pandas", "pyarrow", "scikit-learn", "xgboost-cpu",
    "lightgbm", "interpret-core",
)  # fmt: skip


def timed(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Run it once: wall and CPU seconds with the load average, and what it gave."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": wall, "cpu": cpu, "load": os.getloadavg()[0]}, value


def memory(what: str) -> float:
    """MB of this process: VmRSS now, VmHWM at its peak. (ru_maxrss has the parent's peak in it.)"""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"/proc/self/status has no {what}")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def source() -> str:
    """A hash of hedgerow's source: figures of different sources are never put side by side."""
    folder, found = Path(hedgerow.__file__).parent, hashlib.sha256()
    for path in sorted(folder.glob("**/*.py")):
        found.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def facts(script: str, begun: float) -> dict[str, Any]:
    """What a result file says before its figures."""
    given = shlex.join(sys.argv[1:])
    return {
        "command": f"python benchmarks/{script}.py {given}".strip(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": source(),
        "minutes": round((time.time() - begun) / 60, 1),
        "cores": cores(),
        "machine": f"{_processor()}, {platform.system()} {platform.machine()}",
        "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY"),
        "python": platform.python_version(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "?")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
