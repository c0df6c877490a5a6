"""Small pieces of HTML and SVG: tags with escaped text, numbers for people, ticks of axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape


def tag(name: str, *inside: str, **attributes: object) -> str:
    """An element; `inside` is HTML already, attributes are escaped; `class_` is `class`."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    told = "".join(f' {key}="{text(value)}"' for key, value in named.items())
    return f"<{name}{told}>{''.join(inside)}</{name}>"


def text(value: object) -> str:
    """Text for HTML; control characters have no place in a page."""
    return escape("".join(c if c.isprintable() or c == "\n" else "?" for c in str(value)))


def breakable(name: str) -> str:
    """A name as HTML that may go on in the next line after an underscore."""
    return text(name).replace("_", "_<wbr>")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table of HTML cells; the columns numbered in `numbers` hold numbers."""

    def cells(kind: str, values: Sequence[str]) -> str:
        return "".join(
            tag(kind, value, **({"class_": "number"} if k in numbers else {}))
            for k, value in enumerate(values)
        )

    body = "".join(tag("tr", cells("td", row)) for row in rows)
    return tag(
        "div",
        tag("table", tag("thead", tag("tr", cells("th", head))), tag("tbody", body)),
        class_="scroll",
    )


def number(value: float, digits: int = 3) -> str:
    """A number as short as its digits allow.

    >>> number(0.12345), number(1234.5), number(0.0), number(-3e-7)
    ('0.123', '1,234', '0', '-3e-07')
    """
    if value == 0:
        return "0"
    size = abs(value)
    if size < 10.0 ** -(digits + 1) or size >= 1e7:
        return f"{value:.{max(digits - 3, 0)}e}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}" if size >= 1 else f"{value:.{digits}f}"


def compact(value: float) -> str:
    """An edge in a few letters.

    >>> compact(104.39), compact(-2210.0), compact(25000.0), compact(999999.0), compact(1.17e6)
    ('104', '−2.21k', '25k', '1M', '1.17M')
    """
    sign, size = ("−" if value < 0 else ""), float(f"{abs(value):.3g}")
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= size < 1000 * unit:
            return f"{sign}{size / unit:.3g}{letter}"
    return f"{sign}{size:.3g}"


def colour_of(output: int) -> str:
    """The colour of one of several outputs; no two have the same.

    >>> colour_of(0), colour_of(9), colour_of(10)
    ('var(--c1)', 'var(--c10)', 'hsl(295 45% 50%)')
    """
    return f"var(--c{output + 1})" if output < 10 else f"hsl({137.5 * output % 360:.0f} 45% 50%)"


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends, at most so many.

    >>> ticks(0, 97), ticks(-0.31, 0.42, 4)
    ([0.0, 20.0, 40.0, 60.0, 80.0], [-0.2, 0.0, 0.2, 0.4])
    """
    span = high - low
    if not span > 0:
        return [low]
    rough = span / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10, 20) if unit * k >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    found = [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]
    return [round(x, 12) + 0.0 for x in found]


def tick_text(value: float, step: float) -> str:
    """A tick with as many digits as its neighbours need.

    >>> tick_text(0.2, 0.1), tick_text(40000.0, 20000.0), tick_text(-1.0, 0.5), tick_text(2e6, 5e5)
    ('0.2', '40k', '−1.0', '2M')
    """
    sign, size = ("−" if value < 0 else ""), abs(value)
    if size >= 1e6 and step >= 1e4:
        return f"{sign}{size / 1e6:g}M"
    if size >= 10_000 and step >= 1000:
        return f"{sign}{size / 1000:g}k"
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    if step > 0 and round(step * 10**digits, 9) % 1:
        digits += 1
    return f"{sign}{size:.{digits}f}"
