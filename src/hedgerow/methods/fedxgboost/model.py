"""A model split over parties: the active party's trees, and each party's own questions.

An inner node names an owner and the number of one of its splits. Thresholds and category sets stay
with their owner; leaf values stay with the active party. With all parts
`merged` makes one ensemble.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Schema
from hedgerow.errors import FormatError
from hedgerow.methods.fedxgboost.bins import Split
from hedgerow.methods.fedxgboost.places import MOST_DEPTH
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.exact import Ints
from hedgerow.model.losses import loss_for
from hedgerow.model.statement import Statement
from hedgerow.model.tree import Structure, Tree, member_words
from hedgerow.packing import pack, unpack

FORMAT = 2  # 2: where splits lie
_WORD = "hedgerow vertical part"


def part_name(run: str) -> str:
    """Under which name a store keeps the part of a run; everything else there has other ones."""
    return f"part-{run}"


def predictions_name(run: str) -> str:
    """The same for the predictions of a run."""
    return f"predicted-{run}"


@dataclass(frozen=True, eq=False)
class SharedTree:
    """One tree as the active party knows it: nodes root first, children after their parent."""

    owner: NDArray[np.int32]  # (node,): a party's place, -1 at leaves
    number: NDArray[np.int32]  # (node,): of the owner's splits; at leaves the leaf's
    left: NDArray[np.int32]  # (node,)
    right: NDArray[np.int32]  # (node,)
    values: NDArray[np.float32]  # (leaf, output)


@dataclass(frozen=True, eq=False)
class Part:
    """What one party keeps of a model: its own splits; the active party's also has the trees."""

    run: str
    party: str
    parties: tuple[str, ...]  # the active one first
    schema: Schema
    splits: tuple[Split, ...]
    statement: Statement
    trees: tuple[SharedTree, ...] = ()
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def is_active(self) -> bool:
        return self.party == self.parties[0]

    def handed_over(self) -> Part:
        """The same for others: what its owner thinks of them is its own affair."""
        return replace(self, record={k: v for k, v in self.record.items() if k != "doubted"})

    def to_bytes(self) -> bytes:
        values = {
            "what": _WORD, "format": FORMAT, "run": self.run, "party": self.party,
            "parties": list(self.parties), "schema": self.schema.to_dict(),
            "statement": self.statement.to_dict(), "record": self.record,
            "trees": [len(tree.owner) for tree in self.trees],
        }  # fmt: skip
        words = [split.members for split in self.splits]
        arrays: dict[str, NDArray[Any]] = {
            "column": np.array([s.column for s in self.splits], np.int32),
            "threshold": np.array([s.threshold for s in self.splits], np.float32),
            "missing_left": np.array([s.missing_left for s in self.splits], np.uint8),
            "tree": np.array([s.tree for s in self.splits], np.int32),
            "place": np.array([s.place for s in self.splits], np.int32),
            "members": np.concatenate([np.zeros(0, np.uint64), *words]),
        }
        for name, kind in (("owner", np.int32), ("number", np.int32), ("left", np.int32),
                           ("right", np.int32)):  # fmt: skip
            chunks = [getattr(tree, name) for tree in self.trees]
            arrays[name] = np.concatenate([np.zeros(0, kind), *chunks])
        k = loss_for(self.schema.label).n_outputs
        leaves = [tree.values for tree in self.trees]
        arrays["values"] = np.concatenate([np.zeros((0, k), np.float32), *leaves])
        return pack(values, arrays)

    @staticmethod
    def from_bytes(data: bytes) -> Part:
        """Read a part, with every number checked."""
        values, arrays = unpack(data)
        if values.get("what") != _WORD:
            raise FormatError("this is no part of a vertical model")
        if values.get("format") != FORMAT:
            raise FormatError(
                f"the part has format {values.get('format')!r} and this hedgerow reads {FORMAT}; "
                f"install the hedgerow version that writes part format {values.get('format')}"
            )
        try:
            schema = Schema.from_dict(values["schema"])
            parties = tuple(str(name) for name in values["parties"])
            part = Part(
                str(values["run"]), str(values["party"]), parties, schema,
                _splits(arrays, schema), Statement.from_dict(values["statement"]),
                _trees(arrays, [int(n) for n in values["trees"]], len(parties), schema),
                dict(values["record"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise FormatError("a part of a vertical model is not readable") from error
        if part.party not in parties:
            raise FormatError("a part belongs to no party of its model")
        return part


def _splits(arrays: Mapping[str, NDArray[Any]], schema: Schema) -> tuple[Split, ...]:
    column, members = arrays["column"].astype(np.int64), arrays["members"].astype(np.uint64)
    if bool((column < 0).any()) or bool((column >= len(schema.columns)).any()):
        raise FormatError("a part uses a column that the schema does not have")
    words = np.array([member_words(c) for c in schema.columns], np.int64)[column]
    ends = np.cumsum(words)
    if int(words.sum()) != len(members) or len(arrays["threshold"]) != len(column):
        raise FormatError("a part's splits do not have the lengths they state")
    if not bool(np.isfinite(arrays["threshold"]).all()):
        raise FormatError("a part's threshold is not finite")
    tree, place = arrays["tree"].astype(np.int64), arrays["place"].astype(np.int64)
    inside = (tree >= 0) & (place >= 1) & (place < 1 << MOST_DEPTH)
    if not bool(inside.all()):
        raise FormatError("a part's split lies in no tree")
    return tuple(
        Split(int(c), float(t), bool(m), members[end - w : end], int(of), int(at))
        for c, t, m, w, end, of, at in zip(
            column,
            arrays["threshold"],
            arrays["missing_left"],
            words,
            ends,
            tree,
            place,
            strict=True,
        )
    )


def _trees(
    arrays: Mapping[str, NDArray[Any]], nodes: Sequence[int], n_parties: int, schema: Schema
) -> tuple[SharedTree, ...]:
    k, trees, first, leaf = loss_for(schema.label).n_outputs, [], 0, 0
    values = np.asarray(arrays["values"], np.float32)
    if values.ndim != 2 or values.shape[1] != k or not bool(np.isfinite(values).all()):
        raise FormatError("a part's leaf values are not readable")
    for n in nodes:
        cut = slice(first, first + n)
        owner, number, left, right = (
            np.asarray(arrays[name][cut], np.int32) for name in ("owner", "number", "left", "right")
        )
        n_leaves = int(np.count_nonzero(owner < 0))
        trees.append(SharedTree(owner, number, left, right, values[leaf : leaf + n_leaves]))
        _check_tree(trees[-1], n, n_parties)
        first, leaf = first + n, leaf + n_leaves
    if first != len(arrays["owner"]) or leaf != len(values):
        raise FormatError("a part's trees do not have the lengths they state")
    return tuple(trees)


def _check_tree(tree: SharedTree, n: int, n_parties: int) -> None:
    inner = np.flatnonzero(tree.owner >= 0)
    children = np.sort(np.concatenate([tree.left[inner], tree.right[inner]]))
    wrong = (
        n < 1
        or len(tree.owner) != n
        or bool((tree.owner >= n_parties).any())
        or bool((tree.number < 0).any())
        or not np.array_equal(children, np.arange(1, n))
        or bool((tree.left[inner] <= inner).any())
        or bool((tree.right[inner] <= inner).any())
        or not np.array_equal(np.sort(tree.number[tree.owner < 0]), np.arange(n - len(inner)))
    )
    if wrong:
        raise FormatError("a part's nodes do not form a tree")


def merged(parts: Sequence[Part]) -> Ensemble:
    """One ensemble from the parts of all parties. Every owner has to hand over its own."""
    by_party = {part.party: part for part in parts}
    active = next((part for part in parts if part.is_active), None)
    if active is None or set(by_party) != set(active.parties) or len(parts) != len(by_party):
        given = ", ".join(sorted(by_party)) or "none"
        wanted = ", ".join(active.parties) if active else "the active party's among them"
        raise FormatError(f"a merged model needs the part of every party ({wanted}); got {given}")
    for part in parts:
        if part.run != active.run or part.schema.hash != active.schema.hash:
            raise FormatError(f"the part of {part.party} belongs to another run; merge one run's")
    own = [by_party[name].splits for name in active.parties]
    trees = tuple(_plain(tree, own) for tree in active.trees)
    record = {**active.handed_over().record, "merged": True}
    return Ensemble(trees, active.schema, active.statement, record=record)


def _plain(tree: SharedTree, splits: Sequence[Sequence[Split]]) -> Tree:
    n = len(tree.owner)
    feature, threshold = np.full(n, -1, np.int32), np.zeros(n, np.float32)
    missing_left, members = np.zeros(n, np.uint8), [np.zeros(0, np.uint64)]
    lengths: Ints = np.zeros(n + 1, np.int64)
    for node in np.flatnonzero(tree.owner >= 0).tolist():
        mine, number = splits[tree.owner[node]], int(tree.number[node])
        if number >= len(mine):
            raise FormatError("a tree asks for a split that its owner does not have")
        split = mine[number]
        feature[node], threshold[node] = split.column, split.threshold
        missing_left[node] = split.missing_left
        members.append(split.members)
        lengths[node + 1] = len(split.members)
    starts = np.cumsum(lengths).astype(np.int32)
    shape = (tree.left, tree.right, starts, np.concatenate(members))
    structure = Structure(feature, threshold, missing_left, *shape)
    order = tree.number[tree.owner < 0]  # leaves in node order have these rows of the values
    return Tree(structure, tree.values[order])
