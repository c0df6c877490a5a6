"""Runs the snippets of one library, in its own environment: `tasks.py` starts it.

Each snippet goes on from what the one called `train` has left, and must leave what its task is for.
Prints a JSON object: versions, and for each task the seconds, or what went wrong.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np

LATER = 1000  # rows to predict


def _scores(found: dict[str, Any]) -> None:
    from sklearn.metrics import roc_auc_score

    scores = np.asarray(found["scores"], float)
    assert roc_auc_score(found["truth"], scores) > 0.6, "no better than chance"


def _classes(found: dict[str, Any]) -> None:
    scores = np.asarray(found["scores"], float)
    assert scores.shape == (LATER, 3)
    assert np.allclose(scores.sum(axis=1), 1)


def _predicted(found: dict[str, Any]) -> None:
    assert np.isfinite(found["predicted"]).all()
    assert len(found["predicted"]) == LATER


def _effect(found: dict[str, Any]) -> None:
    assert np.ptp(np.asarray(found["effect"], float)) > 0


def _quality(found: dict[str, Any]) -> None:
    assert 0.5 < found["quality"] < 1.1


def _promise(found: dict[str, Any]) -> None:
    assert "epsilon = 1" in " ".join(found["promise"].split())


def _cost(found: dict[str, Any]) -> None:
    assert "epsilon" in found["cost"]


def _refused(found: dict[str, Any]) -> None:
    assert found["refused"] is True


LEFT = {
    "train": _scores, "cost": _cost, "budget": _refused, "load": _scores, "federate": _scores,
    "explain": _effect, "measure": _quality, "regress": _predicted, "classes": _classes,
    "state": _promise,
}  # fmt: skip


def main() -> None:
    snippets, truth = Path(sys.argv[1]), np.array(Path("truth").read_text().split(), int)
    results: dict[str, Any] = {}
    fitted: dict[str, Any] = {"truth": truth}
    for task, check in LEFT.items():
        path = snippets / f"{task}.py"
        if not path.exists():
            continue
        found, begun = {**fitted}, time.perf_counter()
        if task != "train":
            found.pop("scores", None)
        try:
            exec(compile(path.read_text("utf-8"), str(path), "exec"), found)  # noqa: S102
            check(found)
        except Exception as error:  # whatever a library raises is told
            results[task] = {"failed": f"{type(error).__name__}: {error}"[:400]}
            continue
        results[task] = {"seconds": round(time.perf_counter() - begun, 2)}
        if task == "train":
            fitted = found
    packages = ("hedgerow", "interpret-core", "xgboost-cpu", "diffprivlib", "scikit-learn", "numpy")
    found = {d.name: d.version for d in distributions() if d.name in packages}
    print(json.dumps({"versions": found, "tasks": results}))


if __name__ == "__main__":
    main()
