"""The table of figure 4 beside the published one, and what it says, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpxgboost.cells import EPSILONS, Cell, Found
from dpxgboost.data import DATASETS, REAL, measure_of, published_at
from dpxgboost.methods import (  # fmt: skip
    AUTO,
    DELTA,
    METHODS,
    NOT_PRIVATE,
    OWN,
    PAPER,
    PAPER_OFF,
    PEER,
    XGBOOST,
    XGBOOST_ALL,
)

OURS = (PAPER, OWN, DELTA)
JUDGED = (1.0, 2.0)  # of covtype, adult and abalone
Means = dict[tuple[str, str, float | None], tuple[float, float, int]]


def means_of(found: dict[Cell, Found]) -> Means:
    """(mean, standard error, splits) of every entry of the table."""
    grouped: dict[tuple[str, str, float | None], list[float]] = {}
    for cell, one in found.items():
        grouped.setdefault((cell.dataset, cell.method, cell.epsilon), []).append(one["error"])
    means: Means = {}
    for key, errors in grouped.items():
        n = len(errors)
        spread = float(np.std(errors, ddof=1) / n**0.5) if n > 1 else float("nan")
        means[key] = (float(np.mean(errors)), spread, n)
    return means


def entries(found: dict[Cell, Found]) -> list[dict[str, Any]]:
    """Every figure, for the result file."""
    grouped: dict[tuple[str, str, float | None], list[tuple[Cell, Found]]] = {}
    for cell, one in found.items():
        grouped.setdefault((cell.dataset, cell.method, cell.epsilon), []).append((cell, one))
    return [
        {
            "dataset": dataset, "method": method, "epsilon": epsilon,
            "measure": measure_of(dataset), "seeds": [cell.seed for cell, _ in many],
            "errors": [round(one["error"], 4) for _, one in many],
            "cpu_seconds": [one["cpu"] for _, one in many],
        }
        for (dataset, method, epsilon), many in sorted(grouped.items(), key=lambda kv: str(kv[0]))
    ]  # fmt: skip


def table(means: Means) -> Iterator[str]:
    for dataset in DATASETS:
        if not any(key[0] == dataset for key in means):
            continue
        unit = "error in percent" if measure_of(dataset) == "error" else "RMSE"
        yield f"\n{dataset}, {unit}: mean (splits)"
        heads = [*(f"eps {e:g}" for e in EPSILONS), "not private"]
        yield f"{'':22s}" + "".join(f"{head:>13s}" for head in heads)
        shown = [f"{published_at(dataset, e):g}" for e in (*EPSILONS, None)]
        yield f"{'published':22s}" + "".join(f"{text:>13s}" for text in shown)
        for method in METHODS:
            columns = [None] if method in NOT_PRIVATE else [*EPSILONS]
            texts = {e: _shown(means.get((dataset, method, e))) for e in columns}
            if any(text != "-" for text in texts.values()):
                cells = [texts.get(e, "") for e in (*EPSILONS, None)]
                yield f"{method:22s}" + "".join(f"{text:>13s}" for text in cells)


def _shown(figure: tuple[float, float, int] | None) -> str:
    return "-" if figure is None else f"{figure[0]:.2f} ({figure[2]})"


def as_printed(value: float, published: float) -> float:
    """With as many digits as the published figure has."""
    text = f"{published:g}"
    return round(value, len(text.partition(".")[2]))


def verdicts(means: Means) -> list[dict[str, Any]]:
    """Each judged cell: at or below the published figure, or why not."""
    found = []
    for dataset in REAL:
        for epsilon in JUDGED:
            target = published_at(dataset, epsilon)
            for method in OURS:
                figure = means.get((dataset, method, epsilon))
                if figure is None:
                    continue
                level = as_printed(figure[0], target) <= target
                found.append(
                    {
                        "dataset": dataset, "epsilon": epsilon, "method": method,
                        "published": target, "error": round(figure[0], 3), "splits": figure[2],
                        "at or below": level,
                        "reason": "" if level else reason(means, dataset, epsilon, target),
                    }
                )  # fmt: skip
    return found


def reason(means: Means, dataset: str, epsilon: float, target: float) -> str:
    """Why a published figure is not reached, by what was measured in the same table."""
    texts = []
    for method in (XGBOOST, XGBOOST_ALL, PAPER_OFF):
        figure = means.get((dataset, method, None))
        if figure is not None and as_printed(figure[0], target) > target:
            texts.append(f"{method} has {figure[0]:.2f} without any privacy")
    peer = means.get((dataset, PEER, epsilon))
    if peer is not None and as_printed(peer[0], target) > target:
        texts.append(f"the authors' package has {peer[0]:.2f} here")
    bare, printed = means.get((dataset, XGBOOST, None)), published_at(dataset, None)
    if bare is not None and as_printed(bare[0], printed) > printed:
        texts.append(f"not private, {bare[0]:.2f} against a published {printed:g}")
    return "; ".join(texts) or "none was found: the noise is the reason"


def against_auto(means: Means) -> list[dict[str, Any]]:
    """hedgerow's default method beside the best column of dp-xgboost and the published figure."""
    found = []
    for dataset in DATASETS:
        for epsilon in EPSILONS:
            auto = means.get((dataset, AUTO, epsilon))
            ours = [means[key][0] for m in OURS if (key := (dataset, m, epsilon)) in means]
            if auto is None or not ours:
                continue
            found.append(
                {
                    "dataset": dataset, "epsilon": epsilon, "auto": round(auto[0], 3),
                    "best of dp-xgboost": round(min(ours), 3),
                    "published": published_at(dataset, epsilon),
                    "better": auto[0] < min(ours),
                    "below published": auto[0] <= published_at(dataset, epsilon),
                }
            )  # fmt: skip
    return found


def lines(judged: Sequence[dict[str, Any]], beside: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "\nat or below the published figure, at its printed digits?"
    for one in judged:
        word = "yes" if one["at or below"] else "no"
        yield (
            f"  {word:4s}{one['dataset']} at {one['epsilon']:g}, {one['method']}: "
            f"{one['error']:.2f} against {one['published']:g} (splits: {one['splits']})"
            + (f". {one['reason']}" if one["reason"] else "")
        )
    yield "\nis the default method better than dp-xgboost?"
    for one in beside:
        word = "yes" if one["better"] else "no"
        yield (
            f"  {word:4s}{one['dataset']} at {one['epsilon']:g}: {one['auto']:.2f} against "
            f"{one['best of dp-xgboost']:.2f} (published {one['published']:g})"
        )
