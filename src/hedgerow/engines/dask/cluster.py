"""A Dask cluster: started here or reached at an address, and tasks on workers that may vanish."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from distributed import Client, Future, LocalCluster, wait
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker
from distributed.security import Security

from hedgerow import clock
from hedgerow.errors import HedgerowError, SettingsError, SumFailed

log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.5  # between two looks at which workers are left, while tasks are under way
_RETURN_SECONDS = 15.0  # for a lost worker's replacement, before others take its partitions
_START_SECONDS = 60.0
_PAUSED_SECONDS = 30.0  # that a worker may be without memory; what we hold there does not shrink


class WorkersLost(Exception):
    """A worker that was needed has gone; what it held must be read again elsewhere."""


class ClusterLost(SumFailed):
    """The cluster cannot go on. What was charged stays charged; the run can be resumed."""


@dataclass(frozen=True)
class Tls:
    """Files for a scheduler at a tls:// address, as Dask names them."""

    ca_file: str
    certificate: str
    key: str

    def security(self) -> Security:
        for path in (self.ca_file, self.certificate, self.key):
            if not os.path.isfile(path):
                raise SettingsError(f"no file at {path}; --tls-ca, --tls-cert and --tls-key name "
                                    "PEM files of the cluster. Nothing was asked.")  # fmt: skip
        return Security(
            tls_ca_file=self.ca_file,
            tls_client_cert=self.certificate,
            tls_client_key=self.key,
            require_encryption=True,
        )


@contextmanager
def connected(
    address: str | None = None, tls: Tls | None = None, n_workers: int | None = None
) -> Iterator[Client]:
    """A client of the scheduler at an address, or of a cluster of this machine for the while.

    One started here has a process a core with one thread each, and speaks TLS with keys that live
    as long as it does: any account of the machine could otherwise send it work.
    """
    if address is None:
        n_workers = n_workers or _cores()
        with (
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # a free port of this machine alone
                security=True,
                preload=["hedgerow.engines.dask.ignore_interrupts"],
                silence_logs=logging.CRITICAL,
            ) as local,
            Client(local, set_as_default=False) as client,
        ):
            yield client
        return
    security = None if tls is None else tls.security()
    try:
        client = Client(address, security=security, timeout=_START_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}). Nothing was asked. "
            "Check the address, and for tls:// the files of --tls-ca, --tls-cert and --tls-key."
        ) from error
    with client:
        yield client


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Cluster:
    """Tasks on chosen workers. A task is never moved: what it needs lies where it runs."""

    def __init__(self, client: Client, wait_seconds: float = 60.0) -> None:
        self.client, self.wait_seconds = client, wait_seconds
        self.sent = 0  # bytes of questions that went to workers
        self.lost = 0  # workers, so far
        self._wanted = 0  # workers that there were before the latest loss

    def workers(self) -> dict[str, int]:
        """Threads of every worker by its address."""
        try:
            threads = {str(worker): int(n) for worker, n in self.client.nthreads().items()}
        except (OSError, TimeoutError, CommClosedError) as error:
            raise ClusterLost(
                "the Dask scheduler does not answer any more. What was released is stored, and a "
                "question that was under way stays charged. Run the same command again."
            ) from error
        self._wanted = max(self._wanted, len(threads))
        return threads

    def gathered(self) -> dict[str, int]:
        """Workers, once there are as many as before a loss or a while has passed."""
        start, workers = clock.monotonic(), self.workers()
        while len(workers) < max(1, self._wanted):
            waited = clock.monotonic() - start
            if waited > (_RETURN_SECONDS if workers else self.wait_seconds):
                break
            clock.sleep(0.1)
            workers = self.workers()
        self._wanted = len(workers)
        if not workers:
            raise ClusterLost(
                f"the Dask cluster has had no worker for {self.wait_seconds:g} seconds. What was "
                "charged stays charged. Start workers and run the same command again."
            )
        return workers

    def submit(self, worker: str | None, task: Callable[..., Any], *arguments: Any) -> Future:
        """A task on one worker and no other, or anywhere."""
        self.sent += sum(len(a) for a in arguments if isinstance(a, bytes))
        key = f"hedgerow-{task.__name__}-{secrets.token_hex(8)}"
        if worker is None:
            return self.client.submit(task, *arguments, key=key, pure=False)
        return self.client.submit(
            task, *arguments, key=key, workers=[worker], allow_other_workers=False, pure=False
        )

    def results(self, futures: Sequence[Future], needed: Collection[str]) -> list[Any]:
        """What the tasks gave. WorkersLost if a worker that they need vanishes before that."""
        self._await(futures, needed, "ALL_COMPLETED")
        return [self._result(future, needed) for future in futures]

    def _result(self, future: Future, needed: Collection[str]) -> Any:
        """Fetch what a task gave; its worker may have died with it since it ended."""
        seconds = _LOOK_SECONDS
        while True:
            try:
                return future.result(timeout=seconds)
            except TimeoutError:
                self._look(needed)
                seconds *= 2  # it begins anew each time, and may be long on its way
            except (KilledWorker, CommClosedError, CancelledError, OSError) as error:
                raise WorkersLost from error

    def first(self, futures: Sequence[Future], needed: Collection[str]) -> list[Future]:
        """Tasks that have ended; at least one."""
        self._await(futures, needed, "FIRST_COMPLETED")
        return [future for future in futures if future.done()]

    def _await(self, futures: Sequence[Future], needed: Collection[str], until: str) -> None:
        at_work = clock.monotonic()  # when all workers were last seen to take tasks
        while True:
            try:
                with self.client.as_current():
                    wait(list(futures), timeout=_LOOK_SECONDS, return_when=until)
            except TimeoutError:
                self._look(needed)
                if not (paused := self._paused(needed)):
                    at_work = clock.monotonic()
                elif clock.monotonic() - at_work > _PAUSED_SECONDS:
                    raise _out_of_memory(paused) from None
                continue
            except CancelledError as error:  # the scheduler let go of a task
                raise WorkersLost from error
            failed = [future for future in futures if future.status == "error"]
            for future in failed:
                _raise(future)
            return

    def _paused(self, needed: Collection[str]) -> list[str]:
        """Workers that Dask gives no tasks, because they have too little memory left."""
        told = self.client.scheduler_info(n_workers=-1)["workers"]
        return sorted(w for w in needed if told.get(w, {}).get("status") == "paused")

    def _look(self, needed: Collection[str]) -> None:
        """WorkersLost if one of these has gone."""
        if not (gone := set(needed) - set(self.workers())):
            return
        self.lost += len(gone)
        log.warning(
            "lost %d of the workers (%s); their partitions are read again, and nothing is charged "
            "for it",
            len(gone),
            ", ".join(sorted(gone)),
        )
        raise WorkersLost


def _out_of_memory(paused: Sequence[str]) -> ClusterLost:
    return ClusterLost(
        f"Dask has paused {len(paused)} of the workers ({', '.join(paused)}): their memory is "
        "almost full. What was charged stays charged. Run the same command again with more workers "
        "or more memory for each."
    )


def _raise(future: Future) -> None:
    """The error of a task, in our words: its own may quote a row."""
    error = future.exception()
    if isinstance(error, HedgerowError):
        raise error
    if isinstance(error, (KilledWorker, CommClosedError)):
        raise WorkersLost from error
    if isinstance(error, ImportError):
        raise SettingsError(
            f"a worker cannot import what it needs ({error}); install hedgerow[dask] of the same "
            "version on every worker."
        ) from error
    raise SumFailed(
        f"a task failed on a worker with {type(error).__name__}; its log has the rest. What was "
        "charged stays charged."
    ) from None
