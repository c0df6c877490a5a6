"""Models and their files: what is saved comes back, and any changed byte is noticed."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.errors import FormatError
from hedgerow.model import stacking
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.losses import TREE_UPDATES
from hedgerow.model.stacking import stack, unstack
from hedgerow.model.statement import Disclosure, Statement
from hedgerow.model.tree import Structure, Tree, single_leaf
from hedgerow.packing import pack, unpack
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off
from tests.conftest import MIXED, mixed_rows, mixed_table, train
from tests.oracle.runs import LABELS, run, schema_of, table_of

TABLE = mixed_table(60, seed=9)
HEAD = struct.calcsize("<8sIQ")


def small_model() -> Ensemble:
    rows = mixed_rows(TABLE)
    with noise_off():
        model, _, _ = train(
            {"all": rows}, MIXED, Privacy(1.0, 1e-5), {"n_trees": 3, "max_depth": 2}
        )
    return model


MODEL = small_model()
DATA = MODEL.to_bytes()


def resealed(body: bytes, version: int = 2) -> bytes:
    """A file with a correct hash around any body: what someone with bad intent would write."""
    whole = struct.pack("<8sIQ", b"HEDGEROW", version, len(body)) + body
    return whole + hashlib.sha256(whole).digest()


def test_a_model_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "model.hedge"
    MODEL.save(path)
    again = Ensemble.load(path)
    assert again == MODEL
    assert (again.statement, again.record) == (MODEL.statement, MODEL.record)
    assert again.to_bytes() == DATA
    table = {name: values for name, values in TABLE.items() if name != "sick"}
    assert np.array_equal(again.predict(table), MODEL.predict(table))
    assert [p.name for p in tmp_path.iterdir()] == ["model.hedge"]  # no temporary file is left


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_any_flipped_byte_is_a_format_error(place: int, flip: int) -> None:
    broken = bytearray(DATA)
    broken[place] ^= flip
    with pytest.raises(FormatError):
        Ensemble.from_bytes(bytes(broken))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, len(DATA) - 1), st.binary(min_size=1, max_size=9))
def test_cut_and_lengthened_files_are_format_errors(length: int, tail: bytes) -> None:
    for broken in (DATA[:length], DATA + tail):
        with pytest.raises(FormatError):
            Ensemble.from_bytes(broken)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(DATA) - HEAD - 33), st.integers(1, 255))
def test_a_changed_body_under_a_new_hash_is_a_format_error_or_a_model(
    place: int, flip: int
) -> None:
    body = bytearray(DATA[HEAD:-32])
    body[place] ^= flip
    try:
        model = Ensemble.from_bytes(resealed(bytes(body)))
    except FormatError:
        return
    assert isinstance(model, Ensemble)


def test_a_newer_format_names_the_version_needed() -> None:
    with pytest.raises(FormatError, match="writes model format 7"):
        Ensemble.from_bytes(resealed(DATA[HEAD:-32], version=7))


def test_an_older_format_says_what_to_do() -> None:
    with pytest.raises(FormatError, match=r"model format 1, older than .* train again"):
        Ensemble.from_bytes(resealed(DATA[HEAD:-32], version=1))


def test_files_that_are_no_model_say_so(tmp_path: Path) -> None:
    (tmp_path / "x.hedge").write_bytes(b"PK" * 100)
    with pytest.raises(FormatError, match="not a hedgerow model"):
        Ensemble.load(tmp_path / "x.hedge")
    with pytest.raises(FormatError, match="no model at"):
        Ensemble.load(tmp_path / "absent.hedge")
    with pytest.raises(FormatError, match="is a folder"):
        Ensemble.load(tmp_path)


@pytest.mark.parametrize("part", ["schema", "statement", "record"])
@pytest.mark.parametrize("value", [None, 5, [], {"format": 1}, "x"])
def test_hostile_parts_under_a_right_hash_are_format_errors(part: str, value: Any) -> None:
    values, arrays = unpack(DATA[HEAD:-32])
    if part == "record" and isinstance(value, (dict, list)):
        value = [3]
    with pytest.raises(FormatError):
        Ensemble.from_bytes(resealed(pack({**values, part: value}, arrays)))


def test_a_label_with_more_outputs_than_the_leaves_is_a_format_error() -> None:
    values, arrays = unpack(DATA[HEAD:-32])
    values["schema"]["label"] = {"name": "sick", "classes": ["no", "perhaps", "yes"]}
    with pytest.raises(FormatError):
        Ensemble.from_bytes(resealed(pack(values, arrays)))


@pytest.mark.parametrize("dtype", ["float64", "uint32", "uint8"])
@pytest.mark.parametrize("name", ["feature", "left", "right", "threshold", "member_start"])
def test_arrays_of_another_type_are_format_errors(name: str, dtype: str) -> None:
    values, arrays = unpack(DATA[HEAD:-32])
    with np.errstate(all="ignore"):
        arrays[name] = arrays[name].astype(dtype)
    with pytest.raises(FormatError):
        Ensemble.from_bytes(resealed(pack(values, arrays)))


@pytest.mark.parametrize("update", TREE_UPDATES)
@pytest.mark.parametrize("loss", LABELS)
def test_models_of_every_loss_and_update_survive_their_file(
    loss: str, update: str, tmp_path: Path
) -> None:
    schema, table = schema_of(loss), table_of(60, 2)
    how = {"n_trees": 3, "max_depth": 2, "update": update}
    model = run({"all": rows_of(table, schema)}, schema, "coordinator", how).model
    model.save(tmp_path / "model.hedge")
    again = Ensemble.load(tmp_path / "model.hedge")
    assert again == model
    assert again.averaged == (update == "averaging")
    assert np.array_equal(again.predict(table), model.predict(table))
    assert again != Ensemble(model.trees, schema, model.statement, not model.averaged)


# Trees


def a_split(**changes: Any) -> Structure:
    """age < 50 ? left : right."""
    root = Structure(
        feature=np.array([0, -1, -1], np.int32),
        threshold=np.array([50, 0, 0], np.float32),
        missing_left=np.array([1, 0, 0], np.uint8),
        left=np.array([1, -1, -1], np.int32),
        right=np.array([2, -1, -1], np.int32),
        member_start=np.zeros(4, np.int32),
        members=np.zeros(0, np.uint64),
    )
    return replace(root, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"feature": np.array([5, -1, -1], np.int32)},
        {"feature": np.array([-2, -1, -1], np.int32)},
        {"feature": np.array([3, -1, -1], np.int32)},  # a category split without a set
        {"left": np.array([0, -1, -1], np.int32)},  # a node that is its own child
        {"left": np.array([2, -1, -1], np.int32)},  # two parents
        {"left": np.array([1, 2, -1], np.int32)},  # a leaf with a child
        {"right": np.array([9, -1, -1], np.int32)},
        {"threshold": np.array([np.nan, 0, 0], np.float32)},
        {"threshold": np.array([np.inf, 0, 0], np.float32)},
        {"threshold": np.zeros(2, np.float32)},
        {"missing_left": np.array([2, 0, 0], np.uint8)},
        {"member_start": np.array([0, 1, 1, 1], np.int32)},
        {"member_start": np.array([0, -1, 0, 0], np.int32)},
        {"feature": np.zeros(0, np.int32)},
    ],
)
def test_what_is_no_tree_is_a_format_error(changes: dict[str, Any]) -> None:
    a_split().check(MIXED)
    with pytest.raises(FormatError):
        a_split(**changes).check(MIXED)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_leaf_values_are_finite(value: float) -> None:
    tree = Tree(a_split(), np.array([[0.0], [value]], np.float32))
    with pytest.raises(FormatError, match="not finite"):
        tree.check(MIXED, 1)


def test_left_is_below_the_threshold_in_float32_and_missing_goes_its_own_way() -> None:
    tree = Tree(a_split(), np.array([[-1.0], [1.0]], np.float32))
    model = Ensemble((tree,), MIXED, MODEL.statement)
    ages = [49, 50, 51, None, 49.9999999]  # the last rounds to 50 in float32
    table = {**{name: [None] * 5 for name in MIXED.names}, "age": ages}
    assert model.decision_function(table)[:, 0].tolist() == [-1, 1, 1, -1, 1]


def test_a_model_without_trees_knows_nothing() -> None:
    empty = Ensemble((), MIXED, MODEL.statement)
    table = {name: [None] * 3 for name in MIXED.names}
    assert empty.predict(table).tolist() == [[0.5, 0.5]] * 3
    assert Ensemble.from_bytes(empty.to_bytes()) == empty


def test_a_single_leaf_adds_a_constant() -> None:
    model = Ensemble((single_leaf(np.array([0.25])),), MIXED, MODEL.statement)
    table = {name: [None] * 2 for name in MIXED.names}
    assert model.decision_function(table).tolist() == [[0.25], [0.25]]


def test_a_tree_as_bytes_is_what_packing_makes_of_its_arrays() -> None:
    for tree in (single_leaf(np.array([0.5])), *MODEL.trees):
        arrays = {**tree.structure.arrays(), "values": tree.values}
        assert tree.to_bytes() == pack({}, arrays)


def test_stacking_keeps_every_structure() -> None:
    structures = [tree.structure for tree in MODEL.trees]
    arrays = stack(structures)
    stacking._UNNAMED.clear()  # what was written is kept too, until something is read
    stacking._READ.clear()
    again = unstack(arrays)
    assert not any(one is two for one, two in zip(structures, again, strict=True))
    for one, two in zip(structures, again, strict=True):
        assert all(np.array_equal(a, two.arrays()[name]) for name, a in one.arrays().items())


def test_structures_that_are_read_again_are_the_same_and_no_others() -> None:
    structures = [tree.structure for tree in MODEL.trees[1:4]]
    arrays = {name: array.copy() for name, array in stack(structures).items()}
    once, again = unstack(stack(structures)), unstack(arrays)
    assert all(a is b for a, b in zip(once, again, strict=True))
    assert [s.key for s in unstack(stack(structures[:2]))] == [s.key for s in structures[:2]]
    node = int(np.flatnonzero(arrays["feature"] >= 0)[0])
    arrays["missing_left"][node] ^= 1  # one bit of one array makes them others
    assert [s.key == old.key for s, old in zip(unstack(arrays), structures, strict=True)] == [
        False, True, True,
    ]  # fmt: skip


def test_arrays_of_the_same_bytes_and_other_lengths_or_types_are_refused() -> None:
    arrays = stack([MODEL.trees[1].structure])
    moved = np.concatenate([arrays["left"], arrays["right"]])
    cut = len(arrays["left"]) + 1
    with pytest.raises(FormatError, match="lengths"):
        unstack({**arrays, "left": moved[:cut], "right": moved[cut:]})
    with pytest.raises(FormatError, match="types"):
        unstack({**arrays, "left": arrays["left"].view(np.float32)})


def test_a_structure_is_known_by_everything_it_holds() -> None:
    """Checks are remembered by a key; the same bytes in another shape or type have another."""
    right = MODEL.trees[1].structure
    right.check(MIXED)
    assert replace(right, left=right.left.copy()).key == right.key
    for name, array in right.arrays().items():
        for other in (array.reshape(-1, 1), array.astype(f">i{array.itemsize}")):
            assert replace(right, **{name: other}).key != right.key
    with pytest.raises(FormatError):
        replace(right, left=right.left.reshape(-1, 1)).check(MIXED)


def test_models_with_other_trees_or_schema_are_not_equal() -> None:
    assert Ensemble(MODEL.trees[:-1], MIXED, MODEL.statement) != MODEL
    renamed = Schema(MIXED.columns, MIXED.label, MIXED.unit, "another")
    assert Ensemble(MODEL.trees, renamed, MODEL.statement) != MODEL


# Statements


def test_a_statement_survives_its_plain_form() -> None:
    statement = Statement(
        "epsilon-delta", 1.0, 1e-6, "parties", parties=("a", "b", "c"), colluding=1,
        disclosures=(Disclosure("coordinator", "all parties", "row counts"),),
    )  # fmt: skip
    assert Statement.from_dict(statement.to_dict()) == statement
    assert "row counts" in statement.words()
    with pytest.raises(FormatError, match="writes statement format 3"):
        Statement.from_dict({**statement.to_dict(), "format": 3})
    with pytest.raises(FormatError, match="unknown key 'colour'; known: format, guarantee"):
        Statement.from_dict({**statement.to_dict(), "colour": "red"})


def test_a_model_with_more_thresholds_of_a_column_than_a_byte_has_numbers() -> None:
    edges = (np.arange(1, 400) / 400).astype(np.float32)

    def stump(edge: np.float32) -> Tree:
        leaf = single_leaf(np.zeros(1)).structure
        structure = Structure(
            feature=np.array([0, -1, -1], np.int32),
            threshold=np.array([edge, 0, 0], np.float32),
            missing_left=np.zeros(3, np.uint8),
            left=np.array([1, -1, -1], np.int32),
            right=np.array([2, -1, -1], np.int32),
            member_start=np.zeros(4, np.int32),
            members=leaf.members,
        )
        return Tree(structure, np.array([[0.0], [1.0]], np.float32))

    schema = Schema.from_bounds({"x": (0, 1)}, classes=[0, 1])
    model = Ensemble(tuple(stump(edge) for edge in edges), schema, small_model().statement)
    x = np.array([0.1, 0.5, 0.7, 0.99])
    passed = [float(np.sum(edges <= np.float32(value))) for value in x]
    assert model.decision_function({"x": x})[:, 0].tolist() == passed
    assert model.decision_function({"x": [None]})[0, 0] == len(edges)  # missing goes right
