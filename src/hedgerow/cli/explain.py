"""`hedgerow explain`: what a model does, column by column, with bands from its known noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, table, tell

if TYPE_CHECKING:
    from hedgerow.inspection.explain import Explanation, Shape

MOST = 25  # lines of importances
ACROSS = 41  # letters of a drawn line, where there is room
Column = Annotated[
    list[str] | None,
    typer.Option("--column", help="Show the shape of this column; two times: of the pair."),
]
Picture = Annotated[
    Path | None, typer.Option("--svg", help="Write the picture of the column or pair here (SVG).")
]


def explain(
    model: options.ModelFile,
    column: Column = None,
    svg: Picture = None,
    json: options.Json = False,
) -> None:
    """Show what each column does: importances, shapes with error bands, pairs. Costs no budget."""
    from hedgerow.cli.files import write_text
    from hedgerow.errors import SettingsError
    from hedgerow.inspection.explain import explain as explained
    from hedgerow.model.ensemble import Ensemble

    explanation = explained(Ensemble.load(model))
    names = column or []
    if len(names) > 2 or (svg is not None and not names):
        raise SettingsError("name one --column for its shape, or two for their pair")
    shapes = [explanation.shape(name) for name in names]
    if svg is not None:
        write_text(svg, explanation.plot(*names).svg)
        tell(f"Picture written to {svg}.")
    if json:
        part = explanation.pair(*names) if len(names) == 2 else shapes[0] if shapes else explanation
        print_json(part.to_dict())
    elif len(names) == 2:
        _pair(explanation, *names)
    elif shapes:
        _shape(explanation, shapes[0])
    else:
        _overview(explanation)


def _overview(found: Explanation) -> None:
    from math import isfinite

    shown = table(
        f"What moves the {found.unit}", "column", "importance", "noise", "", right=("importance",)
    )
    ranked = found.importances
    most = max((importance for _, importance, _ in ranked), default=0.0) or 1.0
    for name, importance, noise in ranked[:MOST]:
        told = f"{noise:.3f}" if isfinite(noise) else "?"
        shown.add_row(name, f"{importance:.3f}", told, "█" * round(24 * importance / most))
    results().print(shown)
    if len(ranked) > MOST:
        show(f"... and {len(ranked) - MOST} more.")
    _notes(found)


def _shape(found: Explanation, shape: Shape) -> None:
    import numpy as np

    told = {1: ", trained to rise only", -1: ", trained to fall only", 0: ""}[shape.direction]
    longest = max(len(shape.cells.labels[c]) for c in shape.shown)
    across = min(ACROSS, max(9, results().width - longest - 38))
    for k, output in enumerate(found.outputs):
        title = f"{shape.column}{told}: effect on the {found.unit}"
        title += f" ({output})" if len(found.outputs) > 1 else ""
        shown = table(title, "cell", "weight", "effect", "band", "", right=("weight", "effect"))
        ends = [np.nanmin(shape.low[k, shape.shown]), np.nanmax(shape.high[k, shape.shown])]
        if not np.isfinite(ends).all():
            ends = [shape.values[k].min(), shape.values[k].max()]
        for c in shape.shown:
            low, high = shape.low[k, c], shape.high[k, c]
            band = f"{low:+.3f} to {high:+.3f}" if np.isfinite(low) else "not known"
            if shape.edited is not None and shape.edited[k, c]:
                band = "set by hand"
            value = shape.values[k, c]
            line = drawn_line(value, low, high, min(ends[0], 0.0), max(ends[1], 0.0), across)
            weight = f"{100 * shape.weights[c]:.1f} %"
            shown.add_row(shape.cells.labels[c], weight, f"{value:+.3f}", band, line)
        results().print(shown)
    _notes(found)


def drawn_line(
    value: float, low: float, high: float, first: float, last: float, across: int = ACROSS
) -> str:
    """A value, its band and the zero as letters on one line.

    >>> drawn_line(0.5, 0.25, 0.75, -1.0, 1.0).replace(" ", ".")
    '....................|....─────●─────.....'
    """
    span = (last - first) or 1.0

    def place(x: float) -> int:
        return min(max(round((x - first) / span * (across - 1)), 0), across - 1)

    letters = [" "] * across
    letters[place(0.0)] = "|"
    if low == low and high == high:  # not NaN
        for i in range(place(low), place(high) + 1):
            letters[i] = "─"
    letters[place(value)] = "●"
    return "".join(letters)


def _pair(found: Explanation, first: str, second: str) -> None:
    import numpy as np

    pair = found.pair(first, second)
    down, across = (np.flatnonzero(c.possible) for c in (pair.first, pair.second))
    for k, output in enumerate(found.outputs):
        title = f"{pair.columns[0]} x {pair.columns[1]}: beyond their shapes, {found.unit}"
        title += f" ({output})" if len(found.outputs) > 1 else ""

        def told(r: int, c: int, k: int = k) -> str:
            return f"{pair.values[k, r, c]:+.2f} ± {1.96 * pair.deviation[k, r, c]:.2f}"

        names = [pair.second.labels[c] for c in across]
        wide = sum(max(len(name), 12) + 2 for name in [pair.columns[0], *names])
        if wide <= results().width and len(down) <= MOST:
            shown = table(title, pair.columns[0], *names)
            for r in down:
                shown.add_row(pair.first.labels[r], *(told(int(r), int(c)) for c in across))
        else:
            sizes = np.abs(pair.values[k][np.ix_(down, across)])
            most = np.argsort(-sizes, axis=None, kind="stable")[:MOST]
            places = [(int(down[i // len(across)]), int(across[i % len(across)])) for i in most]
            title += f"; the {len(places)} largest of {sizes.size} (all: --json, --svg)"
            shown = table(title, *pair.columns, "effect", right=("effect",))
            for i, j in places:
                shown.add_row(pair.first.labels[i], pair.second.labels[j], told(i, j))
        results().print(shown)
    _notes(found)


def _notes(found: Explanation) -> None:
    for note in found.notes:
        show(note, style="yellow" if note.startswith("NOT PRIVATE") else "dim")
