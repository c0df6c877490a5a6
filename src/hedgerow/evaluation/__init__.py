"""Private evaluation: how good a model is, by a few sum queries over the parties.

program.py      what is asked, in order
binary.py       measures of binary models from noisy counts
multiclass.py   measures of multiclass models from noisy counts
regression.py   measures of regression models from noisy counts and sums
quantiles.py    measures of quantiles: coverage, pinball loss
counts.py       measures of counts from noisy counts and sums of deviances
survival.py     measures of times to an event
risk_groups.py  rows of such models grouped by their risk
log_rank.py     whether groups survive alike
calibration.py  predicted beside observed, by bins wide enough for the noise
smoothing.py    noisy counts made consistent and monotone
result.py       the result: measures with errors, curves with bands, the file
"""

from __future__ import annotations

from hedgerow.evaluation.program import evaluate, evaluation_plan
from hedgerow.evaluation.result import Evaluation, Measure

__all__ = ["Evaluation", "Measure", "evaluate", "evaluation_plan"]
