"""Writes down what passes the gate: questions, releases, noise and published trees, nothing exact.

Audits play a run through a `RecordingGate` and attack what it holds. Everything in a record is
what anybody may see of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.model.tree import Tree
from hedgerow.party.running_scores import RunningScores
from hedgerow.privacy.ledger.reservation import Release
from hedgerow.protocol.engine import Engine
from hedgerow.queries import SumQuery


@dataclass(frozen=True, eq=False)
class Record:
    """One question and what was released for it."""

    name: str
    query: SumQuery
    release: Release

    @property
    def deviations(self) -> NDArray[np.float64]:
        """The noise that the release states, in steps of its grid: (coordinate,)."""
        sizes = [block.size for block in self.query.released_blocks]
        return np.repeat(np.array(self.release.sigmas), sizes) * 2.0**self.release.bits

    def named_blocks(self) -> list[tuple[str, int]]:
        """Names and sizes of the blocks of the release."""
        what = self.name or self.query.kind
        blocks = self.query.released_blocks
        return [(f"{what}, block {i}", block.size) for i, block in enumerate(blocks, 1)]


class RecordingGate(Gate):
    """A gate whose releases and trees are written down as they pass."""

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self._records: list[Record] = []
        self._published: list[Tree] = list(self.start)

    def release(self, query: SumQuery, mu: float = 0.0, name: str = "") -> Release:
        index = self.slot
        release = super().release(query, mu, name)
        listed = self.plan.slots[index].name if index < len(self.plan.slots) else ""
        self._records.append(Record(name or listed, query, release))
        return release

    def publish(self, tree: Tree) -> None:
        super().publish(tree)
        self._published.append(tree)

    @property
    def engine(self) -> Engine:
        """What carries the messages of the run."""
        return self._federation.engine

    @property
    def transcript(self) -> Transcript:
        """Everything that was released so far."""
        return Transcript(self.schema, tuple(self._records), tuple(self._published))


@dataclass(frozen=True, eq=False)
class Transcript:
    """All that a run released, in order, and the trees that its questions refer to."""

    schema: Schema
    records: tuple[Record, ...]
    trees: tuple[Tree, ...]

    def with_scores(self, rows: Rows) -> Iterator[tuple[Record, NDArray[np.float64]]]:
        """Each record with the scores (row, output) that these rows had when it was asked."""
        scores = RunningScores(rows, self.schema)
        for record in self.records:
            query = record.query
            if not scores.sync(query.ensemble, 0, self.trees, query.step_trees):
                raise AssertionError("a question refers to trees that were never published")
            yield record, scores.at(query.ensemble, query.step_trees)
