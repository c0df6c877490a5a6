"""The picture of an audit: what was promised, estimated and shown at least, on one axis of mu."""

from __future__ import annotations

import math

from hedgerow.audit.result import AuditResult
from hedgerow.inspection.drawing import Axes, Canvas, Picture, Region

WIDTH, HEIGHT = 640.0, 300.0
REGION = Region(200.0, 76.0, WIDTH - 28, HEIGHT - 62)


def plot_audit(audit: AuditResult) -> Picture:
    """The claim of an audit as a line, and beside it the estimate and the lower bounds.

    What lies beyond the axis, such as the infinite bound of a release without noise, is drawn at
    its end. A notebook shows the picture, `save("audit.svg")` writes it.
    """
    canvas = Canvas(WIDTH, HEIGHT, f"Audit of {audit.method}, epsilon {audit.claimed_epsilon:.3g}")
    told = "the promise is refuted" if audit.violation else "nothing contradicts the promise"
    of = f"{audit.canaries:,} canaries" if audit.runs == 1 else f"{audit.runs:,} runs"
    canvas.heading(canvas.title, f"{of}, {audit.confidence:.0%} confidence: {told}")
    lines = _lines(audit)
    known = [value for _, value, _ in lines if math.isfinite(value)]
    highest = 1.25 * max([audit.claimed_mu, *(v for v in known if v < 8 * audit.claimed_mu)])
    axes = Axes.within(canvas, REGION, (0.0, highest), (0.0, 1.0))
    axes.grid_down()
    axes.ticks_below()
    axes.names("mu, the distance of two normal curves that is as hard to tell")
    step = (REGION.bottom - REGION.top) / len(lines)
    for number, (name, value, error) in enumerate(lines):
        height = REGION.top + (number + 0.5) * step
        canvas.text(REGION.left - 10, height + 4, name, "end")
        band = (max(0.0, value - 2 * error), value + 2 * error) if error else (math.nan, math.nan)
        axes.dot_across(min(value, highest), height, band)
        canvas.text(min(axes.x(min(value, highest)) + 10, WIDTH - 60), height - 8, _text(value))
    claim = axes.x(audit.claimed_mu)
    canvas.line(claim, REGION.top - 6, claim, REGION.bottom, "zero")
    canvas.text(claim, REGION.top - 10, f"promised {audit.claimed_mu:.3g}", "middle", "small")
    return canvas.picture()


def _lines(audit: AuditResult) -> list[tuple[str, float, float]]:
    """Names with values and standard errors, in the order of the picture."""
    lines = [("estimate", audit.estimated_mu, audit.estimate_error)]
    if audit.runs == 1:
        lines.insert(0, ("largest contribution", audit.largest_mu, 0.0))
        lines.append(("at least, Gaussian noise", audit.lower_mu, 0.0))
        return [*lines, ("at least, any mechanism", audit.any_lower_mu, 0.0)]
    return [*lines, ("at least", audit.lower_mu, 0.0)]


def _text(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.3g}"
