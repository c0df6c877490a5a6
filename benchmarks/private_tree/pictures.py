"""Figures 2 to 5 of the report, from the results file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

LINES = {"saving": ("C0", "budget saving"), "plain": ("C1", "no saving")}


def figure_two(results: dict[str, Any], folder: Path) -> Path | None:
    """Accuracy by leaf share; and by both shares, as a heat map."""
    from matplotlib.figure import Figure

    shares = results.get("shares")
    if not shares:
        return None
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plain = shares["plain"]
    left.plot([float(x) for x in plain], list(plain.values()), marker="o", color="C1")
    left.set(xlabel="leaf_share", ylabel="test accuracy", title="no saving")
    leafs = sorted({float(key.split()[0]) for key in shares["saving"]})
    bounds = sorted({float(key.split()[1]) for key in shares["saving"]})
    heat = np.array([[shares["saving"][f"{a:g} {b:g}"] for b in bounds] for a in leafs])
    image = right.imshow(heat, origin="lower", cmap="viridis", aspect="auto")
    right.set_xticks(range(len(bounds)), [f"{b:g}" for b in bounds])
    right.set_yticks(range(len(leafs)), [f"{a:g}" for a in leafs])
    right.set(xlabel="bounds_share", ylabel="leaf_share", title="budget saving")
    figure.colorbar(image, ax=right, label="test accuracy")
    return _saved(figure, folder / "figure_2.png")


def figure_panels(results: dict[str, Any], n: int, number: int, folder: Path) -> Path | None:
    """Accuracy by epsilon in twelve panels: p across, depth and correlation down."""
    from matplotlib.figure import Figure

    panels = results["panels"]
    figure = Figure(figsize=(12, 11), layout="constrained")
    axes = figure.subplots(4, 3, sharex=True, sharey=True)
    drawn = False
    for row, (rho, depth) in enumerate([(0.9, 5), (0.9, 10), (0.3, 5), (0.3, 10)]):
        for column, p in enumerate((10, 25, 50)):
            ax = axes[row, column]
            ax.set_title(f"p = {p}, depth {depth}, rho = {rho:g}", fontsize=10)
            means = panels.get(f"n={n} p={p} depth={depth} rho={rho:g}", {}).get("mean")
            if not means:
                continue
            drawn = True
            for name, (colour, text) in LINES.items():
                points = {float(k.split()[1]): v for k, v in means.items() if k.startswith(name)}
                ax.plot(list(points), list(points.values()), colour, marker="o", ms=3, label=text)
            ax.axhline(means["central"], color="#333333", ls="--", label="central, not private")
            ax.axhline(means["local"], color="#888888", ls=":", label="local, not private")
    axes[0, 0].legend(fontsize=8)
    figure.supxlabel("epsilon")
    figure.supylabel(f"test accuracy, n = {n}")
    return _saved(figure, folder / f"figure_{number}.png") if drawn else None


def _saved(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path
