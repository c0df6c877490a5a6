"""Ensembles made by hypothesis, and tables full of edge cases to compare predictions on."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from hedgerow.data.schema import Categorical, Column, Label, Numeric, Ordinal, Schema
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Statement
from hedgerow.model.tree import Structure, Tree, member_words

STATEMENT = Statement("epsilon-delta", 1.0, 1e-6, "coordinator")
LABELS = {
    "binary": Label("y", ("no", "yes")),
    "multiclass": Label("y", (3, 1, 2, 7)),
    "regression": Label("y", (), -2.0, 6.0),
}
NAMES = ("north", "süd", "öst, 'x'", "(other)", "<w>", "-", "a b", "7")


def columns() -> st.SearchStrategy[list[Column]]:
    """One to five columns of every kind, with short and with long lists."""
    other = st.sampled_from(["category", "error"])
    lists = st.one_of(
        st.integers(1, 70).map(lambda n: tuple(range(5, 5 + n))),
        st.integers(1, len(NAMES)).map(lambda n: NAMES[:n]),
        st.just((True, False)),
        st.just((0.5, 2.5, "more")),
    )
    kinds = st.one_of(
        st.just(("numeric", (), "error")),
        st.tuples(st.sampled_from(["ordinal", "categorical"]), lists, other),
    )
    return st.lists(kinds, min_size=1, max_size=5).map(
        lambda found: [_column(f"column [{j}<", *kind) for j, kind in enumerate(found)]
    )


def _column(name: str, kind: str, listed: tuple[Any, ...], other: Any) -> Column:
    if kind == "numeric":
        return Numeric(name, -4.0, 4.0)
    return (Ordinal if kind == "ordinal" else Categorical)(name, listed, True, other)


@st.composite
def ensembles(draw: st.DrawFn, task: str) -> Ensemble:
    """Any model of a task: averaged or not, single leaves and lopsided trees."""
    schema = Schema(tuple(draw(columns())), LABELS[task])
    n_outputs = len(schema.label.classes) if task == "multiclass" else 1
    averaged = draw(st.sampled_from(["no", "shares", "any"]))
    few = st.lists(st.integers(0, 12), max_size=1)
    sizes = draw(st.one_of(st.lists(st.integers(3, 12), min_size=2, max_size=6), few))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    trees = tuple(random_tree(rng, schema, n_outputs, n_splits) for n_splits in sizes)
    if averaged == "shares" and task != "regression":
        trees = tuple(Tree(t.structure, _shares(t.values, len(trees))) for t in trees)
    elif averaged == "any":  # sums that have to be clipped, exact in float32 in any order
        trees = tuple(Tree(t.structure, np.round(t.values * 64) / 64) for t in trees)
    return Ensemble(trees, schema, STATEMENT, averaged != "no")


def _shares(values: Any, n_trees: int) -> Any:
    """Shares of classes that add up to 1 over all trees."""
    positive = np.abs(values) + np.float32(1e-3)
    if values.shape[1] == 1:
        return (np.minimum(positive, 1.0) / n_trees).astype(np.float32)
    return (positive / positive.sum(axis=1, keepdims=True) / n_trees).astype(np.float32)


def random_tree(rng: np.random.Generator, schema: Schema, n_outputs: int, n_splits: int) -> Tree:
    """A tree of up to `n_splits` splits; a column that cannot be cut is passed over."""
    nodes: list[list[Any]] = [[-1, 0.0, 0, -1, -1, np.zeros(0, np.uint64)]]
    for _ in range(n_splits):
        leaf = int(rng.choice([i for i, node in enumerate(nodes) if node[0] < 0]))
        column = int(rng.integers(len(schema.columns)))
        if (cut := _cut(rng, schema.columns[column])) is None:
            continue
        nodes[leaf] = [column, cut[0], int(rng.integers(2)), len(nodes), len(nodes) + 1, cut[1]]
        nodes += [[-1, 0.0, 0, -1, -1, np.zeros(0, np.uint64)] for _ in range(2)]
    feature, threshold, missing, left, right, members = zip(*nodes, strict=True)
    structure = Structure(
        np.array(feature, np.int32),
        np.array(threshold, np.float32),
        np.array(missing, np.uint8),
        np.array(left, np.int32),
        np.array(right, np.int32),
        np.cumsum([0, *map(len, members)]).astype(np.int32),
        np.concatenate(members).astype(np.uint64),
    )
    values = rng.normal(0, 0.5, (structure.n_leaves, n_outputs)).astype(np.float32)
    return Tree(structure, values)


def _cut(rng: np.random.Generator, column: Column) -> tuple[float, Any] | None:
    none = np.zeros(0, np.uint64)
    if isinstance(column, Numeric):
        return float(rng.choice([-3.0, -0.1, 0.0, 0.1, 1e-30, 2.7, 4.0])), none
    if isinstance(column, Ordinal):
        n = len(column.categories)
        return (float(rng.integers(1, n)), none) if n > 1 else None
    bits = rng.random(member_words(column) * 64) < rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    return 0.0, np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


def edge_cases(schema: Schema, n_rows: int = 80, seed: int = 0) -> dict[str, list[Any]]:
    """Thresholds and their neighbours, values beyond the bounds, every category, missing ones."""
    rng = np.random.default_rng(seed)
    table: dict[str, list[Any]] = {}
    for column in schema.columns:
        if isinstance(column, Numeric):
            edges = np.array([-3.0, -0.1, 0.0, 0.1, 1e-30, 2.7, 4.0], np.float32)
            near = [np.nextafter(edges, np.float32(side)) for side in (-np.inf, np.inf)]
            found = np.concatenate([edges, *near, [-0.0, -99.0, 99.0, 1e30, -1e30]]).tolist()
        else:
            found = list(column.categories)
            if column.other == "category":
                found = [*found, "never heard of"]
        values = [found[i] for i in rng.integers(len(found), size=n_rows)]
        values = [v if v != "" else None for v in values]
        table[column.name] = [None if rng.random() < 0.15 else v for v in values]
    return table
