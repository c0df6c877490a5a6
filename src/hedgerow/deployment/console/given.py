"""What a question of the console carries, read and checked: texts, counts and amounts."""

from __future__ import annotations

from hedgerow.deployment.site_service import Given
from hedgerow.errors import SettingsError

LONGEST_TEXT = 2000  # letters


def text_in(given: Given, key: str, longest: int = LONGEST_TEXT) -> str:
    value = given.get(key, "")
    if not isinstance(value, str) or len(value) > longest:
        raise SettingsError(f"{key} is a text of at most {longest:,} letters. Nothing was done.")
    return value


def count_in(given: Given, key: str) -> int:
    value = given.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise SettingsError(f"{key} is a whole number. Nothing was done.")
    return value


def amount_in(given: Given, key: str) -> float | None:
    """A number; None if it is not given."""
    value = given.get(key)
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value != value:
        raise SettingsError(f"{key} is a number. Nothing was done.")
    return float(value)
