"""The rows of one party on a Dask cluster, seen as one: exact sums, whatever happens to workers.

A partition's part of a sum is a function of its rows, the trees and the question. Computing it
again for the same attempt gives the same numbers, so a lost worker costs time and no charge; noise
is added once, to the total, by the gate.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np
from distributed import Client
from numpy.typing import NDArray

from hedgerow.data.schema import Schema
from hedgerow.engines.dask import partitions
from hedgerow.engines.dask.cluster import Cluster, ClusterLost, WorkersLost
from hedgerow.engines.dask.partitions import SAMPLER, Answer
from hedgerow.engines.dask.placing import Observe, Placement, read_table
from hedgerow.engines.dask.sources import Source
from hedgerow.errors import SettingsError
from hedgerow.model.losses import loss_for
from hedgerow.model.tree import Tree, check_trees
from hedgerow.packing import pack
from hedgerow.privacy.noise.poisson_sampling import PoissonSampler
from hedgerow.protocol.messages import Message
from hedgerow.queries import NO_TREES, EnsembleRef, SumQuery, query_bytes

_FAN = 8  # sums that one task adds; more than that are added on workers first
_MOST_LOSSES = 5  # of workers or partitions, during one question


class ClusterRows:
    """Partitions on workers as what a party takes exact sums from.

    Parameters
    ----------
    source : where the partitions come from; see `sources.py`
    schema : the public schema
    client : a Dask client
    wait_seconds : how long to wait for a worker when there is none
    observe : called with how many partitions were read, of how many
    """

    def __init__(
        self,
        source: Source,
        schema: Schema,
        client: Client,
        wait_seconds: float = 60.0,
        observe: Observe | None = None,
    ) -> None:
        self._schema, self._n_outputs = schema, loss_for(schema.label).n_outputs
        self.cluster, self.received = Cluster(client, wait_seconds), 0  # bytes of sums
        self.problem: Exception | None = None  # that ended a sum, for whoever drives the run
        self._run, values = secrets.token_hex(8), {"schema": schema.to_dict()}
        job = pack({"run": self._run, "version": version("hedgerow"), **values})
        persons = schema.unit.kind == "person"
        self._placement = Placement(self.cluster, source, self._run, job, persons)
        self._trees: list[Tree] = []
        self._refs: list[EnsembleRef] = [NO_TREES]
        self._known = 0  # trees that every partition has
        self.n_partitions = len(source)
        read_table(self._placement, source, observe)

    def close(self) -> None:
        """Let go of the partitions."""
        self._placement.drop(range(self.n_partitions))

    @property
    def n_rows(self) -> int:
        return self._placement.n_rows

    @property
    def ref(self) -> EnsembleRef:
        return self._refs[-1]

    def sync(
        self, wanted: EnsembleRef, first: int, trees: Sequence[Tree], step_trees: int = 0
    ) -> bool:
        """Take the trees in; workers get with a question those that they lack."""
        if trees and first <= len(self._trees):
            del self._trees[first:], self._refs[first + 1 :]
            self._known = min(self._known, first)
            check_trees(trees, self._schema, self._n_outputs)
            for tree in trees:
                self._trees.append(tree)
                self._refs.append(self._refs[-1].then(tree.to_bytes()))
        return wanted.length < len(self._refs) and self._refs[wanted.length] == wanted

    def check_samples(self) -> None:
        if self._schema.unit.at_most > 1:
            self.problem = SettingsError(
                "all rows of a person are sampled together, and on a cluster they may lie apart. "
                "Nothing was asked. Set sample_rate = 1, or keep one row a person (at_most = 1)."
            )
            raise self.problem

    def exact(
        self, query: SumQuery, bits: int, sampler: PoissonSampler | None = None
    ) -> NDArray[np.int64]:
        """The exact answer over all partitions, or over the rows sampled of each."""
        try:
            if not query.of_a_party:
                return self._sum(query, bits, sampler)
            if sampler is not None:
                raise SettingsError(f"{query.kind} needs all rows of a party in one place")
            return query.from_tally(self._sum(query, bits), self._schema, bits)
        except Exception as error:
            self.problem = error  # the party says of it that it failed, and no more
            raise RuntimeError("no sum over the cluster") from error

    def _sum(
        self, query: SumQuery, bits: int, sampler: PoissonSampler | None = None
    ) -> NDArray[np.int64]:
        for _ in range(_MOST_LOSSES):
            try:
                if self._placement.complete():
                    self._known = 0
                answer = self._ask(query, bits, sampler)
            except WorkersLost:
                self._placement.look()
                continue
            self._placement.drop(answer.lost)
            if answer.behind:
                self._known = 0
            if answer.total is not None and answer.partitions == self.n_partitions:
                self._known = max(self._known, query.ensemble.length)
                return answer.total
        raise ClusterLost(
            f"workers or partitions were lost {_MOST_LOSSES} times during one question; the logs "
            "of the workers say why (most often too little memory). The question stays charged. "
            "Add workers or memory, then run the same command again."
        )

    def _ask(self, query: SumQuery, bits: int, sampler: PoissonSampler | None) -> Answer:
        """One task a worker, for all its partitions; of many workers, sums of sums."""
        values = {"bits": bits, SAMPLER: None if sampler is None else sampler.to_dict()}
        body = pack(values, {"query": np.frombuffer(query_bytes(query), np.uint8)})
        first, stop = min(self._known, query.ensemble.length), query.ensemble.length
        trees = tuple(self._trees[first:stop])
        message = Message("ask", body, trees_from=first, trees=trees).to_bytes()
        cluster, placed = self.cluster, self._placement.held()
        answers = [
            cluster.submit(worker, partitions.answer, self._run, indexes, message)
            for worker, indexes in placed.items()
        ]
        tasks = list(answers)  # Dask forgets tasks that nobody holds
        while len(answers) > _FAN:
            groups = [answers[i : i + _FAN] for i in range(0, len(answers), _FAN)]
            answers = [cluster.submit(None, partitions.merge, group) for group in groups]
            tasks += answers
        try:
            results: list[Answer] = cluster.results(answers, placed)
        except WorkersLost:
            cluster.client.cancel(tasks)
            raise
        self.received += sum(one.total.nbytes for one in results if one.total is not None)
        return partitions.merge(results)
