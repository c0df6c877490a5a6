"""`hedgerow schema draft`: proposes a schema. It READS THE ROWS, so only of a public sample."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.screen import tell
from hedgerow.errors import HedgerowError, TableError

if TYPE_CHECKING:
    from hedgerow.data.schema import Column, Label, Schema

WARNING = (
    "THIS SCHEMA WAS COMPUTED FROM THE ROWS of {source}. Use a draft only with a public or "
    "synthetic sample. Before it is used with private rows, replace every bound, category and "
    "class by a public fact: what is read from private rows is a leak that no epsilon covers."
)
COMMAS = "holds numbers with commas; write decimal points, and nothing between thousands"
FEW_NUMBERS = 12  # so many distinct numbers or fewer are a list in order
FEW_CLASSES = 20
FEW_TEXTS = 200
_DATE = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T].*)?")
_ID = re.compile(r"(.*[^a-zA-Z])?(id|ID|Id)|.*[a-z](Id|ID)")


def draft(
    data: Annotated[Path, typer.Option("--data", help="A PUBLIC or SYNTHETIC sample table.")],
    label: Annotated[str, typer.Option("--label", help="The column to predict.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the schema here; by default to stdout.")
    ] = None,
) -> None:
    """Propose a schema from a sample. READS THE ROWS: for public or synthetic samples only."""
    import tomli_w

    from hedgerow.cli.files import write_text
    from hedgerow.data.readers import read_table

    if out is not None and out.exists():
        raise HedgerowError(f"{out} exists and is not overwritten; choose another --out.")
    proposed, left_out = drafted(read_table(data), label, str(data))
    notes = [WARNING.format(source=data), *left_out]
    header = "".join(f"# {line}\n" for note in notes for line in _wrapped(note))
    text = header + "\n" + tomli_w.dumps(proposed.to_dict())
    for note in notes:
        tell(note, style="bold yellow")
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
        tell(f"Draft of {len(proposed.columns)} columns written to {out}.")


def drafted(table: Any, label: str, source: str) -> tuple[Schema, list[str]]:
    """A schema that fits a table, and notes: which columns it leaves out and why."""
    from hedgerow.data.schema import Schema

    names = table.column_names
    if names.count(label) != 1:
        shown = ", ".join(names[:20])
        raise TableError(
            f"{source} has the label column {label!r} {names.count(label)} times and needs it "
            f"once; its columns are {shown}."
        )
    if table.num_rows == 0:
        raise TableError(f"{source} has 0 rows; a draft needs a sample with rows.")
    columns: list[Column] = []
    notes: list[str] = []
    for name in dict.fromkeys(names):
        if name != label:
            proposal = _column(name, _present(table.column(names.index(name))))
            if isinstance(proposal, str):
                notes.append(f"Left out: {proposal}.")
            else:
                columns.append(proposal)
    if not columns:
        reasons = "".join(f" {note}" for note in notes)
        raise TableError(
            f"{source} has no column besides {label!r} that a schema can describe.{reasons}"
        )
    answers = _present(table.column(label))
    if empty := table.num_rows - len(answers):
        notes.append(
            f"{empty:,} of {table.num_rows:,} rows have no value of the label {label!r}; tables "
            "with such rows are refused, so take them out."
        )
    return Schema(tuple(columns), _label(label, answers, source), name=Path(source).stem), notes


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


def _column(name: str, values: list[Any]) -> Column | str:
    """A description of one column, or the reason why there is none."""
    from hedgerow.data.schema import Categorical, Numeric, Ordinal

    distinct = _distinct(values)
    if not name.strip():
        return "a column without a name, as row numbers often are"
    if not values:
        return f"{name!r} has no value in the sample"
    if all(isinstance(value, bool) for value in distinct):
        return Categorical(name, (False, True))
    numbers = _numbers(distinct)
    if numbers is not None:
        whole = all(number.is_integer() for number in numbers)
        if len(numbers) <= FEW_NUMBERS and 2 * len(numbers) <= len(values):
            return Ordinal(name, tuple(_short(number) for number in numbers), other="category")
        if whole and len(numbers) == len(values) and _counts_rows(name, numbers):
            return f"{name!r} has another whole number in every row, like an id"
        lower, upper = nice_bounds(numbers)
        return Numeric(name, lower, upper, integer=whole)
    texts = [str(value) for value in distinct]
    if any(_DATE.fullmatch(text) for text in texts):
        return f"{name!r} holds dates; turn them into numbers, such as days"
    if _with_commas(texts):
        return f"{name!r} {COMMAS}"
    if len(texts) > FEW_TEXTS or 2 * len(texts) > max(len(values), 4):
        if 2 * (n_numbers := sum(_numbers([text]) is not None for text in texts)) > len(texts):
            return (
                f"{name!r} holds numbers and {len(texts) - n_numbers} distinct other texts, as "
                "signs or units; write numbers alone, or leave the field empty"
            )
        return f"{name!r} has {len(texts)} distinct texts, like a name or an id"
    return Categorical(name, tuple(sorted(texts)), other="category")


def _label(name: str, values: list[Any], source: str) -> Label:
    from hedgerow.data.schema import Label

    distinct = _distinct(values)
    if len(distinct) < 2:
        raise TableError(
            f"{source}: label {name!r} has {len(distinct)} distinct value; it needs at least 2."
        )
    if all(isinstance(value, bool) for value in distinct):
        return Label(name, (False, True))
    numbers = _numbers(distinct)
    if numbers is None:
        if _with_commas(distinct):
            raise TableError(f"{source}: label {name!r} {COMMAS}.")
        if len(distinct) > FEW_TEXTS:
            raise TableError(
                f"{source}: label {name!r} has {len(distinct)} distinct texts; a label is one of "
                f"at most {FEW_TEXTS} classes here, or a number."
            )
        return Label(name, tuple(sorted(str(value) for value in distinct)))
    if len(numbers) <= FEW_CLASSES and all(number.is_integer() for number in numbers):
        return Label(name, tuple(_short(number) for number in numbers))
    lower, upper = nice_bounds(numbers)
    return Label(name, (), lower, upper)


def _present(column: Any) -> list[Any]:
    """Values that are not missing; text without blanks around it."""
    from hedgerow.data.values import MISSING_WORDS

    plain = (
        v if isinstance(v, bool | int | float) else str(v).strip()
        for v in column.to_pylist()
        if v is not None
    )
    return [v for v in plain if v not in MISSING_WORDS and v == v]


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Values that differ, by the rule that matches them to the schema: "True" is "true"."""
    from hedgerow.data.values import distinct

    return distinct(dict.fromkeys(values))


def _numbers(values: Iterable[Any]) -> list[float] | None:
    """Finite numbers in order, or None if anything else is among them."""
    try:
        distinct = {float(value) for value in values if not isinstance(value, bool)}
    except (TypeError, ValueError):
        return None
    return sorted(number for number in distinct if math.isfinite(number)) or None


def _counts_rows(name: str, numbers: Sequence[float]) -> bool:
    """Whether whole numbers, another one in each row, look like an id and not like a quantity."""
    dense = numbers[-1] - numbers[0] < 2 * len(numbers)
    return (dense and len(numbers) > FEW_TEXTS) or _ID.fullmatch(name) is not None


def _with_commas(values: Iterable[Any]) -> bool:
    """Whether some values have a comma, and are all numbers where it is read as a point."""
    texts = [str(value) for value in values]
    return any("," in text for text in texts) and all(
        _numbers([text.replace(",", "", text.count(",") - 1).replace(",", ".")]) for text in texts
    )


def _short(number: float) -> float:
    return int(number) if float(number).is_integer() else number


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 96)
