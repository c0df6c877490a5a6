"""An active party that asks, in a joint prediction, about rows where they cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow.errors import FormatError
from hedgerow.methods.fedxgboost.bins import Split
from hedgerow.methods.fedxgboost.model import Part, part_name
from hedgerow.methods.fedxgboost.run import (
    agreement_for,
    prediction_agreement,
    prediction_role,
    vertical_role,
)
from hedgerow.packing import pack, unpack
from hedgerow.protocol.roles import MemoryStore
from tests.methods.fedxgboost.tables import schema_of, settings, shares, train, whole
from tests.randomness import cached
from tests.sessions import run_roles

N_ROWS = 60


@cached
def _parts() -> dict[str, Part]:
    return train(shares(whole(400)), schema_of(), settings(n_trees=6, max_depth=4))[0]


class Shop:
    """A passive party's side of a prediction, asked by whoever is the active one."""

    def __init__(self) -> None:
        part = _parts()["shop"]
        self.splits = part.splits
        chosen = settings(n_trees=6, max_depth=4)
        agreement = prediction_agreement(schema_of(), chosen, part.run, "predicted")
        store = MemoryStore()
        store.put(part_name(part.run), part.to_bytes())
        rows = shares(whole(N_ROWS, seed=4))["shop"]
        self._role = prediction_role("shop", rows, schema_of(), agreement, store)
        self._role.step({})
        self._say(pack({"kind": "ids-agreed", "salt": "00" * 32}))

    def ask(self, wanted: dict[int, np.ndarray]) -> np.ndarray:
        """Which way rows go, all after each other; by number of a split the rows asked about."""
        numbers = sorted(wanted)
        rows = np.stack([np.packbits(wanted[k], bitorder="little") for k in numbers])
        arrays = {"numbers": np.array(numbers, np.int64), "rows": rows}
        said = self._say(pack({"kind": "sides"}, arrays))
        count = sum(int(wanted[k].sum()) for k in numbers)
        bits = np.unpackbits(unpack(said)[1]["bits"], bitorder="little")[:count]
        return bits.astype(np.bool_)

    def _say(self, message: bytes) -> bytes:
        return self._role.step({"bank": message}).messages["bank"]

    def numbers(self, tree: int) -> list[int]:
        return [k for k, split in enumerate(self.splits) if split.tree == tree]


class Once(MemoryStore):
    """A store that notices when something is put in the place of something else."""

    def put(self, name: str, data: bytes) -> None:
        assert self.get(name) is None, name
        super().put(name, data)


@pytest.mark.parametrize("run", ["predicted-one", "begun-one", "part-one", "one"])
def test_no_name_of_a_run_takes_the_place_of_what_is_kept(run: str) -> None:
    """The coordinator chooses names; what a site keeps of a run has places of its own."""
    stores = {name: Once() for name in ("bank", "phone", "shop")}
    tables = shares(whole(60))
    own = settings(n_trees=1, max_depth=1, protection="ldp")
    first = agreement_for(schema_of(), own, "model")
    run_roles(first, vertical_role, tables, schema_of(), stores)
    asked = prediction_agreement(schema_of(), own, "model", "one")
    run_roles(asked, prediction_role, tables, schema_of(), stores)
    second = agreement_for(schema_of(), own, run)
    run_roles(second, vertical_role, tables, schema_of(), stores)


ALL = np.ones(N_ROWS, np.bool_)


def _below(one: Split, other: Split) -> bool:
    """Whether the second lies below the first."""
    steps = other.place.bit_length() - one.place.bit_length()
    return one.tree == other.tree and steps > 0 and other.place >> steps == one.place


def _pair(below: bool) -> tuple[int, int]:
    """Two splits of one tree, one below the other or not."""
    splits = _parts()["shop"].splits
    return next(
        (a, b)
        for a, one in enumerate(splits)
        for b, other in enumerate(splits)
        if a < b and one.tree == other.tree and _below(one, other) == below
    )


def test_a_column_is_not_read_cut_by_cut() -> None:
    """Every split for every row would show in which part of its columns each row lies."""
    shop = Shop()
    assert len(shop.splits) > 6
    with pytest.raises(FormatError, match="cannot have reached"):
        shop.ask(dict.fromkeys(range(len(shop.splits)), ALL))


def test_each_tree_is_gone_down_once() -> None:
    shop = Shop()
    first = [shop.numbers(tree)[0] for tree in range(6) if shop.numbers(tree)]
    assert len(shop.ask(dict.fromkeys(first, ALL))) == N_ROWS * len(first)
    with pytest.raises(FormatError, match="cannot have reached"):
        shop.ask({first[0]: ALL})


def test_a_row_does_not_come_to_two_branches() -> None:
    one, other = _pair(below=False)
    shop, some = Shop(), np.arange(N_ROWS) < 7
    shop.ask({one: some})
    shop.ask({other: ~some})
    with pytest.raises(FormatError, match="cannot have reached"):
        shop.ask({other: np.arange(N_ROWS) == 3})


def test_a_row_goes_on_where_it_was_sent() -> None:
    one, other = _pair(below=True)
    shop = Shop()
    first, second = shop.splits[one], shop.splits[other]
    steps = second.place.bit_length() - first.place.bit_length() - 1
    on_the_right = bool(second.place >> steps & 1)
    right = shop.ask({one: ALL})
    assert 0 < right.sum() < N_ROWS
    arrived = right == on_the_right
    lost = np.flatnonzero(~arrived)[0]
    shop.ask({other: arrived})
    with pytest.raises(FormatError, match="cannot have reached"):
        shop.ask({other: np.arange(N_ROWS) == lost})
