"""Letters of a wrong shape are refused with words that say whose they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hedgerow.data.schema import Label
from hedgerow.errors import FormatError
from hedgerow.methods.simfl import messages as post
from hedgerow.methods.simfl.boosting import Grower, TreeRule
from hedgerow.methods.simfl.run import agreement_for, similarity_program
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.exact import gradients
from hedgerow.model.losses import loss_for
from hedgerow.packing import pack, unpack
from hedgerow.protocol.roles import Step, delivered
from tests.methods.simfl.tables import dealt, mixed_rows

STEPS = ("facts", "table", "places", "sums", "shape", "leaves", "values")


def run_until(kind: str, change: Callable[[bytes], bytes | None]) -> None:
    """Two parties talk; the first letter of this kind is changed on its way to p0 or p1."""
    schema, rows = mixed_rows(80)
    agreement = agreement_for(schema, ("p0", "p1"), SimilaritySettings(n_trees=2, max_depth=2))
    tables = dealt(rows, 2)
    programs = {n: similarity_program(n, tables[n], schema, agreement) for n in tables}
    inboxes: dict[str, dict[str, bytes]] = {n: {} for n in programs}
    for _ in range(20):
        steps: dict[str, Step] = {n: programs[n].step(inboxes[n]) for n in programs}
        inboxes = delivered(steps)
        for inbox in inboxes.values():
            for writer, letter in list(inbox.items()):
                if unpack(letter)[0]["kind"] == kind:
                    changed = change(letter)
                    if changed is None:
                        del inbox[writer]
                    else:
                        inbox[writer] = changed
        if all(step.done for step in steps.values()):
            return


def reshaped(letter: bytes) -> bytes:
    values, arrays = unpack(letter)
    for name, array in arrays.items():
        arrays[name] = np.concatenate([array, array[:1]]) if len(array) else array
    return pack({**values, "rows": -1} if values["kind"] == "facts" else values, arrays)


def of_another_kind(letter: bytes) -> bytes:
    values, arrays = unpack(letter)
    return pack({**values, "kind": "other"}, arrays)


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize(
    "change", [reshaped, of_another_kind, lambda letter: letter[:-1], lambda letter: b"\x00"]
)
def test_a_letter_of_a_wrong_shape_is_refused(kind: str, change: Any) -> None:
    with pytest.raises(FormatError, match=rf"letter of p[01] \({kind}\) cannot be read"):
        run_until(kind, change)


@pytest.mark.parametrize("kind", STEPS)
def test_a_letter_that_does_not_come_is_missed(kind: str) -> None:
    with pytest.raises(FormatError, match=r"are due from \['p[01]'\], but came from \[\]"):
        run_until(kind, lambda letter: None)


def test_letters_as_they_are_go_through() -> None:
    run_until("none", lambda letter: None)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e9])
def test_sums_that_no_rows_could_give_are_refused(value: float) -> None:
    sums = np.full((3, 2), value, np.float32)
    with pytest.raises(FormatError, match="larger than 40 rows can give"):
        post.read_sums("x", "sums", post.sums_letter("sums", 0, sums), 0, (3, 2), 40)


def test_places_must_ascend_and_exist() -> None:
    for places in ([], [2, 1], [1, 1], [5]):
        letter = post.places_letter(np.array(places, np.uint32))
        with pytest.raises(FormatError, match="some of 5 rows in ascending order"):
            post.read_places("x", letter, 5)


@pytest.mark.parametrize("label", [None, Label("sick", ("a", "b", "c"))])
def test_a_tree_survives_its_letter(label: Label | None) -> None:
    schema, rows = mixed_rows(300, label=label)
    loss = loss_for(schema.label)
    numbers = gradients(loss, np.zeros((300, loss.n_outputs)), rows.target)
    tree, _ = Grower(rows, schema).tree(numbers, TreeRule(6, 0.1, 1.0, 0.5))
    letter = post.tree_letter(4, tree, schema)
    assert post.read_tree("x", letter, 4, schema, loss.n_outputs) == tree
    with pytest.raises(FormatError, match="it is tree 4; expected 5"):
        post.read_tree("x", letter, 5, schema, loss.n_outputs)
    shape = post.read_shape("x", post.shape_letter(4, tree.structure, schema), 4, schema, 6)
    values = post.read_values("x", post.values_letter(4, tree.values), 4, shape, loss.n_outputs)
    assert values == tree


def test_any_broken_tree_is_refused_and_none_is_half_read() -> None:
    schema, rows = mixed_rows(300)
    numbers = gradients(loss_for(schema.label), np.zeros((300, 1)), rows.target)
    tree, _ = Grower(rows, schema).tree(numbers, TreeRule(4, 0.1, 1.0, 0.5))
    letter = post.tree_letter(0, tree, schema)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        broken = bytearray(letter)
        broken[rng.integers(4, len(letter))] ^= 1 << int(rng.integers(8))
        try:
            post.read_tree("x", bytes(broken), 0, schema, 1).check(schema, 1)
        except FormatError:
            refused += 1
    assert refused > 100
