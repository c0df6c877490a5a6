"""The coordinator's list of runs: one small file a run at its site, rewritten when a state changes.

It is for people who look; what counts is in the ledgers.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tomli_w

from hedgerow import clock
from hedgerow.coordinator.refused import RefusedBy
from hedgerow.data.documents import Document, OneOf
from hedgerow.deployment.hold import is_held
from hedgerow.engines.site import Site, write_file
from hedgerow.errors import FormatError, HedgerowError, Refused, SettingsError
from hedgerow.privacy.accounting.plan import Plan

_RECORD = Document("run")
STATES = ("running", "finished", "stopped", "refused", "waiting")  # for people to approve


@dataclass(frozen=True)
class RunRecord:
    """One run as the coordinator knows it."""

    run: str
    method: str
    epsilon: float
    delta: float
    state: Annotated[str, OneOf(STATES)]
    started: str  # UTC
    changed: str  # UTC
    reason: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)  # parties in no sum, and why
    process: int = 0  # that drives it, and when that began, as the system counts
    born: int = 0
    command: tuple[str, ...] = ()  # words behind `hedgerow` that go on with it
    folder: str = ""  # where the command was given
    model: str = ""  # the file that it writes


@dataclass(frozen=True)
class Command:
    """What was typed to start a run, so that it can be typed again."""

    words: tuple[str, ...] = ()
    folder: str = ""
    model: str = ""


UNKNOWN = Command()


@contextmanager
def recorded(
    site: Site, plan: Plan, command: Command = UNKNOWN
) -> Iterator[Callable[[Mapping[str, str]], None]]:
    """While the block lasts the run counts as running; then as whatever became of it.

    What it gives is told which parties are absent whenever that changes.
    """
    now = _now()
    known = _read(_file(site, plan.run))
    started = known.started if known else now
    asked, own = plan.privacy, os.getpid()
    record = RunRecord(
        plan.run, plan.method, asked.epsilon, asked.delta, "running", started, now,
        process=own, born=_born(own), command=command.words, folder=command.folder,
        model=command.model,
    )  # fmt: skip
    _write(site, record)

    def tell_absent(absent: Mapping[str, str]) -> None:
        nonlocal record
        record = replace(record, changed=_now(), absent=absent)
        with suppress(OSError):  # it is for people who look: a run does not end for it
            _write(site, record)

    try:
        yield tell_absent
    except BaseException as error:
        state = "refused" if isinstance(error, Refused) else "stopped"
        if isinstance(error, RefusedBy) and error.waits:
            state = "waiting"
        reason = str(error) if isinstance(error, HedgerowError) else type(error).__name__
        _write(site, replace(record, state=state, changed=_now(), reason=reason))
        raise
    _write(site, replace(record, state="finished", changed=_now()))


def list_runs(site: Site) -> list[RunRecord]:
    """All runs, the oldest first. A run whose process died is still listed as running, unless
    nobody uses the engine of this site."""
    found = (_read(file) for file in (site.folder / "runs").glob("*.toml"))
    records = sorted((r for r in found if r is not None), key=lambda r: (r.started, r.run))
    if is_held(site):
        return records
    died = "its process ended without a word; run the same command again to go on"
    return [
        replace(r, state="stopped", reason=died) if r.state == "running" else r for r in records
    ]


def stop_run(site: Site, run: str) -> None:
    """Ask the process that drives a run to end after its current release, as Ctrl-C does."""
    record = named_run(site, run)
    if record.state != "running" or not record.process or _born(record.process) != record.born:
        raise SettingsError(f"run {run} does not run, so there is nothing to stop")
    os.kill(record.process, signal.SIGINT)


def resume_run(site: Site, run: str, log: Path) -> None:
    """Give the command of a run again: stored releases are replayed, and nothing is paid twice."""
    record = named_run(site, run)
    if record.state not in ("stopped", "refused") or is_held(site):
        raise SettingsError(
            f"run {run} is {record.state}, or another run is under way. Nothing was started."
        )
    if not record.command:
        raise SettingsError(
            f"the command of run {run} is not known; give it again by hand. Nothing was started."
        )
    words = [sys.executable, "-m", "hedgerow", *record.command]
    with log.open("ab") as written:
        child = subprocess.Popen(
            words, cwd=record.folder or None, stdin=subprocess.DEVNULL, stdout=written,
            stderr=written, start_new_session=True,
        )  # fmt: skip
    threading.Thread(target=child.wait, daemon=True).start()  # leaves no zombie behind


def named_run(site: Site, run: str) -> RunRecord:
    for record in list_runs(site):
        if record.run == run:
            return record
    raise SettingsError(f"there is no run {run!r} at this site. Nothing was done.")


def _born(process: int) -> int:
    """When a process began, in ticks since the machine did; 0 if there is none of that number."""
    try:
        after_name = Path(f"/proc/{process}/stat").read_text("ascii", "replace").rpartition(")")[2]
        return int(after_name.split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _file(site: Site, run: str) -> Path:
    return site.folder / "runs" / f"{run}.toml"


def _read(file: Path) -> RunRecord | None:
    with suppress(FormatError):
        return _RECORD.read(RunRecord, _RECORD.load(file))
    return None


def _write(site: Site, record: RunRecord) -> None:
    file = _file(site, record.run)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    write_file(file, tomli_w.dumps(asdict(record)), 0o600)


def _now() -> str:
    return clock.utc_now().isoformat(timespec="seconds")
