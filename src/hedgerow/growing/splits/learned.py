"""Trees whose splits are chosen by noisy gain: histogram (best of all cuts) and partially random
(best of one random cut per column). Each level is one question over all open nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.binning import base_grid
from hedgerow.errors import SlotSpent
from hedgerow.gate import Gate
from hedgerow.growing.candidates import Cuts
from hedgerow.growing.cart import Cut, GrowingTree, member_set
from hedgerow.growing.splits.totally_random import draw_cut
from hedgerow.losses import RowBound, loss_for
from hedgerow.queries import LeafSums, NodeHistograms
from hedgerow.rng import Generator
from hedgerow.schema import Categorical, Schema
from hedgerow.settings import Settings
from hedgerow.splitting import BestSplit, GainRule, best_category, best_ordered

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A cut with its gain and what is known of the two children: sums and their noise."""

    gain: float
    cut: Cut
    sums: tuple[Floats, Floats]  # (number,) of the left and of the right child
    deviations: tuple[float, float]


@dataclass
class LearnedTree:
    """A tree with the sums of its leaves, as the question that cut their parent gave them."""

    tree: GrowingTree = field(default_factory=GrowingTree)
    sums: dict[int, Floats] = field(default_factory=dict)  # node -> (number,)
    deviations: dict[int, float] = field(default_factory=dict)  # noise of its first part
    root: Floats | None = None  # (number, bin of all columns) of the root, if it was asked

    def leaf_sums(self) -> tuple[Floats, Floats]:
        """Sums (number, leaf) and their noise deviations (leaf,), leaves in node order."""
        leaves = self.tree.leaves
        sums = np.stack([self.sums[node] for node in leaves], axis=1)
        return sums, np.array([self.deviations[node] for node in leaves])


def levels_of(settings: Settings, n_columns: int) -> int:
    """Questions a tree asks: one a level; one in all for a histogram over a single column."""
    single = settings.split == "histogram" and n_columns == 1
    return 1 if single else settings.max_depth


def grow_tree(
    gate: Gate, settings: Settings, cuts: Cuts, columns: Sequence[int], rng: Generator
) -> LearnedTree:
    """Grow one tree level by level; it asks at most `levels_of` questions and passes over the rest.

    A level whose slot was lost ends the tree there.
    """
    grown = LearnedTree()
    open_nodes = [0]
    find = _by_histogram if settings.split == "histogram" else _by_random_cut
    for level in range(levels_of(settings, len(columns))):
        if not open_nodes:
            gate.pass_over()
            continue
        try:
            found = find(gate, settings, cuts, columns, grown.tree, open_nodes, rng)
        except SlotSpent:
            open_nodes = []
            continue
        if level == 0:
            grown.root = found.root
        if settings.split == "histogram" and len(columns) == 1:
            _split_single_column(gate.schema, settings, cuts, columns[0], found, grown)
            break
        open_nodes = _split_level(grown, open_nodes, found.best(open_nodes))
    return grown


def _split_level(
    grown: LearnedTree,
    nodes: list[int],
    best: dict[int, _Candidate],
) -> list[int]:
    """Cut every open node that gains by it; returns the new open nodes."""
    fresh = []
    for node in nodes:
        candidate = best.get(node)
        if candidate is None or not candidate.gain > 0:
            continue
        children = grown.tree.split(node, candidate.cut)
        for child, sums, noise in zip(children, candidate.sums, candidate.deviations, strict=True):
            grown.sums[child], grown.deviations[child] = sums, noise
            fresh.append(child)
    return fresh


@dataclass(frozen=True, eq=False)
class _Found:
    """What one level's answer says of every open node."""

    candidates: dict[int, list[_Candidate]]
    unit: float  # noise deviation of one released number of the first part
    root: Floats | None = None  # histograms of the first leaf, (number, bin of all columns)

    def best(self, nodes: list[int]) -> dict[int, _Candidate]:
        return {
            node: max(self.candidates[node], key=lambda one: one.gain)
            for node in nodes
            if self.candidates.get(node)
        }


def _rule(unit: float, bound: RowBound, settings: Settings) -> GainRule:
    floor = settings.floor_deviations * unit / bound.second_scale
    return GainRule(settings.reg_lambda, floor, settings.gain_penalty)


def _by_histogram(
    gate: Gate,
    settings: Settings,
    cuts: Cuts,
    columns: Sequence[int],
    tree: GrowingTree,
    nodes: list[int],
    rng: Generator,
) -> _Found:
    schema, grid = gate.schema, base_grid(gate.schema)
    chosen = tuple(cuts[j] for j in columns)
    n_bins = tuple(NodeHistograms.bins_of(grid[j], cuts[j]) for j in columns)
    structure, loss = tree.structure(), loss_for(schema.label)
    query = NodeHistograms(
        structure, tuple(columns), chosen, n_bins, loss.name, gate.ensemble, settings.update
    )
    release, bound = gate.release(query), query.bound
    unit, rule = release.unit, _rule(release.unit, bound, settings)
    shape = (bound.width, structure.n_leaves, sum(n_bins))
    answer = release.values.reshape(shape)  # (number, leaf, bin of all columns)
    candidates: dict[int, list[_Candidate]] = {}
    ends = np.cumsum(n_bins)
    for node in nodes:
        parts = np.split(answer[:, structure.leaf[node]], ends[:-1], axis=1)
        if _too_light(parts[0].sum(axis=1), bound.first, settings):
            continue
        candidates[node] = [
            _candidate(schema, settings, cuts, j, part, rule, unit)
            for j, part in zip(columns, parts, strict=True)
        ]
    return _Found(candidates, unit, answer[:, 0])


def _candidate(
    schema: Schema,
    settings: Settings,
    cuts: Cuts,
    column: int,
    histogram: Floats,
    rule: GainRule,
    unit: float,
) -> _Candidate:
    """The best cut of one node at one column; histogram is (number, bin), the last bin missing."""
    first = loss_for(schema.label).bound(settings.update).first
    if isinstance(schema.columns[column], Categorical):
        best = best_category(histogram, first, rule, settings.category_split == "subset")
    else:
        best = best_ordered(histogram, first, rule)
    cut = _cut_of(schema, cuts, column, best)
    right = _right_bins(schema, cuts, column, cut, histogram.shape[1])
    noise = (unit * float(np.sum(~right)) ** 0.5, unit * float(np.sum(right)) ** 0.5)
    return _Candidate(best.gain, cut, (best.left, best.right), noise)


def _cut_of(schema: Schema, cuts: Cuts, column: int, best: BestSplit) -> Cut:
    if best.cut < 0:
        n = len(best.members)
        members = member_set(schema, column, best.members) if n else np.zeros(0, np.uint64)
        return Cut(column, 0.0, members, best.missing_left)
    edge = base_grid(schema)[column].edges[cuts[column][best.cut - 1]]
    return Cut(column, float(edge), np.zeros(0, np.uint64), best.missing_left)


def _split_single_column(
    schema: Schema,
    settings: Settings,
    cuts: Cuts,
    column: int,
    found: _Found,
    grown: LearnedTree,
) -> None:
    """All levels of a tree over one column from its root histogram: no further question."""
    histogram = found.root
    if histogram is None or not found.candidates.get(0):
        return
    bound = loss_for(schema.label).bound(settings.update)
    rule = _rule(found.unit, bound, settings)
    masks = {0: np.ones(histogram.shape[1], np.bool_)}
    nodes = [0]
    for _ in range(settings.max_depth):
        best = {}
        for node in nodes:
            held = histogram * masks[node]
            if not _too_light(held.sum(axis=1), bound.first, settings):
                best[node] = _candidate(schema, settings, cuts, column, held, rule, found.unit)
        fresh = _split_level(grown, nodes, best)
        for node in nodes:
            left, right = grown.tree.children[node]
            if left < 0:
                continue
            goes_right = _right_bins(schema, cuts, column, best[node].cut, histogram.shape[1])
            masks[left] = masks[node] & ~goes_right
            masks[right] = masks[node] & goes_right
            for child in (left, right):
                grown.deviations[child] = found.unit * float(np.sum(masks[child])) ** 0.5
        nodes = fresh


def _right_bins(
    schema: Schema, cuts: Cuts, column: int, cut: Cut, n_bins: int
) -> NDArray[np.bool_]:
    right = np.zeros(n_bins, np.bool_)
    if isinstance(schema.columns[column], Categorical):
        bits = np.unpackbits(cut.members.astype("<u8").view(np.uint8), bitorder="little")
        right[:-1] = bits[: n_bins - 1].astype(np.bool_)
    else:
        edges = base_grid(schema)[column].edges[list(cuts[column])]
        right[int(np.searchsorted(edges, np.float32(cut.threshold))) + 1 : -1] = True
    right[-1] = not cut.missing_left
    return right


def _by_random_cut(
    gate: Gate,
    settings: Settings,
    cuts: Cuts,
    columns: Sequence[int],
    tree: GrowingTree,
    nodes: list[int],
    rng: Generator,
) -> _Found:
    """One random cut of every column in every open node; a tree a column carries the question."""
    schema, loss = gate.schema, loss_for(gate.schema.label)
    drawn: list[dict[int, Cut]] = []
    trees, structures = [], []
    for column in columns:
        one = tree.copy()
        mine = {n: draw_cut(schema, cuts, column, settings.category_split, rng) for n in nodes}
        for node, cut in mine.items():
            one.split(node, cut)
        drawn.append(mine)
        trees.append(one)
        structures.append(one.structure())
    query = LeafSums(tuple(structures), loss.name, gate.ensemble, settings.update)
    release, bound = gate.release(query), query.bound
    unit, rule = release.unit, _rule(release.unit, bound, settings)
    sums = release.values.reshape(bound.width, -1)  # (number, leaf of all trees)
    ends = np.cumsum([structure.n_leaves for structure in structures])
    candidates: dict[int, list[_Candidate]] = {node: [] for node in nodes}
    for i, part in enumerate(np.split(sums, ends[:-1], axis=1)):
        leaf = structures[i].leaf
        for node in nodes:
            left, right = (part[:, leaf[child]] for child in trees[i].children[node])
            if _too_light(left + right, bound.first, settings):
                continue
            gain = _gain(left, right, bound.first, rule)
            cut = drawn[i][node]
            candidates[node].append(_Candidate(gain, cut, (left, right), (unit, unit)))
    return _Found(candidates, unit)


def _gain(left: Floats, right: Floats, first: int, rule: GainRule) -> float:
    def score(sums: Floats) -> float:
        second = np.broadcast_to(sums[first:], (first,))
        return float(rule.score(sums[:first, None], second[:, None])[0])

    return 0.5 * (score(left) + score(right) - score(left + right)) - rule.penalty


def _too_light(total: Floats, first: int, settings: Settings) -> bool:
    """Whether a node has too little (noisy) Hessian to be cut."""
    return settings.min_hessian > 0 and float(total[first:].sum()) < settings.min_hessian
