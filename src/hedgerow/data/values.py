"""The one rule by which a value matches a public category, class or id, whatever carried it.

A value is compared by its **key**, so that "the same value" means the same in a CSV file, where all
is text, and in a typed column:

- text is itself, without blanks around it and in Unicode's composed form (NFC); case matters;
- a number is its decimal digits: 3, 3.0, "3", "3.00" and "3e0" have one key, exactly, however
  large. Leading zeros make a name: "007" is not 7. A binary float is its shortest digits: 0.1;
- true and false are 1 and 0, and so are the words true and false in any case, and no other words;
- a date or time is its ISO text; midnight is its date, and a time with a zone is told in UTC;
- None, NaN, NaT, pandas' NA and empty text are missing, and so is a word of `MISSING_WORDS`
  unless the list has it.

Equal keys are an equivalence, so no value matches two categories of a list whose keys differ; a
list in which two keys are equal is refused when its schema is made.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = str | int | float | bool
UNKNOWN = -1
MISSING = -2
# What pandas.read_csv takes for missing, so that a file says the same through it and without it.
MISSING_WORDS = frozenset(
    ["", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NaN", "nan", "-NaN", "-nan",
     "NULL", "null", "None", "-1.#IND", "1.#IND", "-1.#QNAN", "1.#QNAN", "NaT"]
)  # fmt: skip
_NUMBER = re.compile(
    r"([+-]?)(?=[0-9.]*[0-9])(0|[1-9][0-9]*)?(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,6}))?"
)
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r" ?(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_CLOCK = re.compile(r"([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*[1-9])?)\.?0*")
_TRUTH = {"true": "1", "false": "0"}
_PLAIN = 40  # zeros that are written out: more are an exponent
_EXACT = 2**53  # floats below it are whole numbers without a doubt


def text_of(value: Any) -> str:
    """How a category, class or other value is shown.

    >>> text_of(True), text_of(3.0), text_of("blue")
    ('true', '3', 'blue')
    """
    if isinstance(value, str):
        return value
    value = plain_value(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return value.decode() if isinstance(value, bytes) else str(value)


def key_of(value: Any) -> str | None:
    """By what a value is compared; None if it is missing. See the module's docstring.

    >>> {key_of(v) for v in (True, "TRUE", 1, 1.0, "1", " 1.00 ", np.float32(1))}
    {'1'}
    >>> key_of("01"), key_of(2**60 + 1), key_of("1.50"), key_of("2024-05-17 00:00:00")
    ('01', '1152921504606846977', '1.5', '2024-05-17')
    """
    if isinstance(value, str):
        return _key_of_text(value)
    if is_missing(value):
        return None
    value = plain_value(value)
    if isinstance(value, int):  # True and False are 1 and 0
        return str(int(value)) if abs(value) < 10**_PLAIN else _key_of_text(str(value))
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < _EXACT
        return str(int(value)) if whole else _key_of_text(repr(value))
    return _key_of_text(text_of(value))


def is_missing(value: Any) -> bool:
    """None, NaN, and the marks that pandas and numpy use; text is looked at with its list."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)):
        return bool(value != value)
    return isinstance(value, Decimal) and value.is_nan()


def plain_value(value: Any) -> Any:
    """A scalar of numpy as Python's own; a narrow float as its digits say, 0.1 and not 0.1000...15.

    >>> plain_value(np.int8(3)), plain_value(np.float32(0.1)), plain_value(np.bool_(True))
    (3, 0.1, True)
    """
    if not isinstance(value, np.generic):
        return value
    if isinstance(value, np.floating):
        return float(value) if isinstance(value, np.float64) else float(str(value))
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return str(value)
    return value.item()


def positions_of(values: Iterable[Any], listed: Sequence[Value]) -> NDArray[np.int32]:
    """The position of each value in a public list; UNKNOWN or MISSING where it has none.

    >>> positions_of([1, "1.0", " 0", True, "", None, 7], [0, 1]).tolist()
    [1, 1, 0, 1, -2, -2, -1]
    >>> positions_of(["NA", None], ["NA", "DE"]).tolist(), positions_of(["NA"], ["DE"]).tolist()
    ([0, -2], [-2])
    """
    places = _places(tuple(listed))
    return np.fromiter((_position(key_of(value), places) for value in values), dtype=np.int32)


def distinct(values: Iterable[Any]) -> list[Any]:
    """The first of all values that have one key; missing ones are left out."""
    found: dict[str, Any] = {}
    for value in values:
        if (key := key_of(value)) is not None and key not in MISSING_WORDS:
            found.setdefault(key, value)
    return list(found.values())


@lru_cache(maxsize=128)
def _places(listed: tuple[Value, ...]) -> dict[str | None, int]:
    # To Python (1, 0) and (True, False) are equal: so are their keys.
    return {key_of(value): place for place, value in enumerate(listed)}


def _position(key: str | None, places: dict[str | None, int]) -> int:
    if key is None:
        return MISSING
    if (place := places.get(key)) is not None:
        return place
    return MISSING if key in MISSING_WORDS else UNKNOWN


def _key_of_text(text: str) -> str | None:
    text = text.strip()
    if not text:
        return None
    if not text.isascii():
        return unicodedata.normalize("NFC", text)
    if text[0] in "+-.0123456789":
        if text.isdigit() and text[0] != "0" and len(text) <= _PLAIN:
            return text
        if number := _NUMBER.fullmatch(text):
            return _key_of_number(*number.groups())
        if time := _TIME.fullmatch(text):
            return _key_of_time(*time.groups()) or text
        clock = _CLOCK.fullmatch(text)
        return clock[1] if clock else text
    return _TRUTH.get(text.lower(), text) if len(text) in (4, 5) else text


def _key_of_number(sign: str, whole: str | None, part: str | None, exponent: str | None) -> str:
    """The digits of a number in one way: plain, unless it has very many zeros."""
    part = part or ""
    digits = ((whole or "") + part).lstrip("0")
    short = digits.rstrip("0")
    if not short:
        return "0"
    zeros = int(exponent or 0) - len(part) + len(digits) - len(short)
    sign = "-" if sign == "-" else ""
    if 0 <= zeros <= _PLAIN:
        return f"{sign}{short}{'0' * zeros}"
    if -_PLAIN <= zeros < 0:
        padded = short.rjust(1 - zeros, "0")
        return f"{sign}{padded[:zeros]}.{padded[zeros:]}"
    return f"{sign}{short}e{zeros}"


def _key_of_time(
    date: str, minute: str, second: str | None, part: str | None, zone: str | None
) -> str | None:
    """A time as text; None if there is no such time, as in month 13."""
    try:
        moment = datetime.datetime.fromisoformat(f"{date} {minute}:{second or '00'}{zone or ''}")
        moment = moment.astimezone(datetime.UTC) if zone else moment
    except (ValueError, OverflowError):
        return None
    fraction = (part or "").rstrip("0")
    if zone is None and not fraction and moment.time() == datetime.time():
        return date
    told = f"{moment:%Y-%m-%d %H:%M:%S}.{fraction}".rstrip(".")
    return f"{told}Z" if zone else told
