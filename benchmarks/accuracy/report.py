"""Means, paired differences, the tables by dataset."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from rich.table import Table

from accuracy.cells import EBM_LIMIT, Cell, Found, half_of
from accuracy.data import maddock_best, main_measure, measures, sbdt, sbdt_line
from accuracy.methods import AUTO, CONSTANT, EBM, NOT_PRIVATE, THREE, XGBOOST

TITLES = {
    AUTO: "hedgerow auto",
    THREE: "hedgerow auto, 3 parties",
    EBM: "DP-EBM (interpret)",
    XGBOOST: "XGBoost, not private",
    CONSTANT: "constant, not private",
}
NAMES = {
    "auc": "AUC", "ece": "calibration error", "log_loss": "log loss",
    "rmse": "RMSE", "accuracy": "accuracy",
}  # fmt: skip
NONE = "-"


@dataclass(frozen=True)
class Figure:
    """A mean over splits with its standard error; nan where there is one split."""

    mean: float
    error: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.4f}" + ("" if math.isnan(self.error) else f" ({self.error:.4f})")

    @property
    def signed(self) -> str:
        return f"{self.mean:+.4f}" + ("" if math.isnan(self.error) else f" ({self.error:.4f})")


def figure_of(values: list[float]) -> Figure | None:
    if not values:
        return None
    n = len(values)
    error = statistics.stdev(values) / math.sqrt(n) if n > 1 else math.nan
    return Figure(statistics.fmean(values), error, n)


class Results:
    """Finished cells, asked by dataset, method, epsilon and measure."""

    def __init__(self, done: dict[Cell, Found]) -> None:
        self.done = done
        self.datasets = list(dict.fromkeys(cell.dataset for cell in done))

    def methods(self, dataset: str) -> list[str]:
        found = {cell.method for cell in self.done if cell.dataset == dataset}
        presets = sorted(found - TITLES.keys())
        return [m for m in (AUTO, THREE, *presets, EBM, XGBOOST, CONSTANT) if m in found]

    def epsilons(self, dataset: str) -> list[float]:
        found = {c.epsilon for c in self.done if c.dataset == dataset and c.epsilon is not None}
        return sorted(found)

    def values(
        self, dataset: str, method: str, epsilon: float | None, measure: str
    ) -> dict[int, float]:
        """One value a split, by seed."""
        if method in NOT_PRIVATE:
            epsilon = None
        return {
            cell.seed: found["measures"][measure]
            for cell, found in sorted(self.done.items(), key=lambda item: item[0].seed)
            if (cell.dataset, cell.method, cell.epsilon) == (dataset, method, epsilon)
        }

    def figure(
        self, dataset: str, method: str, epsilon: float | None, measure: str | None = None
    ) -> Figure | None:
        values = self.values(dataset, method, epsilon, measure or main_measure(dataset))
        return figure_of(list(values.values()))

    def lead(self, dataset: str, method: str, epsilon: float) -> Figure | None:
        """How much better `auto` is than another method on the same splits; positive is better."""
        measure = main_measure(dataset)
        ours = self.values(dataset, AUTO, epsilon, measure)
        theirs = self.values(dataset, method, epsilon, measure)
        return figure_of(
            [better(measure, ours[seed], theirs[seed]) for seed in ours if seed in theirs]
        )

    def lead_over(self, dataset: str, epsilon: float, published: float) -> Figure | None:
        """How much better `auto` is than a published figure."""
        measure = main_measure(dataset)
        ours = self.values(dataset, AUTO, epsilon, measure).values()
        return figure_of([better(measure, value, published) for value in ours])

    def traffic(self, dataset: str, epsilon: float) -> tuple[int, int] | None:
        """Rounds and bytes sent per party, the most of any split; of three parties if measured."""
        for method in (THREE, AUTO):
            found = [
                (result["rounds"], result["bytes_per_party"])
                for cell, result in self.done.items()
                if (cell.dataset, cell.method, cell.epsilon) == (dataset, method, epsilon)
            ]
            if found:
                return max(r for r, _ in found), max(b for _, b in found)
        return None


def better(measure: str, ours: float, theirs: float) -> float:
    return theirs - ours if measure == "rmse" else ours - theirs


def dataset_table(results: Results, dataset: str, note: str) -> Table:
    epsilons, first = results.epsilons(dataset), main_measure(dataset)
    table = Table(title=f"{dataset}: mean (standard error), {note}", title_justify="left")
    table.add_column("epsilon")
    for epsilon in epsilons:
        table.add_column(f"{epsilon:g}", justify="right")
    for measure in measures(dataset):
        table.add_section()
        for method in results.methods(dataset):
            if method == CONSTANT and measure in ("auc", "ece"):
                continue
            cells = [results.figure(dataset, method, e, measure) for e in epsilons]
            title = TITLES.get(method, method)
            table.add_row(f"{NAMES[measure]}: {title}", *(str(c or NONE) for c in cells))
    table.add_section()
    for method in results.methods(dataset):
        if method not in (AUTO, THREE, CONSTANT):
            leads = [results.lead(dataset, method, e) for e in epsilons]
            title = f"{NAMES[first]}: auto better than {TITLES.get(method, method)} by"
            table.add_row(title, *(NONE if c is None else c.signed for c in leads))
    if dataset in maddock_best():
        _add_maddock(table, results, dataset, epsilons)
    _add_traffic(table, results, dataset, epsilons)
    if dataset in EBM_LIMIT and EBM in results.methods(dataset):
        some, n = EBM_LIMIT[dataset]
        table.caption = (
            f"unless --full-ebm is given, DP-EBM is run at epsilon {some[0]:g} and {some[1]:g} "
            f"on the first {n} splits only"
        )
    return table


def _add_maddock(table: Table, results: Results, dataset: str, epsilons: list[float]) -> None:
    best = maddock_best()[dataset]
    leads = [results.lead_over(dataset, e, best) for e in epsilons]
    shown = (NONE if c is None else c.signed for c in leads)
    table.add_row(f"AUC: auto better than Maddock et al.'s best at 1 ({best:.4f}) by", *shown)


def _add_traffic(table: Table, results: Results, dataset: str, epsilons: list[float]) -> None:
    table.add_section()
    found = [results.traffic(dataset, e) for e in epsilons]
    parties = "3 parties" if THREE in results.methods(dataset) else "1 party"
    facts: tuple[tuple[str, Callable[[tuple[int, int]], str]], ...] = (
        (f"auto, {parties}: rounds", lambda t: str(t[0])),
        (f"auto, {parties}: kB sent per party", lambda t: f"{t[1] / 1000:.0f}"),
    )
    for title, show in facts:
        table.add_row(title, *(NONE if t is None else show(t) for t in found))


def sbdt_table(results: Results, dataset: str, note: str) -> Table:
    """The published line of S-BDT beside ours, at the same epsilon and at half of it."""
    line, measure = sbdt_line(dataset), main_measure(dataset)
    table = Table(
        title=f"{dataset}: {NAMES[measure]}, delta = {sbdt()['delta']:g}, {note}",
        title_justify="left",
    )
    for heading in (
        "epsilon", "S-BDT, published", "auto (standard error)", "better by", "in standard errors",
        "auto at half", "better by at half",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for epsilon, published in line.items():
        ours = results.figure(dataset, AUTO, epsilon)
        lead = results.lead_over(dataset, epsilon, published)
        half = results.figure(dataset, AUTO, half_of(epsilon))
        half_lead = results.lead_over(dataset, half_of(epsilon), published)
        table.add_row(
            f"{epsilon:g}", f"{published:.4f}", str(ours or NONE),
            NONE if lead is None else f"{lead.mean:+.4f}",
            NONE if lead is None or not lead.error > 0 else f"{lead.mean / lead.error:+.1f}",
            str(half or NONE), NONE if half_lead is None else half_lead.signed,
        )  # fmt: skip
    anchors = (XGBOOST,) if measure == "auc" else (XGBOOST, CONSTANT)
    others = [m for m in anchors if m in results.methods(dataset)]
    shown = [f"{TITLES[m]} {results.figure(dataset, m, None)}" for m in others]
    table.caption = "; ".join(shown) or None
    return table
