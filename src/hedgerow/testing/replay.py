"""Record and replay: a run on a table, then on its neighbours with all releases frozen.

Whatever a run does may follow from releases and public facts alone. So on a neighbour, with the
same releases, it must ask the same questions with the same noise, write the same lines and end
alike; and exact answers may differ by no more than their noise is made for. That is measured
against the noise itself, not against what a question says of its own sensitivity.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.federation import Federation, Total
from hedgerow.coordinator.gate import Gate
from hedgerow.data.persons import rows_per_person
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.engines.local import local_federation
from hedgerow.kernels import compiling
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree
from hedgerow.packing import digest
from hedgerow.party import party
from hedgerow.party.running_scores import RunningScores
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Release
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.noise.mechanisms import SELECTORS
from hedgerow.privacy.noise.poisson_sampling import PoissonSampler
from hedgerow.queries import SumQuery, query_bytes
from hedgerow.queries.calibration import Noise
from hedgerow.testing.neighbours import Neighbour
from hedgerow.testing.noise import seeded

Play = Callable[[Gate], object]
MakeFederation = Callable[[Mapping[str, Rows], Schema, Plan, Ledger], Federation]
Ints = NDArray[np.int64]
SLACK = 1e-9  # of floats: sigmas are quotients, squares are added up
CHANGED = "p0"  # the party that has the unit which is changed


@dataclass(frozen=True, eq=False)
class Question:
    """What was asked: the question, its noise, and what it released."""

    query: SumQuery
    noise: Noise
    release: Release


@dataclass(eq=False)
class Recording:
    """One run: everything it did that somebody could see, and the exact answers of one party."""

    questions: list[Question] = field(default_factory=list)
    answers: dict[str, list[Ints]] = field(default_factory=dict)  # by party
    samplers: list[PoissonSampler | None] = field(default_factory=list)  # of the changed party
    trees: list[Tree] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    ending: str = ""  # hash of the model, or the error


@dataclass
class Replayed:
    """What was compared: whole runs, pairs of a question and a neighbour, the largest movement."""

    replays: int = 0
    pairs: int = 0
    largest: float = 0.0  # movement of an exact answer, as a part of what the noise is made for
    kinds: set[str] = field(default_factory=set)

    def add(self, other: Replayed) -> None:
        self.replays, self.pairs = self.replays + other.replays, self.pairs + other.pairs
        self.largest = max(self.largest, other.largest)
        self.kinds |= other.kinds


class _ListeningScores(RunningScores):
    """A party's rows, whose exact answers are written down; samples follow from rounds alone."""

    def __init__(self, rows: Rows, schema: Schema, name: str, recording: Recording) -> None:
        super().__init__(rows, schema)
        self._name, self._recording = name, recording

    def exact(self, query: SumQuery, bits: int, sampler: PoissonSampler | None = None) -> Ints:
        if sampler is not None:  # whose key is the party's secret: the same one in every replay
            key = bytes.fromhex(digest("replayed round", str(sampler.draw.round)))
            sampler = replace(sampler, key=key)
        answer = super().exact(query, bits, sampler)
        self._recording.answers.setdefault(self._name, []).append(answer.copy())
        if self._name == CHANGED:
            self._recording.samplers.append(sampler)
        return answer


@contextmanager
def _listening(recording: Recording) -> Iterator[None]:
    """Parties that are made inside the block write their exact answers down, in their order."""
    numbers = itertools.count()

    def listening(rows: Rows, schema: Schema) -> _ListeningScores:
        return _ListeningScores(rows, schema, f"p{next(numbers)}", recording)

    with patch.object(party, "RunningScores", listening):
        yield


class _FrozenGate(Gate):
    """Writes down what is asked; with releases of an earlier run it gives those."""

    def __init__(self, *parts: Any, recording: Recording, frozen: Recording | None, **more: Any):
        super().__init__(*parts, **more)
        self._recording, self._frozen = recording, frozen
        recording.trees.extend(self.start)

    def publish(self, tree: Tree) -> None:
        super().publish(tree)
        self._recording.trees.append(tree)

    def _noisy(self, query: SumQuery, total: Total, noise: Noise) -> Release:
        release, number = super()._noisy(query, total, noise), len(self._recording.questions)
        if self._frozen is not None:
            _compare_question(self._frozen, number, query, noise)
            release = self._frozen.questions[number].release
        self._recording.questions.append(Question(query, noise, release))
        return release


class _Log(logging.Handler):
    def __init__(self, kept: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == compiling.__name__:  # said once a process, whatever is run
            return
        self._kept.append(f"{record.name} {record.levelname} {record.getMessage()}")


@dataclass(frozen=True, eq=False)
class Replay:
    """A run over tables of parties that can be played again with one unit changed.

    Parameters
    ----------
    play : what is done with the gate, such as `method_named(plan.method).grow`
    plan, schema : what is run
    rows : the table of the party whose unit is changed
    others : tables of the other parties
    start : the model that the plan builds on or measures
    make : builds the federation; None is one of this process
    seed : of the noise, the same in every run
    """

    play: Play
    plan: Plan
    schema: Schema
    rows: Rows
    others: tuple[Rows, ...] = ()
    start: Ensemble | None = None
    make: MakeFederation | None = None
    seed: int = 0

    def record(self, rows: Rows | None = None, frozen: Recording | None = None) -> Recording:
        """Run on a table; with releases of another recording instead of its own."""
        recording, ledger = Recording(), Ledger.in_memory()
        handler, logger = _Log(recording.logged), logging.getLogger("hedgerow")
        level = logger.level
        all_rows = [self.rows if rows is None else rows, *self.others]
        tables = {f"p{i}": table for i, table in enumerate(all_rows)}
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        try:
            with seeded(self.seed), _listening(recording):
                federation = (self.make or _local)(tables, self.schema, self.plan, ledger)
                parts = (federation, self.plan, ledger)
                gate = _FrozenGate(*parts, start=self.start, recording=recording, frozen=frozen)
                recording.ending = self._ended(gate)
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
        recording.lines = [_line(line) for line in ledger.lines()]
        return recording

    def _ended(self, gate: Gate) -> str:
        try:
            result = self.play(gate)
        except AssertionError:
            raise
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return result.hash if isinstance(result, Ensemble) else repr(result)

    def check(self, recorded: Recording, neighbour: Neighbour) -> Replayed:
        """Replay the whole run on a neighbour; AssertionError if anything but answers differs."""
        again = self.record(neighbour.rows, recorded)
        for what, before, after in (
            ("asks a question less", len(recorded.questions), len(again.questions)),
            ("logs other lines", recorded.logged, again.logged),
            ("writes other lines on the ledger", recorded.lines, again.lines),
            ("ends otherwise", recorded.ending, again.ending),
        ):
            if before != after:
                raise AssertionError(f"one unit {neighbour.change}: a run {what}")
        for name, answers in recorded.answers.items():
            same = zip(answers, again.answers.get(name, []), strict=True)
            if name != CHANGED and not all(np.array_equal(a, b) for a, b in same):
                raise AssertionError(
                    f"one unit {neighbour.change}: another party answers otherwise"
                )
        found = self._compared(recorded, again.answers[CHANGED], neighbour)
        return replace(found, replays=1)

    def check_answers(self, recorded: Recording, neighbour: Neighbour) -> Replayed:
        """Only compute the exact answers of a neighbour to all recorded questions, which is quick.

        Questions and trees are those of the recording, as they would be in a replay.
        """
        rows = rows_per_person(neighbour.rows, self.schema)
        scores, answers = RunningScores(rows, self.schema), []
        trees = tuple(recorded.trees)
        for question, sampler in zip(recorded.questions, recorded.samplers, strict=True):
            query = question.query
            scores.sync(query.ensemble, 0, trees, query.step_trees)
            answers.append(scores.exact(query, question.noise.bits, sampler))
        return self._compared(recorded, answers, neighbour)

    def _compared(
        self, recorded: Recording, answers: Sequence[Ints], neighbour: Neighbour
    ) -> Replayed:
        found = Replayed()
        before = recorded.answers[CHANGED]
        allowed = self._allowed(neighbour)
        for question, old, new in zip(recorded.questions, before, answers, strict=True):
            moved = movement(question, self.schema, old, new) / allowed
            if not moved <= 1 + SLACK:
                raise AssertionError(
                    f"{question.query.kind}: one unit {neighbour.change} moves the exact answer "
                    f"{moved:.4g} times as far as its noise is made for"
                )
            found.pairs, found.largest = found.pairs + 1, max(found.largest, moved)
            found.kinds.add(question.query.kind)
        return found

    def _allowed(self, neighbour: Neighbour) -> float:
        """Noise is for one unit added or removed; where nobody is trusted, for one replaced."""
        if self.plan.privacy.trusted.local:
            if neighbour.change != "replaced":
                raise AssertionError("where nobody is trusted a neighbour has one unit replaced")
            return 1.0
        return 2.0 if neighbour.change == "replaced" else 1.0


def movement(question: Question, schema: Schema, before: Ints, after: Ints) -> float:
    """How far an exact answer moved, as a part of what its noise and its price allow."""
    query, noise = question.query, question.noise
    if before.shape != after.shape or before.dtype != after.dtype:
        raise AssertionError(f"{query.kind} answers in another shape")
    if noise.mechanism in SELECTORS:
        old, new = (query.utilities(total, schema, noise.bits) for total in (before, after))
        if not all(np.array_equal(a, b) for (_, a), (_, b) in zip(old, new, strict=True)):
            raise AssertionError(f"{query.kind}: what is offered depends on the rows")
        apart = [int(np.ptp(b - a)) for (a, _), (b, _) in zip(old, new, strict=True)]
        return sum(apart) / noise.sigmas[0] / _price(question)
    if query.finishes:
        before, after = (query.finish(total, noise.bits) for total in (before, after))
    sizes = [block.size for block in query.released_blocks]
    scaled = (after - before).astype(np.float64) / np.repeat(noise.sigmas, sizes)
    if noise.mechanism == "laplace":
        return float(np.abs(scaled).sum()) / _price(question)
    return float(np.sqrt(scaled @ scaled)) / noise.mu


def _price(question: Question) -> float:
    """The epsilon that the dearest node pays for a pure question."""
    priced = question.query.priced()
    if priced is None:
        raise AssertionError(f"{question.query.kind} has pure noise and says no price")
    return priced.most * question.noise.part


def _compare_question(frozen: Recording, number: int, query: SumQuery, noise: Noise) -> None:
    if number >= len(frozen.questions):
        raise AssertionError(f"a run asks a question more: {query.kind}")
    known = frozen.questions[number]
    if query_bytes(known.query) != query_bytes(query):
        raise AssertionError(f"question {number} differs: {known.query.kind}, then {query.kind}")
    if known.noise != noise:
        raise AssertionError(f"question {number}, {query.kind}, has other noise")


def _line(line: Any) -> str:
    """What a ledger's line says but for keys, times and chained hashes.

    A charge of the coordinator names question and price; one of a party also keys of the session.
    """
    said = digest(line.body) if (line.owner, line.kind) == (COORDINATOR, "charge") else ""
    return f"{line.owner} {line.kind} {line.slot} {line.attempt} {said}"


def _local(tables: Mapping[str, Rows], schema: Schema, plan: Plan, ledger: Ledger) -> Federation:
    privacy = plan.privacy
    agreed = (privacy.colluding, privacy.minimum_parties, privacy.trust)
    return local_federation(tables, schema, ledger, *agreed)


def check_replay(replay: Replay, neighbours: Iterable[Neighbour]) -> Replayed:
    """Record a run and replay it on every neighbour with the releases frozen.

    Questions, noise, shapes, log lines, ledger lines, the model or the error must be the same;
    answers of the changed party may move by what the noise is made for, twice that where a unit is
    replaced; nobody else's may move. Raises AssertionError at the first difference.

    Examples
    --------
    >>> from hedgerow import Privacy, Schema, plan_for
    >>> from hedgerow.data.rng import stream
    >>> from hedgerow.methods.registry import method_named
    >>> from hedgerow.testing import neighbours_of, random_rows
    >>> schema = Schema.from_bounds({"age": (0, 110)}, classes=["no", "yes"])
    >>> plan = plan_for(schema, Privacy(4.0, 1e-6, "coordinator"), "dp-rf", {"n_trees": 2})
    >>> rng = stream(0, "replay")
    >>> rows = random_rows(schema, 10, rng)
    >>> replay = Replay(method_named("dp-rf").grow, plan, schema, rows)
    >>> check_replay(replay, neighbours_of(schema, rows, 3, rng)).replays
    3
    """
    recorded, found = replay.record(), Replayed()
    if not recorded.questions:
        raise AssertionError(f"the run asked nothing: {recorded.ending}")
    for neighbour in neighbours:
        found.add(replay.check(recorded, neighbour))
    return found
