"""One tree as flat arrays: a structure (what is asked) and a tree (structure plus leaf values)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.cards import Card, Shown
from hedgerow.data.schema import Categorical, Column, Schema
from hedgerow.errors import FormatError
from hedgerow.packing import pack

MAX_NODES = 1 << 20
_Kinds = tuple[tuple[str, str, tuple[int, ...]], ...]
FIELDS = ("feature", "threshold", "missing_left", "left", "right", "member_start", "members")
_BY_NAME = tuple(sorted(FIELDS))
DTYPES = (np.int32, np.float32, np.uint8, np.int32, np.int32, np.int32, np.uint64)
_TYPES = tuple(np.dtype(of) for of in DTYPES)
# By the numbers of `kernels.structures.objection`.
_OBJECTIONS = (
    "", "arrays do not have the same length", "nodes do not form a tree",
    "column is none of the schema's", "node is not described correctly",
    "threshold is not finite",
)  # fmt: skip
_NOISE = "what a tree says of its noise does not match its leaves"
MAX_CHECKED = 1024
# Keys of structures and hashes of schemas that they fit. Each structure comes several times: in a
# question, in its tree, and at every party of one process.
_CHECKED: dict[tuple[bytes, str], None] = {}


def member_words(column: Column) -> int:
    """64-bit words of a category set: one bit per listed category, then one for "other"."""
    return (len(column.categories) + 64) // 64 if isinstance(column, Categorical) else 0


T = TypeVar("T")


class _Once(Generic[T]):
    """A cached property without the lock that Python 3.11 takes for the first look at each.

    A fit makes hundreds of structures and looks at several properties of each. Whoever is second
    to compute one gets the same.
    """

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work, self._name = work, work.__name__

    def __get__(self, owner: object | None, kind: type[object] | None = None) -> T:
        if owner is None:  # asked of the class, by whoever documents it
            return cast(T, self)
        value = vars(owner)[self._name] = self._work(owner)
        return value


@dataclass(frozen=True, eq=False, repr=False)
class Structure(Shown):
    """Nodes in order, root first, children after their parent.

    An ordered split sends ``x < threshold`` left (ordinals by position in their list); a category
    split sends members right; a missing value goes where ``missing_left`` says. Leaves have
    feature -1 and are numbered in node order.
    """

    feature: NDArray[np.int32]  # (node,)
    threshold: NDArray[np.float32]  # (node,)
    missing_left: NDArray[np.uint8]  # (node,)
    left: NDArray[np.int32]  # (node,)
    right: NDArray[np.int32]  # (node,)
    member_start: NDArray[np.int32]  # (node + 1,) node i owns members[start[i]:start[i + 1]]
    members: NDArray[np.uint64]  # (word,)

    def _card(self) -> Card:
        return Card("Structure", (("nodes", self.n_nodes), ("leaves", self.n_leaves)))

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @_Once
    def n_leaves(self) -> int:
        return int(np.count_nonzero(self.feature < 0))

    @property
    def leaf(self) -> NDArray[np.int32]:
        """Leaf number of each node, -1 for inner nodes."""
        is_leaf = self.feature < 0
        return np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in FIELDS}

    @_Once
    def key(self) -> bytes:
        """A name that no other structure has: a hash over types, lengths and contents."""
        usual = self.usual
        head = str(self.kinds).encode() if usual is None else b"%d %d" % usual
        hashed = blake2b(head + b"\n")
        hashed.update(self.raw)
        return hashed.digest()

    @_Once
    def usual(self) -> tuple[int, int] | None:
        """How many nodes and words it has, if all types and shapes follow from that."""
        n, words = self.n_nodes, len(self.members)
        by_node, behind = (n,), (n + 1,)
        shapes = (by_node, by_node, by_node, by_node, by_node, behind, (words,))
        for name, dtype, shape in zip(FIELDS, _TYPES, shapes, strict=True):
            array = getattr(self, name)
            if array.dtype != dtype or array.shape != shape:
                return None
        return n, words

    @_Once
    def kinds(self) -> _Kinds:
        """Name, type and shape of every array, by name."""
        arrays = [(name, getattr(self, name)) for name in _BY_NAME]
        return tuple([(name, array.dtype.str, array.shape) for name, array in arrays])

    @_Once
    def raw(self) -> bytes:
        """Contents of the arrays, by name, as `packing` writes them."""
        return b"".join([getattr(self, name).tobytes() for name in _BY_NAME])

    def check(self, schema: Schema) -> None:
        """Raise FormatError unless this is a tree over the schema's columns."""
        if (known := (self.key, schema.hash)) not in _CHECKED:  # else it was checked before
            self._check(schema)
            while len(_CHECKED) >= MAX_CHECKED:
                with suppress(KeyError, RuntimeError):  # another thread was quicker
                    del _CHECKED[next(iter(_CHECKED))]
            _CHECKED[known] = None

    def _check(self, schema: Schema) -> None:
        n = self.n_nodes
        if not 1 <= n <= MAX_NODES:
            raise FormatError(f"a tree has {n} nodes; expected 1 to {MAX_NODES}")
        if self.usual is None:  # else all shapes are what they must be
            shapes = {getattr(self, name).shape for name in FIELDS[:5]}
            if shapes != {(n,)} or self.member_start.shape != (n + 1,) or self.members.ndim != 1:
                raise FormatError(f"a tree's {_OBJECTIONS[1]}")
        from hedgerow import kernels  # compiled loops load slowly, and plans need none

        what, node = kernels.objection(
            self.feature, self.threshold, self.missing_left, self.left, self.right,
            self.member_start, len(self.members), _words_of(schema),
        )  # fmt: skip
        if what == len(_OBJECTIONS):
            name = schema.columns[int(self.feature[node])].name
            raise FormatError(f"a split on {name!r} has a wrong category set")
        if what:
            raise FormatError(f"a tree's {_OBJECTIONS[what]}")


@dataclass(frozen=True, eq=False, repr=False)
class Tree(Shown):
    """A structure with one value per leaf and output."""

    structure: Structure
    values: NDArray[np.float32]  # (leaf, output)
    # What is known of the noise in the values, for people: it moves no prediction, has no part in
    # what makes two trees equal, and does not travel. NaN, or no array: not known.
    deviation: NDArray[np.float32] | None = None  # (leaf, output) of the noise in a value
    cover: NDArray[np.float32] | None = None  # (leaf,) released Hessians or rows of a leaf
    # Whether a release has noise of its own for every leaf; if not, leaves were made from each
    # other's sums, and deviations are those of values around their common level.
    independent: bool = True

    def _card(self) -> Card:
        n_leaves, n_outputs = self.values.shape
        return Card("Tree", (("leaves", n_leaves), ("outputs", n_outputs)))

    def scaled(self, factor: float) -> Tree:
        """The tree with all values times a number."""
        scale = np.float32(factor)
        noise = None if self.deviation is None else self.deviation * np.abs(scale)
        return Tree(self.structure, self.values * scale, noise, self.cover, self.independent)

    def check(self, schema: Schema, n_outputs: int) -> None:
        """Raise FormatError unless this is a tree over the schema with finite values."""
        check_trees([self], schema, n_outputs)

    def to_bytes(self) -> bytes:
        return self._bytes

    @_Once
    def _bytes(self) -> bytes:
        """As `pack` would: "values" stands behind all names of a structure's arrays."""
        values, usual = self.values, self.structure.usual
        if usual is not None and values.dtype == np.float32:
            head: bytes | None = _usual_head(*usual, *values.shape)
        else:
            head = _head((*self.structure.kinds, ("values", values.dtype.str, values.shape)))
        if head is None:  # written little-endian
            return pack({}, {**self.structure.arrays(), "values": values})
        return head + self.structure.raw + values.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self._bytes)


def check_trees(trees: Sequence[Tree], schema: Schema, n_outputs: int) -> None:
    """Raise FormatError unless all are trees over the schema with finite values."""
    noise = [np.zeros(0, np.float32)]
    for tree in trees:
        tree.structure.check(schema)
        if tree.values.shape != (tree.structure.n_leaves, n_outputs):
            raise FormatError("a tree's values do not match its leaves")
        known = ((tree.deviation, tree.values.shape), (tree.cover, tree.values.shape[:1]))
        for array, shape in known:
            if array is not None and array.shape != shape:
                raise FormatError(_NOISE)
            noise += [] if array is None else [array.ravel()]
    if trees and not bool(np.isfinite(np.concatenate([tree.values for tree in trees])).all()):
        raise FormatError("a tree's leaf value is not finite")
    said = np.concatenate(noise)  # NaN: not known
    if bool((said < 0).any() or np.isinf(said).any()):
        raise FormatError(_NOISE)


@lru_cache(maxsize=4096)
def _head(arrays: _Kinds) -> bytes | None:
    """What stands before arrays of these names, types and shapes; None if any is big-endian."""
    if any(dtype.startswith(">") for _, dtype, _ in arrays):
        return None
    empty = {name: np.broadcast_to(np.zeros((), dtype), shape) for name, dtype, shape in arrays}
    whole, size = pack({}, empty), sum(array.nbytes for array in empty.values())
    return whole[: len(whole) - size]


@lru_cache(maxsize=4096)
def _usual_head(n_nodes: int, n_words: int, *shape: int) -> bytes | None:
    """The same for a tree of so many nodes and words whose values have this shape."""
    lengths = (*(n_nodes,) * 5, n_nodes + 1, n_words)
    kinds = [(name, d.str, (n,)) for name, d, n in zip(FIELDS, _TYPES, lengths, strict=True)]
    return _head((*sorted(kinds), ("values", np.dtype(np.float32).str, shape)))


_WORDS: dict[str, NDArray[np.int64]] = {}


def _words_of(schema: Schema) -> NDArray[np.int64]:
    """`member_words` of every column; of the schema that was asked about last they are kept."""
    if (known := _WORDS.get(schema.hash)) is not None:
        return known
    words = np.array([member_words(column) for column in schema.columns], np.int64)
    _WORDS.clear()
    _WORDS[schema.hash] = words
    return words


def single_leaf(
    values: NDArray[np.floating[Any]],
    deviation: NDArray[np.floating[Any]] | None = None,
    cover: float | None = None,
) -> Tree:
    """A tree of one leaf: a constant added to every row's score, such as the base rate."""
    return Tree(
        Structure(
            feature=np.array([-1], np.int32),
            threshold=np.zeros(1, np.float32),
            missing_left=np.zeros(1, np.uint8),
            left=np.array([-1], np.int32),
            right=np.array([-1], np.int32),
            member_start=np.zeros(2, np.int32),
            members=np.zeros(0, np.uint64),
        ),
        np.asarray(values, np.float32).reshape(1, -1),
        None if deviation is None else np.asarray(deviation, np.float32).reshape(1, -1),
        None if cover is None else np.array([cover], np.float32),
    )
