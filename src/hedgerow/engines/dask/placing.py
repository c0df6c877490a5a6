"""Which worker holds which partition: reading them, and reading again what a lost worker held."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

from distributed import Future

from hedgerow.engines.dask import partitions
from hedgerow.engines.dask.cluster import Cluster, ClusterLost, WorkersLost
from hedgerow.engines.dask.sources import Source
from hedgerow.errors import SettingsError, SumFailed, TableError

_UNDER_WAY = 2  # partitions that are read at once, for each thread of the cluster
Observe = Callable[[int, int], None]  # partitions read, of how many


class Placement:
    """Partitions of one source on the workers of one cluster."""

    def __init__(
        self, cluster: Cluster, source: Source, run: str, job: bytes, persons: bool
    ) -> None:
        self._cluster, self._source, self._run, self._job = cluster, source, run, job
        self._persons = persons  # is the unit, so that not all rows may count
        self._holder: dict[int, str] = {}
        self._tickets: dict[int, Future] = {}  # a partition stays as long as its ticket
        self._facts: dict[int, tuple[int, str]] = {}  # as it was read first
        self._counting: dict[int, bytes] = {}  # unit person: which rows count, a bit a row

    @property
    def n_rows(self) -> int:
        """Rows that were read."""
        return sum(n_rows for n_rows, _ in self._facts.values())

    def held(self) -> dict[str, list[int]]:
        """Partitions by the worker that has them."""
        indexes: dict[str, list[int]] = {}
        for index in sorted(self._holder):
            indexes.setdefault(self._holder[index], []).append(index)
        return indexes

    def drop(self, indexes: Iterable[int]) -> None:
        """Take these to be nowhere."""
        for index in indexes:
            self._holder.pop(index, None)
            self._tickets.pop(index, None)

    def look(self) -> None:
        """Find out which partitions went with their workers."""
        there = self._cluster.workers()
        self.drop([index for index, worker in self._holder.items() if worker not in there])

    def complete(self, observe: Observe | None = None) -> bool:
        """Read what no worker holds; True if there was anything. WorkersLost: look and try again.

        A worker that is gone and not missed yet is found when it is asked.
        """
        missing = [index for index in range(len(self._source)) if index not in self._holder]
        if missing:
            self._read(self._chosen(missing, self._cluster.gathered()), observe)
        if self._persons and len(self._counting) < len(self._source):
            self._choose_rows()
        return bool(missing)

    def _chosen(self, missing: list[int], workers: Mapping[str, int]) -> dict[int, str]:
        """A worker for each of these partitions: the one with the fewest a thread."""
        load = Counter(dict.fromkeys(workers, 0))
        load.update(worker for worker in self._holder.values() if worker in workers)
        chosen = {}
        for index in missing:
            chosen[index] = min(workers, key=lambda w: (load[w] / workers[w], w))
            load[chosen[index]] += 1
        return chosen

    def _read(self, chosen: Mapping[int, str], observe: Observe | None) -> None:
        """A few partitions at once: frames that wait to be encoded would fill the memory."""
        waiting, under_way = deque(chosen), dict[Future, tuple[int, Future]]()
        most = _UNDER_WAY * max(1, sum(self._cluster.workers().values()))
        try:
            while waiting or under_way:
                while waiting and len(under_way) < most:
                    index = waiting.popleft()
                    told, ticket = self._start(index, chosen[index])
                    under_way[told] = (index, ticket)
                needed = {chosen[index] for index, _ in under_way.values()}
                for told in self._ended(under_way, needed):
                    index, ticket = under_way.pop(told)
                    self._note(index, self._cluster.results([told], [chosen[index]])[0])
                    self._holder[index], self._tickets[index] = chosen[index], ticket
                    if observe is not None:
                        observe(len(self._holder), len(self._source))
        finally:
            tickets = [ticket for _, ticket in under_way.values()]
            self._cluster.client.cancel([*under_way, *tickets])

    def _start(self, index: int, worker: str) -> tuple[Future, Future]:
        cluster, source, job = self._cluster, self._source, self._job
        part = source.part(cluster.client, index)
        counting = self._counting.get(index)
        name = source.name_of(index)
        ticket = cluster.submit(worker, partitions.load, job, index, part, name, counting)
        return cluster.submit(worker, partitions.facts_of, self._run, index, ticket), ticket

    def _ended(
        self, under_way: Mapping[Future, tuple[int, Future]], needed: set[str]
    ) -> list[Future]:
        try:
            return self._cluster.first(list(under_way), needed)
        except ClusterLost:
            raise
        except SumFailed as error:
            failed = [index for told, (index, _) in under_way.items() if told.status == "error"]
            name = self._source.name_of(failed[0]) if failed else self._source.name
            raise TableError(f"{name} could not be read: {error}") from None

    def _note(self, index: int, facts: tuple[int, str] | None) -> None:
        """Refuse rows other than those that were read first: sums of both would be mixed."""
        if facts is None:
            raise WorkersLost
        if self._facts.setdefault(index, facts) != facts:
            raise SumFailed(
                f"{self._source.name_of(index)} has other rows than when it was read first, so "
                "its part of a sum cannot be computed again. What was charged stays charged. "
                "Train on a table that does not change."
            )

    def _choose_rows(self) -> None:
        """Unit person: at most k rows of a person in the whole table, wherever they lie.

        Partitions tell each other how many rows a person has, never which values; bits say which
        rows count, so that a partition that is read again keeps the same.
        """
        cluster, run, holder = self._cluster, self._run, self._holder
        indexes, n_shares = range(len(self._source)), len(set(holder.values()))
        shares = [
            cluster.submit(
                None,
                partitions.place_persons,
                self._job,
                [
                    cluster.submit(holder[i], partitions.count_persons, run, i, share, n_shares)
                    for i in indexes
                ],
            )
            for share in range(n_shares)
        ]
        chosen = []
        for i in indexes:
            places = [cluster.submit(None, partitions.pick, share, i) for share in shares]
            chosen.append(cluster.submit(holder[i], partitions.choose_rows, run, i, places))
        bits = cluster.results(chosen, set(holder.values()))
        if lost := [i for i in indexes if bits[i] is None]:
            self.drop(lost)
            raise WorkersLost
        self._counting = dict(enumerate(bits))
        settled = [cluster.submit(holder[i], partitions.settle, run, i, bits[i]) for i in indexes]
        cluster.results(settled, set(holder.values()))


def read_table(
    placement: Placement, source: Source, observe: Observe | None = None, attempts: int = 5
) -> None:
    """Read and check all partitions; whatever does not fit is found here, and nothing is spent."""
    if not len(source):
        raise TableError(f"{source.name} has 0 rows; a party needs at least one.")
    for _ in range(attempts):
        try:
            placement.complete(observe)
        except WorkersLost:
            placement.look()
            continue
        if not placement.n_rows:
            raise TableError(f"{source.name} has 0 rows; a party needs at least one.")
        return
    raise SettingsError(
        f"workers were lost {attempts} times while {source.name} was read; their logs say why "
        "(most often too little memory). Nothing was asked. Add workers or memory."
    )
