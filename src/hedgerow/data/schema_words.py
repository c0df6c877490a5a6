"""What may stand in a column, in a few words for people."""

from __future__ import annotations

from hedgerow.data.schema import Column, Numeric
from hedgerow.data.values import text_of

_MOST = 12  # categories that are named


def values_in_words(column: Column) -> str:
    """Bounds or categories of a column.

    >>> values_in_words(Numeric("age", 0, 100, integer=True))
    '0 to 100, whole'
    """
    if isinstance(column, Numeric):
        return f"{column.lower:g} to {column.upper:g}" + (", whole" if column.integer else "")
    listed = [text_of(value) for value in column.categories]
    more = f" and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    other = "; others are a category" if column.other == "category" else ""
    return ", ".join(listed[:_MOST]) + more + other
