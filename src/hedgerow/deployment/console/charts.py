"""The budget as a picture: epsilon over time against the party's limits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hedgerow import clock
from hedgerow.inspection.drawing import Axes, Canvas, Picture, Region

WIDTH, HEIGHT = 760.0, 340.0
REGION = Region(52.0, 40.0, WIDTH - 16, HEIGHT - 46)
TOTAL, MONTH = 0, 2  # which of the colours
N_TICKS = 5
Points = Sequence[tuple[str, float]]


def budget_chart(facts: dict[str, Any]) -> Picture:
    """Epsilon of all runs and of the last 31 days, after every change, and what limits them."""
    limits = {row["limit"]: row for row in facts["limits"]}
    total, month = limits.get("in total"), limits.get("in the last 31 days")
    now = clock.utc_now()
    times = [datetime.fromisoformat(time) for time, _ in facts["curve"]]
    first = min([now - timedelta(days=1), *times])
    canvas = Canvas(WIDTH, HEIGHT, f"Epsilon over time at delta = {facts['delta']:g}")
    ends = [row["epsilon"] for row in (total, month) if row]
    highest = max([facts["total"], *ends]) or 1.0
    span = (first.timestamp(), now.timestamp())
    axes = Axes.within(canvas, REGION, span, (0.0, 1.12 * highest))
    axes.grid_across()
    axes.names("", "epsilon")
    _dates(axes, first, now)
    _steps(axes, facts["curve"], span, TOTAL, band=True)
    if month:
        _steps(axes, facts["month_curve"], span, MONTH)
        _level(axes, month["epsilon"], f"limit of 31 days: {month['epsilon']:g}", MONTH)
    if total:
        _level(axes, total["epsilon"], f"limit in total: {total['epsilon']:g}", TOTAL)
    by_time = {run["time"]: run for run in facts["runs"]}
    for time, value in facts["curve"]:
        run = by_time.get(time)
        title = f"{run['run']}: {run['method']}, epsilon = {run['epsilon']:.4g}" if run else ""
        where = datetime.fromisoformat(time).timestamp()
        axes.dot_upward(where, value, (float("nan"), float("nan")), TOTAL, title)
    return canvas.picture()


def _steps(
    axes: Axes, points: Points, span: tuple[float, float], series: int, band: bool = False
) -> None:
    """A value holds from its moment until the next one."""
    if not points:
        return
    moments = [datetime.fromisoformat(time).timestamp() for time, _ in points]
    edges = [span[0], *(max(moment, span[0]) for moment in moments), span[1]]
    values = [0.0, *(value for _, value in points)]
    if band:
        axes.step_band(edges, [0.0] * len(values), values, series)
    axes.steps(edges, values, series)


def _level(axes: Axes, value: float, words: str, series: int) -> None:
    height = axes.y(value)
    axes.canvas.line(REGION.left, height, REGION.right, height, "level", series)
    axes.canvas.text(REGION.right, height - 6, words, "end", "small halo")


def _dates(axes: Axes, first: datetime, last: datetime) -> None:
    """Moments below the axis, as fine as the time that is shown."""
    span = last - first
    form = (
        "%H:%M" if span < timedelta(days=2) else "%d %b" if span < timedelta(days=300) else "%b %Y"
    )
    for i in range(N_TICKS):
        moment = (first + i * span / (N_TICKS - 1)).astimezone(UTC)
        anchor = "start" if i == 0 else "end" if i == N_TICKS - 1 else "middle"
        axes.canvas.text(
            axes.x(moment.timestamp()), REGION.bottom + 18, moment.strftime(form), anchor
        )
