"""Colours for light and dark pages, and the style sheet of every picture.

Rules name colours by CSS variables. A page defines the variables; in a picture of its own their
values stand in, because programs that convert SVG do not know variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# The series are those of Okabe and Ito, which people with colour-blindness tell apart, and four
# more; the first is the green of everything that has one colour only.
LIGHT = {
    "page": "#f6f5f1", "card": "#ffffff", "ink": "#1d2320", "soft": "#56605a", "faint": "#8a938d",
    "rule": "#dfe1da", "rest": "#d3d6cd", "accent": "#1f6f54", "warm": "#b3541e", "bad": "#a3261c",
    "alarm": "#fbe9e6",
    "c1": "#1f6f54", "c2": "#d98200", "c3": "#0072b2", "c4": "#c4507f", "c5": "#6a51a3",
    "c6": "#56a9d8", "c7": "#b3541e", "c8": "#8c7a1f", "c9": "#17958f", "c10": "#6b6f6d",
}  # fmt: skip
DARK = {
    "page": "#14181a", "card": "#1c2123", "ink": "#e9ece8", "soft": "#a9b2ac", "faint": "#7d877f",
    "rule": "#323a3b", "rest": "#3d4647", "accent": "#6fcaa4", "warm": "#e79a62", "bad": "#ff9d8f",
    "alarm": "#3a2220",
    "c1": "#6fcaa4", "c2": "#efb04a", "c3": "#6fb3e8", "c4": "#ee93b8", "c5": "#b39ad8",
    "c6": "#a5daf7", "c7": "#e79a62", "c8": "#cfc063", "c9": "#54cfcf", "c10": "#b6bcb8",
}  # fmt: skip
N_SERIES = 10

RULES = """
.hedgerow { color: var(--accent); }
.hedgerow text { fill: var(--soft); font-size: 12px; font-family: system-ui, -apple-system,
  "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.hedgerow .heading { fill: var(--ink); font-size: 16px; font-weight: 650; }
.hedgerow .strong { fill: var(--ink); }
.hedgerow .bold { fill: var(--ink); font-weight: 600; }
.hedgerow .small { font-size: 11px; }
.hedgerow .halo { paint-order: stroke; stroke: var(--card); stroke-width: 3px;
  stroke-linejoin: round; }
.hedgerow .ground, .hedgerow .box { fill: var(--card); }
.hedgerow .box { stroke: var(--faint); }
.hedgerow .box.leaf { stroke: currentColor; stroke-width: 2; }
.hedgerow .link { fill: none; stroke: var(--faint); stroke-opacity: .6; }
.hedgerow .axis { stroke: var(--rule); stroke-width: 1; }
.hedgerow .zero { stroke: var(--faint); stroke-width: 1; stroke-dasharray: 2 3; }
.hedgerow .level { stroke: currentColor; stroke-width: 1.2; stroke-dasharray: 6 4; }
.hedgerow .line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
.hedgerow .band { fill: currentColor; fill-opacity: .19; stroke: none; }
.hedgerow .band.series { fill-opacity: .13; }
.hedgerow .whisker { stroke: currentColor; stroke-opacity: .24; stroke-width: 8;
  stroke-linecap: round; }
.hedgerow .whisker.series { stroke-width: 4; stroke-opacity: .35; }
.hedgerow .dot, .hedgerow .fill { fill: currentColor; }
.hedgerow .rows { fill: var(--rest); }
.hedgerow .ink { color: var(--ink); }
.hedgerow .soft { color: var(--soft); }
.hedgerow .warm { color: var(--warm); }
.hedgerow text.warm { fill: currentColor; }
""" + "".join(f".hedgerow .c{k} {{ color: var(--c{k}); }}\n" for k in range(1, N_SERIES + 1))


def sheet() -> str:
    """The style sheet of a picture that stands alone: dark where the reader's screen is."""
    dark = f"@media screen and (prefers-color-scheme: dark) {{{_with_values(RULES, DARK)}}}\n"
    return _with_values(RULES, LIGHT) + dark


def _with_values(rules: str, palette: Mapping[str, str]) -> str:
    return re.sub(r"var\(--(\w+)\)", lambda name: palette[name[1]], rules)


def series_class(number: int) -> str:
    """The class that gives one of several series its colour; "" beyond the named ones.

    >>> series_class(0), series_class(9), series_class(10)
    ('c1', 'c10', '')
    """
    return f"c{number + 1}" if number < N_SERIES else ""


def series_style(number: int) -> str:
    """The colour of a series beyond the named ones, as a declaration; no two have the same.

    >>> series_style(0), series_style(10)
    ('', 'color:hsl(295 45% 50%)')
    """
    return "" if number < N_SERIES else f"color:hsl({137.5 * number % 360:.0f} 45% 50%)"
