"""Driving a federation from a coordinator's site folder: `open_federation`, for Python.

The parties run elsewhere, and `hedgerow coordinator start` carries the messages. The command line
drives the same federation with a plan beside each model; here plans lie in the site folder.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import tomli_w

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.refused import RefusedBy
from hedgerow.data.documents import Document
from hedgerow.data.schema import Schema
from hedgerow.deployment.hold import holding
from hedgerow.deployment.runs import recorded
from hedgerow.engines.relay import RelayEngine
from hedgerow.engines.site import Site, write_file
from hedgerow.errors import HedgerowError, SchemaError, SettingsError, SumFailed
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.store import COORDINATOR

log = logging.getLogger(__name__)
CONNECT_SECONDS = 8.0  # for sites that are just being started
RETURN_SECONDS = 10.0  # for parties to dial again after the coordinator's port was gone
_SCHEMA_FILE = "schema.toml"
_FITS = "fits"  # in the site folder: plans of fits that have not ended yet
_SPENT = "Nothing was asked and nothing was spent."
_FIT = Document("fit", format=1)
_STOPPING = b"\nStopping after the current release. Press Ctrl-C again to stop at once.\n"


@dataclass(frozen=True)
class _Fit:
    """What a file of a fit holds."""

    parties: tuple[str, ...]
    ledger: str  # the file that pays; empty if it is in memory
    plan: Mapping[str, Any]


def open_federation(
    site: str | PathLike[str],
    schema: Schema | str | PathLike[str] | None = None,
    *,
    timeout_seconds: float = 60.0,
    wait_seconds: float = 0.0,
    step_seconds: float = 3600.0,
    without: Sequence[str] = (),
    relay: str | PathLike[str] | None = None,
    resume: bool = True,
) -> SiteFederation:
    """Open the federation of a coordinator's site folder, for `fit_federation` of every estimator.

    Parties and the coordinator's port run as processes of their own (`hedgerow party start`,
    `hedgerow coordinator start`). Use it in a `with` block: until it is closed no other process can
    drive runs from this site folder.

    Parameters
    ----------
    site : the coordinator's site folder
    schema : Schema or path of the file that all parties have; None is `schema.toml` in the folder
    timeout_seconds : how long one reply may take before its party counts as lost
    wait_seconds : how long to wait for parties that are not connected, or get lost
    step_seconds : how long a party may take for one step of a session (similarity, vertical)
    without : parties to leave out, as if they were not there
    relay : the socket of another runtime's relay that carries the messages instead
    resume : whether a fit goes on with an equal one that was interrupted; False forgets those

    Notes
    -----
    Fits are charged to the site's ledger unless an estimator names one or runs in a ledger's `with`
    block. Ctrl-C ends a private fit after its current release (twice: at once). The same fit later,
    in any process, takes what was released from the ledger, asks for the rest, and pays nothing
    twice. A party whose people have yet to approve the plan refuses it; the same fit later runs the
    plan that they were shown.
    """
    folder = Site.open(Path(site), "coordinator")
    roster, public = folder.roster(), _public(folder, schema)
    if unknown := sorted({*without} - {*roster.names}):
        raise SettingsError(
            f"without names {unknown[0]!r}, and the roster has {', '.join(roster.names)}. {_SPENT}"
        )
    with ExitStack() as opened:
        opened.enter_context(holding(folder, "open_federation, or `hedgerow train`,"))
        engine = carrier_of(folder, relay, without)
        missing = engine.await_parties(CONNECT_SECONDS + wait_seconds)
        _check_connected(folder, missing, len(without))
        ledger = opened.enter_context(_closing(Ledger.open(folder.ledger_path)))
        seconds = (timeout_seconds, max(wait_seconds, RETURN_SECONDS), step_seconds)
        return SiteFederation(folder, public, engine, seconds, ledger, resume, opened.pop_all())


def carrier_of(
    site: Site, relay: str | PathLike[str] | None = None, without: Sequence[str] = ()
) -> RelayEngine:
    """What takes messages to the parties of a site: its own port, or another runtime's relay."""
    names = site.roster().names
    if relay is not None:
        start = "Start the relay of the runtime that carries."
        return RelayEngine(Path(relay), names, start, without)
    start = f"Start it with: hedgerow coordinator start {site.path}"
    return RelayEngine(site.carrier_socket, names, start, without)


class SiteFederation(Federation):
    """The parties of a coordinator's site folder; `open_federation` makes it, `close` ends it."""

    def __init__(
        self,
        site: Site,
        schema: Schema,
        engine: RelayEngine,
        seconds: tuple[float, float, float],
        ledger: Ledger,
        resume: bool,
        opened: ExitStack,
    ) -> None:
        reply, back, self.step_seconds = seconds
        roster, identity = site.roster(), site.identity()
        super().__init__(engine, schema, roster, identity, reply, back, site.trial)
        self.ledger, self._site, self._resume, self._held = ledger, site, resume, opened
        self._stops = False

    def close(self) -> None:
        """Let other processes drive runs from the site folder; parties run on."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def drive(self, plan: Plan, ledger: Ledger, any_seed: bool = False) -> Iterator[Plan]:
        """Run the plan, or that of an equal fit which was interrupted; `hedgerow runs` lists it."""
        plan = self._interrupted(plan, ledger, any_seed) or plan
        file = self._site.folder / _FITS / f"{plan.run}.toml"
        file.parent.mkdir(mode=0o700, exist_ok=True)
        about = {"format": 1, "parties": list(self.names), "ledger": _place_of(ledger)}
        write_file(file, tomli_w.dumps({**about, "plan": plan.to_dict()}), 0o600)
        with recorded(self._site, plan) as tell_absent, self._stopping_between_releases():
            self.tell_absent = tell_absent
            try:
                yield plan
            except BaseException as error:
                if not _goes_on(plan, ledger, error):
                    file.unlink(missing_ok=True)
                raise
        file.unlink(missing_ok=True)

    def gather(self, slot: int = -1) -> None:
        """See `Federation.gather`; a fit that was asked to stop does so here, before any charge."""
        if self._stops:
            raise KeyboardInterrupt(
                f"Stopped before slot {slot + 1}. What was released is stored and stays charged; "
                "the same fit goes on from there, and nothing is paid twice."
            )
        super().gather(slot)

    def _interrupted(self, plan: Plan, ledger: Ledger, any_seed: bool) -> Plan | None:
        """The oldest plan of this ledger that was not ended and differs by its name alone.

        Another ledger has none of its releases: it would have to pay for what nobody answers twice.
        """
        files = (self._site.folder / _FITS).glob("*.toml")
        for file in sorted(files, key=lambda path: path.stat().st_mtime_ns):
            if not self._resume:
                file.unlink(missing_ok=True)
                continue
            known = _read_fit(file, self.names, ledger)
            if known is None:
                continue
            seed = known.seed if any_seed else plan.seed
            if replace(plan, run=known.run, seed=seed).hash == known.hash:
                log.info("going on with run %s, which was interrupted", known.run)
                return known
        return None

    @contextmanager
    def _stopping_between_releases(self) -> Iterator[None]:
        """The first Ctrl-C lets the current release be stored; the second one is Python's own."""
        self._stops = False
        if threading.current_thread() is not threading.main_thread():
            yield  # signals belong to the main thread
            return
        before = signal.getsignal(signal.SIGINT)

        def stop(*_: object) -> None:
            self._stops = True
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with suppress(OSError):
                os.write(2, _STOPPING)

        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _closing(ledger: Ledger) -> Iterator[Ledger]:
    """Open while the block lasts. A ledger's own block would also pay for other fits in it."""
    try:
        yield ledger
    finally:
        ledger.close()


def _public(site: Site, schema: Schema | str | PathLike[str] | None) -> Schema:
    if isinstance(schema, Schema):
        return schema
    own = site.folder / _SCHEMA_FILE
    if schema is None and not own.is_file():
        raise SchemaError(
            f"which schema do the parties have? Give it to open_federation, or put its file at "
            f"{own}. {_SPENT}"
        )
    return Schema.read(own if schema is None else schema)


def _check_connected(site: Site, missing: Sequence[str], n_left_out: int) -> None:
    """Nobody there is an error; fewer than all are told, and a fit refuses where they are too few.

    A session needs its own parties alone, a sum as many as the roster says.
    """
    names = site.roster().names
    why = f"`hedgerow coordinator status {site.path}` says why."
    if len(missing) + n_left_out == len(names):
        raise SumFailed(
            f"none of the parties {', '.join(names)} is connected. {_SPENT} {why} Start them, or "
            "give wait_seconds to wait longer."
        )
    if missing:
        log.warning("not connected: %s. %s", ", ".join(missing), why)


def _goes_on(plan: Plan, ledger: Ledger, error: BaseException) -> bool:
    """Whether an equal fit may go on with a plan that ended so."""
    if isinstance(error, RefusedBy):
        if error.waits:
            return True
        if error.is_final:
            return False
    return bool(ledger.lines(COORDINATOR, "reserve", plan.run))


def _place_of(ledger: Ledger) -> str:
    return "" if ledger.path is None else str(ledger.path.resolve())


def _read_fit(file: Path, parties: Sequence[str], ledger: Ledger) -> Plan | None:
    """The plan in a file, if these parties were asked and this ledger pays; None if it cannot be
    read.
    """
    with suppress(HedgerowError):
        fit = _FIT.read(_Fit, _FIT.load(file))
        if fit.parties == tuple(parties):
            plan = Plan.from_dict(fit.plan, str(file))
            # A ledger in memory has no place, but may have reserved it in this very process.
            same = fit.ledger and fit.ledger == _place_of(ledger)
            if same or ledger.lines(COORDINATOR, "reserve", plan.run):
                return plan
    return None
