"""What moves the prediction: importances, the shape of every column, maps of pairs."""

from __future__ import annotations

import math

import numpy as np

from hedgerow.inspection.explain import Explanation, Pair, Shape
from hedgerow.inspection.report.charts import importance_bars, pair_svg
from hedgerow.inspection.report.marks import breakable, colour_of, number, table, tag, text
from hedgerow.inspection.report.shape_charts import reach_of, shape_svg, told_below

MOST_BARS, MOST_SHAPES, MOST_PAIRS, MOST_NAMES = 20, 30, 6, 20
DUST = 1e-9  # of the largest importance: less is the rounding of sums
LEAST_REACH = 0.2  # of the widest shape: smaller effects look small


def effects_section(explanation: Explanation) -> str:
    """Bars of importances."""
    columns = {shape.column for shape in explanation.shapes}
    found = [
        (name.replace(" x ", " × ") if name not in columns else name, i, n, name not in columns)
        for name, i, n in explanation.importances
        if i > DUST * explanation.importances[0][1]
    ]
    lead = f"How far each column moves the {explanation.unit}, on average over the rows."
    if any(math.isfinite(n) for _, _, n, _ in found):
        lead += (
            " The mark is the mean deviation of the noise: a bar that ends before it may be noise "
            "alone."
        )
    if not found:
        return tag("section", tag("h2", "What moves the prediction"),
                   tag("p", "Nothing: the model is a constant.", class_="lead"))  # fmt: skip
    shown = found[:MOST_BARS]
    more = (
        f"{len(found) - len(shown)} smaller ones are not drawn." if len(found) > MOST_BARS else ""
    )
    keys = [tag("span", tag("i", class_="key", style="background:var(--accent)"), "column")]
    if any(is_pair for *_, is_pair in shown):
        keys.append(tag("span", tag("i", class_="key", style="background:var(--s6)"), "pair"))
    if any(math.isfinite(n) for _, _, n, _ in shown):
        keys.append(tag("span", tag("i", class_="key", style="background:var(--ink);width:2px"),
                        "noise"))  # fmt: skip
    return tag(
        "section",
        tag("h2", "What moves the prediction"),
        tag("p", text(lead), class_="lead"),
        tag("figure", tag("div", *keys, class_="legend"), importance_bars(shown), class_="card"),
        tag("p", text(more), class_="hint") if more else "",
    )


def shapes_section(explanation: Explanation) -> str:
    """The shapes, the most important first."""
    order = sorted(explanation.shapes, key=lambda shape: -shape.importance)
    drawn = [shape for shape in order if np.any(shape.values[:, shape.shown])][:MOST_SHAPES]
    if not drawn:
        return ""
    left = [shape.column for shape in order if shape not in drawn]
    least = LEAST_REACH * max(reach_of(shape) for shape in drawn)
    lead = f"What each value of a column adds to the {explanation.unit}, around 0."
    if any(math.isfinite(shape.noise) for shape in drawn):
        lead += " Shaded: the 95 % band of the noise that was added."
    if any(shape.released for shape in drawn):
        lead += " Grey below: how many rows there are, as released."
    parts = [tag("h2", "Shapes"), tag("p", text(lead).replace(" %", "&nbsp;%"), class_="lead")]
    if len(explanation.outputs) > 1:
        keys = [
            tag("span", tag("i", class_="key", style=f"background:{colour_of(k)}"), text(name))
            for k, name in enumerate(explanation.outputs)
        ]
        parts.append(tag("div", *keys, class_="legend"))
    figures = "".join(_shape(shape, least, explanation) for shape in drawn)
    parts.append(tag("div", figures, class_="grid"))
    if left:
        names = ", ".join(left[:MOST_NAMES])
        names += f" and {len(left) - MOST_NAMES} others" if len(left) > MOST_NAMES else ""
        parts.append(tag("p", text(f"No effect, or not drawn: {names}."), class_="hint"))
    notes = [tag("li", text(note)) for note in explanation.notes]
    return tag("section", *parts, tag("ul", *notes, class_="notes"))


def _shape(shape: Shape, least: float, explanation: Explanation) -> str:
    marks = ""
    if shape.direction:
        told = "only rises ↗" if shape.direction > 0 else "only falls ↘"
        marks += tag("span", told, class_="mark")
    if shape.edited is not None and shape.edited.any():
        marks += tag("span", "changed by hand", class_="mark hand")
    caption = tag(
        "figcaption",
        tag("span", breakable(shape.column) + marks),
        tag("small", f"mean effect {number(shape.importance)}"),
    )
    numbers = tag(
        "details", tag("summary", "Numbers"), _numbers(shape, explanation), class_="screen"
    )
    below = tag("p", told, class_="below") if (told := told_below(shape)) else ""
    return tag("figure", caption, shape_svg(shape, least), below, numbers, class_="card")


def _numbers(shape: Shape, explanation: Explanation) -> str:
    rows = []
    for c in shape.shown:
        for k, output in enumerate(explanation.outputs):
            low, high = shape.low[k, c], shape.high[k, c]
            band = f"{low:+.3f} to {high:+.3f}" if np.isfinite(low) else "not known"
            if shape.edited is not None and shape.edited[k, c]:
                band = "set by hand"
            name = shape.cells.labels[c] + (f" ({output})" if len(explanation.outputs) > 1 else "")
            weight = f"{100 * shape.weights[c]:.1f} %"
            rows.append((text(name), weight, f"{shape.values[k, c]:+.3f}", band))
    return table(("cell", "weight", "effect", "95 % band"), rows, (1, 2, 3))


def pairs_section(explanation: Explanation) -> str:
    """Maps of the pairs that do most."""
    least = DUST * explanation.importances[0][1] if explanation.importances else 0.0
    real = [pair for pair in explanation.pairs if pair.importance > least]
    found = real[:MOST_PAIRS]
    if not found:
        return ""
    lead = (
        "What two columns add together, beyond their shapes. Green is above 0, orange below; the "
        f"strongest colour is the largest size of each map. The {len(found)} pairs that do most"
        + (f", of {len(real)}." if len(real) > len(found) else ".")
    )
    figures = "".join(
        _pair(pair, k) for pair in found for k in range(min(len(explanation.outputs), 1))
    )
    return tag(
        "section",
        tag("h2", "Pairs"),
        tag("p", text(lead), class_="lead"),
        tag("div", figures, class_="grid"),
    )


def _pair(pair: Pair, output: int) -> str:
    name = f"{pair.columns[0]} × {pair.columns[1]}"
    most = float(np.abs(pair.values[output]).max())
    noise = f", noise {number(pair.noise)}" if math.isfinite(pair.noise) else ""
    small = tag("small", f"up to ±{number(most)}{noise}")
    caption = tag("figcaption", tag("span", breakable(name)), small)
    return tag("figure", caption, pair_svg(pair, output), class_="card")
