"""limits.toml: what the operator of a party allows, read, checked, and written with comments."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.deployment.method_kinds import method_kinds
from hedgerow.deployment.roles import PROGRAMS
from hedgerow.errors import SettingsError
from hedgerow.methods.registry import METHODS
from hedgerow.packing import digest
from hedgerow.party.limits import Limits
from hedgerow.privacy.accounting.plan import EVALUATION
from hedgerow.privacy.ledger.ledger import Budget
from hedgerow.protocol.identity import check_names
from hedgerow.queries import QUERIES

FORMAT = 1
MOST_PARTIES = 10_000
MOST_EPSILON = 1e6  # more is no limit; leave the key out
APPROVE = ("each plan", "none")
_TOP = (
    "format", "delta", "epsilon", "least_parties", "methods", "kinds", "programs", "approve",
    "coordinator", "party",
)  # fmt: skip
_EPSILON = ("per_run", "per_month", "total")
_PARTY = ("name", "fingerprint")
_FINGERPRINT = re.compile(r"[0-9A-F]{4}( [0-9A-F]{4}){7}")
_SPENT = "Nothing was asked and nothing was spent."


@dataclass(frozen=True)
class InForce:
    """Limits as they were read: what they say, where they came from, and the hash of their text."""

    limits: Limits
    source: str  # "default", "kit" (its own limits.toml) or "named" (--limits)
    hash: str


def in_force(text: str, name: str, place: str, source: str) -> InForce:
    return InForce(limits_from_text(text, name, place), source, digest("hedgerow limits 1", text))


def read_limits(path: Path, name: str) -> Limits:
    """The limits of the party called `name`, from a file."""
    return limits_from_text(read_text(path), name, str(path))


def read_text(path: Path) -> str:
    """A limits file as it stands there."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError as error:
        raise SettingsError(
            f"there is no limits file {path}. {_SPENT} `hedgerow party limits SITE --write` writes "
            "one with comments."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}. {_SPENT}") from error


def limits_from_text(text: str, name: str, source: str = "limits.toml") -> Limits:
    """Read limits; an error names the key, the value, and what may stand there instead."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{source} is no readable TOML: {error}. {_SPENT}") from error
    try:
        return _limits(document, name)
    except SettingsError as error:
        raise SettingsError(f"{source}: {error}. {_SPENT} Correct the file.") from error


def _limits(document: Mapping[str, Any], name: str) -> Limits:
    if document.get("format") != FORMAT or isinstance(document["format"], bool):
        found = document.get("format")
        raise SettingsError(f"format is {found!r}; this hedgerow reads format = {FORMAT}")
    _known(document, _TOP, "the file")
    delta = _number(document.get("delta"), "delta", 1.0)
    epsilon = document.get("epsilon", {})
    if not isinstance(epsilon, Mapping):
        raise SettingsError("epsilon must be a table: [epsilon]")
    _known(epsilon, _EPSILON, "[epsilon]")
    ceilings = {
        key: Budget(_number(value, f"[epsilon] {key}", MOST_EPSILON), delta)
        for key, value in epsilon.items()
    }
    approve = document.get("approve", "none")
    if approve not in APPROVE:
        raise SettingsError(f"approve is {approve!r}; choose one of {_quoted(APPROVE)}")
    return Limits(
        budget=ceilings.get("total"),
        per_run=ceilings.get("per_run"),
        per_month=ceilings.get("per_month"),
        least_parties=_count(document.get("least_parties", 1)),
        kinds=_choice(document, "kinds", QUERIES),
        methods=_choice(document, "methods", (*METHODS, EVALUATION)),
        programs=_choice(document, "programs", PROGRAMS) or frozenset(),
        coordinator=_fingerprint(document.get("coordinator", ""), "coordinator"),
        parties=_parties(document["party"], name) if "party" in document else None,
        approve=approve == "each plan",
        delta=delta,
        method_kinds=method_kinds(),
    )


def _parties(entries: Any, name: str) -> tuple[tuple[str, str], ...]:
    """Who may be in the roster; this party itself always may."""
    if not isinstance(entries, list) or not all(isinstance(e, Mapping) for e in entries):
        raise SettingsError("parties are written as [[party]] tables")
    listed: dict[str, str] = {}
    for entry in entries:
        _known(entry, _PARTY, "[[party]]")
        other = entry.get("name")
        if not isinstance(other, str):
            raise SettingsError(f"[[party]] has the name {other!r}; it must be a text")
        check_names([other])
        if other in listed:
            raise SettingsError(f"[[party]] {other} is listed twice; keep one of the two")
        listed[other] = _fingerprint(entry.get("fingerprint", ""), f"[[party]] {other}")
    listed.setdefault(name, "")
    return tuple(sorted(listed.items()))


def _fingerprint(value: Any, place: str) -> str:
    text = " ".join(value.upper().split()) if isinstance(value, str) else None
    if text is None or (text and not _FINGERPRINT.fullmatch(text)):
        raise SettingsError(
            f"{place} has the fingerprint {value!r}; it must be eight groups of four of 0-9 and "
            "A-F, as the key card shows it"
        )
    return text


def _choice(document: Mapping[str, Any], key: str, known: Collection[str]) -> frozenset[str] | None:
    if key not in document:
        return None
    values = document[key]
    if not isinstance(values, list) or not values:
        raise SettingsError(f"{key} must be a list of at least one; leave it out to allow all")
    for value in values:
        if not isinstance(value, str) or value not in known:
            raise SettingsError(f"{key} has {value!r}; known: {', '.join(known)}")
    return frozenset(values)


def _number(value: Any, place: str, below: float) -> float:
    """A number above 0 and below `below`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < below:
        raise SettingsError(
            f"{place} is {value!r}; it must be a number above 0 and below {below:g}"
        )
    return float(value)


def _count(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= MOST_PARTIES:
        raise SettingsError(
            f"least_parties is {value!r}; it must be a whole number from 1 to {MOST_PARTIES}"
        )
    return int(value)


def _known(table: Mapping[str, Any], keys: Collection[str], place: str) -> None:
    for key in table:
        if key not in keys:
            raise SettingsError(f"{place} has the unknown key {key!r}; known: {', '.join(keys)}")


def _quoted(values: Collection[str]) -> str:
    return " or ".join(f'"{value}"' for value in values)


def default_limits_text() -> str:
    """A limits file with comments; without any file the same limits hold."""
    return f"""\
# What this party allows, whatever a plan says. Read when `hedgerow party start` starts.
format = {FORMAT}

# Every epsilon below is counted at this delta; well below 1 / rows.
delta = 1e-6

# The fewest parties that may be in one sum; the roster must not allow fewer.
least_parties = 3

# "each plan": a person approves every plan with `hedgerow party approve`; "none": limits suffice.
approve = "none"

# Without these lines every method, kind of query, coordinator and party of the roster may be used.
# A listed method is what a plan may call itself, if a method of that name can ask such kinds of
# queries. Its settings are not limited by this; kinds and epsilon say what is asked and spent.
# Evaluations of a finished model are the method "evaluation".
# methods = ["auto"]
# kinds = [{", ".join(f'"{kind}"' for kind in QUERIES)}]
# coordinator = "0000 0000 0000 0000 0000 0000 0000 0000"

# What this party may do together with others without an epsilon. Without this line: nothing. The
# ledger keeps what each of them shows to whom. Not together with approve = "each plan". Labels pay
# an epsilon in fedxgboost-ldp: it counts against the ceilings below, beside that of plans.
# programs = [{", ".join(f'"{name}"' for name in PROGRAMS)}]

[epsilon]
per_run = 2.0
per_month = 4.0  # runs reserved in the last 31 days
total = 10.0

# [[party]]
# name = "hospital-b"
# fingerprint = "0000 0000 0000 0000 0000 0000 0000 0000"  # may be left out
"""


def limits_in_words(allowed: Limits) -> list[str]:
    """What a party allows, one sentence a line."""
    ceilings = ((allowed.per_run, "a run"), (allowed.per_month, "in 31 days"))
    words = [
        f"Epsilon at most {budget.epsilon:g} {what}, counted at delta = {budget.delta:g}."
        for budget, what in (*ceilings, (allowed.budget, "in total"))
        if budget is not None
    ]
    if len(words) < 3:
        words.append("Where no epsilon is named there is no limit.")
    words.append(f"At least {allowed.least_parties} parties in a sum.")
    words.append(
        f"Methods: {_listed(allowed.methods)}. Kinds of queries: {_listed(allowed.kinds)}."
    )
    words.append(f"Without an epsilon: {', '.join(sorted(allowed.programs or ())) or 'nothing'}.")
    if any("-ldp" in name for name in allowed.programs or ()):
        words.append("What labels pay counts by itself, under the same ceilings.")
    words.append(f"Coordinator: {allowed.coordinator or 'whichever the roster pins'}.")
    if allowed.parties is None:
        words.append("Parties: whichever the roster pins.")
    else:
        named = (f"{name} ({mark})" if mark else name for name, mark in allowed.parties)
        words.append(f"Parties that may be in the roster: {', '.join(named)}.")
    who = "must approve each plan" if allowed.approve else "need not approve plans"
    return [*words, f"A person {who}."]


def _listed(names: frozenset[str] | None) -> str:
    return "all" if names is None else ", ".join(sorted(names))
