"""Defects of sensitivity and of control flow, planted for the time of a block; replays find each.

python -m tests.contracts.replay_defects    # the time that each takes to be found
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from hedgerow.errors import PlanError
from hedgerow.kernels import NO_CLIP
from hedgerow.model.trust import InNobody
from hedgerow.party import answering, party
from hedgerow.party.running_scores import RunningScores
from hedgerow.queries import (
    ClassHistograms,
    ColumnSums,
    ErrorSums,
    LabelSums,
    LeafSums,
    NodeHistograms,
    ScoreCounts,
    Sensitivity,
    SplitChoices,
    calibration,
    column_sums,
)
from hedgerow.queries.base import Choice
from tests.contracts.replays import Case

Plant = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Defect:
    """What is wrong, how it is planted, and the run that meets it."""

    plant: Plant
    case: Case


def counted_twice(cls: Any) -> Plant:
    true = cls.answer
    return lambda: patch.object(cls, "answer", lambda self, *given: 2 * true(self, *given))


def understated(cls: Any, factor: float) -> Plant:
    """A sensitivity that is so many times too small."""
    true = cls.sensitivity.fget

    def smaller(self: Any) -> Sensitivity:
        stated = true(self)
        return Sensitivity(stated.l1 / factor, stated.l2 / factor)

    return lambda: patch.object(cls, "sensitivity", property(smaller))


def column_forgotten() -> AbstractContextManager[Any]:
    true = ColumnSums.sensitivity.fget  # type: ignore[attr-defined]

    def without_the_last(self: ColumnSums) -> Sensitivity:
        return true(replace(self, weights=(*self.weights[:-1], 0.0)))

    return patch.object(ColumnSums, "sensitivity", property(without_the_last))


def noise_of_one_row() -> AbstractContextManager[Any]:
    true = calibration.CALIBRATIONS["gaussian"]

    def narrower(query: Any, mu: float, plan: Any, schema: Any, part: float) -> Any:
        noise = true(query, mu, plan, schema, part)
        few = tuple(sigma / schema.unit.at_most for sigma in noise.sigmas)
        return replace(noise, sigmas=few)

    return patch.dict(calibration.CALIBRATIONS, {"gaussian": narrower})


def utilities_understated() -> AbstractContextManager[Any]:
    true = SplitChoices.choice.fget  # type: ignore[attr-defined]

    def half(self: SplitChoices) -> Choice:
        stated = true(self)
        return replace(stated, utility_range=max(1, stated.utility_range // 2))

    return patch.object(SplitChoices, "choice", property(half))


def clip_forgotten() -> AbstractContextManager[Any]:
    return patch.object(column_sums, "clip_steps", lambda clip, bits: NO_CLIP)


def odd_tables_fail() -> AbstractContextManager[Any]:
    true = RunningScores._exact

    def exact(self: RunningScores, *given: Any) -> Any:
        if self.n_rows % 2:
            raise PlanError("an odd number of rows")
        return true(self, *given)

    return patch.object(RunningScores, "_exact", exact)


def rows_are_logged() -> AbstractContextManager[Any]:
    true, log = answering.answer_of, logging.getLogger("hedgerow.party")

    def answer_of(*given: Any) -> Any:
        log.info("answered over %d rows", given[-1])
        return true(*given)

    return patch.object(party, "answer_of", answer_of)


AUTO, FOREST = Case("auto"), Case("dp-rf")
DEFECTS: dict[str, Defect] = {
    "labels counted twice": Defect(counted_twice(LabelSums), AUTO),
    "a column left out of the bound": Defect(column_forgotten, AUTO),
    "gradients not clamped": Defect(clip_forgotten, Case("auto", epsilon=50.0)),
    "trees of a batch counted once": Defect(understated(LeafSums, 3**0.5), FOREST),
    "columns counted once": Defect(understated(NodeHistograms, 5**0.5), Case("feverless")),
    "rows beyond a person's limit kept": Defect(
        lambda: patch.object(party, "rows_per_person", lambda rows, schema: rows),
        Case("dp-rf", unit="persons"),
    ),
    "noise of one row where a person has two": Defect(
        noise_of_one_row, Case("dp-rf", unit="persons")
    ),
    "noise that leaves weights out": Defect(
        lambda: patch.object(calibration, "reach_of", lambda query, schema: 1.0),
        Case("dp-rf", unit="weights"),
    ),
    "a replaced row counted as a removed one": Defect(
        lambda: patch.object(InNobody, "distance", 1), Case("dp-tr-newton", trust="nobody")
    ),
    "scores counted twice": Defect(counted_twice(ScoreCounts), Case("evaluation")),
    "errors counted twice": Defect(counted_twice(ErrorSums), Case("evaluation", "regression")),
    "counts of classes doubled": Defect(counted_twice(ClassHistograms), Case("private-tree")),
    "utilities that move twice as far as stated": Defect(utilities_understated, Case("dp-xgboost")),
    "an error that depends on the rows": Defect(odd_tables_fail, FOREST),
    "a log line with the number of rows": Defect(rows_are_logged, FOREST),
}


def found_by(defect: Defect, most: int = 200) -> str:
    """What a replay says of the defect, or nothing if so many neighbours did not show it."""
    with defect.plant():
        for seed in range(most // 20):
            replay = defect.case.replay(seed=seed)
            try:
                recorded = replay.record()
                for neighbour in defect.case.neighbours(replay, 20, seed):
                    replay.check(recorded, neighbour)
            except AssertionError as error:
                return str(error)
    return ""


if __name__ == "__main__":
    for name, planted in DEFECTS.items():
        began = time.monotonic()
        said = found_by(planted)
        print(f"{time.monotonic() - began:6.1f} s  {name}: {said}")
