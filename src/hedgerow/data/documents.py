"""Documents that people and peers write (TOML, JSON, tables in messages), read by declaration.

A dataclass declares what a document holds: its annotations say what may stand where, and the marks
`Within`, `OneOf`, `Matching` and `Key` say more. Values stay as they were written (1 is not made
1.0), so that what is read and written again has the same bytes.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar

from hedgerow.data.document_rules import (
    MOST_SHOWN,
    At,
    Key,
    Matching,
    OneOf,
    Within,
    declared,
    shown,
)
from hedgerow.data.habits import known_as
from hedgerow.errors import FormatError, HedgerowError

__all__ = ["Document", "Key", "Matching", "OneOf", "Within", "named", "shown"]

T = TypeVar("T")


@dataclass(frozen=True)
class Document:
    """A kind of document: what mistakes in it raise, and what they say besides the mistake."""

    what: str  # "schema"
    error: type[HedgerowError] = FormatError
    format: int = 0  # the number that a document has at its top; 0: it has none
    key: str = "key"  # or "setting"
    absent: str = ""  # what to do about a missing key
    ending: str = ""  # whether anything was sent or spent
    open: bool = False  # whether keys beyond those declared are passed over

    def wrong(self, what: str) -> HedgerowError:
        return self.error(f"{what}{self.ending}")

    def load(
        self,
        path: str | PathLike[str],
        advice: str = "check the path",
        language: Literal["JSON", "TOML"] = "TOML",
    ) -> dict[str, Any]:
        """A file as a table."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise self.wrong(f"no {self.what} file at {file}; {advice}") from error
        except IsADirectoryError as error:
            raise self.wrong(f"{file} is a folder; name the {self.what} file in it") from error
        except (OSError, ValueError) as error:
            raise self.wrong(f"cannot read {file} as UTF-8 text: {error}") from error
        return self.parse(text, str(file), language)

    def parse(self, text: str, source: str, language: Literal["JSON", "TOML"]) -> dict[str, Any]:
        """A text as a table."""
        try:
            values = tomllib.loads(text) if language == "TOML" else _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            raise self.wrong(
                f"{source} is not valid {language}: {error}. Correct it there"
            ) from error
        if not isinstance(values, dict):
            raise self.wrong(f"{source} is no {self.what}: there is no table in it")
        return values

    def read(self, cls: type[T], values: Any, place: str = "", tag: str = "") -> T:
        """The document as `cls`.

        `place` says where in it the values stand, "" at its top. `tag` is a key that chose the
        class and is no field of it.
        """
        here = place or f"the {self.what}"
        if not isinstance(values, Mapping):
            raise self.wrong(f"{here} must be a table")
        if self.format and not place:
            self.check_format(values)
            tag = "format"
        known, read = declared(cls), {}  # type: ignore[arg-type]
        for key in () if self.open else values:
            if key != tag and key not in known:
                raise self.unknown(key, dict.fromkeys((*[tag][: bool(tag)], *known)), place)
        for key, (name, rule, required) in known.items():
            if key in values:
                read[name] = rule(values[key], At(self, place, key))
            elif required:
                raise self.wrong(f"{here} has no {key!r}{self.absent}")
        return cls(**read)

    def check(self, made: Any, place: str = "") -> None:
        """Raise unless every field of a dataclass is what its annotation says.

        For `__post_init__`, so that whoever makes one by hand is told the same. Lists become the
        tuples that they stand for.
        """
        for key, (name, rule, _) in declared(made.__class__).items():
            value = getattr(made, name)
            if (read := rule(value, At(self, place, key))) is not value:
                object.__setattr__(made, name, read)

    def check_format(self, values: Mapping[str, Any]) -> None:
        """Raise unless the format number is the one that is read here."""
        version = values.get("format")
        if version is None:
            raise self.wrong(f"format is missing; write format = {self.format} at the top")
        if type(version) is int and version > self.format:
            newer = f"{self.what} format {shown(version)}"
            raise FormatError(
                f"{newer} is newer than this hedgerow reads ({self.format}); install the hedgerow "
                f"version that writes {newer}{self.ending}"
            )
        if type(version) is not int or version != self.format:
            raise self.wrong(f"format is {shown(version)}; it must be {self.format}")

    def unknown(self, key: Any, known: Collection[str], place: str = "") -> HedgerowError:
        """What to raise for a key that is not known; it names the nearest one that is."""
        short = isinstance(key, str) and len(key) < MOST_SHOWN
        near = known_as(key, known) if short else None
        meant = f" (did you mean {near!r}?)" if near else ""
        where = f"{place} has the " if place else ""
        names = ", ".join(known)
        return self.wrong(f"{where}unknown {self.key} {shown(key)}{meant}; known: {names}")


@contextmanager
def named(source: str) -> Iterator[None]:
    """Errors from inside say first which file they are about."""
    try:
        yield
    except HedgerowError as error:
        raise type(error)(f"{source}: {error}") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key stands twice in one table")
    return values


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_once)
