"""Leaves of a tree as questions name them: which are asked, about which columns, for how much.

Shared by the questions of pure plans; what they answer, and its bound, stays with each of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.model.routing import shared_routes
from hedgerow.model.tree import Structure
from hedgerow.privacy.accounting.paths import Priced, split_hash
from hedgerow.privacy.accounting.pure import LEAST_PRICE, MOST_PRICE
from hedgerow.queries.base import Sensitivity

NO_COLUMN = -1  # stands for all rows of a leaf, in one bin
MOST_LEAVES = 1 << 13


@dataclass(frozen=True)
class Asked:
    """One leaf that is asked about: its number, the columns, and the epsilon each of them costs."""

    leaf: int
    columns: tuple[int, ...]
    price: float

    @property
    def cost(self) -> float:
        # What each row of the leaf pays: one price a column. Rows elsewhere pay nothing.
        return len(self.columns) * self.price


def places_of(structure: Structure) -> list[int]:
    """The place of every node: 1 for the root, 2h and 2h + 1 for the children of h."""
    places = [1] * structure.n_nodes
    left, right = structure.left.tolist(), structure.right.tolist()
    for node in np.flatnonzero(structure.feature >= 0).tolist():
        places[left[node]] = 2 * places[node]
        places[right[node]] = 2 * places[node] + 1
    return places


def priced_tree(structure: Structure, asked: Sequence[Asked]) -> Priced:
    """What a query charges, by place. Places follow from the tree and cannot be stated."""
    splits, leaves = _named_splits(structure)
    return Priced(dict(splits), {leaves[node.leaf]: node.cost for node in asked})


def _named_splits(structure: Structure) -> tuple[dict[int, str], list[int]]:
    """The hash of every split by place, and the places of the leaves. Not to be written to."""
    kept: dict[str, Any] = vars(structure)  # frozen: named once, as a cached property would be
    if "_named_splits" not in kept:
        places, splits = places_of(structure), {}
        for node in np.flatnonzero(structure.feature >= 0).tolist():
            first, last = structure.member_start[node : node + 2]
            splits[places[node]] = split_hash(
                structure.feature[node].tobytes(),
                structure.threshold[node].tobytes(),
                structure.missing_left[node].tobytes(),
                structure.members[first:last].tobytes(),
            )
        leaves = np.flatnonzero(structure.feature < 0).tolist()
        kept["_named_splits"] = splits, [places[node] for node in leaves]
    named: tuple[dict[int, str], list[int]] = kept["_named_splits"]
    return named


def sensitivity_of(asked: Sequence[Asked]) -> Sensitivity:
    """The sensitivity of a query in which a row moves one count a column of its leaf, by at most 1.

    Counts are measured in units of 1 / price, so a row of a leaf moves the answer by what its leaf
    pays, and rows of other leaves by what theirs do: the largest of them is the bound.
    """
    l1 = max(node.cost for node in asked)
    return Sensitivity(l1=l1, l2=max(node.price * math.sqrt(len(node.columns)) for node in asked))


def check_asked(
    structure: Structure, asked: Sequence[Asked], schema: Schema, least: int, what: str
) -> None:
    """Raise FormatError unless every leaf is asked about once, for a sensible price."""
    structure.check(schema)
    leaves, grid = [node.leaf for node in asked], base_grid(schema)
    if not asked or len(set(leaves)) != len(leaves) or structure.n_leaves > MOST_LEAVES:
        raise FormatError(f"{what} name a leaf twice, or none")
    for node in asked:
        if not 0 <= node.leaf < structure.n_leaves:
            raise FormatError(f"{what} name a leaf that the tree does not have")
        if not node.columns or len(set(node.columns)) != len(node.columns):
            raise FormatError(f"{what} name a column twice, or none")
        if min(node.columns) < least or max(node.columns) >= len(grid):
            raise FormatError(f"{what} name a column that the schema does not have")
        if not LEAST_PRICE <= node.price < MOST_PRICE:
            raise FormatError(f"{what} have a price that nobody can pay")
    shared_routes([structure], grid)  # every threshold is a public edge


def rows_of_leaves(structure: Structure, rows: Rows, schema: Schema) -> list[NDArray[np.int64]]:
    """The indices of the rows in every leaf, in the order of the leaves."""
    number = np.arange(structure.n_leaves, dtype=np.float32)[:, None]
    leaf = np.zeros((rows.n_rows, 1))
    shared_routes([structure], base_grid(schema)).add_scores(rows.codes, leaf, number)
    place = leaf[:, 0].astype(np.int64)
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place, minlength=structure.n_leaves))
    return np.split(order, ends[:-1])


def pack_asked(asked: Sequence[Asked]) -> dict[str, NDArray[Any]]:
    return {
        "leaves": np.array([node.leaf for node in asked], np.int32),
        "leaf_columns": np.array([len(node.columns) for node in asked], np.int32),
        "asked_columns": np.array([j for node in asked for j in node.columns], np.int32),
        "prices": np.array([node.price for node in asked], np.float64),
    }


def unpack_asked(arrays: dict[str, NDArray[Any]], what: str) -> tuple[Asked, ...]:
    """Lengths are checked here, contents by `check_asked`."""
    counts, columns = arrays["leaf_columns"], arrays["asked_columns"]
    leaves, prices = arrays["leaves"], arrays["prices"]
    wrong = bool((counts < 0).any()) or int(counts.sum()) != len(columns)
    if wrong or not len(leaves) == len(counts) == len(prices):
        raise FormatError(f"{what} do not have the lengths they state")
    parts = np.split(columns, np.cumsum(counts)[:-1]) if len(counts) else []
    return tuple(
        Asked(int(leaf), tuple(int(j) for j in part), float(price))
        for leaf, part, price in zip(leaves, parts, prices, strict=True)
    )
