"""Numbers in few letters."""

from __future__ import annotations


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
