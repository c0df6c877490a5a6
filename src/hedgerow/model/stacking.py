"""Several trees as one set of arrays, for messages, questions and files, and back.

The same structures come several times: in a question, at every party of one process, and in the
trees that follow. Those read or written last are kept by a hash of their arrays, so that a second
reading gives the same structures, with all that is known of them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError
from hedgerow.model.tree import DTYPES, FIELDS, Structure, Tree

MAX_KEPT, MAX_KEPT_NODES = 8, 1 << 16  # sets of structures, and nodes of each
K = TypeVar("K")
V = TypeVar("V")
Arrays = dict[str, NDArray[Any]]
_TYPES = tuple(np.dtype(of).name for of in DTYPES)
_READ: OrderedDict[bytes, tuple[Structure, ...]] = OrderedDict()
_WRITTEN: OrderedDict[tuple[bytes, ...], Arrays] = OrderedDict()
# Written since something was read last: within one process messages are not read.
_UNNAMED: deque[tuple[Arrays, tuple[Structure, ...]]] = deque(maxlen=MAX_KEPT)


def stack(structures: Sequence[Structure]) -> Arrays:
    """Several structures as one set of arrays, which are not to be written to."""
    keys = tuple([structure.key for structure in structures])
    if (known := _WRITTEN.get(keys)) is not None:
        return dict(known)
    arrays = {
        name: np.concatenate([getattr(s, name) for s in structures])
        if structures
        else np.zeros(0, dtype)
        for name, dtype in zip(FIELDS, DTYPES, strict=True)
    }
    arrays["nodes"] = np.array([s.n_nodes for s in structures], np.int32)
    arrays["words"] = np.array([len(s.members) for s in structures], np.int32)
    of_type = all(arrays[name].dtype == dtype for name, dtype in zip(FIELDS, DTYPES, strict=True))
    if of_type and _is_small(structures):
        _keep(_WRITTEN, keys, arrays)
        _UNNAMED.append((arrays, tuple(structures)))
    return dict(arrays)


def unstack(arrays: Arrays) -> list[Structure]:
    """The inverse of `stack`; lengths are checked, contents are checked by `Structure.check`."""
    nodes, words = _checked_lengths(arrays)
    with suppress(IndexError):  # until none is left
        while True:
            written, structures_written = _UNNAMED.popleft()
            _keep(_READ, _name_of(written), structures_written)
    name = _name_of(arrays)
    if (known := _READ.get(name)) is not None:
        return list(known)
    node_end, word_end = np.cumsum(nodes), np.cumsum(words)
    structures = []
    for i, (stop, word_stop) in enumerate(zip(node_end, word_end, strict=True)):
        first, first_word = stop - nodes[i], word_stop - words[i]
        cut = {field: arrays[field][first:stop] for field in FIELDS[:5]}
        starts = arrays["member_start"][first + i : stop + i + 1]
        members = arrays["members"][first_word:word_stop]
        structures.append(Structure(**cut, member_start=starts, members=members))
    if _is_small(structures):
        _keep(_READ, name, tuple(structures))
    return structures


def _checked_lengths(arrays: Arrays) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Nodes and words of every structure, if the arrays have the types and lengths they must."""
    try:
        stated = arrays["nodes"], arrays["words"]
        flat = {name: arrays[name] for name in FIELDS}
    except KeyError as error:
        raise FormatError(f"trees lack the array {error}") from error
    if any(a.dtype.kind not in "iu" or a.ndim != 1 for a in stated):
        raise FormatError("trees' arrays are not of the types they must have")
    nodes, words = (array.astype(np.int64) for array in stated)
    if nodes.shape != words.shape:
        raise FormatError("trees' arrays do not have the lengths they state")
    # In Python's whole numbers: sums of 64 bits could wrap around to a length that fits.
    n, n_words = sum(nodes.tolist()), sum(words.tolist())
    if any(flat[name].dtype != dtype for name, dtype in zip(FIELDS, DTYPES, strict=True)):
        raise FormatError("trees' arrays are not of the types they must have")
    if (
        bool((nodes < 1).any())
        or bool((words < 0).any())
        or any(flat[name].shape != (n,) for name in FIELDS[:5])
        or flat["member_start"].shape != (n + len(nodes),)
        or flat["members"].shape != (n_words,)
    ):
        raise FormatError("trees' arrays do not have the lengths they state")
    return nodes, words


def _name_of(arrays: Arrays) -> bytes:
    """A hash of the arrays, whose types and lengths were checked.

    Their lengths follow from the first two, so no other arrays are written the same way.
    """
    counts = [arrays[name].astype(np.int64).tobytes() for name in ("nodes", "words")]
    digest = blake2b(b"%d\n" % len(arrays["nodes"]))
    for raw in (*counts, *(arrays[name].tobytes() for name in FIELDS)):
        digest.update(raw)
    return digest.digest()


def _is_small(structures: Sequence[Structure]) -> bool:
    return sum(structure.n_nodes for structure in structures) <= MAX_KEPT_NODES


def _keep(kept: OrderedDict[K, V], name: K, value: V) -> None:
    while len(kept) >= MAX_KEPT:
        with suppress(KeyError):  # another thread was quicker
            kept.popitem(last=False)
    kept[name] = value


def stack_trees(trees: Sequence[Tree]) -> Arrays:
    """Trees with their values as one set of arrays."""
    arrays = stack([tree.structure for tree in trees])
    outputs = trees[0].values.shape[1] if trees else 1
    values = [tree.values for tree in trees]
    arrays["values"] = np.concatenate(values) if values else np.zeros((0, outputs), np.float32)
    return arrays


def stacked_shapes(trees: Sequence[Tree]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of every array of `stack_trees`, for some trees; it is not made for that."""
    known = [tree.structure.usual for tree in trees]
    sizes = [usual for usual in known if usual is not None]
    values = [tree.values for tree in trees]
    dtype, rest = values[0].dtype, values[0].shape[1:]
    alike = all(v.dtype == dtype and v.shape[1:] == rest for v in values)
    if len(sizes) < len(trees) or not alike:
        return {name: (a.dtype.name, a.shape) for name, a in stack_trees(trees).items()}
    n, words = sum(nodes for nodes, _ in sizes), sum(words for _, words in sizes)
    lengths = (n, n, n, n, n, n + len(trees), words)
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        name: (of, (length,)) for name, of, length in zip(FIELDS, _TYPES, lengths, strict=True)
    }
    shapes["nodes"] = shapes["words"] = ("int32", (len(trees),))
    shapes["values"] = (dtype.name, (sum(map(len, values)), *rest))
    return shapes


def unstack_trees(arrays: Arrays) -> list[Tree]:
    structures = unstack(arrays)
    values = arrays.get("values")
    ends = np.cumsum([s.n_leaves for s in structures])
    if values is None or values.ndim != 2 or len(values) != (ends[-1] if len(ends) else 0):
        raise FormatError("trees' values do not match their leaves")
    parts = np.split(values, ends[:-1]) if structures else []
    return [Tree(s, np.asarray(v, np.float32)) for s, v in zip(structures, parts, strict=True)]
