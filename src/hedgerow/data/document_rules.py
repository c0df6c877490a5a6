"""What annotations of a dataclass allow to stand in a document, and what a mistake is told."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from re import Pattern
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from typing import Annotated as Marked

if TYPE_CHECKING:
    from hedgerow.data.documents import Document
    from hedgerow.errors import HedgerowError

Rule = Callable[[Any, "At"], Any]
MOST_SHOWN = 60  # letters or digits of a wrong value


@dataclass(frozen=True)
class Within:
    """Marks a number that has bounds; `above` and `below` are not allowed themselves."""

    low: float = -math.inf
    high: float = math.inf
    above: float = -math.inf
    below: float = math.inf

    def allows(self, value: float) -> bool:
        return self.low <= value <= self.high and self.above < value < self.below

    @property
    def text(self) -> str:
        if -math.inf < self.low and self.high < math.inf:
            return f" from {_figure(self.low)} to {_figure(self.high)}"
        bounds = {"at least": self.low, "above": self.above, "at most": self.high}
        bounds["below"] = self.below
        parts = [f"{word} {_figure(n)}" for word, n in bounds.items() if math.isfinite(n)]
        return " " * bool(parts) + " and ".join(parts)


@dataclass(frozen=True)
class OneOf:
    """Marks a text that is one of these, which are listed to whoever wrote another."""

    known: tuple[str, ...]

    @property
    def advice(self) -> str:
        if len(self.known) == 2:
            return f"it must be {self.known[0]!r} or {self.known[1]!r}"
        return f"choose one of {', '.join(self.known)}"


@dataclass(frozen=True)
class Matching:
    """Marks a text that a pattern describes, and so do words."""

    pattern: Pattern[str]
    wanted: str


@dataclass(frozen=True)
class Key:
    """Marks a field that has another name in the document."""

    name: str


class At(NamedTuple):  # one is made for every value that is read
    """Where a value stands: in which table of which document, under which key."""

    document: Document
    place: str
    key: str

    def wrong(self, value: Any, advice: str) -> HedgerowError:
        said = f"{self.place} has {self.key} =" if self.place else f"{self.key} is"
        return self.document.wrong(f"{said} {shown(value)}; {advice}")

    def inside(self, name: str) -> str:
        return f"{self.place} {name}".lstrip()


def shown(value: Any) -> str:
    """A wrong value as an error names it: short, whatever was written."""
    if isinstance(value, int) and abs(value) >= 10**MOST_SHOWN:
        return f"a whole number beyond 1e{MOST_SHOWN}"
    if isinstance(value, str) and len(value) > MOST_SHOWN:
        return f"{value[:MOST_SHOWN]!r}..."
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "a list"
    return "a table" if isinstance(value, Mapping) else f"a {type(value).__name__}"


@cache
def declared(cls: type[Any]) -> dict[str, tuple[str, Rule, bool]]:
    """By key: the field, the rule for its values, and whether it is required."""
    hints, declared = get_type_hints(cls, include_extras=True), {}
    for field in fields(cls):
        if field.init:
            marks = getattr(hints[field.name], "__metadata__", ())
            key = next((mark.name for mark in marks if isinstance(mark, Key)), field.name)
            required = field.default is MISSING and field.default_factory is MISSING
            declared[key] = (field.name, _rule(hints[field.name]), required)
    return declared


def _rule(hint: Any) -> Rule:
    """The rule that an annotation stands for."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Marked:
        marks = [mark for mark in args[1:] if not isinstance(mark, Key)]
        return _marked(args[0], marks[0]) if marks else _rule(args[0])
    if hint is Any:
        return _Plain(lambda value: True, "")
    if hint in (int, float):
        return _marked(hint, Within())
    if hint is str:
        return _Plain(_is_text, "it must be text")
    if hint is bool:
        return _Plain(lambda value: isinstance(value, bool), "it must be true or false")
    if origin is Literal:
        return _marked(str, OneOf(args))
    if origin in (Union, UnionType):
        return _union(args)
    if origin is tuple:
        return _List(tuple(_rule(kind) for kind in args if kind is not ...), ... in args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _Mapping(_rule(args[1]))
    if is_dataclass(hint):
        return _Table((hint,))
    raise TypeError(f"no rule for {hint!r}")


def _marked(kind: Any, mark: Any) -> Rule:
    if isinstance(mark, OneOf):
        return _Plain(lambda v: isinstance(v, str) and v in mark.known, mark.advice)
    if isinstance(mark, Matching):
        pattern, advice = mark.pattern, f"it must be {mark.wanted}"
        return _Plain(lambda v: isinstance(v, str) and pattern.fullmatch(v) is not None, advice)
    kinds: Any = int if kind is int else (int, float)
    return _Plain(
        lambda v: isinstance(v, kinds) and not isinstance(v, bool) and _is_finite(v)
        and mark.allows(v),
        f"it must be a {'whole ' if kind is int else ''}number{mark.text}",
    )  # fmt: skip


def _is_finite(value: float) -> bool:
    """Whether a float could hold it; whole numbers beyond are written by nobody in earnest."""
    return -sys.float_info.max <= value <= sys.float_info.max


def _is_text(value: Any) -> bool:
    """Whether this is text, without halves of characters, which UTF-8 cannot carry."""
    return isinstance(value, str) and (
        value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)
    )


def _union(kinds: tuple[Any, ...]) -> Rule:
    """One kind or nothing; tables of several classes; or a value of any plain kind."""
    others = tuple(kind for kind in kinds if kind is not type(None))
    if len(others) < len(kinds):
        return _Optional(_union(others) if len(others) > 1 else _rule(others[0]))
    if all(map(is_dataclass, others)):
        return _Table(others)

    def fits(value: Any) -> bool:
        is_fine = _is_text if isinstance(value, str) else _is_finite
        return isinstance(value, others) and is_fine(value)

    return _Plain(fits, "use text, numbers or booleans; numbers are finite")


@dataclass(frozen=True)
class _Plain:
    """A value that has nothing inside."""

    fits: Callable[[Any], bool]
    advice: str

    def __call__(self, value: Any, at: At) -> Any:
        if not self.fits(value):
            raise at.wrong(value, self.advice)
        return value


@dataclass(frozen=True)
class _Optional:
    """A value, or null."""

    rule: Rule

    def __call__(self, value: Any, at: At) -> Any:
        return None if value is None else self.rule(value, at)


@dataclass(frozen=True)
class _List:
    """A list of any length of one kind, or of exactly these kinds."""

    rules: tuple[Rule, ...]
    any_length: bool

    def __call__(self, value: Any, at: At) -> tuple[Any, ...]:
        tables = isinstance(self.rules[0], _Table)
        if not isinstance(value, list | tuple):
            raise at.wrong(value, f"write [[{at.key}]] tables" if tables else "it must be a list")
        if self.any_length:
            first = self.rules[0]
            if isinstance(first, _Plain) and all(map(first.fits, value)):  # lists can be long
                return tuple(value)
        elif len(value) != len(self.rules):
            raise at.wrong(value, f"it must be a list of {len(self.rules)}")
        name = f"[[{at.key}]]" if tables else at.key
        rules = self.rules * len(value) if self.any_length else self.rules
        return tuple(
            rule(item, At(at.document, at.place, f"{name} number {i + 1}"))
            for i, (item, rule) in enumerate(zip(value, rules, strict=True))
        )


@dataclass(frozen=True)
class _Mapping:
    """A table whose keys are names of something."""

    rule: Rule

    def __call__(self, value: Any, at: At) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(map(_is_text, value)):
            raise at.wrong(value, f"it must be a table: [{at.key}]")
        place = at.inside(f"[{at.key}]")
        return {key: self.rule(v, At(at.document, place, key)) for key, v in value.items()}


@dataclass(frozen=True)
class _Table:
    """A table that a class declares; of several classes `kind` says which."""

    classes: tuple[Any, ...]

    def __call__(self, value: Any, at: At) -> Any:
        if isinstance(value, self.classes):
            return value
        if not isinstance(value, Mapping):
            raise at.wrong(value, f"it must be a table: [{at.key.strip('[]')}]")
        place = at.inside(at.key if at.key.startswith("[[") else f"[{at.key}]")
        if len(self.classes) == 1:
            return at.document.read(self.classes[0], value, place)
        if "name" in value:
            place = at.inside(f"{at.key[2:].partition(']')[0]} {shown(value['name'])}")
        by_kind = {cls.kind: cls for cls in self.classes}
        if "kind" not in value:
            raise at.document.wrong(f"{place} has no 'kind'{at.document.absent}")
        _marked(str, OneOf(tuple(by_kind)))(value["kind"], At(at.document, place, "kind"))
        return at.document.read(by_kind[value["kind"]], value, place, "kind")


def _figure(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"
