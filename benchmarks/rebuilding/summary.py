"""What many draws of rows say together: points above the guesser, and how sure they are."""

from __future__ import annotations

from typing import Any

import numpy as np


def summary(draws: list[dict[str, Any]]) -> dict[str, Any]:
    def points(one: str, other: str, cells: str = "all_cells") -> Any:
        return np.array([100 * (d[one][cells] - d[other][cells]) for d in draws])

    above = points("rebuilt", "guessed")
    held = points("rebuilt_held_out", "guessed_held_out")
    guessed = np.mean([100 * d["guessed"]["all_cells"] for d in draws])
    return {
        "draws": len(draws),
        "rebuilt": round(100 * float(np.mean([d["rebuilt"]["all_cells"] for d in draws])), 1),
        "guessed": round(float(guessed), 1),
        "deviation_of_a_guesser": round(
            100 * float(np.mean([d["guessed_deviation"] for d in draws])), 2
        ),
        "points_above_guesser": round(float(above.mean()), 2),
        "standard_error": _error(above),
        "points_above_guesser_held_out": round(float(held.mean()), 2),
        "points_of_seen_rows_alone": round(float((above - held).mean()), 2),
        "standard_error_of_those": _error(above - held),
        "numbers_above_guesser": round(float(points("rebuilt", "guessed", "numbers").mean()), 2),
        "rare_above_guesser": _rare(points("rebuilt", "guessed", "rare")),
        "auc": round(float(np.mean([d["auc"] for d in draws])), 3),
    }


def _error(points: Any) -> float | None:
    return round(float(points.std(ddof=1) / len(points) ** 0.5), 2) if len(points) > 1 else None


def _rare(points: Any) -> float | None:
    return round(float(np.nanmean(points)), 2) if np.isfinite(points).any() else None
