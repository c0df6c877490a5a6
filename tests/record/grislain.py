"""Grislain and Gonzalez 2021: figure 4 and the time of a tree."""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

from tests.record import drawing
from tests.record.blocks import NONE, published, result, table

TITLES = {
    "covtype": "covtype, error %", "adult": "adult, error %", "abalone": "abalone, RMSE",
    "synthetic-classes": "synthetic classes, error %",
    "synthetic-numbers": "synthetic regression, RMSE",
}  # fmt: skip
METHODS = {
    "paper's settings": "paper's settings", "own settings": "own settings",
    "own, with delta": "own, with delta", "auto": "auto",
    "dp-xgboost of PyPI": "dp-xgboost of PyPI",
}  # fmt: skip
NOISE_OFF = {"paper's settings": "paper's, noise off", "own settings": "own, noise off"}
BARE = {"XGBoost, paper's": "XGBoost, paper's settings", "XGBoost, all rows": "XGBoost, all rows"}


def entries() -> dict[tuple[str, str, float | None], list[float]]:
    found = result("dpxgboost_table")["results"]
    return {(one["dataset"], one["method"], one["epsilon"]): one["errors"] for one in found}


def shown(errors: list[float] | None) -> str:
    return NONE if errors is None else f"{mean(errors):.2f} ({len(errors)})"


def table_block(dataset: str) -> str:
    """Figure 4 of one data set: by epsilon, published and ours, in brackets splits."""
    document, known = published("dpxgboost2021"), entries()
    epsilons = document["epsilons"]
    theirs = document[dataset]
    lines: list[tuple[object, ...]] = [
        ("published", *(f"{one:g}" for one in theirs["private"]), f"{theirs['not_private']:g}")
    ]
    for method, title in METHODS.items():
        bare = NOISE_OFF.get(method)
        off = shown(known.get((dataset, bare, None))) if bare else ""
        lines.append((title, *(shown(known.get((dataset, method, e))) for e in epsilons), off))
    for method, title in BARE.items():
        empty = [""] * len(epsilons)
        lines.append((title, *empty, shown(known.get((dataset, method, None)))))
    head = (TITLES[dataset], *(f"{one:g}" for one in epsilons), "not private")
    return table(head, lines)


def above_block() -> str:
    """Cells with the paper's settings above the published figure, at its printed digits."""
    document, known, lines = published("dpxgboost2021"), entries(), []
    for dataset in TITLES:
        theirs = document[dataset]
        for place, epsilon in enumerate(document["epsilons"]):
            figure = theirs["private"][place]
            ours = known.get((dataset, "paper's settings", epsilon))
            if ours is None or rounded(mean(ours), figure) <= figure:
                continue
            own = known.get((dataset, "own settings", epsilon))
            lines.append(
                (TITLES[dataset], f"{epsilon:g}", f"{figure:g}", shown(ours), _error(ours),
                 shown(own), cause(known, dataset, epsilon, figure, theirs["not_private"]))
            )  # fmt: skip
    head = ("data", "epsilon", "published", "paper's settings", "standard error", "own settings",
            "cause")  # fmt: skip
    return table(head, lines)


def rounded(value: float, figure: float) -> float:
    return round(value, len(f"{figure:g}".partition(".")[2]))


def _error(errors: list[float]) -> str:
    return f"{stdev(errors) / len(errors) ** 0.5:.2f}" if len(errors) > 1 else NONE


def cause(
    known: dict[Any, list[float]], dataset: str, epsilon: float, figure: float, bare: float
) -> str:
    """What the record shows of the same table without privacy, and of the authors' package."""
    texts = []
    alone = known.get((dataset, "XGBoost, paper's", None))
    if alone and rounded(mean(alone), bare) > bare:
        texts.append(f"XGBoost, not private, has {mean(alone):.2f} here and {bare:g} there")
    peer = known.get((dataset, "dp-xgboost of PyPI", epsilon))
    if peer and rounded(mean(peer), figure) > figure:
        texts.append(f"the authors' package has {mean(peer):.2f} here")
    return "; ".join(texts) or "cause not found"


def runtime_block() -> str:
    measured, theirs = result("dpxgboost_table")["runtime"], published("dpxgboost2021")
    told = theirs["seconds_per_tree_covtype"]
    lines: list[tuple[object, ...]] = [
        ("published", f"{told['private']:g}", f"{told['not_private']:g}",
         f"{told['private'] / told['not_private']:.2f}")
    ]  # fmt: skip
    for name in ("paper's settings", "own settings"):
        one = measured[name]
        trees, ratio = one["per tree"], one["ratio"]["cpu"]
        lines.append(
            (f"{name}, CPU seconds", f"{trees['private cpu']:.3f}",
             f"{trees['noise off cpu']:.3f}", f"{ratio:.2f}")
        )  # fmt: skip
    return table(("a tree on covtype", "private", "not private", "ratio"), lines)


def figures() -> dict[str, str]:
    return {f"figure 4, {dataset}": table_block(dataset) for dataset in TITLES}


POINTS = {"1": "adult, epsilon 1, error % by bins", "2": "covtype, error % by epsilon"}


def points(figure: str) -> dict[str, dict[float, list[float]]]:
    """Errors of every fit of figure 1 or 2, by line and by where it stands."""
    found: dict[str, dict[float, list[float]]] = {}
    for one in result("dpxgboost_table")["figures"]:
        if one["figure"] == figure:
            found.setdefault(one["line"], {})[one["x"]] = one["errors"]
    return found


def recorded() -> list[str]:
    """Which of figures 1 and 2 the result file has."""
    return [figure for figure in POINTS if points(figure)]


def points_block(figure: str) -> str:
    known = points(figure)
    places = sorted({x for line in known.values() for x in line})
    lines = [(name, *(shown(line.get(x)) for x in places)) for name, line in known.items()]
    return table((POINTS[figure], *(f"{x:g}" for x in places)), lines)


def pictures() -> dict[str, str]:
    """Figures 1 and 2."""
    drawn = {}
    for figure in recorded():
        x_label = "bins" if figure == "1" else "epsilon"
        series = {
            name: [(x, mean(errors)) for x, errors in sorted(line.items())]
            for name, line in points(figure).items()
        }
        title = POINTS[figure].partition(", error")[0]
        drawn[f"grislain2021-figure-{figure}"] = drawing.lines(title, x_label, "error %", series)
    return drawn


def blocks() -> dict[str, str]:
    return {
        "above": above_block(),
        **figures(),
        **{f"figure {figure}": points_block(figure) for figure in recorded()},
        "runtime": runtime_block(),
    }
