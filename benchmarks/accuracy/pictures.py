"""Accuracy against epsilon, one small picture a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

from accuracy.data import SBDT, maddock_best, main_measure, sbdt_line
from accuracy.methods import CONSTANT, NOT_PRIVATE, THREE, XGBOOST
from accuracy.report import NAMES, TITLES, Results

STYLE: Any = {
    "svg.fonttype": "none",  # text stays text, which keeps the file small
    "svg.hashsalt": "hedgerow",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(results: Results, folder: Path) -> list[Path]:
    """Write a picture for each dataset that has a private figure; returns the files."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for dataset in results.datasets:
        if not results.epsilons(dataset):
            continue
        with mpl.rc_context(STYLE):
            figure, axes = plt.subplots(figsize=(5.0, 3.2), layout="constrained")
            _lines(axes, results, dataset)
            _anchors(axes, results, dataset)
            measure = main_measure(dataset)
            axes.set(xscale="log", xlabel="epsilon", ylabel=NAMES[measure], title=dataset)
            ticks = list(sbdt_line(dataset)) if dataset in SBDT else results.epsilons(dataset)
            axes.set_xticks(ticks, [f"{e:g}" for e in ticks])
            axes.set_xticks([], minor=True)
            _trim(axes, results, dataset)
            axes.legend(frameon=False, fontsize=7)
            files.append(folder / f"{dataset}.svg")
            figure.savefig(files[-1], metadata={"Date": None})
            plt.close(figure)
    return files


def _lines(axes: Any, results: Results, dataset: str) -> None:
    for method in results.methods(dataset):
        if method in (*NOT_PRIVATE, THREE):
            continue
        found = [(e, results.figure(dataset, method, e)) for e in results.epsilons(dataset)]
        points = [(e, f.mean, 0.0 if f.n < 2 else f.error) for e, f in found if f is not None]
        x, y, error = zip(*points, strict=True)
        axes.errorbar(x, y, error, marker="o", ms=3, lw=1.2, label=TITLES.get(method, method))


def _anchors(axes: Any, results: Results, dataset: str) -> None:
    constant = () if main_measure(dataset) == "auc" else (CONSTANT,)
    for method, style in zip((XGBOOST, *constant), ("--", ":"), strict=False):
        found = results.figure(dataset, method, None)
        if found is not None:
            axes.axhline(found.mean, color="0.5", ls=style, lw=1, label=TITLES[method])
    if dataset in maddock_best():
        best = maddock_best()[dataset]
        axes.plot([1.0], [best], "k*", ms=7, label="Maddock et al., best at epsilon 1")
        axes.axhline(best, color="k", ls=":", lw=0.6)
    if dataset in SBDT:
        line = sbdt_line(dataset)
        axes.plot(list(line), list(line.values()), "k^-", ms=4, lw=0.8, label="S-BDT, published")


def _trim(axes: Any, results: Results, dataset: str) -> None:
    """Leave out errors far above the constant model's, so that the rest can be told apart."""
    constant = results.figure(dataset, CONSTANT, None)
    if constant is not None and main_measure(dataset) == "rmse":
        axes.set_ylim(top=min(axes.get_ylim()[1], 1.5 * constant.mean))
