"""The worst rows one can think of, and the questions that they are put to, for every task."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import base_grid, fine_columns, fine_grid, gather_codes
from hedgerow.data.counts import count_codes, count_edges
from hedgerow.data.rng import stream
from hedgerow.data.schema import Label, Numeric, Schema
from hedgerow.data.tables import Rows
from hedgerow.methods.maddock.candidates import CANDIDATES
from hedgerow.methods.maddock.growing_tree import GrowingTree
from hedgerow.methods.maddock.splits.growth import cut_of, possible_bins
from hedgerow.methods.maddock.splits.totally_random import totally_random
from hedgerow.model.losses import UPDATES, loss_for
from hedgerow.queries import (
    NO_TREES,
    ClassHistograms,
    ClassOutcomes,
    ColumnCounts,
    ColumnHessians,
    ColumnSums,
    DevianceCounts,
    DevianceSums,
    EnsembleRef,
    ErrorCounts,
    ErrorSums,
    FineColumnSums,
    ImpurityBounds,
    LabelSums,
    LeafAverages,
    LeafSums,
    NodeHistograms,
    ScoreCounts,
    SplitChoices,
    n_bins_of,
)
from hedgerow.queries.gradients import Gradients
from hedgerow.queries.leaf_averages import LEAF_RULES
from hedgerow.queries.split_choices import UTILITIES
from hedgerow.queries.strategy import LARGEST_ENTRY, PLAIN, WIDEST
from hedgerow.queries.tree_nodes import NO_COLUMN, Asked
from tests.conftest import MIXED

GOLDEN = (1 + math.sqrt(5)) / 2
# The score at which |p - y| is 1 / GOLDEN, where the joint bound of (g, h) is tight.
TIGHT = math.log(1 / (GOLDEN - 1))
# Scores at which |p - y| is just above a clip, where a clamped row keeps the largest Hessian.
CLIPPED = tuple(math.log(q / (1 - q)) for q in (0.7001, 0.3001, 0.0501))
SCORES = [0.0, *(s * v for v in (1e6, 800.0, 40.0, 1.0, TIGHT, *CLIPPED, 1e-300) for s in (1, -1))]
SCORES += [math.inf, -math.inf, math.nan]

FINE = replace(MIXED, columns=(*MIXED.columns, Numeric("income", -20, 400, integer=True)))
SCHEMAS = {
    "binary": MIXED,
    "fine": FINE,
    "fine-number": FINE.with_label(Label("y", lower=-3.0, upper=12.0)),
    **{f"softmax-{k}": MIXED.with_label(Label("y", tuple(range(k)))) for k in (3, 4, 7)},
    "number": MIXED.with_label(Label("y", lower=-3.0, upper=12.0)),
    "counts": MIXED.with_label(
        Label("n", upper=40, loss="poisson", exposure="e", max_exposure=2.0)
    ),
    **{
        f"quantile-{level:g}": MIXED.with_label(
            Label("y", lower=-3.0, upper=12.0, loss="quantile", quantile=level)
        )
        for level in (0.5, 0.9)
    },
    "huber": MIXED.with_label(Label("y", lower=-3.0, upper=12.0, loss="huber", huber=2.0)),
    "hazards": MIXED.with_label(Label("t", event="e", cuts=(1.0, 2.0, 5.0, 7.5))),
    "periods": MIXED.with_label(Label("t", event="e", cuts=(1.0, 2.0, 5.0, 7.5), change_at=2.0)),
}


def updates_of(schema: Schema) -> list[str]:
    """Quantiles and robust regressions have no Hessians."""
    without = schema.label.loss in ("quantile", "huber")
    return [update for update in UPDATES if update != "newton" or not without]


def leaf_sums_of(schema: Schema, update: str, n_trees: int) -> LeafSums:
    candidates = CANDIDATES["uniform"](schema, 32)
    columns = list(range(len(schema.columns)))
    structures = tuple(
        totally_random(schema, candidates, columns, 2, "subset", stream(1, "tree", i))
        for i in range(n_trees)
    )
    return LeafSums(structures, loss_for(schema.label).name, NO_TREES, update)


def column_hessians(schema: Schema) -> list[ColumnHessians]:
    """Few cuts, none, and every edge of the grid."""
    loss, edges = loss_for(schema.label).name, [len(g.edges) for g in base_grid(schema)]
    if "newton" not in updates_of(schema) or schema.label.task == "survival":
        return []
    few = CANDIDATES["log"](schema, 8)
    return [
        ColumnHessians((0, 1, 2), (few[0], few[1], few[2]), loss, NO_TREES),
        ColumnHessians((1,), ((),), loss, NO_TREES),
        ColumnHessians((2, 0), (tuple(range(edges[2])), tuple(range(edges[0]))), loss, NO_TREES),
    ]


def node_histograms(schema: Schema) -> list[NodeHistograms]:
    """A root over all columns, and a tree of three leaves over two of them, for each update."""
    loss, grid = loss_for(schema.label).name, base_grid(schema)
    cuts = CANDIDATES["uniform"](schema, 4)
    tree = GrowingTree()
    bins = [n_bins_of(grid[j], cuts[j]) for j in (0, 4)]
    _, right = tree.split(0, cut_of(schema, cuts, 0, np.arange(bins[0]) > 1))
    tree.split(right, cut_of(schema, cuts, 4, np.arange(bins[1]) > 0))

    def over(grown: GrowingTree, columns: tuple[int, ...], update: str) -> NodeHistograms:
        chosen = tuple(cuts[j] for j in columns)
        bins = tuple(n_bins_of(grid[j], cuts[j]) for j in columns)
        return NodeHistograms(grown.structure(), columns, chosen, bins, loss, NO_TREES, update)

    everything = tuple(range(len(schema.columns)))
    main = updates_of(schema)[0]
    return [
        over(GrowingTree(), everything, main),
        over(tree, (4, 1), "gradient"),
        over(tree, (2,), main),
    ]


CLIPS = (math.inf, 0.7, 0.5, 0.3, 0.05)


def column_sums(schema: Schema) -> list[ColumnSums]:
    """Every update at every clip, over all columns with weights of their own, and over one."""
    loss, grid = loss_for(schema.label).name, base_grid(schema)
    cuts = CANDIDATES["uniform"](schema, 4)

    def over(columns: tuple[int, ...], update: str, clip: float) -> ColumnSums:
        bins = tuple(
            (len(cuts[j]) + 1 if grid[j].ordered else grid[j].n_cells) + 1 for j in columns
        )
        weights = tuple(0.5 * (1 + j) for j in columns)  # below 1 and above
        chosen = tuple(cuts[j] for j in columns)
        return ColumnSums(columns, chosen, bins, weights, loss, NO_TREES, update, clip)

    def with_matrices(columns: tuple[int, ...], update: str, clip: float) -> ColumnSums:
        """The same with a strategy matrix for every column that may have one."""
        query, rng = over(columns, update, clip), stream(7, "strategy matrices")
        matrices, of = [], []
        for n in query.n_bins:
            of.append(len(matrices) if n <= WIDEST else PLAIN)
            if n <= WIDEST:
                matrices.append(
                    rng.integers(-LARGEST_ENTRY, LARGEST_ENTRY + 1, (n, n)).astype(np.int8)
                )
        return replace(query, matrices=tuple(matrices), matrix_of=tuple(of))

    everything, main = tuple(range(len(schema.columns))), updates_of(schema)[0]
    return [
        *(over((2,), "slope", clip) for clip in CLIPS),
        *(over((2,), main, clip) for clip in CLIPS[1:3]),
        *(with_matrices(everything, update, 0.5) for update in ("slope", main)),
        *(with_matrices(everything[::-1], update, math.inf) for update in ("slope", "averaging")),
        over((0,), "slope", math.inf),
        over((1, 4), "gradient", 0.3),
        over((0, 3), "count", math.inf),
        over(everything, "slope", 0.5),
        over(everything, "averaging", math.inf),
    ]


def fine_column_sums(schema: Schema) -> list[FineColumnSums]:
    """Of a schema with fine levels: every fine cell beside all columns, and bins between cells."""
    fine = fine_columns(base_grid(schema))
    if not fine:
        return []
    loss, grid = loss_for(schema.label).name, fine_grid(schema)
    everything = tuple(range(len(schema.columns)))

    def over(columns: tuple[int, ...], every: int, update: str, clip: float) -> FineColumnSums:
        cuts = tuple(
            tuple(range(0, len(grid[j].edges), every if k < len(everything) else 1))
            if grid[j].ordered
            else ()
            for k, j in enumerate(columns)
        )
        bins = tuple(n_bins_of(grid[j], c) for j, c in zip(columns, cuts, strict=True))
        weights = tuple(0.5 * (1 + k) for k in range(len(columns)))
        return FineColumnSums(columns, cuts, bins, weights, loss, NO_TREES, update, clip)

    return [
        over((*everything, *fine), 40, "averaging", math.inf),
        over((*everything, *fine), 40, "gradient", 0.3),
        over(everything, 7, "slope", 0.5),
        over(fine, 1, "count", math.inf),
    ]


def stepped(schema: Schema) -> list[LeafSums]:
    """Every update that steps can be tried with, clamped and not."""
    loss, trees = loss_for(schema.label), EnsembleRef(3, "x" * 64)
    return [
        replace(
            leaf_sums_of(schema, update, n_trees), ensemble=trees, clip=clip,
            step_trees=step_trees, step_scale=scale,
        )
        for update in updates_of(schema)
        if loss.bound(update).second == (1 if schema is SCHEMAS["hazards"] else loss.n_outputs)
        for n_trees, clip, step_trees, scale in (
            (1, math.inf, 1, 1.0), (3, 0.5, 3, 0.25), (1, 0.3, 2, 1e-3),
        )
    ]  # fmt: skip


def score_counts(schema: Schema) -> list[ScoreCounts]:
    """Few edges, none and many; of binary labels, times to an event and quantiles."""
    if schema.label.task not in ("binary", "survival") and schema.label.loss != "quantile":
        return []
    many, n = tuple(np.linspace(-9, 9, 300).tolist()), schema.label.n_outcomes or 2
    found = [ScoreCounts(n, edges, NO_TREES) for edges in ((-1.0, 0.0, 2.5), (), many)]
    if schema.label.n_first:  # how both periods compare, too
        found += [replace(query, ratio_edges=(-2.0, 0.0, 0.5)) for query in found[:2]]
    return found


def three_leaves(schema: Schema) -> GrowingTree:
    """A cut of a number, and below it one of a column of categories."""
    cuts, grid, tree = CANDIDATES["uniform"](schema, 4), base_grid(schema), GrowingTree()
    bins = [n_bins_of(grid[j], cuts[j]) for j in (0, 4)]
    _, right = tree.split(0, cut_of(schema, cuts, 0, np.arange(bins[0]) > 1))
    tree.split(right, cut_of(schema, cuts, 4, np.arange(bins[1]) > 0))
    return tree


def class_histograms(schema: Schema) -> list[ClassHistograms]:
    """A root over all columns, leaves of different prices, counts alone; classes only."""
    if not schema.label.classes:
        return []
    cuts, everything = CANDIDATES["uniform"](schema, 4), tuple(range(len(schema.columns)))
    tree = three_leaves(schema).structure()
    few = (Asked(0, (4, 1), 0.5), Asked(2, (NO_COLUMN,), 3.0), Asked(1, (3,), 0.01))
    return [
        ClassHistograms.of(schema, GrowingTree().structure(), [Asked(0, everything, 0.1)], cuts),
        ClassHistograms.of(schema, tree, few, cuts),
        ClassHistograms.of(schema, tree, [Asked(1, (NO_COLUMN, 0), 7.0)], cuts),
    ]


def impurity_bounds(schema: Schema) -> list[ImpurityBounds]:
    """The same leaves; sets of categories where the label is binary."""
    k = len(schema.label.classes)
    if not k:
        return []
    cuts, columns = CANDIDATES["uniform"](schema, 4), tuple(range(len(schema.columns)))
    chosen = tuple(tuple(c) for c in cuts)
    root, tree = GrowingTree().structure(), three_leaves(schema).structure()
    mixed = (Asked(0, (4, 1), 0.5), Asked(2, (0, 2, 3), 3.0))
    return [
        ImpurityBounds(structure, asked, used, tuple(chosen[j] for j in used), k, subsets)
        for subsets in ((False, True) if k == 2 else (False,))
        for structure, asked, used in (
            (root, (Asked(0, columns, 0.1),), columns),
            (tree, mixed, columns[:5]),
        )
    ]


def gradients_of(schema: Schema) -> list[Gradients]:
    """Clamped or left out; a binary label as a regression too. Losses of their own have none."""
    if schema.label.task == "survival" or schema.label.loss is not None:
        return []
    own = loss_for(schema.label)
    found = [Gradients(own.name, NO_TREES, clip) for clip in (math.inf, 0.5)]
    if own.n_outputs == 1:
        found.append(Gradients(own.name, NO_TREES, 0.3, drop=True))
    if schema.label.task == "binary":
        found.append(Gradients("squared", NO_TREES))
        found.append(Gradients("squared", NO_TREES, 0.5, drop=True))
    return found


def choices_of(
    schema: Schema, tree: GrowingTree, columns: tuple[int, ...], gradients: Gradients, **more: Any
) -> SplitChoices:
    """A choice for every leaf of a tree, over these columns in four bins."""
    cuts, grid, structure = CANDIDATES["uniform"](schema, 4), base_grid(schema), tree.structure()
    bins = tuple(n_bins_of(grid[j], cuts[j]) for j in columns)
    held = np.concatenate([possible_bins(schema, j, n) for j, n in zip(columns, bins, strict=True)])
    leaves = tuple(range(structure.n_leaves))
    values = {"price": 0.25, "reg_lambda": 0.0, "selector": "permute-and-flip", **more}
    return SplitChoices(
        structure, leaves, np.stack([held] * len(leaves)), columns,
        tuple(tuple(cuts[j]) for j in columns), bins, gradients, **values,
    )  # fmt: skip


def split_choices(schema: Schema) -> list[SplitChoices]:
    """Both utilities of every kind of gradients: at the root, and in a tree with a wide column."""
    every = gradients_of(schema)
    if not every:
        return []
    found = [
        choices_of(schema, GrowingTree(), (0, 2, 3), gradients, utility=utility)
        for utility in UTILITIES
        for gradients in every
    ]
    wide = choices_of(schema, three_leaves(schema), (4, 1), every[0], utility="gain")
    return [*found, replace(wide, reg_lambda=1.5, selector="exponential")]


def leaf_averages(schema: Schema) -> list[LeafAverages]:
    """Every rule of every kind of gradients, with and without a constant below."""
    tree = three_leaves(schema).structure()
    return [
        LeafAverages(tree, gradients, 0.7, rule, least, reg_lambda)
        for gradients in gradients_of(schema)
        for rule, least, reg_lambda in (
            *((rule, 0, 0.0) for rule in LEAF_RULES), ("least-rows", 50, 0.1), ("plain", 9, 2.5),
        )
    ]  # fmt: skip


def class_outcomes(schema: Schema) -> list[ClassOutcomes]:
    """Boosted and averaged models, few bins, none and many; questions that classes have."""
    k, many = len(schema.label.classes), tuple(np.linspace(0.001, 0.999, 200).tolist())
    if not k:
        return []
    even = (1.0, 1.0, 1.0)
    return [
        ClassOutcomes(k, (0.1, 0.5, 0.9), 0.01, (2.0, 1.2, 0.5), NO_TREES),
        ClassOutcomes(k, (), 0.5, even, NO_TREES, averaged=True),
        ClassOutcomes(k, many, 1e-9, even, NO_TREES),
    ]


def error_counts(schema: Schema) -> list[ErrorCounts]:
    """Few sizes and cells, and many; questions that numbers have."""
    if schema.label.task != "regression":
        return []
    many = tuple(2.0**-j for j in range(40, 0, -1))
    return [
        ErrorCounts((), 1, NO_TREES),
        ErrorCounts((0.25, 0.5), 7, NO_TREES, averaged=True),
        ErrorCounts(many, 64, NO_TREES),
    ]


def error_sums(schema: Schema) -> list[ErrorSums]:
    """Tight clips and none, labels far from the centre, bins of uneven noise."""
    if schema.label.task != "regression":
        return []
    even, uneven = (1.0,) * 4, (0.5, 2.0, 1.5, 3.0)
    return [
        ErrorSums((), 1.0, 0.5, 0.5, even, NO_TREES),
        ErrorSums((0.2, 0.5), 2.0**-7, 0.0, 1.0, uneven, NO_TREES),
        ErrorSums((0.5,), 0.3, 1.0, 2.0**-20, even, NO_TREES, averaged=True),
    ]


def deviance_counts(schema: Schema) -> list[DevianceCounts]:
    """No sizes and no bins, few, and many; questions that counts have."""
    if schema.label.task != "counts":
        return []
    many = tuple(2.0**j for j in range(-20, 20))
    return [
        DevianceCounts((), (), NO_TREES),
        DevianceCounts((0.5, 3.0), (0.1, 0.5), NO_TREES),
        DevianceCounts(many, tuple(np.linspace(0.001, 0.999, 99).tolist()), NO_TREES),
    ]


def deviance_sums(schema: Schema) -> list[DevianceSums]:
    """Tight clips and none, bins of uneven noise, rates of nothing and of the cap."""
    if schema.label.task != "counts":
        return []
    even, uneven = (1.0,) * 4, (0.5, 2.0, 1.5, 3.0)
    return [
        DevianceSums((), 1.0, 1.0, 0.5, even, NO_TREES),
        DevianceSums((0.2, 0.5), 2.0**-7, 2.0**-9, 2.0**-30, uneven, NO_TREES),
        DevianceSums((0.01,), 2.0**20, 2.0**20, 1.0, even, NO_TREES),
    ]


def label_sums(schema: Schema) -> list[LabelSums]:
    """Classes; rows and their sum; histograms of numbers, of counts by public cells alone."""
    n = schema.label.n_outcomes
    cells = (len(count_edges(40)),) if schema.label.task == "counts" else (1, 64)
    return [LabelSums(n), *(LabelSums(0, n_cells) for n_cells in cells if not n)]


# A kind of query and the questions it is attacked with.
ATTACKS: dict[str, Callable[[Schema], list[Any]]] = {
    LabelSums.kind: label_sums,
    ColumnCounts.kind: lambda schema: [
        ColumnCounts.of(schema),
        ColumnCounts.of(schema, (4, 0)),
        ColumnCounts.of(schema, (1, 2), together=True),
        replace(ColumnCounts.of(schema, (1, 2), together=True), price=0.05),
        replace(ColumnCounts.of(schema), price=3.0),
    ],
    ColumnHessians.kind: column_hessians,
    ColumnSums.kind: column_sums,
    FineColumnSums.kind: fine_column_sums,
    NodeHistograms.kind: node_histograms,
    LeafSums.kind: lambda schema: [
        *(
            leaf_sums_of(schema, update, n_trees)
            for update in updates_of(schema)
            for n_trees in ((1, 7) if update == "newton" else (2,))
        ),
        *(replace(leaf_sums_of(schema, updates_of(schema)[0], 1), clip=c) for c in CLIPS[1:]),
        *stepped(schema),
    ],
    ScoreCounts.kind: score_counts,
    ClassHistograms.kind: class_histograms,
    ImpurityBounds.kind: impurity_bounds,
    SplitChoices.kind: split_choices,
    LeafAverages.kind: leaf_averages,
    ClassOutcomes.kind: class_outcomes,
    ErrorCounts.kind: error_counts,
    ErrorSums.kind: error_sums,
    DevianceCounts.kind: deviance_counts,
    DevianceSums.kind: deviance_sums,
}


def with_steps(query: Any, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores a question gets: with those before the step beside them if it tries one."""
    if not query.step_trees:
        return scores
    steps = np.resize([1.0, -1.0, 0.3, -7.0, 0.0, math.nan], scores.shape)
    return np.hstack([scores, np.nan_to_num(scores, posinf=1e300) - steps * query.step_scale])


def targets_of(schema: Schema) -> list[float]:
    n_classes = schema.label.n_outcomes
    if schema.label.task == "counts":
        cases = [(n, e) for n in (0.0, 1.0, 17.0, 40.0) for e in (1e-9, 0.7, 2.0)]
        return count_codes(schema.label, *np.array(cases).T).tolist()
    return [float(k) for k in range(n_classes)] if n_classes else [0.0, 1.0, 0.5, 2.0**-40]


def worst_scores(schema: Schema) -> list[list[float]]:
    """Score vectors: saturated, tied, tight, and what no sum of leaf values can be."""
    n = loss_for(schema.label).n_outputs
    if n == 1:
        return [[score] for score in SCORES]
    found = [[0.0] * n, [-1.0 * k for k in range(n)], [1e-300] * n]
    for far in (1e6, 800.0, 40.0, 20.0, 2.0, math.log(2.0)):
        found.append([far] + [0.0] * (n - 1))
        found.append([-far] + [0.0] * (n - 1))
        found.append([0.0, 0.0] + [-far] * (n - 2))  # two of equal weight: tight for a third
        found.append([far * (-1) ** k for k in range(n)])
    for strange in (math.inf, -math.inf, math.nan):
        found += [[strange] * n, [strange] + [0.0] * (n - 1), [0.0] * (n - 1) + [strange]]
    return found


def every_cell(schema: Schema) -> tuple[Rows, NDArray[np.float64]]:
    """Rows that visit every code of every column, missing ones too."""
    grid, targets = fine_grid(schema), targets_of(schema)
    n_rows = max(g.n_codes for g in grid)
    columns = [np.arange(n_rows) % g.n_codes for g in grid]
    codes = gather_codes(columns, base_grid(schema), n_rows, finest=True)
    rows = Rows(codes, np.resize(targets, n_rows), None)
    scores = np.array(worst_scores(schema))
    return rows, np.ascontiguousarray(scores[np.arange(n_rows) % len(scores)])


def saturated(schema: Schema) -> tuple[Rows, NDArray[np.float64]]:
    """A row of each class (or extreme label) at each score vector that could break a bound."""
    targets, scores = targets_of(schema), np.array(worst_scores(schema))
    n_rows = len(targets) * len(scores)
    cells, _ = every_cell(schema)
    codes = cells.codes.take(np.arange(n_rows) * 17 % cells.n_rows)
    return Rows(codes, np.resize(targets, n_rows), None), np.repeat(scores, len(targets), axis=0)
