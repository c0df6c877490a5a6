"""Parts of a model: files that are read back, refused when broken, and merged only all together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import FormatError
from hedgerow.methods.fedxgboost.model import Part, merged
from hedgerow.packing import pack, unpack
from tests.methods.fedxgboost import tables


@pytest.fixture(scope="module")
def parts() -> dict[str, Part]:
    table = tables.whole(300)
    return tables.train(tables.shares(table), tables.schema_of(), tables.settings())[0]


def test_a_part_is_read_back_as_it_was(parts: dict[str, Part]) -> None:
    back = [Part.from_bytes(part.to_bytes()) for part in parts.values()]
    assert merged(back) == merged(list(parts.values()))
    assert [part.to_bytes() for part in back] == [part.to_bytes() for part in parts.values()]


def test_only_the_active_party_has_trees_and_each_party_its_own_columns(
    parts: dict[str, Part],
) -> None:
    names = tables.schema_of().names
    for name, part in parts.items():
        assert bool(part.trees) == (name == "bank")
        assert {tables.OWNERS[names[split.column]] for split in part.splits} <= {name}


def test_a_merged_model_needs_every_part_of_one_run(parts: dict[str, Part]) -> None:
    some = [part for part in parts.values() if part.party != "shop"]
    with pytest.raises(FormatError, match="every party"):
        merged(some)
    with pytest.raises(FormatError, match="another run"):
        merged([*some, replace(parts["shop"], run="other")])
    with pytest.raises(FormatError, match="does not have"):
        merged([*some, replace(parts["shop"], splits=parts["shop"].splits[:1])])


def test_a_newer_format_names_the_version_that_is_needed(parts: dict[str, Part]) -> None:
    values, arrays = unpack(parts["shop"].to_bytes())
    with pytest.raises(FormatError, match="format 3"):
        Part.from_bytes(pack({**values, "format": 3}, arrays))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_broken_parts_are_refused_or_read_as_parts(parts: dict[str, Part], data: object) -> None:
    draw = data.draw  # type: ignore[attr-defined]
    raw = bytearray(parts["bank"].to_bytes())
    at = draw(st.integers(0, len(raw) - 1))
    raw[at] = draw(st.integers(0, 255))
    try:
        part = Part.from_bytes(bytes(raw[: draw(st.integers(len(raw) - 3, len(raw)))]))
    except FormatError:
        return
    for tree in part.trees:  # whatever was read can be walked
        assert np.isfinite(tree.values).all()
