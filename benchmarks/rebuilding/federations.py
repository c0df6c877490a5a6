"""What other federations of XGBoost show of one party's rows: Flower's trees, NVFlare's sums.

Their protocols are played by XGBoost itself: what is attacked are the contents of the messages that
one party sends, not how they travel. Both are attacked one party at a time, by the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray

from hedgerow.data.rng import Generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
N_PARTIES = 3


@dataclass(frozen=True, eq=False)
class Attacked:
    """One table that an attacker looks for, and what is known of it."""

    parts: list[dict[str, Any]]  # trees, as `search.trees_from` takes them
    start: Ints  # (row, column)
    labels: Floats
    truth: Ints  # places of the rows among those that were trained on
    by_label: bool = False  # whether the marginals of either label are known
    bend: float = 0.0
    pool: Ints | None = None  # rows drawn from the marginals


def of_parties(n_rows: int) -> list[Ints]:
    return [np.arange(first, n_rows, N_PARTIES) for first in range(N_PARTIES)]


def bagging(x: Floats, y: Floats, n_rounds: int, params: dict[str, Any]) -> list[list[Any]]:
    """Rounds of Flower's bagging: in each every party grows a tree from where the model stands.

    The model is all trees of all parties so far, added up; `xgboost.Booster.update` after loading
    it starts from the same margins as here. (round, party)
    """
    margin, grown = np.zeros(len(y)), []
    for _ in range(n_rounds):
        trees = []
        for own in of_parties(len(y)):
            table = xgboost.DMatrix(x[own], label=y[own], base_margin=margin[own])
            trees.append(xgboost.train(params, table, 1))
        for tree in trees:
            margin = margin + tree.predict(
                xgboost.DMatrix(x, base_margin=np.zeros(len(y))), output_margin=True
            )
        grown.append(trees)
    return grown


def bagged_margin(grown: list[list[Any]], x: Floats) -> Floats:
    table = xgboost.DMatrix(x, base_margin=np.zeros(len(x)))
    trees = [tree for trees in grown for tree in trees]
    return np.sum([tree.predict(table, output_margin=True) for tree in trees], axis=0)


def histogram_parts(parts: list[dict[str, Any]], codes: Ints, y: Floats) -> list[dict[str, Any]]:
    """Trees grown together, with the sums of these rows alone: what one party sent for them.

    XGBoost over NVFlare adds up histograms of gradients at the server; those of a node add up to
    its children's, and to the sums of leaves. Of the histograms only these are used here, and that
    of the first root, which is every column's marginals by label (see `shuffled_by_label`).
    """
    scores, found = np.zeros(len(y)), []
    for part in parts:
        leaf = np.array([_leaf(part, row) for row in codes])
        p = 1 / (1 + np.exp(-scores))
        sums = np.zeros((len(part["value"]), 2))
        np.add.at(sums, leaf, np.stack([p - y, p * (1 - p)], axis=1))
        found.append({**part, "sums": sums})
        scores = scores + np.array(part["value"])[leaf]
    return found


def _leaf(part: dict[str, Any], row: Ints) -> int:
    node = 0
    while node >= 0:
        node = part["child"][node][int(part["right"][node][row[part["feature"][node]]])]
    return -1 - node


def shuffled_by_label(codes: Ints, y: Floats, rng: Generator) -> tuple[Ints, Floats]:
    """The exact marginals of a party's columns by label, and nothing of which cell is whose."""
    order = np.argsort(y, kind="stable")
    made = codes[order].copy()
    for label in (0, 1):
        here = np.flatnonzero(y[order] == label)
        for j in range(codes.shape[1]):
            made[here, j] = made[rng.permutation(here), j]
    return made, y[order].astype(np.float64)


def of_others(part: dict[str, Any]) -> dict[str, Any]:
    """Another party's tree: it moves scores, and its sums say nothing about these rows."""
    return {**part, "weight": (0.0, 0.0), "sums": np.zeros((len(part["value"]), 2))}
