"""Messages of a wrong shape are refused with words that say whose they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hedgerow.data.schema import Label
from hedgerow.errors import FormatError
from hedgerow.methods.simfl import messages as post
from hedgerow.methods.simfl.boosting import Grower, TreeRule
from hedgerow.methods.simfl.run import agreement_for, similarity_role
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.exact import gradients
from hedgerow.model.losses import loss_for
from hedgerow.packing import pack, unpack
from hedgerow.protocol.roles import MemoryStore, Step
from tests.methods.simfl.tables import dealt, mixed_rows
from tests.sessions import delivered

STEPS = ("facts", "table", "places", "sums", "shape", "leaves", "values")


def run_until(kind: str, change: Callable[[bytes], bytes | None]) -> None:
    """Two parties take steps; the first message of this kind is changed on its way."""
    schema, rows = mixed_rows(80)
    agreement = agreement_for(schema, ("p0", "p1"), SimilaritySettings(n_trees=2, max_depth=2), "r")
    tables = dealt(rows, 2)
    roles = {n: similarity_role(n, tables[n], schema, agreement, MemoryStore()) for n in tables}
    inboxes: dict[str, dict[str, bytes]] = {n: {} for n in roles}
    for _ in range(20):
        steps: dict[str, Step] = {n: roles[n].step(inboxes[n]) for n in roles}
        inboxes = delivered(steps)
        for inbox in inboxes.values():
            for sender, message in list(inbox.items()):
                if unpack(message)[0]["kind"] == kind:
                    changed = change(message)
                    if changed is None:
                        del inbox[sender]
                    else:
                        inbox[sender] = changed
        if all(step.done for step in steps.values()):
            return


def reshaped(message: bytes) -> bytes:
    values, arrays = unpack(message)
    for name, array in arrays.items():
        arrays[name] = np.concatenate([array, array[:1]]) if len(array) else array
    return pack({**values, "rows": -1} if values["kind"] == "facts" else values, arrays)


def of_another_kind(message: bytes) -> bytes:
    values, arrays = unpack(message)
    return pack({**values, "kind": "other"}, arrays)


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize(
    "change", [reshaped, of_another_kind, lambda message: message[:-1], lambda message: b"\x00"]
)
def test_a_message_of_a_wrong_shape_is_refused(kind: str, change: Any) -> None:
    with pytest.raises(FormatError, match=rf"message of p[01] \({kind}\) cannot be read"):
        run_until(kind, change)


@pytest.mark.parametrize("kind", STEPS)
def test_a_message_that_does_not_come_is_missed(kind: str) -> None:
    with pytest.raises(FormatError, match=r"are due from \['p[01]'\], but came from \[\]"):
        run_until(kind, lambda message: None)


def test_messages_as_they_are_go_through() -> None:
    run_until("none", lambda message: None)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e9])
def test_sums_that_no_rows_could_give_are_refused(value: float) -> None:
    sums = np.full((3, 2), value, np.float32)
    with pytest.raises(FormatError, match="larger than 40 rows can give"):
        post.read_sums("x", "sums", post.sums_message("sums", 0, sums), 0, (3, 2), 40)


def test_places_must_ascend_and_exist() -> None:
    for places in ([], [2, 1], [1, 1], [5]):
        message = post.places_message(np.array(places, np.uint32))
        with pytest.raises(FormatError, match="some of 5 rows in ascending order"):
            post.read_places("x", message, 5)


@pytest.mark.parametrize("label", [None, Label("sick", ("a", "b", "c"))])
def test_a_tree_survives_its_message(label: Label | None) -> None:
    schema, rows = mixed_rows(300, label=label)
    loss = loss_for(schema.label)
    numbers = gradients(loss, np.zeros((300, loss.n_outputs)), rows.target)
    tree, _ = Grower(rows, schema).tree(numbers, TreeRule(6, 0.1, 1.0, 0.5))
    message = post.tree_message(4, tree, schema)
    assert post.read_tree("x", message, 4, schema, loss.n_outputs) == tree
    with pytest.raises(FormatError, match="it is tree 4; expected 5"):
        post.read_tree("x", message, 5, schema, loss.n_outputs)
    shape = post.read_shape("x", post.shape_message(4, tree.structure, schema), 4, schema, 6)
    values = post.read_values("x", post.values_message(4, tree.values), 4, shape, loss.n_outputs)
    assert values == tree


def test_any_broken_tree_is_refused_and_none_is_half_read() -> None:
    schema, rows = mixed_rows(300)
    numbers = gradients(loss_for(schema.label), np.zeros((300, 1)), rows.target)
    tree, _ = Grower(rows, schema).tree(numbers, TreeRule(4, 0.1, 1.0, 0.5))
    message = post.tree_message(0, tree, schema)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        broken = bytearray(message)
        broken[rng.integers(4, len(message))] ^= 1 << int(rng.integers(8))
        try:
            post.read_tree("x", bytes(broken), 0, schema, 1).check(schema, 1)
        except FormatError:
            refused += 1
    assert refused > 100
