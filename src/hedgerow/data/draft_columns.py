"""What a draft makes of one column of a sample: a description, or the reason why there is none."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hedgerow.data.schema_parts import Categorical, Column, Label, Numeric, Ordinal
from hedgerow.data.values import MISSING_WORDS, distinct
from hedgerow.errors import TableError

COMMAS = (
    "holds numbers with commas; say what a comma is, as in --decimal , or --thousands , for a CSV "
    "file, or write decimal points and nothing between thousands"
)
FEW_NUMBERS = 12  # so many distinct numbers or fewer are a list in order
FEW_CLASSES = 20
FEW_TEXTS = 200
FEW_CODES = 40  # whole numbers that may be names of something
FEW_WORDS = 4  # that stand for a missing value among numbers
MOST_ROWS = 3  # of a person, that a draft proposes to count: noise is so many times as wide
_DATE = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T].*)?")
_ID = re.compile(r"(.*[^a-zA-Z])?(id|ID|Id)|.*[a-z](Id|ID)")
_PERSON = re.compile(
    r"(?i)(patient|person|customer|client|subject|user|member|kunde|versicherte|teilnehmer|mitglied"
    r"|paciente|paziente|persona)(in|en|n|s)?(.?(id|no|nr|num|number|nummer|n[uú]mero|code))?"
)
_YES = {"yes", "y", "ja", "j", "oui", "si", "sí", "sim", "tak", "positive"}
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]+")
_NUMBER_LIKE = re.compile(r"[+-]?[0-9][0-9.,' \u00a0\u202f]*([eE][+-]?[0-9]+)?")
_SIGNED = re.compile(r"[<>≤≥~=]*\s*[+-]?[0-9][0-9.,]*\s*(%|[a-zA-Zµ°/]{1,6})?")


def column_of(name: str, values: list[Any]) -> Column | str:
    """A description of one column, or the reason why there is none."""
    apart = different(values)
    if not name.strip() or name.startswith("Unnamed: "):
        return "a column without a name, as row numbers are (pandas calls it 'Unnamed: 0')"
    if not values:
        return f"{name!r} has no value in the sample"
    if all(isinstance(value, bool) for value in apart):
        return Categorical(name, (False, True))
    if len(apart) == 1:
        return f"{name!r} has one value in all rows of the sample, so it tells nothing"
    numbers = numbers_in(apart)
    if numbers is None:
        return _text_column(name, [str(value) for value in apart], len(values))
    whole = all(number.is_integer() for number in numbers)
    if len(numbers) <= FEW_NUMBERS and 2 * len(numbers) <= len(values):
        return Ordinal(name, tuple(_short(number) for number in numbers), other="category")
    if whole and len(numbers) == len(values) and _counts_rows(name, numbers):
        return f"{name!r} has another whole number in every row, like an id"
    lower, upper = nice_bounds(numbers)
    try:
        return Numeric(name, lower, upper, integer=whole)
    except ValueError as error:  # bounds that 32-bit floats cannot divide
        return str(error)


def _text_column(name: str, texts: list[str], n_values: int) -> Column | str:
    """A list of texts, or the reason why there is none."""
    if any(_DATE.fullmatch(text) for text in texts):
        return f"{name!r} holds dates; turn them into numbers, such as days since a public day"
    if _with_commas(texts):
        return f"{name!r} {COMMAS}"
    n_numbers = sum(numbers_in([text]) is not None for text in texts)
    n_signed = sum(_SIGNED.fullmatch(text) is not None for text in texts)
    if n_signed == len(texts) > FEW_NUMBERS and not _has_leading_zeros(texts):
        return _signed(name, len(texts) - n_numbers)
    if len(texts) > FEW_TEXTS or 2 * len(texts) > max(n_values, 4):
        if _has_leading_zeros(texts):
            what = "codes with leading zeros, like an id or a post code"
        elif 2 * n_numbers > len(texts):
            return _signed(name, len(texts) - n_numbers)
        else:
            what = "texts, like a name or an id"
        return f"{name!r} has {len(texts)} distinct {what}{_whose(len(texts), n_values)}"
    return Categorical(name, tuple(sorted(texts)), other="category")


def _signed(name: str, n_others: int) -> str:
    others = "one other text" if n_others == 1 else f"{n_others} distinct other texts"
    return (
        f"{name!r} holds numbers and {others}, as signs or units; write numbers alone, or leave "
        "the field empty"
    )


def _whose(n_distinct: int, n_values: int) -> str:
    """What to do if ids with so many repeats are those of persons, whom a row's promise misses."""
    if 4 * n_distinct > 3 * n_values:
        return ""
    return (
        '. If it says whose row it is, name it under [unit] as the column of kind = "person": '
        "else a row is protected, and not all rows of a person"
    )


def label_of(name: str, values: list[Any], source: str) -> Label:
    """What is to be predicted, from the values of its column."""
    apart = different(values)
    if len(apart) < 2:
        raise TableError(
            f"{source}: label {name!r} has {len(apart)} distinct value; it needs at least 2."
        )
    if all(isinstance(value, bool) for value in apart):
        return Label(name, (False, True))
    numbers = numbers_in(apart)
    if numbers is None:
        if _with_commas(apart):
            raise TableError(f"{source}: label {name!r} {COMMAS}.")
        if len(apart) > FEW_TEXTS:
            raise TableError(
                f"{source}: label {name!r} has {len(apart)} distinct texts; a label is one of "
                f"at most {FEW_TEXTS} classes here, or a number."
            )
        classes = sorted(str(value) for value in apart)
        if len(classes) == 2:  # the last class is what probabilities and effects are about
            classes.sort(key=lambda text: text.casefold() in _YES)
        return Label(name, tuple(classes))
    if len(numbers) <= FEW_CLASSES and all(number.is_integer() for number in numbers):
        return Label(name, tuple(_short(number) for number in numbers))
    lower, upper = nice_bounds(numbers)
    return Label(name, (), lower, upper)


def is_person(name: str, values: list[Any]) -> bool:
    """Whether a column looks like ids of persons who have several rows."""
    named = _ID.fullmatch(name) or _PERSON.fullmatch(name)
    n_persons = len(different(values))
    return bool(named) and n_persons < len(values) and n_persons > max(20, len(values) // 50)


def most_rows(values: list[Any]) -> int:
    """How many rows of a person a draft proposes to count."""
    return min(MOST_ROWS, max(Counter(map(str, values)).values()))


def nice_bounds(values: Sequence[float]) -> tuple[float, float]:
    """Bounds around some numbers, rounded outward to half a power of ten of their span.

    >>> nice_bounds([18, 97]), nice_bounds([0.13, 0.58]), nice_bounds([-3.2, 41.0])
    ((15, 100), (0.1, 0.6), (-5, 45))
    """
    low, high = min(values), max(values)
    if low == high:
        step = 10.0 ** math.floor(math.log10(abs(low) or 1.0))
        low, high = low - step, high + step
    digits = -math.floor(math.log10(high - low))
    scale = 2 * 10.0**digits
    lower, upper = math.floor(low * scale) / scale, math.ceil(high * scale) / scale
    return _short(round(lower, max(digits + 1, 0))), _short(round(upper, max(digits + 1, 0)))


def present(column: Any) -> list[Any]:
    """Values that are not missing; text without blanks around it."""
    plain = (
        v if isinstance(v, bool | int | float) else str(v).strip()
        for v in column.to_pylist()
        if v is not None
    )
    return [v for v in plain if v not in MISSING_WORDS and v == v]


def words_among_numbers(values: Iterable[Any]) -> list[str]:
    """Texts without a digit in a column of quantities, where they are few: "?", "unknown".

    Few distinct whole numbers may be codes, among which "ICU" is one more.
    """
    texts = {str(value) for value in values}
    words = [text for text in texts if not re.search("[0-9]", text)]
    numbers = [text for text in texts if _NUMBER_LIKE.fullmatch(text)]
    codes = len(numbers) <= FEW_CODES and not any(re.search("[.,]", text) for text in numbers)
    many = len(numbers) > FEW_NUMBERS and not codes
    return words if many and len(words) <= FEW_WORDS else []


def different(values: Iterable[Any]) -> list[Any]:
    """Values that differ, by the rule that matches them to the schema: "True" is "true"."""
    return distinct(dict.fromkeys(values))


def numbers_in(values: Iterable[Any]) -> list[float] | None:
    """Finite numbers in order, or None if anything else is among them, such as a name "007"."""
    values = list(values)
    if _has_leading_zeros(values):
        return None
    try:
        apart = {float(value) for value in values if not isinstance(value, bool)}
    except (TypeError, ValueError):
        return None
    return sorted(number for number in apart if math.isfinite(number)) or None


def _has_leading_zeros(values: Iterable[Any]) -> bool:
    return any(isinstance(v, str) and _LEADING_ZERO.fullmatch(v) for v in values)


def _counts_rows(name: str, numbers: Sequence[float]) -> bool:
    """Whether whole numbers, another one in each row, look like an id and not like a quantity."""
    dense = numbers[-1] - numbers[0] < 2 * len(numbers)
    return (dense and len(numbers) > FEW_TEXTS) or _ID.fullmatch(name) is not None


def _with_commas(values: Iterable[Any]) -> bool:
    """Whether some values have a comma, and are all numbers where it is read as a point."""
    texts = [str(value) for value in values]
    return any("," in text for text in texts) and all(
        numbers_in([text.replace(",", "", text.count(",") - 1).replace(",", ".")]) for text in texts
    )


def _short(number: float) -> float:
    return int(number) if float(number).is_integer() else number
