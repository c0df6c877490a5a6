"""Hostile bytes and documents: a clear error, no code execution, bounded memory, nothing spent."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedgerow.data.schema import Schema
from hedgerow.deployment.limits_file import read_limits
from hedgerow.engines.cards import read_card, read_roster
from hedgerow.errors import HedgerowError
from hedgerow.evaluation.result import Evaluation, Findings, Measure
from hedgerow.methods.maddock.boosting import _structure
from hedgerow.methods.maddock.candidates import uniform
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.stacking import stack, unstack
from hedgerow.model.statement import Statement
from hedgerow.model.tree import Tree, single_leaf
from hedgerow.packing import MAX_HEADER, pack, unpack
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.protocol.identity import Announcement, Roster
from hedgerow.protocol.messages import Ask, Message
from hedgerow.queries import NO_TREES, ColumnCounts, LabelSums, LeafSums, query_from_bytes
from hedgerow.queries import query_bytes as to_bytes
from tests.attacks.rig import SCHEMA, Rig, word

SLOW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
RIG = Rig()
TREE = Tree(_structure(SCHEMA, RIG.plan, uniform(SCHEMA, 32), 0), np.ones((4, 1), np.float32))
MODEL = Ensemble((single_leaf(np.zeros(1)), TREE), SCHEMA, Statement("none", 1.0, 1e-6, "nobody"))
GOOD = {
    "model": (MODEL.to_bytes(), Ensemble.from_bytes),
    "message": (
        Message("ask", RIG.question().body(), trees=(TREE,)).signed(RIG.coordinator).to_bytes(),
        Message.from_bytes,
    ),
    "ask": (RIG.question().body(), Ask.from_body),
    "label sums": (to_bytes(LabelSums(2)), query_from_bytes),
    "column counts": (to_bytes(ColumnCounts.of(SCHEMA)), query_from_bytes),
    "leaf sums": (to_bytes(LeafSums((TREE.structure,), "logistic", NO_TREES)), query_from_bytes),
}


@pytest.mark.parametrize("kind", GOOD)
@SLOW
@given(data=st.data())
def test_mutated_bytes_are_read_or_refused_but_never_crash(kind: str, data: Any) -> None:
    good, read = GOOD[kind]
    raw = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([0, 0, 1, 7]))
    try:
        result = read(bytes(raw[: len(raw) - cut]))
        if hasattr(result, "check"):
            result.check(SCHEMA)
    except HedgerowError:
        pass


@SLOW
@given(st.binary(max_size=400))
def test_random_bytes_are_refused(raw: bytes) -> None:
    for read in (unpack, Ensemble.from_bytes, Message.from_bytes, Ask.from_body, query_from_bytes):
        with pytest.raises(HedgerowError):
            read(raw)
    assert word(Message.from_bytes(RIG.parties["a"].handle(raw))) == "bad-message"
    assert RIG.ledgers["a"].lines("a", "charge") == []


@SLOW
@given(st.dictionaries(st.sampled_from(list(RIG.plan.to_dict())) | st.text(max_size=5), JSON))
def test_random_plans_are_refused(changes: dict[str, Any]) -> None:
    document = {**RIG.plan.to_dict(), **changes}
    try:
        plan = Plan.from_dict(document)
    except HedgerowError:
        return
    assert plan.epsilon <= plan.privacy.epsilon * (1 + 1e-9)


@SLOW
@given(st.dictionaries(st.sampled_from(list(SCHEMA.to_dict())) | st.text(max_size=5), JSON))
def test_random_schemas_are_refused(changes: dict[str, Any]) -> None:
    document = {**SCHEMA.to_dict(), **changes}
    try:
        schema = Schema.from_dict(document)
    except HedgerowError:
        return
    assert Schema.from_dict(schema.to_dict()) == schema


@SLOW
@given(st.dictionaries(st.text(max_size=8), JSON))
def test_random_rosters_announcements_and_statements_are_refused(values: dict[str, Any]) -> None:
    for read in (Roster.from_dict, Announcement.from_dict, Statement.from_dict):
        with pytest.raises(HedgerowError):
            read(values)


def test_lengths_are_checked_before_memory_is_taken() -> None:
    with pytest.raises(HedgerowError, match="does not fit"):
        unpack(struct.pack("<I", MAX_HEADER + 1) + b"{}")
    header = b'{"arrays":[["a","float64",[1000000000000]]],"values":{}}'
    with pytest.raises(HedgerowError, match="longer than the message"):
        unpack(struct.pack("<I", len(header)) + header)
    header = b'{"arrays":[["a","object",[1]]],"values":{}}'
    with pytest.raises(HedgerowError, match="not described"):
        unpack(struct.pack("<I", len(header)) + header + b"\0" * 8)


@pytest.mark.parametrize("name", ["nodes", "words"])
def test_lengths_that_wrap_around_are_not_those_of_the_arrays(name: str) -> None:
    """Four lengths of 2^62 are 0 and more, if they are added in 64 bits."""
    arrays = stack([single_leaf(np.zeros(1)).structure] * 4)
    least = int(arrays[name].sum())
    arrays[name] = np.array([2**62, 2**62, 2**62, 2**62 + least], np.int64)
    with pytest.raises(HedgerowError, match="do not have the lengths they state"):
        unstack(arrays)


def test_a_deeply_nested_header_is_refused() -> None:
    header = b'{"values":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b'},"arrays":[]}'
    with pytest.raises(HedgerowError):
        unpack(struct.pack("<I", len(header)) + header)


def test_trees_with_loops_or_foreign_columns_are_refused() -> None:
    arrays = TREE.structure.arrays()
    one = {**arrays, "nodes": np.array([7], np.int32), "words": np.array([0], np.int32)}
    for name, place, value in (
        ("left", 0, 0),
        ("right", 2, 1),
        ("feature", 0, 99),
        ("feature", 6, -2),
        ("missing_left", 0, 2),
        ("threshold", 0, np.nan),
    ):
        changed = {**one, name: one[name].copy()}
        changed[name][place] = value
        with pytest.raises(HedgerowError):
            unstack(changed)[0].check(SCHEMA)


def test_newer_formats_name_the_version_needed() -> None:
    data = bytearray(GOOD["model"][0])
    data[8:12] = struct.pack("<I", 9)
    with pytest.raises(HedgerowError, match="writes model format 9"):
        Ensemble.from_bytes(bytes(data))
    with pytest.raises(HedgerowError, match="writes plan format 9"):
        Plan.from_dict({**RIG.plan.to_dict(), "format": 9})
    with pytest.raises(HedgerowError, match="writes schema format 9"):
        Schema.from_dict({**SCHEMA.to_dict(), "format": 9})
    with pytest.raises(HedgerowError, match="writes statement format 9"):
        Statement.from_dict({"format": 9})
    with pytest.raises(HedgerowError, match="version 9 of the messages"):
        Message.from_bytes(pack({"version": 9}))


NESTED = "format = 1\na = " + "[" * 5000 + "]" * 5000
LONG = "format = 1\na = " + "9" * 10_000  # more digits than Python reads


@pytest.mark.parametrize("text", [NESTED, LONG])
@pytest.mark.parametrize(
    "read", [read_card, read_roster, Plan.read, Schema.read, lambda file: read_limits(file, "a")]
)
def test_toml_that_cannot_be_read_is_refused_in_words(
    text: str, read: Callable[[Path], Any], tmp_path: Path
) -> None:
    file = tmp_path / "some.toml"
    file.write_text(text)
    with pytest.raises(HedgerowError):
        read(file)


HUGE = 10**400  # a whole number that no float can be


def test_numbers_that_are_too_large_are_refused_in_words() -> None:
    says = Statement("none", 0.0, 0.0, "coordinator")
    told = Evaluation("m", "binary", "l", "r", Findings((Measure("auc", 0.5, 0.1),)), says)
    for measured in ({"value": HUGE}, {"noise_error": HUGE}):
        values = told.to_dict()
        values["measures"]["auc"].update(measured)
        with pytest.raises(HedgerowError):
            Evaluation.from_dict(values)
    with pytest.raises(HedgerowError):
        Statement.from_dict({**says.to_dict(), "epsilon": math.inf})
    column = {"name": "a", "kind": "numeric", "lower": 0, "upper": HUGE}
    for changed in (column, {**column, "kind": []}):
        with pytest.raises(HedgerowError):
            Schema.from_dict({**SCHEMA.to_dict(), "column": [changed]})
    label = {"name": "l", "classes": [1.0, math.nan]}
    with pytest.raises(HedgerowError):
        Schema.from_dict({**SCHEMA.to_dict(), "label": label})
    with pytest.raises(HedgerowError):
        Roster.from_dict({**RIG.roster.to_dict(), "colluding": math.inf})
