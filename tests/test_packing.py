"""Bytes on the wire and in files: what goes in comes out, and hostile bytes are a FormatError."""

from __future__ import annotations

import json
import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hedgerow.errors import FormatError
from hedgerow.packing import canonical_json, digest, pack, unpack

DTYPES = ("uint8", "uint16", "uint32", "uint64", "int32", "int64", "float32", "float64")
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
arrays = st.dictionaries(
    text,
    st.sampled_from(DTYPES).flatmap(
        lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    ),
    max_size=3,
)


def crafted(header: object, tail: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<I", len(raw)) + raw + tail


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(text, json_values, max_size=4), arrays)
def test_what_is_packed_comes_back(values: dict, packed: dict) -> None:  # type: ignore[type-arg]
    data = pack(values, packed)
    found, found_arrays = unpack(data)
    assert found == values
    assert set(found_arrays) == set(packed)
    for name, array in packed.items():
        assert found_arrays[name].dtype == array.dtype
        assert found_arrays[name].shape == array.shape
        assert found_arrays[name].tobytes() == array.tobytes()
    assert pack(found, found_arrays) == data
    table = [[name, str(a.dtype), list(a.shape)] for name, a in sorted(packed.items())]
    header = canonical_json({"values": values, "arrays": table})
    assert data[: 4 + len(header)] == struct.pack("<I", len(header)) + header


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changed_bytes_are_a_format_error_or_still_a_message(data: st.DataObject) -> None:
    whole = bytearray(pack({"a": [1, "b"]}, {"x": np.arange(6, dtype=np.int32).reshape(2, 3)}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    for hostile in (bytes(whole), bytes(whole[:cut]), bytes(whole) + b"\0"):
        with suppress(FormatError):
            unpack(hostile)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_format_error_or_a_message(data: bytes) -> None:
    with suppress(FormatError):
        unpack(data)


@pytest.mark.parametrize(
    "shape",
    [[-1], [2**70], [0, 2**70], [0, 2**62, 2**62], [1, 1, 1, 1, 1], ["x"], [None], 7, {}],
    ids=str,
)
def test_hostile_shapes_are_a_format_error(shape: object) -> None:
    with pytest.raises(FormatError):
        unpack(crafted({"values": {}, "arrays": [["x", "uint8", shape]]}))


@pytest.mark.parametrize(
    "header",
    [
        [], 5, None, {"values": {}}, {"values": [], "arrays": []}, {"values": {}, "arrays": 5},
        {"values": {}, "arrays": [["x", "object", [1]]]},
        {"values": {}, "arrays": [["x", "uint8", [0]], ["x", "uint8", [0]]]},
        {"values": {}, "arrays": [["x", "uint8"]]}, b"\xff\xfe", b'{"values": {"x": NaN}}',
        b'{"values": {}, "arrays": [["x", "uint8", [1e999]]]}',
        b'{"values": {"x": -1e999}, "arrays": []}',
        b"[" * 100_000, b'{"values": {}, "arrays": ' + b"9" * 10_000 + b"}",
    ],
    ids=lambda h: str(h)[:40],
)  # fmt: skip
def test_hostile_headers_are_a_format_error(header: object) -> None:
    with pytest.raises(FormatError):
        unpack(crafted(header))


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\0", struct.pack("<I", 2**32 - 1)])
def test_lengths_that_do_not_fit_are_a_format_error(data: bytes) -> None:
    with pytest.raises(FormatError):
        unpack(data)


def test_bytes_left_over_are_a_format_error() -> None:
    with pytest.raises(FormatError, match="left over"):
        unpack(pack({}) + b"x")


def test_text_that_utf8_cannot_carry_is_a_format_error() -> None:
    """A lone surrogate would fail later, in a hash, outside of any check."""
    with pytest.raises(FormatError):
        unpack(crafted(b'{"values": {"x": "\\ud800"}, "arrays": []}'))


def test_other_dtypes_are_refused_when_packing() -> None:
    for array in (np.array(["x"]), np.array([None]), np.zeros(1, np.complex128), np.zeros(1, bool)):
        with pytest.raises(FormatError, match="not packed"):
            pack({}, {"x": array})


def test_a_digest_keeps_its_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")
    assert digest("a") == digest(b"a")


def test_canonical_json_has_one_form_and_no_nan() -> None:
    assert canonical_json({"b": 1, "a": [1.5, "é"]}) == '{"a":[1.5,"é"],"b":1}'.encode()
    with pytest.raises(ValueError):
        canonical_json(float("nan"))
