"""What runs on workers: partitions of one table, held in memory, and what they answer.

Partitions are kept by run and number beside Dask's own memory, because running scores change in
place. What Dask keeps is a ticket: when nobody wants it any more (the run ended, or the process
that drove it died), the partition goes too.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.persons import PersonCounts, Places, places_of, rows_that_count
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.errors import SettingsError
from hedgerow.packing import digest, unpack
from hedgerow.party.running_scores import RunningScores
from hedgerow.privacy.noise.poisson_sampling import PoissonSampler
from hedgerow.protocol.messages import Message
from hedgerow.queries import SumQuery, query_from_bytes

Total = NDArray[np.int64]


class Ticket:
    """Dask's share of a partition. One that travelled is worth nothing: the partition stayed."""

    def __reduce__(self) -> tuple[type[Ticket], tuple[()]]:
        return Ticket, ()


@dataclass(eq=False)
class _Held:
    """One partition: rows and, once it is known which of them count, their running scores."""

    rows: Rows
    schema: Schema
    facts: tuple[int, str]  # how many rows it was read with, and their hash
    scores: RunningScores | None = None
    persons: PersonCounts | None = None

    def settle(self, counting: NDArray[np.bool_] | None) -> None:
        if self.scores is None:
            if counting is not None:
                self.rows = self.rows.take(np.flatnonzero(counting))
            self.rows = replace(self.rows, persons=None)
            self.scores = RunningScores(self.rows, self.schema)


@dataclass(frozen=True, eq=False)
class Answer:
    """What some partitions say together: a sum, or which of them cannot answer yet, and why."""

    total: Total | None  # None: no rows, or not all could answer
    partitions: int = 0  # that the sum is over
    lost: tuple[int, ...] = ()  # not held by the worker that was asked
    behind: tuple[int, ...] = ()  # without trees that the question refers to


_held: dict[tuple[str, int], _Held] = {}
_last: dict[str, tuple[str, frozenset[int], Total | None]] = {}  # by run: the latest sum
_NO_ROWS = np.zeros(0, np.int64)
SAMPLER = "coins"  # of a sent question: the state of its Poisson sampler, by its first name
_answering = threading.Lock()  # an abandoned task may still run when the next one starts


@lru_cache(maxsize=4)
def _job(data: bytes) -> tuple[str, Schema]:
    """The run and the schema; refuses another version of hedgerow, which could sum differently."""
    values = unpack(data)[0]
    if values["version"] != (here := version("hedgerow")):
        raise SettingsError(
            f"a worker has hedgerow {here} and the coordinator {values['version']}; install the "
            "same on all of them."
        )
    return str(values["run"]), Schema.from_dict(values["schema"])


def load(job: bytes, index: int, part: Any, name: str, counting: bytes | None) -> Ticket:
    """Read and check a partition; hold it until the ticket goes.

    `part` is a stream's maker or a frame with its labels; `counting` has a bit a row (unit person),
    if it is known already which rows count.
    """
    run, schema = _job(job)
    _use_threads()
    data, target = part.read() if hasattr(part, "read") else part
    rows = rows_of(data, schema, target, source=name, may_be_empty=True)
    partition = _Held(rows, schema, (rows.n_rows, _hash(rows)))
    if counting is not None:
        bits = np.unpackbits(np.frombuffer(counting, np.uint8), count=rows.n_rows)
        partition.settle(bits.astype(bool))
    elif schema.unit.kind != "person":
        partition.settle(None)
    ticket = Ticket()
    _held[run, index] = partition
    weakref.finalize(ticket, _drop, run, index, weakref.ref(partition)).atexit = False
    return ticket


def facts_of(run: str, index: int, ticket: Ticket) -> tuple[int, str] | None:
    """Number of rows and hash of a partition that was just loaded; None if it is not here."""
    partition = _held.get((run, index))
    return None if partition is None else partition.facts


def count_persons(run: str, index: int, share: int, n_shares: int) -> PersonCounts | None:
    """Persons of a partition with their numbers of rows; None if it is not here."""
    partition = _held.get((run, index))
    if partition is None or partition.rows.persons is None:
        return None
    if partition.persons is None:
        partition.persons = PersonCounts.of(partition.rows.persons)
    return partition.persons.share(share, n_shares)


def place_persons(job: bytes, parts: Sequence[PersonCounts | None]) -> list[Places] | None:
    """For every partition what it must know of its persons, of one share of them."""
    there = [part for part in parts if part is not None]
    return places_of(there, _job(job)[1]) if len(there) == len(parts) else None


def pick(places: list[Places] | None, index: int) -> Places | None:
    return None if places is None else places[index]


def choose_rows(run: str, index: int, shares: Sequence[Places | None]) -> bytes | None:
    """Which rows of a partition count, a bit a row; None if that cannot be said here."""
    partition, there = _held.get((run, index)), [share for share in shares if share is not None]
    if partition is None or partition.rows.persons is None or len(there) < len(shares):
        return None
    counting = rows_that_count(partition.rows.persons, Places.join(there), partition.schema)
    return np.packbits(counting).tobytes()


def settle(run: str, index: int, counting: bytes) -> None:
    """Keep the rows that count."""
    partition = _held.get((run, index))
    if partition is not None and partition.scores is None:
        bits = np.unpackbits(np.frombuffer(counting, np.uint8), count=partition.rows.n_rows)
        partition.settle(bits.astype(bool))


def answer(run: str, indexes: Sequence[int], message: bytes) -> Answer:
    """The exact sum over some partitions. Asked again, it is the same and costs nothing."""
    with _answering:
        return _answer(run, indexes, _read(message))


def merge(answers: Sequence[Answer]) -> Answer:
    """Answers of several workers as one."""
    lost = tuple(i for one in answers for i in one.lost)
    behind = tuple(i for one in answers for i in one.behind)
    totals = [one.total for one in answers if one.total is not None]
    if lost or behind or not totals:
        return Answer(None, 0, lost, behind)
    n_partitions = sum(one.partitions for one in answers)
    return Answer(np.add.reduce(totals), n_partitions)  # int64 wraps: modulo 2**64


@dataclass(frozen=True, eq=False)
class _Question:
    hash: str
    query: SumQuery
    bits: int
    sampler: PoissonSampler | None
    message: Message


@lru_cache(maxsize=2)
def _read(data: bytes) -> _Question:
    message = Message.from_bytes(data)
    values, arrays = unpack(message.body)
    query = query_from_bytes(arrays["query"].tobytes())
    state = values[SAMPLER]
    sampler = None if state is None else PoissonSampler.from_dict(state)
    return _Question(message.hash, query, int(values["bits"]), sampler, message)


def _answer(run: str, indexes: Sequence[int], asked: _Question) -> Answer:
    lost, behind, total, done = [], [], None, set[int]()
    known = _last.get(run)
    if known is not None and known[0] == asked.hash and known[1] <= set(indexes):
        done, total = set(known[1]), known[2]  # another worker was lost; this part is there already
    for index in indexes:
        partition = _held.get((run, index))
        if partition is None or partition.scores is None:
            lost.append(index)
        elif index not in done:
            part = _sum_of(index, partition, asked) if partition.rows.n_rows else _NO_ROWS
            if part is None:
                behind.append(index)
                continue
            done.add(index)
            if part is not _NO_ROWS:
                total = part if total is None else total + part
    if lost or behind:
        return Answer(None, 0, tuple(lost), tuple(behind))
    _last.clear()  # one sum is kept, of the latest question
    _last[run] = (asked.hash, frozenset(done), total)
    return Answer(total, len(done))


def _sum_of(index: int, held: _Held, asked: _Question) -> Total | None:
    query, message, scores = asked.query, asked.message, held.scores
    assert scores is not None
    try:
        fresh = message.trees
        if not scores.sync(query.ensemble, message.trees_from, fresh, query.step_trees):
            return None
        if query.of_a_party:  # does not add up over rows, but this does
            return query.tally(held.rows, held.schema)
        sampler = None if asked.sampler is None else asked.sampler.part(index)
        return scores.exact(query, asked.bits, sampler)
    except BaseException:
        scores.reset()  # half of the trees may have been added
        raise


def _drop(run: str, index: int, held: weakref.ref[_Held]) -> None:
    if _held.get((run, index)) is held():
        _held.pop((run, index), None)
        if not any(key[0] == run for key in _held):
            _last.pop(run, None)


def _hash(rows: Rows) -> str:
    """Of everything that is held; a partition read again must be the same."""
    codes, persons = rows.codes, rows.persons
    own = np.zeros(0) if persons is None else persons
    arrays = [codes.narrow, codes.wide, rows.target, own, rows.weights]
    views = [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in arrays]
    hashes = [hashlib.blake2b(view, digest_size=16).hexdigest() for view in views]
    return digest(str(rows.n_rows), *hashes)


@lru_cache(maxsize=1)
def _use_threads() -> None:
    """As many threads as Dask gave this worker, unless its environment says otherwise."""
    from distributed import get_worker

    if not os.environ.get("HEDGEROW_THREADS"):
        kernels.use_threads(get_worker().state.nthreads)
