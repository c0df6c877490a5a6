"""Documents by declaration: what mistakes are told, and that nothing else is ever raised."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.data.documents import Document, Matching, OneOf, Within
from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema, Unit
from hedgerow.deployment.ledger_head import _NOTE, LedgerHead
from hedgerow.deployment.limits_file import limits_from_text
from hedgerow.deployment.runs import _RECORD, RunRecord
from hedgerow.deployment.start import _START
from hedgerow.deployment.start import _File as StartFile
from hedgerow.engines.cards import Card, read_card, read_roster
from hedgerow.engines.grpc import hello as hellos
from hedgerow.engines.grpc.hello import PartyHello, Verdict
from hedgerow.engines.site import _read, _SiteFile
from hedgerow.errors import FormatError, HedgerowError, SettingsError
from hedgerow.evaluation.result import (
    CalibrationPoint,
    Confusion,
    Evaluation,
    Findings,
    RocPoint,
    measure,
)
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.statement import Disclosure, Statement
from hedgerow.protocol.identity import Announcement, Identity, Roster
from hedgerow.protocol.roles import Agreement

DISCLOSURE = Disclosure("coordinator", "all parties", "row counts")
STATEMENT = Statement(
    "epsilon-delta", 1.0, 1e-6, "parties", parties=("a", "b", "c"), disclosures=(DISCLOSURE,)
)
SCHEMA = Schema(
    (
        Numeric("age", 0, 110, integer=True),
        Ordinal("stage", (1, 2, 3)),
        Categorical("colour", ("red", "blue"), other="category"),
    ),
    Label("sick", ("no", "yes")),
    Unit("person", "id", 3),
)
KEY = Identity().public
ROSTER = Roster((("a", KEY), ("b", "0" * 64)), KEY, 1, 2, "parties")
EVALUATION = Evaluation(
    "hash", "binary", "sick", "run",
    Findings(
        (measure("auc", 0.8, 0.1, 0.01), measure("rows", math.nan, 1.0)),
        Confusion(("no", "yes"), ((1.0, 2.0), (3.0, 4.0)), 0.5),
        (RocPoint(0.5, 0.1, 0.9, 0.8, 1.0),),
        (CalibrationPoint(0.0, 0.5, 10.0, 0.2, 0.3, 0.1, 0.4),),
        ("a note",),
    ),
    STATEMENT,
)  # fmt: skip
LIMITS = {
    "format": 1, "delta": 1e-6, "least_parties": 3, "approve": "each plan", "methods": ["auto"],
    "kinds": ["label-sums"], "roles": ["simfl"], "coordinator": "0123 " * 7 + "4567",
    "epsilon": {"per_run": 1.0, "total": 3}, "party": [{"name": "b", "fingerprint": ""}],
}  # fmt: skip


class Unwritable(Exception):
    """No TOML file can say this."""


def as_limits(values: Any) -> Any:
    return limits_from_text(as_toml(values), "a")


def as_file(read: Callable[[Path], Any]) -> Callable[[Any], Any]:
    def from_values(values: Any) -> Any:
        text = as_toml(values)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "document.toml"
            file.write_text(text, "utf-8")
            return read(file)

    return from_values


def as_toml(values: Any) -> str:
    """What a file would say."""
    try:
        text = tomli_w.dumps(values)
        text.encode("utf-8")
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise Unwritable from None
    return text


def a_card() -> dict[str, Any]:
    identity = Identity()
    card = Card("north", identity.public, address="h:1").signed(identity)
    return {"format": 2, **card.__dict__}


ROSTER_FILE = {
    "format": 2, "federation": "f", "trust": "parties", "colluding": 1, "minimum_parties": 2,
    "mutual_tls": True, "coordinator": {"key": KEY, "address": "h:1", "certificate": ""},
    "party": [{"name": "a", "key": "0" * 64, "certificate": ""}],
}  # fmt: skip
START = {
    "format": 1, "data": "", "schema": "s.toml", "limits": "", "id": "", "some": False,
    "source": "kit", "limits_hash": "",
}  # fmt: skip
DOCUMENTS: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "schema": (SCHEMA.to_dict(), Schema.from_dict),
    "description": (
        {"feature": [{"name": "a", "kind": "ordinal", "lower": 0, "upper": 9, "dtype": "int8"},
                     {"name": "b", "kind": "categorical", "categories": ["x", "y"]}],
         "label_lower": 0.0, "label_upper": 1.0, "name": "table"},
        Schema.from_dict,
    ),
    "statement": (STATEMENT.to_dict(), Statement.from_dict),
    "evaluation": (EVALUATION.to_dict(), Evaluation.from_dict),
    "roster": (ROSTER.to_dict(), Roster.from_dict),
    "announcement": (
        Announcement("a", 1, 2, "k", "p", "s", "r", "00").to_dict(), Announcement.from_dict
    ),
    "agreement": (
        Agreement("r", "simfl", "s", ("a", "b"), {}, (DISCLOSURE,), {"a": 1.0}).to_dict(),
        Agreement.from_dict,
    ),
    "simfl": (SimilaritySettings().to_dict(), SimilaritySettings.from_dict),
    "fedxgboost": (VerticalSettings({"x": "a"}, "a").to_dict(), VerticalSettings.from_dict),
    "limits": (LIMITS, as_limits),
    "site": ({"format": 2, "name": "a", "address": "h:1", "bind": "h:2", "mutual_tls": True,
              "trial": True}, as_file(lambda file: _read(_SiteFile, file, "site folder"))),
    "hello": (vars(PartyHello("a", "k", 1, "i", "r", "n")),
              lambda values: hellos._HELLO.read(PartyHello, values)),
    "verdict": (vars(Verdict(True, "w", "r")),
                lambda values: hellos._VERDICT.read(Verdict, values)),
    "card": (a_card(), as_file(read_card)),
    "roster file": (ROSTER_FILE, as_file(read_roster)),
    "start": (START, lambda values: _START.read(StartFile, values)),
    "ledger head": ({"format": 1, "lines": 3, "hash": "00", "boots": 1},
                    lambda values: _NOTE.read(LedgerHead, values)),
    "run": (vars(RunRecord("r", "auto", 1.0, 1e-6, "finished", "", "")),
            lambda values: _RECORD.read(RunRecord, values)),
}  # fmt: skip

FILES = ("limits", "site", "card", "roster file")  # TOML, which is always a table
DEEP: Any = []
for _ in range(400):
    DEEP = [DEEP]
HOSTILE = [
    None, True, False, -1, 0, 2, 1.5, 2**63, 10**400, 1 << 20_000, -(1 << 20_000), math.nan,
    math.inf, -math.inf, 1e308, "", "-x", "x" * 1000, "\ud800", "\x00", "a/../b", [], [[]], {},
    {"name": 1}, {"kind": "numeric"}, {"": {}}, DEEP, ["a", "a"], [math.nan], [None],
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a document."""
    inner = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inner = enumerate(value)
    found = [path] if path else []
    for key, item in inner:
        found += places(item, (*path, key)) if item is not DEEP else [(*path, key)]
    return found


@st.composite
def changed(draw: st.DrawFn, plain: dict[str, Any]) -> dict[str, Any]:
    """A document of which a few parts are replaced, missing, or new."""
    values = deepcopy(plain)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(values)))
        holder: Any = values
        for key in path[:-1]:
            holder = holder[key]
        what = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if what == "replace":
            value = draw(st.sampled_from(HOSTILE))
            holder[path[-1]] = value if value is DEEP else deepcopy(value)
        elif what == "remove":
            del holder[path[-1]]
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from(["colour", "", "x" * 100, "\ud800", "format"]))] = 1
        if not values:
            break
    return values


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_is_read_as_it_was_written(name: str) -> None:
    values, read = DOCUMENTS[name]
    assert read(values) == read(json.loads(json.dumps(values)))


def read_or_refused(name: str, values: Any) -> None:
    """What is read can be used, and what is not is refused in words, by an error of ours."""
    said = ""
    try:
        document = DOCUMENTS[name][1](values)
        if isinstance(document, Schema | Roster | Agreement):
            assert len(document.hash) == 64
        if isinstance(document, Statement | Evaluation):
            document.words().encode("utf-8")
    except HedgerowError as error:
        said = str(error)
    except Unwritable:
        return
    assert len(said.encode("utf-8")) < 1500


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_hostile_value_anywhere_is_read_or_refused_in_words(name: str) -> None:
    plain = DOCUMENTS[name][0]
    for path in places(plain):
        for value in HOSTILE:
            values = deepcopy(plain)
            holder: Any = values
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = value
            read_or_refused(name, values)


@pytest.mark.parametrize("name", DOCUMENTS)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_hostile_documents_are_read_or_refused_in_words(name: str, data: st.DataObject) -> None:
    read_or_refused(name, data.draw(changed(DOCUMENTS[name][0])))


@pytest.mark.parametrize("name", [n for n in DOCUMENTS if n not in FILES])
@pytest.mark.parametrize("values", [None, 5, "text", [], [{}], DEEP])
def test_what_is_no_table_is_no_document(name: str, values: Any) -> None:
    with pytest.raises(HedgerowError):
        DOCUMENTS[name][1](values)


PARTY_NAMES = {
    "roster": ("parties", 0, 0), "agreement": ("parties", 0), "limits": ("party", 0, "name"),
    "roster file": ("party", 0, "name"), "site": ("name",), "card": ("name",),
}  # fmt: skip


@pytest.mark.parametrize("document", PARTY_NAMES)
@pytest.mark.parametrize("name", ["-x", "", "X", "a b", "a/b", "x" * 41, "\u0430", "a\n"])
def test_a_party_has_a_name_that_paths_options_and_logs_can_hold(document: str, name: str) -> None:
    values = deepcopy(DOCUMENTS[document][0])
    holder: Any = values
    path = PARTY_NAMES[document]
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = name
    with pytest.raises(HedgerowError, match="name"):
        DOCUMENTS[document][1](values)


# What mistakes are told


@dataclass(frozen=True)
class Inner:
    kind: Annotated[str, OneOf(("a", "b", "c"))] = "a"


@dataclass(frozen=True)
class Example:
    count: Annotated[int, Within(1, 10)]
    share: Annotated[float, Within(above=0, below=1)] = 0.5
    flag: bool = False
    inner: Inner = Inner()
    rest: tuple[Inner, ...] = ()
    pair: tuple[str, int] = ("a", 1)
    note: str | None = None


EXAMPLE = Document(
    "example", SettingsError, format=2, absent="; write it", ending=". Nothing sent."
)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "the example has no 'count'; write it. Nothing sent."),
        ({"count": True}, "count is True; it must be a whole number from 1 to 10. Nothing sent."),
        ({"count": 1.0}, "count is 1.0; it must be a whole number from 1 to 10"),
        ({"count": 1 << 90_000}, "count is a whole number beyond 1e60; it must be"),
        ({"count": [1]}, "count is a list; it must be a whole number"),
        ({"share": 0}, "share is 0; it must be a number above 0 and below 1"),
        ({"share": math.nan}, "share is nan; it must be a number above 0 and below 1"),
        ({"share": "x" * 99}, f"share is '{'x' * 60}'...; it must be a number"),
        ({"flag": 1}, "flag is 1; it must be true or false"),
        ({"inner": 3}, "inner is 3; it must be a table: [inner]"),
        ({"inner": {"kind": "z"}}, "[inner] has kind = 'z'; choose one of a, b, c"),
        ({"inner": {"kid": "a"}}, "[inner] has the unknown key 'kid' (did you mean 'kind'?); "
                                  "known: kind"),
        ({"rest": {}}, "rest is a table; write [[rest]] tables"),
        ({"rest": [{}, {"kind": 1}]}, "[[rest]] number 2 has kind = 1; choose one of a, b, c"),
        ({"pair": ["a"]}, "pair is a list; it must be a list of 2"),
        ({"pair": ["a", "b"]}, "pair number 2 is 'b'; it must be a whole number"),
        ({"note": "\ud800"}, "note is '\\ud800'; it must be text"),
        ({"colour": 1}, "unknown key 'colour'; known: format, count, share"),
        ({"format": None}, "format is missing; write format = 2 at the top"),
        ({"format": True}, "format is True; it must be 2"),
        ({"format": 1}, "format is 1; it must be 2"),
    ],
)  # fmt: skip
def test_a_mistake_says_what_and_what_to_do(values: dict[str, Any], words: str) -> None:
    full = values if not values or "format" in values else {"count": 1, **values}
    with pytest.raises(SettingsError) as error:
        EXAMPLE.read(Example, {"format": 2, **full})
    assert words in str(error.value)


def test_a_newer_format_is_named_before_what_is_new_in_it() -> None:
    with pytest.raises(FormatError, match="writes example format 3"):
        EXAMPLE.read(Example, {"format": 3, "new": 1})


def test_values_stay_as_they_were_written() -> None:
    read = EXAMPLE.read(Example, {"format": 2, "count": 3, "rest": [{"kind": "b"}]})
    assert read == Example(3, rest=(Inner("b"),))
    whole = Document("w").read(Weights, {"weights": [1, 2.0]})
    assert [type(value) for value in whole.weights] == [int, float]


@dataclass(frozen=True)
class Weights:
    weights: tuple[float, ...]


@pytest.mark.parametrize(
    ("text", "words"),
    [('{"a": NaN}', "NaN"), ('{"a": 1, "a": 2}', "twice"), ("[" * 100_000, "not valid JSON"),
     ("[1]", "no table"), ("{", "not valid JSON")],
)  # fmt: skip
def test_json_is_read_strictly(text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        EXAMPLE.parse(text, "file.json", "JSON")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    for path, words in (
        (tmp_path / "none.toml", "no example file at"),
        (tmp_path, "is a folder"),
        (tmp_path / "bad.toml", "UTF-8"),
    ):
        with pytest.raises(SettingsError, match=words):
            EXAMPLE.load(path)


def test_marks_say_what_is_wanted() -> None:
    assert Within(low=0).text == " at least 0"
    assert Within(0.5, 1e12).text == " from 0.5 to 1e+12"
    assert OneOf(("a", "b")).advice == "it must be 'a' or 'b'"
    assert Matching(re.compile("a"), "an a").wanted == "an a"
