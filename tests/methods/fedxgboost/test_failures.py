"""Parties that answer wrongly, die, or hold other rows: a clear error, and no model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hedgerow.data.tables import share_of
from hedgerow.errors import FormatError, HedgerowError, SessionFailed, SettingsError, TableError
from hedgerow.methods.fedxgboost.model import part_name
from hedgerow.methods.fedxgboost.role import VerticalRole
from hedgerow.methods.fedxgboost.run import agreement_for, vertical_role
from hedgerow.packing import pack, unpack
from hedgerow.protocol.roles import MemoryStore, Step
from tests.methods.fedxgboost.tables import OWNERS, schema_of, settings, shares, train, whole
from tests.sessions import run_roles


class Liar:
    """A passive party whose messages of one kind are changed."""

    def __init__(self, role: VerticalRole, kind: str, change: Any) -> None:
        self._role, self._kind, self._change = role, kind, change

    def step(self, messages: Any) -> Step:
        taken = self._role.step(messages)
        if not taken.messages:
            return taken
        ((reader, message),) = taken.messages.items()
        values, arrays = unpack(message)
        if values["kind"] == self._kind:
            message = self._change(values, arrays)
        return Step({reader: message}, taken.report, taken.done)


def run_with(kind: str, change: Any, **further: Any) -> dict[str, MemoryStore]:
    agreement = agreement_for(schema_of(), settings(n_trees=1, max_depth=2, **further), "local")
    stores = {name: MemoryStore() for name in agreement.parties}
    lying = {"shop": lambda role: Liar(role, kind, change)}
    try:
        run_roles(agreement, vertical_role, shares(whole(200)), schema_of(), stores, lying)
    finally:
        assert stores["bank"].get(part_name(agreement.run)) is None  # nothing is called a model
    return stores


def renamed(values: Any, arrays: Any) -> bytes:
    return pack({**values, "kind": "other"}, arrays)


def shorter(values: Any, arrays: Any) -> bytes:
    return pack(values, {name: array[:-1] for name, array in arrays.items()})


def not_finite(values: Any, arrays: Any) -> bytes:
    changed = {n: a * np.nan if a.dtype == np.float64 else a[:-1] for n, a in arrays.items()}
    return pack(values, changed)


def garbage(values: Any, arrays: Any) -> bytes:
    return b"\x00" * 30


@pytest.mark.parametrize("change", [renamed, shorter, not_finite, garbage])
@pytest.mark.parametrize(
    ("protection", "kind"),
    [
        ("none", "scores"), ("none", "sides"), ("smm-1", "answer"), ("smm-2", "kernel"),
        ("smm-2", "scores"), ("paillier", "sums"), ("paillier", "ready"),
    ],
)  # fmt: skip
def test_answers_of_a_wrong_kind_shape_or_value_end_the_run(
    protection: str, kind: str, change: Any
) -> None:
    with pytest.raises((FormatError, SessionFailed), match="shop"):
        run_with(kind, change, protection=protection)


def test_a_product_that_is_no_sum_of_gradients_is_found() -> None:
    def other(values: Any, arrays: Any) -> bytes:
        return pack(values, {name: array + 1e-3 for name, array in arrays.items()})

    with pytest.raises(SessionFailed, match="not a sum of gradients"):
        run_with("answer", other, protection="smm-1")


def test_a_party_that_never_answers_leaves_no_model() -> None:
    class Silent:
        def step(self, messages: Any) -> Step:
            return Step()

    agreement = agreement_for(schema_of(), settings(), "local")
    silent = {"phone": lambda role: Silent()}
    with pytest.raises(FormatError, match="due from"):
        run_roles(agreement, vertical_role, shares(whole(100)), schema_of(), changed=silent)


def test_other_ids_other_order_and_other_lengths_are_told_apart() -> None:
    table = whole(120)
    good = shares(table, ids=True)
    part = {"calls": table["calls"], "id": table["id"]}
    for changed, words in (
        ({**part, "id": table["id"][::-1]}, "another order"),
        ({**part, "id": [f"q{i}" for i in range(120)]}, "other ids"),
        ({name: list(values)[:100] for name, values in part.items()}, "100 rows"),
    ):
        phone = share_of(changed, schema_of(), "id")
        with pytest.raises(TableError, match=words):
            train({**good, "phone": phone}, schema_of(), settings())


def test_intersected_ids_put_shuffled_rows_in_one_order() -> None:
    table = whole(150)
    rng = np.random.default_rng(1)
    order = rng.permutation(150)[:120]
    shuffled = {name: [list(values)[i] for i in order] for name, values in table.items()}
    mixed = {**shares(table, ids=True), "phone": shares(shuffled, ids=True)["phone"]}
    _, roles = train(mixed, schema_of(), settings(ids="psi"))
    kept = {name: [list(values)[i] for i in sorted(order)] for name, values in table.items()}
    plain, _ = train(shares(kept), schema_of(), settings())
    assert roles["bank"].part is not None
    assert len(roles["bank"].part.trees) == len(plain["bank"].trees)
    sizes = [tree.values.shape for tree in roles["bank"].part.trees]
    assert sizes == [tree.values.shape for tree in plain["bank"].trees]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"owners": {**OWNERS, "age": "nobody"}}, "no column"),
        ({"owners": {k: v for k, v in OWNERS.items() if k != "age"}}, "no owner"),
        ({"owners": dict.fromkeys(OWNERS, "bank")}, "passive"),
        ({"active": "shop"}, "no labels"),
        ({"ids": "psi"}, "no ids"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_first_step(change: Any, words: str) -> None:
    tables = shares(whole(60))

    def begin() -> None:
        agreement = agreement_for(schema_of(), settings(**change), "local")
        for name in agreement.parties:
            rows = tables.get(name, tables["shop"])
            vertical_role(name, rows, schema_of(), agreement, MemoryStore())

    with pytest.raises(HedgerowError, match=words):
        begin()


@pytest.mark.parametrize("protection", ["smm-1", "smm-2"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_protection_that_does_not_protect_needs_to_be_allowed(
    protection: str, share: float
) -> None:
    with pytest.raises(SettingsError, match="does not protect"):
        settings(protection=protection, kernel_share=share, allow_unsafe=False)
