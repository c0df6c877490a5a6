"""Ours beside the published figures: cells, counts, ranks and the paper's conclusions."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scipy.stats import rankdata, spearmanr

from maddock import cells, published
from maddock.cells import Cell
from maddock.fits import Cache, Fit

FAR = 2.0  # published standard deviations below which a cell counts as worse


@dataclass(frozen=True)
class Chosen:
    """Which repetitions, which tables and how rows are encoded and noise is counted."""

    splits: int
    repeats: int
    datasets: tuple[str, ...]
    encoding: str
    bounds: str
    accounting: str
    settings: tuple[tuple[str, Any], ...] = ()  # over those of every method
    variant: str = ""  # rules of the authors' program, joined by +

    def cell(self, one: Fit, accounting: str | None = None) -> Fit:
        return replace(
            one,
            encoding=self.encoding,
            bounds=self.bounds,
            accounting=accounting or self.accounting,
            variant=self.variant,
            settings=tuple(sorted({**dict(one.settings), **dict(self.settings)}.items())),
        )

    def scores(self, cache: Cache, one: Fit, accounting: str | None = None) -> list[float]:
        return cache.scores(self.cell(one, accounting), self.splits, self.repeats)


def table_lines(number: int, cache: Cache, chosen: Chosen) -> list[dict[str, Any]]:
    """Every cell of a table with ours, the published figure and how far apart they are."""
    document, lines = published.read(), []
    for cell in cells.table_cells(number):
        if cell.dataset in chosen.datasets:
            scores = chosen.scores(cache, cell.fit)
            if scores:
                lines.append(_line(cell, scores, published.value_of(document, cell)))
    return lines


def _line(cell: Cell, scores: list[float], figure: tuple[float, float] | None) -> dict[str, Any]:
    line: dict[str, Any] = {
        "table": cell.table, "row": cell.row, "dataset": cell.dataset, "epsilon": cell.epsilon,
        "auc": [round(score, 5) for score in scores],
        "fits": len(scores),
        "mean": statistics.fmean(scores),
        "sd": statistics.stdev(scores) if len(scores) > 1 else None,
    }  # fmt: skip
    if figure is not None:
        difference = (line["mean"] - figure[0]) / figure[1]
        worse = difference < -FAR
        line |= {"published": figure[0], "published_sd": figure[1], "in_sds": difference}
        line |= {"worse": worse, "counted": cell.dataset not in published.SMALLER}
    return line


def outside(lines: Iterable[dict[str, Any]]) -> set[tuple[int, str, str]]:
    """Table, row and dataset of cells further than two published deviations away, either way."""
    return {
        (line["table"], line["row"], line["dataset"])
        for line in lines
        if abs(line.get("in_sds", 0.0)) > FAR
    }


def counts(lines: Iterable[dict[str, Any]]) -> list[str]:
    """How many cells of each group are within two published deviations, or better."""
    groups: dict[str, list[bool]] = {}
    for line in lines:
        if not line.get("counted"):
            continue
        tables = f"table {line['table']}"
        if line["table"] in cells.EPSILON_OF:
            kind = line["row"].rpartition("_")[0].replace("_", " ")
            for name in (f"{kind} cells, {tables}", f"{kind} cells, all tables"):
                groups.setdefault(name, []).append(not line["worse"])
            if kind == "totally random" and line["table"] in (3, 12):
                groups.setdefault(f"{kind} cells, tables 3 and 12", []).append(not line["worse"])
        else:
            groups.setdefault(f"cells, {tables}", []).append(not line["worse"])
    return [
        f"{sum(group)} of {len(group)} {name} within {FAR:g} published sd or better"
        for name, group in groups.items()
    ]


def ranks(cache: Cache, chosen: Chosen) -> list[dict[str, Any]]:
    """Average ranks of the methods (1 = highest AUC) over the tables where all were run."""
    document, found = published.read()["rank"], []
    for place, epsilon in enumerate(cells.RANK_EPSILONS):
        means: dict[str, list[float]] = {}  # dataset -> mean AUC of each method
        fits: list[int] = []
        for name in chosen.datasets:
            of_methods = [
                chosen.scores(cache, cells.ranked_method(row, name, epsilon))
                for row in cells.RANKED
            ]
            if all(of_methods):
                least = min(len(scores) for scores in of_methods)
                fits.append(least)
                means[name] = [statistics.fmean(scores[:least]) for scores in of_methods]
        if not means:
            continue
        places = [rankdata([-mean for mean in of]) for of in means.values()]
        average = [float(statistics.fmean(column)) for column in zip(*places, strict=True)]
        theirs = [document[row][place] for row in cells.RANKED]
        found.append({
            "epsilon": epsilon, "datasets": list(means), "methods": list(cells.RANKED),
            "fits": min(fits), "ours": average, "published": theirs, "mean_auc": means,
            "spearman": float(spearmanr(average, theirs).statistic),
        })  # fmt: skip
    return found


def conclusions(cache: Cache, chosen: Chosen) -> list[dict[str, Any]]:
    """The paper's conclusions as yes or no, each with the figures behind it."""
    return [
        *_random_beats_histogram(cache, chosen),
        *_hessian_beats_uniform(cache, chosen),
        *_batching_wins(cache, chosen),
        *_rank_order(cache, chosen),
        *_exact_helps(cache, chosen),
    ]


def _mean(cache: Cache, chosen: Chosen, one: Fit) -> float | None:
    scores = chosen.scores(cache, one)
    return statistics.fmean(scores) if scores else None


def _random_beats_histogram(cache: Cache, chosen: Chosen) -> list[dict[str, Any]]:
    found = []
    for epsilon in cells.EPSILONS:
        pairs = []
        for name in cells.FIVE:
            random, histogram = (
                _mean(cache, chosen, cells.update_row(row, name, epsilon))
                for row in ("totally_random_newton", "hist_newton")
            )
            if name in chosen.datasets and random is not None and histogram is not None:
                pairs.append((name, random, histogram))
        if pairs:
            lost = [name for name, random, histogram in pairs if random <= histogram]
            random, histogram = (sum(p[i] for p in pairs) / len(pairs) for i in (1, 2))
            text = f"totally random beats histogram at epsilon {epsilon:g} (Newton, mean of sets)"
            figures = f"{random:.4f} and {histogram:.4f}; not on: {', '.join(lost) or 'none'}"
            found.append(_answer(text, random > histogram, figures))
    return found


def _hessian_beats_uniform(cache: Cache, chosen: Chosen) -> list[dict[str, Any]]:
    """Under the chosen bounds and, as far as it was run, under those of the data as published."""
    found, every = [], dict.fromkeys((chosen.bounds, "data"))
    for name, bounds in itertools.product(("credit1", "higgs"), every):
        under = replace(chosen, bounds=bounds)
        refined, uniform = (
            _mean(cache, under, cells.candidates_row(row, name))
            for row in ("iterative_hessian_s5", "uniform")
        )
        if name in chosen.datasets and refined is not None and uniform is not None:
            n = len(under.scores(cache, cells.candidates_row("uniform", name)))
            text = f"iterative Hessian beats uniform on {name} (bounds of the {bounds})"
            figures = f"{refined:.4f} and {uniform:.4f}, {n} fits"
            found.append(_answer(text, refined > uniform, figures))
    return found


def _batching_wins(cache: Cache, chosen: Chosen) -> list[dict[str, Any]]:
    won, seen = [], []
    for name in cells.FIVE:
        means = {
            row: mean
            for row in cells.BATCH_ROWS
            if (mean := _mean(cache, chosen, cells.batch_row(row, name))) is not None
        }
        if name in chosen.datasets and len(means) == len(cells.BATCH_ROWS):
            best = max(means, key=lambda row: means[row])
            seen.append(f"{name} {best}")
            won += [name] if best not in ("newton_b1", "dp_rf_b200") else []
    if not seen:
        return []
    text = f"batching wins at epsilon 0.1 on most sets ({len(won)} of {len(seen)})"
    return [_answer(text, 2 * len(won) > len(seen), "best: " + ", ".join(seen))]


def _rank_order(cache: Cache, chosen: Chosen) -> list[dict[str, Any]]:
    return [
        _answer(
            f"order of the methods at epsilon {found['epsilon']:g} (Spearman at least 0.8)",
            found["spearman"] >= 0.8,
            f"{found['spearman']:.2f} over {len(found['datasets'])} sets, "
            f"{found['fits']} fits a cell",
        )
        for found in ranks(cache, chosen)
    ]


def _exact_helps(cache: Cache, chosen: Chosen) -> list[dict[str, Any]]:
    """Fits that exist under both accountings, on the same rows with the same questions."""
    differences, ratios = [], []
    every = dict.fromkeys(
        cell.fit.cell for number in cells.TABLES for cell in cells.table_cells(number)
    )
    for one in every:
        both = [
            {
                (entry["fit"]["split"], entry["fit"]["repeat"]): entry
                for entry in cache.entries(
                    chosen.cell(one, accounting), chosen.splits, chosen.repeats
                )
                if entry.get("auc") is not None
            }
            for accounting in ("exact", "renyi")
        ]
        for place in both[0].keys() & both[1].keys():
            exact, renyi = both[0][place], both[1][place]
            differences.append(exact["auc"] - renyi["auc"])
            ratios.append(renyi["mu"] / exact["mu"])
    if len(differences) < 2:
        return []
    mean, error = statistics.fmean(differences), _error(differences)
    span = f"{100 * (1 - max(ratios)):.1f} to {100 * (1 - min(ratios)):.1f} % less noise"
    text = f"mean paired AUC difference {mean:+.5f}, standard error {error:.5f}"
    n = f"{len(differences)} pairs"
    return [
        _answer("exact accounting: sigma smaller on every row", max(ratios) < 1, f"{span}, {n}"),
        _answer("exact accounting: AUC not worse (two standard errors)", mean > -2 * error,
                f"{text}, {n}"),
    ]  # fmt: skip


def _error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values))


def _answer(text: str, yes: bool, figures: str) -> dict[str, Any]:
    return {"conclusion": text, "holds": yes, "figures": figures}
