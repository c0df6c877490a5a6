"""limits.toml: what the operator of a party allows, read, checked, and written with comments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

from hedgerow.data.documents import Document, Matching, OneOf, Within, named
from hedgerow.deployment.method_kinds import method_kinds
from hedgerow.deployment.roles import ROLES
from hedgerow.errors import SettingsError
from hedgerow.methods.registry import METHODS
from hedgerow.packing import digest
from hedgerow.party.limits import Limits
from hedgerow.privacy.accounting.plan import EVALUATION
from hedgerow.privacy.ledger.spending import Budget
from hedgerow.protocol.identity import PARTY_NAME
from hedgerow.queries import QUERIES

FORMAT = 2  # 2: roles, which were called programs
_SPENT = "Nothing was asked and nothing was spent."
_LIMITS = Document("limits file", SettingsError, FORMAT, ending=f". {_SPENT} Correct the file.")
_FINGERPRINT = Matching(
    re.compile(r"(\s*[0-9A-Fa-f]{4}(\s+[0-9A-Fa-f]{4}){7})?\s*"),
    "eight groups of four of 0-9 and A-F, as the key card shows the fingerprint",
)
_Epsilon = Annotated[float, Within(above=0, below=1e6)]  # more is no limit; leave the key out


@dataclass(frozen=True)
class _Ceilings:
    per_run: _Epsilon | None = None
    per_month: _Epsilon | None = None
    total: _Epsilon | None = None
    per_month_pure: _Epsilon | None = None  # the share of runs of pure epsilon
    total_pure: _Epsilon | None = None


@dataclass(frozen=True)
class _Party:
    name: Annotated[str, PARTY_NAME]
    fingerprint: Annotated[str, _FINGERPRINT] = ""


@dataclass(frozen=True)
class _File:
    """What may stand in limits.toml; what is left out is not limited, but for roles."""

    delta: Annotated[float, Within(above=0, below=1)]
    epsilon: _Ceilings = _Ceilings()
    least_parties: Annotated[int, Within(1, 10_000)] = 1
    methods: tuple[Annotated[str, OneOf((*METHODS, EVALUATION))], ...] | None = None
    kinds: tuple[Annotated[str, OneOf(tuple(QUERIES))], ...] | None = None
    roles: tuple[Annotated[str, OneOf(tuple(ROLES))], ...] | None = None
    approve: Literal["each plan", "none"] = "none"
    coordinator: Annotated[str, _FINGERPRINT] = ""
    least_witnesses: Annotated[int, Within(0, 10_000)] | None = None
    party: tuple[_Party, ...] | None = None


@dataclass(frozen=True)
class InForce:
    """Limits as they were read: what they say, where they came from, and the hash of their text."""

    limits: Limits
    source: str  # "default", "kit" (its own limits.toml) or "named" (--limits)
    hash: str


def in_force(text: str, name: str, place: str, source: str) -> InForce:
    return InForce(limits_from_text(text, name, place), source, digest("hedgerow limits 1", text))


def read_limits(path: str | PathLike[str], name: str = "") -> Limits:
    """The limits in a `limits.toml`, as `hedgerow party start` reads them.

    Parameters
    ----------
    path : the file; `hedgerow party limits SITE --write` writes one with every line explained
    name : of the party, which its own list of parties always allows
    """
    return limits_from_text(read_text(Path(path)), name, str(path))


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
    document = _LIMITS.parse(text, source, "TOML")
    with named(source):
        return _limits(_LIMITS.read(_File, _of_this_format(document)), name)


def _of_this_format(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A file of format 1 is read too: all but one of its keys are the same."""
    if "programs" in document:
        raise _LIMITS.wrong(
            f"programs is called roles since format 2: rename the key, and write format = {FORMAT}"
        )
    inside = document.get("epsilon")
    for key in sorted(set(inside) & set(_File.__annotations__)) if isinstance(inside, dict) else ():
        raise _LIMITS.wrong(
            f"{key} stands below [epsilon], which has only {', '.join(_Ceilings.__annotations__)}: "
            f"move the line {key} = ... above [epsilon]"
        )
    older = document.get("format") == 1 and document["format"] is not True
    return {**document, "format": FORMAT} if older else document


def _limits(told: _File, name: str) -> Limits:
    ceilings = {key: _ceiling(told, key) for key in ("per_run", "per_month", "total")}
    for key in ("methods", "kinds", "roles"):
        if getattr(told, key) == ():
            raise _LIMITS.wrong(f"{key} must be a list of at least one; leave it out to allow all")
    return Limits(
        budget=ceilings["total"],
        per_run=ceilings["per_run"],
        per_month=ceilings["per_month"],
        least_parties=told.least_parties,
        kinds=None if told.kinds is None else frozenset(told.kinds),
        methods=None if told.methods is None else frozenset(told.methods),
        roles=frozenset(told.roles or ()),
        coordinator=_compared(told.coordinator),
        parties=None if told.party is None else _parties(told.party, name),
        approve=told.approve == "each plan",
        least_witnesses=told.least_witnesses,
        delta=float(told.delta),
        method_kinds=method_kinds(),
    )


def _ceiling(told: _File, key: str) -> Budget | None:
    epsilon = getattr(told.epsilon, key)
    share = getattr(told.epsilon, f"{key}_pure", None)
    if epsilon is None and share is not None:
        raise _LIMITS.wrong(f"[epsilon] {key}_pure is a share of {key}, which is missing")
    if epsilon is not None and share is not None and share > epsilon:
        raise _LIMITS.wrong(f"[epsilon] {key}_pure is {share:g}, more than {key}, {epsilon:g}")
    return None if epsilon is None else Budget(float(epsilon), told.delta, share)


def _parties(entries: Sequence[_Party], name: str) -> tuple[tuple[str, str], ...]:
    """Who may be in the roster; this party itself always may."""
    listed: dict[str, str] = {}
    for party in entries:
        if party.name in listed:
            raise _LIMITS.wrong(f"[[party]] {party.name} is listed twice; keep one of the two")
        listed[party.name] = _compared(party.fingerprint)
    if name:
        listed.setdefault(name, "")
    return tuple(sorted(listed.items()))


def _compared(fingerprint: str) -> str:
    """A fingerprint as keys show theirs, however it was typed."""
    return " ".join(fingerprint.upper().split())


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

# How many others must show, in every run, what they keep of this party's ledger, so that lost lines
# are noticed. Without this line: all but those that may collude by the roster.
# least_witnesses = 2

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
# roles = [{", ".join(f'"{name}"' for name in ROLES)}]

[epsilon]
per_run = 2.0
per_month = 4.0  # runs reserved in the last 31 days
total = 10.0
# Runs of pure epsilon (private-tree) beside Gaussian ones count as Gaussians, which is dear, unless
# they have a share of their own; the rest is then for the Gaussian ones.
# per_month_pure = 1.0
# total_pure = 2.0

# [[party]]
# name = "hospital-b"
# fingerprint = "0000 0000 0000 0000 0000 0000 0000 0000"  # may be left out
"""


def limits_in_words(allowed: Limits) -> list[str]:
    """What a party allows, one sentence a line."""
    ceilings = ((allowed.per_run, "a run"), (allowed.per_month, "in 31 days"))
    words = [
        f"Epsilon at most {budget.epsilon:g} {what}, counted at delta = {budget.delta:g}"
        + (f"; {budget.pure:g} of it for pure runs." if budget.pure is not None else ".")
        for budget, what in (*ceilings, (allowed.budget, "in total"))
        if budget is not None
    ]
    if len(words) < 3:
        words.append("Where no epsilon is named there is no limit.")
    words.append(f"At least {allowed.least_parties} parties in a sum.")
    words.append(
        f"Methods: {_listed(allowed.methods)}. Kinds of queries: {_listed(allowed.kinds)}."
    )
    words.append(f"Without an epsilon: {', '.join(sorted(allowed.roles or ())) or 'nothing'}.")
    if any("-ldp" in name for name in allowed.roles or ()):
        words.append("What labels pay counts by itself, under the same ceilings.")
    words.append(f"Coordinator: {allowed.coordinator or 'whichever the roster pins'}.")
    if allowed.parties is None:
        words.append("Parties: whichever the roster pins.")
    else:
        named = (f"{name} ({mark})" if mark else name for name, mark in allowed.parties)
        words.append(f"Parties that may be in the roster: {', '.join(named)}.")
    least = allowed.least_witnesses
    shown = "all others but those that may collude" if least is None else f"at least {least} others"
    words.append(f"In every run {shown} must show what they keep of this party's ledger.")
    who = "must approve each plan" if allowed.approve else "need not approve plans"
    return [*words, f"A person {who}."]


def _listed(names: frozenset[str] | None) -> str:
    return "all" if names is None else ", ".join(sorted(names))
