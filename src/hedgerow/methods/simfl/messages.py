"""What parties of a similarity run write to each other: each kind of message, packed and checked.

A message of a wrong shape, or with numbers that no rows could give, is a FormatError that says who
wrote it. Trees travel by codes of the base grid: about half of what flat arrays would take.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.errors import FormatError
from hedgerow.model.tree import Structure, Tree, member_words
from hedgerow.packing import pack
from hedgerow.protocol.peer_messages import PeerMessage

MOST_ROWS = 1 << 31
Words = NDArray[np.uint64]


class Facts(NamedTuple):
    """How many rows a party has, how far apart they lie, and what it remembers of a run."""

    n_rows: int
    spread: float
    kept: str  # the hash of it


def facts_message(n_rows: int, spread: float, kept: str = "") -> bytes:
    return pack({"kind": "facts", "rows": n_rows, "spread": spread, "kept": kept})


def read_facts(sender: str, data: bytes) -> Facts:
    message = PeerMessage(sender, "facts", data)
    rows, spread = message.values.get("rows"), message.values.get("spread")
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows < MOST_ROWS:
        raise message.wrong(f"it states {rows!r} rows")
    if not isinstance(spread, (int, float)) or not 0 <= spread < math.inf:
        raise message.wrong(f"it states a spread of {spread!r}")
    kept = message.values.get("kept")
    if not isinstance(kept, str):
        raise message.wrong(f"it says that it remembers {kept!r}")
    return Facts(rows, float(spread), kept)


def table_message(words: Words) -> bytes:
    return pack({"kind": "table"}, {"words": words})


def read_table(sender: str, data: bytes, n_rows: int, n_words: int) -> Words:
    """The hashes of a party's rows, or of those that it has added: (row, word)."""
    return PeerMessage(sender, "table", data).array("words", np.uint64, (n_rows, n_words))


def places_message(places: NDArray[np.uint32]) -> bytes:
    return pack({"kind": "places"}, {"rows": places})


def read_places(sender: str, data: bytes, n_rows: int) -> NDArray[np.uint32]:
    """Which of my rows are the most similar to some row of the sender: ascending."""
    message = PeerMessage(sender, "places", data)
    places = message.array("rows", np.uint32, (-1,))
    ascending = bool((np.diff(places.astype(np.int64)) > 0).all())
    if not len(places) or not ascending or int(places[-1]) >= n_rows:
        raise message.wrong(f"it does not name some of {n_rows} rows in ascending order")
    return places


def sums_message(kind: str, tree: int, sums: NDArray[np.float32]) -> bytes:
    return pack({"kind": kind, "tree": tree}, {"sums": sums})


def read_sums(
    sender: str, kind: str, data: bytes, tree: int, shape: tuple[int, int], n_rows: int
) -> NDArray[np.float32]:
    """Gradients and Hessians of the sender's rows, by my row or by leaf: (place, number)."""
    message = PeerMessage(sender, kind, data)
    _check_number(message, tree)
    sums = message.array("sums", np.float32, shape)
    # A row adds at most 1 to every number, in absolute value, whatever the loss.
    if not bool((np.abs(sums) <= n_rows).all()):
        raise message.wrong(f"its sums are larger than {n_rows} rows can give")
    return sums


def values_message(tree: int, values: NDArray[np.float32]) -> bytes:
    return pack({"kind": "values", "tree": tree}, {"values": values})


def read_values(sender: str, data: bytes, number: int, structure: Structure, k: int) -> Tree:
    """A tree whose structure is known already, with the values of its leaves."""
    message = PeerMessage(sender, "values", data)
    _check_number(message, number)
    values = message.array("values", np.float32, (structure.n_leaves, k))
    if not bool(np.isfinite(values).all()):
        raise message.wrong("a leaf value is not finite")
    return Tree(structure, values)


def tree_message(number: int, tree: Tree, schema: Schema) -> bytes:
    arrays = {**_shape(tree.structure, schema), "values": tree.values}
    return pack({"kind": "tree", "tree": number, "nodes": tree.structure.n_nodes}, arrays)


def shape_message(number: int, structure: Structure, schema: Schema) -> bytes:
    values = {"kind": "shape", "tree": number, "nodes": structure.n_nodes}
    return pack(values, _shape(structure, schema))


def read_tree(sender: str, data: bytes, number: int, schema: Schema, n_outputs: int) -> Tree:
    message = PeerMessage(sender, "tree", data)
    structure = _read_shape(message, number, schema)
    tree = Tree(structure, message.array("values", np.float32, (structure.n_leaves, n_outputs)))
    try:
        tree.check(schema, n_outputs)
    except FormatError as error:
        raise message.wrong(str(error)) from error
    return tree


def read_shape(sender: str, data: bytes, number: int, schema: Schema, max_depth: int) -> Structure:
    """A tree without values. Sums by its leaves are sent back: it is no deeper than agreed."""
    message = PeerMessage(sender, "shape", data)
    structure = _read_shape(message, number, schema)
    depth, left, right = [0] * structure.n_nodes, structure.left.tolist(), structure.right.tolist()
    for node in np.flatnonzero(structure.feature >= 0).tolist():  # parents before children
        depth[left[node]] = depth[right[node]] = depth[node] + 1
    if max(depth) > max_depth:
        raise message.wrong(f"its tree is deeper than {max_depth}, which was agreed on")
    return structure


def _shape(s: Structure, schema: Schema) -> dict[str, NDArray[Any]]:
    """A tree that was grown depth first, left before right; the order says which nodes belong."""
    grid, inner = base_grid(schema), np.flatnonzero(s.feature >= 0)
    features = s.feature[inner]
    edges = [
        int(grid[f].edges.searchsorted(s.threshold[node])) if grid[f].ordered else 0
        for f, node in zip(features.tolist(), inner.tolist(), strict=True)
    ]
    return {
        "inner": np.packbits(s.feature >= 0, bitorder="little"),
        "missing": np.packbits(s.missing_left[inner], bitorder="little"),
        "feature": _narrow(features),
        "edge": _narrow(np.array(edges, np.int64)),
        "members": s.members,
    }


def _check_number(message: PeerMessage, number: int) -> None:
    if message.values.get("tree") != number:
        raise message.wrong(f"it is tree {message.values.get('tree')!r}; expected {number}")


def _read_shape(message: PeerMessage, number: int, schema: Schema) -> Structure:
    _check_number(message, number)
    n = message.values.get("nodes")
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n < 1 << 20 or n % 2 == 0:
        raise message.wrong(f"it states {n!r} nodes")
    bits = message.array("inner", np.uint8, (-(-n // 8),))
    is_inner = np.unpackbits(bits, bitorder="little")[:n].astype(np.bool_)
    left, right = _children(is_inner, message)
    structure = _structure(message, is_inner, left, right, schema)
    try:
        structure.check(schema)
    except FormatError as error:
        raise message.wrong(str(error)) from error
    return structure


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.uint8 if not len(values) or values.max() < 256 else np.uint16)


def _children(is_inner: NDArray[np.bool_], message: PeerMessage) -> tuple[Any, Any]:
    """Left and right of nodes that are listed depth first, left before right."""
    n = len(is_inner)
    left, right = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    waiting: list[int] = []  # inner nodes whose right child comes later
    for node, inner in enumerate(is_inner.tolist()):
        if inner:
            if node + 1 == n:
                raise message.wrong("its nodes do not form a tree")
            left[node] = node + 1
            waiting.append(node)
        elif waiting:
            parent = waiting.pop()
            if node + 1 == n:
                raise message.wrong("its nodes do not form a tree")
            right[parent] = node + 1
        elif node + 1 != n:
            raise message.wrong("its nodes do not form a tree")
    return left, right


def _structure(
    message: PeerMessage, is_inner: NDArray[np.bool_], left: Any, right: Any, schema: Schema
) -> Structure:
    inner = np.flatnonzero(is_inner)
    k, n, grid = len(inner), len(is_inner), base_grid(schema)
    features = _whole(message, "feature", k, [len(schema.columns)] * k)
    most = [max(1, len(grid[f].edges)) for f in features]
    edges = _whole(message, "edge", k, most)
    missing = message.array("missing", np.uint8, (-(-k // 8),))
    words = [member_words(schema.columns[f]) for f in features]
    members = message.array("members", np.uint64, (sum(words),))
    feature, threshold = np.full(n, -1, np.int32), np.zeros(n, np.float32)
    missing_left, lengths = np.zeros(n, np.uint8), np.zeros(n + 1, np.int64)
    feature[inner] = features
    for node, f, edge in zip(inner.tolist(), features, edges, strict=True):
        threshold[node] = grid[f].edges[edge] if len(grid[f].edges) else 0.0
    missing_left[inner] = np.unpackbits(missing, bitorder="little")[:k]
    lengths[inner + 1] = words
    starts = np.cumsum(lengths).astype(np.int32)
    return Structure(feature, threshold, missing_left, left, right, starts, members)


def _whole(message: PeerMessage, name: str, n: int, below: Any) -> list[int]:
    """Whole numbers of one or two bytes, each below its own limit."""
    try:
        array = message.array(name, np.uint8, (n,))
    except FormatError:
        array = message.array(name, np.uint16, (n,))
    values: list[int] = array.tolist()
    if any(value >= most for value, most in zip(values, below, strict=True)):
        raise message.wrong(f"{name} has a number that the schema does not know")
    return values
