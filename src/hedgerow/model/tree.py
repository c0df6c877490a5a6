"""One tree as flat arrays: a structure (what is asked) and a tree (structure plus leaf values)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError
from hedgerow.packing import pack
from hedgerow.schema import Categorical, Column, Schema

MAX_NODES = 1 << 20
_Kinds = tuple[tuple[str, str, tuple[int, ...]], ...]
_FIELDS = ("feature", "threshold", "missing_left", "left", "right", "member_start", "members")
_BY_NAME = tuple(sorted(_FIELDS))
_DTYPES = (np.int32, np.float32, np.uint8, np.int32, np.int32, np.int32, np.uint64)
# By the numbers of `kernels.structures.objection`.
_OBJECTIONS = (
    "", "arrays do not have the same length", "nodes do not form a tree",
    "column is none of the schema's", "node is not described correctly",
    "threshold is not finite",
)  # fmt: skip
MAX_CHECKED = 1024
# Keys of structures and hashes of schemas that they fit. Each structure comes several times: in a
# question, in its tree, and at every party of one process.
_CHECKED: dict[tuple[bytes, str], None] = {}


def member_words(column: Column) -> int:
    """64-bit words of a category set: one bit per listed category, then one for "other"."""
    return (len(column.categories) + 64) // 64 if isinstance(column, Categorical) else 0


@dataclass(frozen=True, eq=False)
class Structure:
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

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @cached_property
    def n_leaves(self) -> int:
        return int(np.count_nonzero(self.feature < 0))

    @property
    def leaf(self) -> NDArray[np.int32]:
        """Leaf number of each node, -1 for inner nodes."""
        is_leaf = self.feature < 0
        return np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in _FIELDS}

    @cached_property
    def key(self) -> bytes:
        """A name that no other structure has: a hash over types, lengths and contents."""
        return blake2b(str(self.kinds).encode() + b"\n" + self.raw).digest()

    @cached_property
    def kinds(self) -> _Kinds:
        """Name, type and shape of every array, by name."""
        arrays = [(name, getattr(self, name)) for name in _BY_NAME]
        return tuple([(name, array.dtype.str, array.shape) for name, array in arrays])

    @cached_property
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
        shapes = {getattr(self, name).shape for name in _FIELDS[:5]}
        if shapes != {(n,)} or self.member_start.shape != (n + 1,) or self.members.ndim != 1:
            raise FormatError(f"a tree's {_OBJECTIONS[1]}")
        from hedgerow import kernels  # compiled loops load slowly, and plans need none

        arrays = [getattr(self, name) for name in _FIELDS[:6]]
        what, node = kernels.objection(*arrays, len(self.members), _words_of(schema))
        if what == len(_OBJECTIONS):
            name = schema.columns[int(self.feature[node])].name
            raise FormatError(f"a split on {name!r} has a wrong category set")
        if what:
            raise FormatError(f"a tree's {_OBJECTIONS[what]}")


@dataclass(frozen=True, eq=False)
class Tree:
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

    def scaled(self, factor: float) -> Tree:
        """The tree with all values times a number."""
        scale = np.float32(factor)
        noise = None if self.deviation is None else self.deviation * np.abs(scale)
        return replace(self, values=self.values * scale, deviation=noise)

    def check(self, schema: Schema, n_outputs: int) -> None:
        """Raise FormatError unless this is a tree over the schema with finite values."""
        if self._fits.get(schema.hash) != n_outputs:  # else it was checked before
            self._check(schema, n_outputs)
            self._fits[schema.hash] = n_outputs

    @cached_property
    def _fits(self) -> dict[str, int]:
        return {}

    def _check(self, schema: Schema, n_outputs: int) -> None:
        self.structure.check(schema)
        if self.values.shape != (self.structure.n_leaves, n_outputs):
            raise FormatError("a tree's values do not match its leaves")
        if not bool(np.isfinite(self.values).all()):
            raise FormatError("a tree's leaf value is not finite")
        shapes = ((self.deviation, self.values.shape), (self.cover, self.values.shape[:1]))
        for array, shape in shapes:
            if array is not None and (
                array.shape != shape or bool((array < 0).any() or np.isinf(array).any())
            ):
                raise FormatError("what a tree says of its noise does not match its leaves")

    def to_bytes(self) -> bytes:
        return self._bytes

    @cached_property
    def _bytes(self) -> bytes:
        """As `pack` would: "values" stands behind all names of a structure's arrays."""
        values = self.values
        head = _head((*self.structure.kinds, ("values", values.dtype.str, values.shape)))
        if head is None:  # written little-endian
            return pack({}, {**self.structure.arrays(), "values": values})
        return head + self.structure.raw + values.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self._bytes)


@lru_cache(maxsize=4096)
def _head(arrays: _Kinds) -> bytes | None:
    """What stands before arrays of these names, types and shapes; None if any is big-endian."""
    if any(dtype.startswith(">") for _, dtype, _ in arrays):
        return None
    empty = {name: np.broadcast_to(np.zeros((), dtype), shape) for name, dtype, shape in arrays}
    whole, size = pack({}, empty), sum(array.nbytes for array in empty.values())
    return whole[: len(whole) - size]


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


def stack(structures: Sequence[Structure]) -> dict[str, NDArray[Any]]:
    """Several structures as one set of arrays, for messages and files."""
    arrays = {
        name: np.concatenate([getattr(s, name) for s in structures])
        if structures
        else np.zeros(0, dtype)
        for name, dtype in zip(_FIELDS, _DTYPES, strict=True)
    }
    arrays["nodes"] = np.array([s.n_nodes for s in structures], np.int32)
    arrays["words"] = np.array([len(s.members) for s in structures], np.int32)
    return arrays


def unstack(arrays: dict[str, NDArray[Any]]) -> list[Structure]:
    """The inverse of `stack`; lengths are checked, contents are checked by `Structure.check`."""
    try:
        nodes, words = arrays["nodes"].astype(np.int64), arrays["words"].astype(np.int64)
        flat = {name: arrays[name] for name in _FIELDS}
    except KeyError as error:
        raise FormatError(f"trees lack the array {error}") from error
    n = int(nodes.sum())
    if any(flat[name].dtype != dtype for name, dtype in zip(_FIELDS, _DTYPES, strict=True)):
        raise FormatError("trees' arrays are not of the types they must have")
    if (
        len(nodes) != len(words)
        or bool((nodes < 1).any())
        or bool((words < 0).any())
        or any(flat[name].shape != (n,) for name in _FIELDS[:5])
        or flat["member_start"].shape != (n + len(nodes),)
        or flat["members"].shape != (int(words.sum()),)
    ):
        raise FormatError("trees' arrays do not have the lengths they state")
    node_end, word_end = np.cumsum(nodes), np.cumsum(words)
    structures = []
    for i, (stop, word_stop) in enumerate(zip(node_end, word_end, strict=True)):
        first, first_word = stop - nodes[i], word_stop - words[i]
        cut = {name: flat[name][first:stop] for name in _FIELDS[:5]}
        starts = flat["member_start"][first + i : stop + i + 1]
        members = flat["members"][first_word:word_stop]
        structures.append(Structure(**cut, member_start=starts, members=members))
    return structures


def stack_trees(trees: Sequence[Tree]) -> dict[str, NDArray[Any]]:
    """Trees with their values as one set of arrays."""
    arrays = stack([tree.structure for tree in trees])
    outputs = trees[0].values.shape[1] if trees else 1
    values = [tree.values for tree in trees]
    arrays["values"] = np.concatenate(values) if values else np.zeros((0, outputs), np.float32)
    return arrays


def unstack_trees(arrays: dict[str, NDArray[Any]]) -> list[Tree]:
    structures = unstack(arrays)
    values = arrays.get("values")
    ends = np.cumsum([s.n_leaves for s in structures])
    if values is None or values.ndim != 2 or len(values) != (ends[-1] if len(ends) else 0):
        raise FormatError("trees' values do not match their leaves")
    parts = np.split(values, ends[:-1]) if structures else []
    return [Tree(s, np.asarray(v, np.float32)) for s, v in zip(structures, parts, strict=True)]
