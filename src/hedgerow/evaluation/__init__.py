"""Private evaluation: how good a model is, by a few sum queries over the parties."""

from __future__ import annotations

from hedgerow.evaluation.program import evaluate, evaluation_plan
from hedgerow.evaluation.result import Evaluation, Measure

__all__ = ["Evaluation", "Measure", "evaluate", "evaluation_plan"]
