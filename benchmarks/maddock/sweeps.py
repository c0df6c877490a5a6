"""What each published figure varies: panels of lines, each point one cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from maddock import cells
from maddock.cells import candidates_row, ranked_method, update_row
from maddock.fits import Fit, fit

TREES = (5, 10, 25, 50, 100, 150, 200, 250, 300)
METHOD_TREES = (25, 50, 100, 150, 200, 250, 300)
DEPTHS = (2, 3, 4, 5, 6)
BINS = (2, 4, 8, 16, 32, 64, 128)
SPLIT_ROWS = {
    "histogram": "hist_newton",
    "partially random": "partially_random_newton",
    "totally random": "totally_random_newton",
}
CANDIDATES = {
    "iterative Hessian, s = 5": "iterative_hessian_s5",
    "quantiles (not private)": "quantiles_nonprivate",
    "log": "log",
    "uniform": "uniform",
    "private quantiles": "quantiles_private",
}
# Figures about one dataset; the others name theirs.
CREDIT1 = (2, 3, 4, 5, 10, 11, 12)
OF_DATASET = {
    6: "credit2", 7: "adult", 8: "bank", 9: "nomao6",
    15: "higgs", 16: "credit2", 17: "adult", 18: "bank", 19: "nomao6",
}  # fmt: skip
NUMBERS = tuple(range(2, 20))


@dataclass
class Panel:
    """One plot: lines by name, each with its points (x, cell)."""

    name: str
    x: str
    log_x: bool = False
    lines: dict[str, list[tuple[float, Fit]]] = field(default_factory=dict)

    def add(self, name: str, x: float, one: Fit) -> None:
        self.lines.setdefault(name, []).append((x, one))


def panels(number: int) -> Iterator[Panel]:
    """The panels of a figure."""
    if number in (2, 6, 7, 8, 9):
        yield from _split_methods(number, OF_DATASET.get(number, "credit1"))
    elif number == 3:
        yield from _candidates("credit1")
    elif number == 4:
        yield _batches("figure04", "credit1")
    elif number == 5 or number >= 15:
        yield _methods(number, OF_DATASET.get(number, "credit1"))
    elif number == 10:
        yield _interactions("credit1", 10)
    elif number == 11:
        yield _cyclical("credit1")
    elif number == 12:
        yield _candidates_by_epsilon("credit1")
    elif number == 13:
        for name in ("higgs", "credit2", "adult", "nomao6", "bank"):
            yield _bins(f"figure13-{name}", name)
    elif number == 14:
        for name in ("adult", "bank", "credit2", "nomao6"):
            yield _batches(f"figure14-{name}", name)


def _split_methods(number: int, name: str) -> Iterator[Panel]:
    start = f"figure{number:02d}"
    trees = Panel(f"{start}a-{name}", "trees, epsilon 1")
    depth = Panel(f"{start}b-{name}", "depth, epsilon 1")
    epsilons = Panel(f"{start}c-{name}", "epsilon, depth 3")
    for label, row in SPLIT_ROWS.items():
        for n_trees in TREES:
            trees.add(label, n_trees, update_row(row, name, 1.0, n_trees=n_trees))
        for max_depth in DEPTHS:
            given = {} if max_depth == 4 else {"max_depth": max_depth}
            depth.add(label, max_depth, update_row(row, name, 1.0, **given))
        for epsilon in cells.EPSILONS:
            epsilons.add(label, epsilon, update_row(row, name, epsilon, max_depth=3))
    yield from (trees, depth, epsilons)


def _candidates(name: str) -> Iterator[Panel]:
    rounds = Panel(f"figure03a-{name}", "epsilon, 100 trees")
    for s in (5, 10, 20, 30, 100):
        for epsilon in cells.EPSILONS:
            row = f"iterative_hessian_s{s}"
            rounds.add(f"s = {s}", epsilon, candidates_row(row, name, epsilon))
    trees = Panel(f"figure03b-{name}", "trees, epsilon 1")
    for label, row in CANDIDATES.items():
        for n_trees in (100, 200, 300):
            trees.add(label, n_trees, candidates_row(row, name, n_trees=n_trees))
    yield from (rounds, trees, _bins(f"figure03c-{name}", name))


def _bins(title: str, name: str) -> Panel:
    panel = Panel(title, "candidates Q, 100 trees, epsilon 1", log_x=True)
    for label, row in CANDIDATES.items():
        for n_bins in BINS:
            given = {} if n_bins == 32 else {"n_bins": n_bins}
            panel.add(label, n_bins, candidates_row(row, name, **given))
    return panel


def _candidates_by_epsilon(name: str) -> Panel:
    panel = Panel(f"figure12-{name}", "epsilon, 100 trees")
    for label, row in CANDIDATES.items():
        for epsilon in cells.EPSILONS:
            panel.add(label, epsilon, candidates_row(row, name, epsilon))
    return panel


def _batches(title: str, name: str) -> Panel:
    panel = Panel(title if "-" in title else f"{title}-{name}", "epsilon, 200 trees")
    labels = {"dp_rf_b200": "DP-RF, one round", "newton_b1": "Newton, 200 rounds"}
    for row in cells.BATCH_ROWS:
        for epsilon in cells.EPSILONS:
            label = labels.get(row, f"batches of {row[1:]}")
            panel.add(label, epsilon, cells.batch_row(row, name, epsilon))
    return panel


def _methods(number: int, name: str) -> Panel:
    panel = Panel(f"figure{number:02d}-{name}", "trees, epsilon 1")
    for row in cells.RANKED:
        for n_trees in METHOD_TREES:
            panel.add(row.replace("_", "-"), n_trees, ranked_method(row, name, 1.0, n_trees))
    if number == 5:
        for n_trees in METHOD_TREES:
            panel.add("ldp", n_trees, fit(name, "ldp", 1.0, n_trees=n_trees))
    return panel


def _interactions(name: str, n_columns: int) -> Panel:
    panel = Panel(f"figure10-{name}", "trees, epsilon 1")
    for k in (1, 2, 3, 4, 5, n_columns):
        for n_trees in (10, 25, 50, 75, 100, 200, 300):
            panel.add(f"k = {k}", n_trees, _k_way(name, "newton", k, n_columns, n_trees))
    return panel


def _cyclical(name: str) -> Panel:
    panel = Panel(f"figure11-{name}", "trees, epsilon 1")
    for update in ("newton", "gradient"):
        for k, words in ((1, "one column a tree"), (10, "all columns")):
            for n_trees in (10, 25, 50, 75, 100, 200, 300):
                one = _k_way(name, update, k, 10, n_trees)
                panel.add(f"{update}, {words}", n_trees, one)
    return panel


def _k_way(name: str, update: str, k: int, n_columns: int, n_trees: int) -> Fit:
    given = {} if k == n_columns else {"features_per_tree": k}
    return update_row(f"totally_random_{update}", name, 1.0, n_trees=n_trees, **given)
