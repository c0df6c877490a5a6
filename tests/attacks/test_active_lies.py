"""An active party that asks passive ones for more than a vertical run would ask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hedgerow.errors import FormatError
from hedgerow.methods.fedxgboost.aligning import PassiveRows
from hedgerow.methods.fedxgboost.alignment import ActiveAlignment
from hedgerow.methods.fedxgboost.run import agreement_for, vertical_role
from hedgerow.packing import pack, unpack
from hedgerow.protocol.peer_messages import PeerMessage
from hedgerow.protocol.roles import MemoryStore
from tests.methods.fedxgboost.tables import schema_of, settings, shares, whole
from tests.sessions import delivered

N_ROWS = 100


class Shop:
    """A passive party with an active one that writes whatever it likes."""

    def __init__(self, **further: Any) -> None:
        chosen = settings(n_trees=2, **{"max_depth": 2, **further})
        agreement = agreement_for(schema_of(), chosen, "r")
        rows = shares(whole(N_ROWS))["shop"]
        self._role = vertical_role("shop", rows, schema_of(), agreement, MemoryStore())
        self._role.step({})
        self.ask("ids-agreed", {}, salt="00" * 16)
        self.ask("begin")

    def ask(self, kind: str, arrays: Any = None, **values: Any) -> None:
        self.told(kind, arrays, **values)

    def told(self, kind: str, arrays: Any = None, **values: Any) -> Any:
        """The arrays of the answer."""
        taken = self._role.step({"bank": pack({"kind": kind, **values}, arrays or {})})
        assert set(taken.messages) == {"bank"}
        return unpack(taken.messages["bank"])[1]

    def tree(self) -> None:
        numbers = np.stack([np.tile([-8, 8], N_ROWS // 2), np.full(N_ROWS, 4)], axis=1)
        self.ask("numbers", {"numbers": (numbers << 20).astype(np.int32)})

    def level(self, node: Any, parent: Any) -> None:
        arrays = {"node": np.asarray(node, np.uint8), "parent": np.asarray(parent, np.int64)}
        self.ask("level", arrays)

    def root(self) -> None:
        self.tree()
        self.level(np.zeros(N_ROWS), [-1])


HALVES = np.arange(N_ROWS) % 2


def test_levels_as_a_run_has_them_are_answered() -> None:
    shop = Shop()
    for _ in range(2):
        shop.root()
        shop.level(HALVES, [0, 0])


@pytest.mark.parametrize(
    ("node", "parent", "words"),
    [
        (np.where(np.arange(N_ROWS) == 7, 0, 1), [0, 0], "a node has 1 rows; at least 16"),
        (np.where(np.arange(N_ROWS) < 15, 0, 1), [0], "a node has 15 rows; at least 16"),
        (np.arange(N_ROWS) % 3, [0, 0, 0], "more than two children"),
        (HALVES, [0, -1], "rows that its parent did not have"),
    ],
)
def test_nodes_that_single_out_rows_are_not_answered(node: Any, parent: Any, words: str) -> None:
    shop = Shop()
    shop.root()
    with pytest.raises(FormatError, match=words):
        shop.level(node, parent)


def test_a_tree_begins_with_all_rows() -> None:
    for node, parent in ((HALVES, [-1]), (HALVES, [-1, -1])):
        shop = Shop()
        shop.tree()
        with pytest.raises(FormatError, match="begin with all rows"):
            shop.level(node, parent)


def test_rows_do_not_come_from_another_node_than_the_parent() -> None:
    shop = Shop(min_rows=2)
    shop.root()
    shop.level(HALVES, [0, 0])
    shop._role.settings.__dict__["max_depth"] = 3  # the level alone is to be refused
    with pytest.raises(FormatError, match="its parent did not have"):
        shop.level(1 - HALVES, [0, 1])


def test_rows_of_a_partys_own_split_go_the_way_that_it_said() -> None:
    for change in ("moved", "fewer"):
        shop = Shop(min_rows=2, max_depth=3)
        shop.root()
        reply = shop.told("split", {"nodes": np.zeros(1, np.int64)})
        right = np.unpackbits(reply["bits"], bitorder="little")[:N_ROWS]
        assert 5 < right.sum() < N_ROWS - 5
        node = right.copy()
        node[np.flatnonzero(right)[0]] = 0 if change == "moved" else 2
        with pytest.raises(FormatError, match="go the way that this party said"):
            shop.level(node, [0, 0])
        shop = Shop(min_rows=2, max_depth=3)
        shop.root()
        shop.told("split", {"nodes": np.zeros(1, np.int64)})
        shop.level(right, [0, 0])  # as it was
        shop = Shop(min_rows=2, max_depth=3)
        shop.root()
        shop.told("split", {"nodes": np.zeros(1, np.int64)})
        shop.level(np.where(right, 0, 1), [0])  # the left side is closed


def test_no_tree_level_or_beginning_more_than_agreed() -> None:
    shop = Shop()
    shop.root()
    shop.level(HALVES, [0, 0])
    with pytest.raises(FormatError, match="deeper than the 2 agreed"):
        shop.level(HALVES, [0, 1])
    shop = Shop()
    shop.tree()
    shop.tree()
    with pytest.raises(FormatError, match="more than the 2 agreed trees"):
        shop.tree()
    shop = Shop()
    with pytest.raises(FormatError, match="has begun before"):
        shop.ask("begin")


def test_splits_of_a_level_are_told_once() -> None:
    shop = Shop()
    shop.root()
    nodes = {"nodes": np.zeros(1, np.int64)}
    shop.ask("split", nodes)
    with pytest.raises(FormatError, match="twice for splits"):
        shop.ask("split", nodes)


def test_rows_are_put_in_order_once_and_are_as_many_as_agreed() -> None:
    shop = Shop()
    with pytest.raises(FormatError, match="in order once"):
        shop.ask("ids-agreed", {}, salt="00" * 16)
    rows = shares(whole(N_ROWS), ids=True)["shop"]
    for count, words in ((15, "15 rows are common to all; at least 16"), (16, "")):
        passive = PassiveRows(rows, settings(ids="psi"))
        alignment = ActiveAlignment([f"p{i:05d}" for i in range(count)])
        request = np.frombuffer(alignment.request("shop"), np.uint8)
        answer = passive.answer("ids-request", _message("ids-request", request=request))
        alignment.receive("shop", unpack(answer)[1]["response"].tobytes())
        told = _message("ids-common", told=np.frombuffer(alignment.finish()[0], np.uint8))
        if not words:
            passive.answer("ids-common", told)
            continue
        with pytest.raises(FormatError, match=words):
            passive.answer("ids-common", told)


def _message(kind: str, **arrays: Any) -> PeerMessage:
    return PeerMessage("bank", kind, pack({"kind": kind}, arrays))


def test_columns_are_not_read_cut_by_cut_where_the_active_party_scores() -> None:
    """Every cut of every column, one after the other, would be the whole order of the rows."""
    shop = Shop(protection="smm-1")
    shop.ask("tree")
    shop.level(np.zeros(N_ROWS), [-1])
    widest = 32
    for cut, wanted in ((3, None), (4, "twice for splits")):
        right = np.zeros((1, widest), np.uint8)
        right[0, cut:31] = 1
        arrays = {"nodes": np.zeros(1, np.int64), "columns": np.ones(1, np.int64), "rights": right}
        if wanted is None:
            shop.ask("split", arrays)
            continue
        with pytest.raises(FormatError, match=wanted):
            shop.ask("split", arrays)


@pytest.mark.parametrize(
    ("starts", "categorical"),
    [
        ([0, 10, 10 + (1 << 23)], [1, 0]),  # memory of the active party would grow with it
        ([0, 11, 43, 60], [1, 0, 0]),  # a column that the party does not have
        ([0, 11, 43], [0, 0]),
        ([0, 43, 54], [1, 0]),
        ([5, 11, 43], [1, 0]),
    ],
)
@pytest.mark.parametrize("protection", ["paillier", "smm-1"])
def test_a_passive_party_has_the_columns_of_the_agreement(
    starts: list[int], categorical: list[int], protection: str
) -> None:
    arrays = {"starts": np.array(starts), "categorical": np.array(categorical, np.uint8)}
    with pytest.raises(FormatError, match=r"starts has shape|not those of the schema"):
        _run_with(pack({"kind": "ready"}, arrays), protection)


def _run_with(ready: bytes, protection: str) -> None:
    """A run in which the shop says something else of its columns."""
    agreement = agreement_for(schema_of(), settings(n_trees=1, protection=protection), "r")
    roles = {
        name: vertical_role(name, rows, schema_of(), agreement, MemoryStore())
        for name, rows in shares(whole(N_ROWS)).items()
    }
    messages: dict[str, dict[str, bytes]] = {name: {} for name in roles}
    for _ in range(8):
        steps = {name: role.step(messages[name]) for name, role in roles.items()}
        messages = delivered(steps)
        if b'"ready"' in messages["bank"].get("shop", b""):
            messages["bank"]["shop"] = ready
