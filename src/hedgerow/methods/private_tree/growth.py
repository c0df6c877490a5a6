"""A tree under construction: what is worth asking of its nodes, and where they are cut.

Everything here follows from the schema, the plan and releases.
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.rng import stream
from hedgerow.data.schema import Categorical
from hedgerow.methods.maddock.growing_tree import GrowingTree
from hedgerow.methods.maddock.splits.growth import cut_of, possible_bins
from hedgerow.methods.private_tree.asking import Asking, Found, Wanted
from hedgerow.methods.private_tree.nodes import Measured, Node, Offer, impurity
from hedgerow.methods.private_tree.rule import Rule, rule_of, tree_cuts, usable_columns
from hedgerow.methods.private_tree.splits import best_cut, gain_rule
from hedgerow.model.splitting import Histogram, reconciled
from hedgerow.privacy.accounting.path_budget import PathBudget
from hedgerow.privacy.accounting.pure import LEAST_PRICE
from hedgerow.privacy.settings import PrivateTreeSettings
from hedgerow.queries import n_bins_of

WORTH = 0.2  # bounds are asked if their noise is below this part of the node's impurity
# The first ranking says where the whole tree looks. It may cost more than a node has: until its
# noise is so small a part of the impurity, but no more than this part of a path; and it is asked as
# long as its noise is below the third.
FIRST_NOISE, FIRST_MOST, FIRST_WORTH = 0.07, 0.2, 0.3
KEPT = 2.0  # children consider columns whose bound is within so many deviations of the lowest
KEPT_LEAST = 6  # and so many at least
SURE = 1.0  # further columns are asked if they look better by so many deviations
SLACK = 1 - 1e-9  # rounding errors of what is spent may not reach the ceiling


class Growth:
    """One tree under construction through a gate."""

    def __init__(self, gate: Gate) -> None:
        settings, schema = PrivateTreeSettings.of(gate.plan.settings), gate.schema
        self.schema, self.settings = schema, settings
        self.rule: Rule = rule_of(schema, settings)
        self.cuts = tree_cuts(schema, settings.n_bins)
        self.n_classes = len(schema.label.classes)
        self.subsets = self.n_classes == 2 and settings.category_split == "subset"
        self.gains = gain_rule(self.n_classes, settings)
        widths = [n_bins_of(g, c) for g, c in zip(base_grid(schema), self.cuts, strict=True)]
        possible = tuple(possible_bins(schema, j, n) for j, n in enumerate(widths))
        usable = usable_columns(schema, self.cuts)
        order = stream(gate.plan.seed, "columns").permutation(np.array(usable))
        self.epsilon = PathBudget.of(gate.plan.budget).branches.rounds[0].epsilon
        root = Node(0, 0, self.epsilon * SLACK, tuple(order.tolist()), possible)
        self.tree, self.nodes = GrowingTree(), [root]
        self.ask = Asking(gate, self.tree, self.cuts, self.subsets)

    def count_root(self) -> None:
        """How many rows of each class there are: decides what is worth asking."""
        root = self.nodes[0]
        for answer in self.ask.counts([(root, self.rule.count_share * root.left)]):
            root.known = _counted(answer)
            root.measured.append(root.known)
            rows = max(0.0, float(root.known.counts.sum()))
            if not root.known.is_exact:
                self.rule = self.rule.for_rows(rows, root.left)

    def count_leaves(self) -> None:
        """Every leaf gets all that its path has left."""
        leaves = [self.nodes[number] for number in self.tree.leaves]
        for answer in self.ask.counts([(leaf, leaf.left) for leaf in leaves]):
            answer.node.measured.append(_counted(answer))

    def open_nodes(self, depth: int) -> list[Node]:
        """Leaves at this depth that are worth a question, by what was released of them."""
        if depth >= self.rule.max_depth:
            return []
        open_ = [node for node in self.nodes if node.depth == depth and self._is_worth(node)]
        for node in open_:
            node.budget = node.left * self.rule.node_part(depth)
        return open_

    def _is_worth(self, node: Node) -> bool:
        if node.known is None or node.depth == 0:  # one split says more than none
            return bool(node.columns)
        counts, noise = node.known.counts, math.sqrt(self.n_classes * node.known.variance)
        if float(counts.sum()) < max(2 * self.settings.min_samples_leaf, noise):
            return False
        # Of one class alone, nothing can be told apart.
        return bool(node.columns) and int((counts > 0).sum()) > 1

    def rank(self, nodes: list[Node]) -> None:
        """Bounds of all columns, where they can say more than their noise."""
        prices = [(node, self._bounds_budget(node)) for node in nodes]
        wanted = [Wanted(node, node.columns, budget) for node, budget in prices if budget]
        for answer in self.ask.bounds(wanted):
            node = answer.node
            if node.depth == 0:
                node.is_rough = self._is_rough(node, answer.variance)
            values = [float(value[0]) for value in answer.values]
            node.bounds = dict(zip(answer.columns, values, strict=True))
            node.bounds_deviation = math.sqrt(answer.variance)
            lead = self._by_chance(node)
            node.columns = tuple(sorted(node.columns, key=lambda j: node.bounds[j] + lead[j]))
        for node in (one.node for one in wanted if one.node.depth == 0):
            # The first ranking is for the whole tree: all levels pay for it, also if it was lost.
            node.budget = node.left * self.rule.node_part(0)

    def _is_rough(self, node: Node, variance: float) -> bool:
        """Whether bounds only say where to look first: noise would ask for further columns."""
        if node.known is None or node.known.is_exact:
            return False
        return math.sqrt(variance / 2) > WORTH * impurity(node.known.counts)  # Laplace's scale

    def _by_chance(self, node: Node) -> dict[int, float]:
        """How far a long list of categories can lower its bound by luck: the best of all its sets
        fits every category's rows as well as it can, at about the node's impurity of one row each.
        """
        if node.known is None or node.known.is_exact or not self.subsets:
            return dict.fromkeys(node.columns, 0.0)
        one = impurity(node.known.counts) / max(1.0, float(node.known.counts.sum()))
        sizes = {j: int(node.possible[j].sum()) for j in node.columns}
        listed = {j for j in node.columns if isinstance(self.schema.columns[j], Categorical)}
        return {j: one * (n - 1) if j in listed else 0.0 for j, n in sizes.items()}

    def _bounds_budget(self, node: Node) -> float:
        """What bounds of a node's columns may cost together; 0 where they would say nothing."""
        n = len(node.columns)
        if n <= self.rule.first_columns or not self.rule.bounds_share:
            return 0.0
        usual = self.rule.bounds_share * node.budget
        if node.known is None or node.known.is_exact or usual < n * LEAST_PRICE:
            return usual if usual >= n * LEAST_PRICE else 0.0
        said = impurity(node.known.counts)
        if node.depth == 0:
            enough = min(n / max(FIRST_NOISE * said, 1e-9), FIRST_MOST * node.left)
            usual = max(usual, enough)
        worth = WORTH if node.depth else FIRST_WORTH
        return usual if worth * said * usual >= n else 0.0

    def ask_first(self, nodes: list[Node]) -> None:
        """Histograms of the likeliest columns; of all of them where none are ranked."""
        wanted = []
        for node in nodes:
            few = node.columns[: self._first(node)]
            more = bool(node.bounds) and len(few) < len(node.columns)
            part = self.rule.first_share if more else 1.0
            wanted.append(Wanted(node, few, part * node.budget))
        self._read(self.ask.histograms(wanted))

    def _first(self, node: Node) -> int:
        if node.known is None or node.known.is_exact or not self.rule.bounds_share:
            return self.rule.first_columns
        return self.rule.columns_for(float(node.known.counts.sum()), node.budget)

    def ask_more(self, nodes: list[Node]) -> None:
        """Columns whose bound says that they may be better than the best cut so far."""
        wanted = [Wanted(node, self._better_columns(node), node.budget) for node in nodes]
        self._read(self.ask.histograms(wanted))

    def _better_columns(self, node: Node) -> tuple[int, ...]:
        if not node.bounds or node.agreed is None or node.is_rough:
            return ()
        left, noise = impurity(node.agreed.counts), node.bounds_deviation
        if (best := node.best) is not None and best.split is not None:
            left -= best.split.gain
            noise = math.hypot(noise, math.sqrt(sum(best.split.variances)))
        seen = {offer.column for offer in node.offers}
        return tuple(
            j for j in node.columns if j not in seen and node.bounds[j] + SURE * noise < left
        )

    def _read(self, answers: list[Found]) -> None:
        """Offers of all columns asked so far, each with the histogram as it was released."""
        for answer in answers:
            node = answer.node
            fresh = [
                Histogram.of(counts, node.possible[j], answer.variance)
                for j, counts in zip(answer.columns, answer.values, strict=True)
            ]
            columns = [*(offer.column for offer in node.offers), *answer.columns]
            released = [*(offer.released for offer in node.offers), *fresh]
            earlier = None if node.known is None else (node.known.counts, node.known.variance)
            agreed = reconciled(released, earlier)
            known = Measured(agreed[0].total, agreed[0].total_variance)
            splits = [
                best_cut(self.schema, j, histogram, known, self.gains, self.subsets)
                for j, histogram in zip(columns, agreed, strict=True)
            ]
            parts = zip(columns, released, splits, strict=True)
            node.offers, node.agreed = [Offer(*part) for part in parts], known

    def cut(self, nodes: list[Node]) -> None:
        """Cut every node at its best offer, if that gains; children take over what is known."""
        for node in nodes:
            best = node.best
            for offer in node.offers:
                if offer is not best:  # says how many rows there are, and no more is made of it
                    h = offer.released
                    node.measured.append(Measured(h.total, h.total_variance))
            node.known = node.agreed or node.known
            if best is not None:
                self._split(node, best)

    def _split(self, node: Node, best: Offer) -> None:
        assert best.split is not None
        column, right = best.column, best.split.right
        numbers = self.tree.split(node.number, cut_of(self.schema, self.cuts, column, right))
        for i, (number, side) in enumerate(zip(numbers, (~right, right), strict=True)):
            possible = list(node.possible)
            cells = possible[column] = possible[column] & side
            columns = tuple(j for j in self._kept(node, column) if possible[j].sum() > 1)
            child = Node(number, node.depth + 1, node.left, columns, tuple(possible))
            child.known = Measured(best.split.sums[i], best.split.variances[i])
            counts = best.released.sums[:, cells].sum(axis=1)
            noise = int(cells.sum()) * best.released.variance
            child.measured.append(Measured(counts, noise))
            self.nodes.append(child)

    def _kept(self, node: Node, used: int) -> tuple[int, ...]:
        """Columns far behind at a node are not ranked below it: the others cost less noise.

        The column that cut the node goes to the end: the others have more to say of its children.
        """
        order = tuple(sorted(node.columns, key=lambda j: j == used))
        if not node.bounds or node.bounds_deviation == 0:
            return order
        limit = min(node.bounds.values()) + KEPT * node.bounds_deviation
        last = node.columns[:KEPT_LEAST]
        return tuple(j for j in order if j in last or node.bounds[j] <= limit)


def _counted(found: Found) -> Measured:
    return Measured(found.values[0][:, 0], found.variance)
