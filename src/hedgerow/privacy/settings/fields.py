"""Fields of settings: type, default, range and meaning in one place, for every interface."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from hedgerow.errors import SettingsError


class Kind(Protocol):
    """What values of a field may be."""

    def checked(self, name: str, value: Any) -> Any:
        """The value in its one spelling; SettingsError if it is none."""
        ...


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`."""

    low: int
    high: int

    def checked(self, name: str, value: Any) -> int:
        fits = isinstance(value, int) and not isinstance(value, bool)
        if not fits or not self.low <= value <= self.high:
            raise SettingsError(
                f"{name} is {value!r}; it must be a whole number from {self.low} to {self.high}"
            )
        return int(value)


@dataclass(frozen=True)
class Number:
    """A finite number up to `high`; with `above` it is not `low` itself."""

    low: float
    high: float
    above: bool = False

    def checked(self, name: str, value: Any) -> Any:
        fits = (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and math.isfinite(value)
            and (self.low < value if self.above else self.low <= value)
            and value <= self.high
        )
        if not fits:
            sign = "above" if self.above else "at least"
            raise SettingsError(
                f"{name} is {value!r}; it must be {sign} {self.low} and at most {self.high:g}"
            )
        return value


@dataclass(frozen=True)
class Choice:
    """One of some words."""

    words: tuple[str, ...]

    def checked(self, name: str, value: Any) -> Any:
        if value not in self.words:
            raise SettingsError(f"{name} is {value!r}; choose one of {', '.join(self.words)}")
        return value


class Flag:
    """True or false."""

    def checked(self, name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise SettingsError(f"{name} must be true or false")
        return value


class Signs:
    """1 or -1 for some columns, given as a table or as JSON; kept as JSON."""

    def checked(self, name: str, value: Any) -> str:
        if isinstance(value, str):
            try:
                value = json.loads(value) if value.strip() else {}
            except ValueError:
                value = None
        fits = isinstance(value, Mapping) and all(
            isinstance(column, str) and not isinstance(sign, bool) and sign in (1, -1)
            for column, sign in value.items()
        )
        if not fits:
            raise SettingsError(
                f'{name} must give 1 or -1 for each column, such as {{"age": 1, "dose": -1}}'
            )
        signs = {column: int(sign) for column, sign in sorted(value.items())}
        return json.dumps(signs) if signs else ""


class Edges:
    """Edge numbers by column, from tuples or from the lists of a plan file."""

    def checked(self, name: str, value: Any) -> tuple[tuple[int, ...], ...]:
        lists = isinstance(value, (list, tuple)) and all(
            isinstance(cuts, (list, tuple)) for cuts in value
        )
        if not lists or not all(type(edge) is int and edge >= 0 for cuts in value for edge in cuts):
            raise SettingsError(f"{name} must be a list of edge numbers for every column, or empty")
        return tuple(tuple(cuts) for cuts in value)


class ModelWords:
    """What names a model, or says what it promises."""

    def checked(self, name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise SettingsError("warm_start is the hash of a model; use warm_start_from")
        return value


def setting(default: Any, kind: Kind, meaning: str) -> Any:
    """A field of a dataclass of settings."""
    return field(default=default, metadata={"kind": kind, "meaning": meaning})


def meanings(cls: type[Any]) -> dict[str, str]:
    """What every field means, in a few words; docs/settings.md says more."""
    return {entry.name: str(entry.metadata["meaning"]) for entry in fields(cls)}


def check_fields(settings: Any) -> None:
    """Check every field and give it its one spelling; for `__post_init__` of frozen dataclasses."""
    for entry in fields(settings):
        value = entry.metadata["kind"].checked(entry.name, getattr(settings, entry.name))
        object.__setattr__(settings, entry.name, value)
