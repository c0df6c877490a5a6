"""The picture of a ledger: epsilon of all runs so far, run after run, against the budget."""

from __future__ import annotations

from hedgerow.inspection.drawing import Axes, Canvas, Picture, Region
from hedgerow.privacy.ledger.ledger import Ledger

WIDTH, HEIGHT = 640.0, 400.0
REGION = Region(70.0, 84.0, WIDTH - 24, HEIGHT - 62)


def plot_ledger(ledger: Ledger) -> Picture:
    """The total epsilon of a ledger after each of its runs, with the budget if it has one.

    Public facts alone: every value was fixed before anybody was asked. A notebook shows the
    picture, `save("budget.svg")` writes it.
    """
    runs, budget, delta = ledger.history(), ledger.budget, ledger.delta
    totals = [0.0, *(run.total for run in runs)]
    at = f" at delta = {delta:g}" if delta else ""
    counted = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    canvas = Canvas(WIDTH, HEIGHT, f"Epsilon spent over {counted}{at}")
    of = "" if budget is None else f" of a budget of {budget.epsilon:g}"
    why = "; by the squares of their noise, so it is less than the sum of the runs" if delta else ""
    canvas.heading(canvas.title, f"{totals[-1]:.3g}{of}{why}")
    highest = max(totals[-1], 0.0 if budget is None else budget.epsilon) or 1.0
    axes = Axes.within(canvas, REGION, (0.0, max(1.0, len(runs) + 0.5)), (0.0, 1.08 * highest))
    axes.grid_across()
    axes.names("run", "epsilon of all runs so far")
    for number in _marked(len(runs)):
        canvas.text(axes.x(number), REGION.bottom + 18, str(number), "middle")
    if runs:
        ends = [*(float(i) for i in range(1, len(runs) + 1)), len(runs) + 0.5]
        axes.step_band([0.0, *ends], [0.0] * len(totals), totals)
        axes.steps([0.0, *ends], totals)
    for number, run in enumerate(runs, start=1):
        title = f"run {run.run}, {run.method}: epsilon = {run.epsilon:.4g} at {run.delta:g}"
        axes.dot_upward(number, run.total, (float("nan"), float("nan")), title=title)
    if budget is not None:
        height = axes.y(budget.epsilon)
        canvas.line(REGION.left, height, REGION.right, height, "zero")
        canvas.text(REGION.right, height - 6, f"budget {budget.epsilon:g}", "end", "small")
    return canvas.picture()


def _marked(n_runs: int, most: int = 12) -> list[int]:
    """Numbers of runs that stand below the axis: all of them, or every so many."""
    each = -(-n_runs // most) or 1
    return list(range(each, n_runs + 1, each))
