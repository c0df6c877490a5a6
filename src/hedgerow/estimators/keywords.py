"""Keywords that an estimator does not have: what its user meant, or why there is none."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from hedgerow.data.habits import did_you_mean, known_as, reason_against
from hedgerow.errors import SettingsError

P = ParamSpec("P")
T = TypeVar("T")


def explained(init: Callable[Concatenate[T, P], None]) -> Callable[Concatenate[T, P], None]:
    """An `__init__` that says what to write instead of a keyword that it does not have.

    Its signature stays what scikit-learn reads parameters from.
    """
    known = tuple(inspect.signature(init).parameters)[1:]

    @wraps(init)
    def checked(self: T, /, *args: P.args, **keywords: P.kwargs) -> None:
        refuse_parameters(type(self), keywords, known)
        init(self, *args, **keywords)

    return checked


def refuse_parameters(estimator: Any, names: Iterable[str], known: Collection[str]) -> None:
    """Raise SettingsError for a parameter that an estimator does not have."""
    settings: frozenset[str] = estimator._FURTHER
    for name in names:
        if name in known:
            continue
        what = f"{estimator.__name__} has no parameter {name!r}"
        if reason := reason_against(name):
            raise SettingsError(f"{what}. {reason}.")
        meant = name if name in settings else known_as(name, {*known, *settings})
        if meant in settings and meant not in known:
            called = "it is a setting" if meant == name else f"the setting {meant!r} is like it"
            raise SettingsError(f'{what}; {called}: write settings={{"{meant}": ...}}')
        listed = ", ".join(known)
        raise SettingsError(f"{what}{did_you_mean(name, known)}; it has {listed}")


def refuse_keywords(names: Iterable[str], known: Collection[str]) -> None:
    """Raise SettingsError for what `fit` is given and does not take."""
    for name in names:
        if reason := reason_against(name):
            raise SettingsError(f"fit takes no {name!r}. {reason}. Nothing was asked.")
        hint, listed = did_you_mean(name, known), ", ".join(known)
        raise SettingsError(f"fit takes no {name!r}{hint}; it takes {listed}. Nothing was asked.")
