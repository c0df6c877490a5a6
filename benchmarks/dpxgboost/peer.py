"""Run by an interpreter that has the package dp-xgboost (Python 3.8 to 3.10): one fit.

Reads in.npz and in.json of the folder that is named, writes out.npy and out.json there.
"""

from __future__ import annotations

import json
import os
import sys
import time

import dp_xgboost
import numpy as np


class NextSecond(dp_xgboost.callback.TrainingCallback):
    """Waits for a new second before each tree.

    Its noise is seeded with the clock, in seconds: trees of one second would have the same noise.
    """

    def __init__(self) -> None:
        self.waited = 0.0

    def before_iteration(self, model: object, epoch: int, evals_log: object) -> bool:
        left = 1.0 - time.time() % 1.0 + 0.001
        time.sleep(left)
        self.waited += left
        return False


def main(folder: str) -> None:
    with open(os.path.join(folder, "in.json"), encoding="utf-8") as file:
        given = json.load(file)
    arrays = np.load(os.path.join(folder, "in.npz"))
    bounds = {"feature_min": arrays["low"], "feature_max": arrays["high"]}
    train = dp_xgboost.DMatrix(arrays["train"], label=arrays["target"], **bounds)
    trees = given.pop("trees")
    # Targets lie between 0 and 1 and scores start in the middle, so gradients stay below 1.
    fixed = {
        "objective": "reg:squarederror",
        "base_score": 0.5,
        "tree_method": "approxDP",
        "nthread": 1,
        "verbosity": 0,
    }
    wall, cpu = time.perf_counter(), time.process_time()
    waiting = NextSecond()
    model = dp_xgboost.train({**fixed, **given}, train, num_boost_round=trees, callbacks=[waiting])
    facts = {
        "seconds": round(time.perf_counter() - wall - waiting.waited, 3),
        "cpu": round(time.process_time() - cpu, 3),
    }
    found = model.predict(dp_xgboost.DMatrix(arrays["test"]))
    np.save(os.path.join(folder, "out.npy"), found)
    with open(os.path.join(folder, "out.json"), "w", encoding="utf-8") as file:
        json.dump({**facts, "version": dp_xgboost.__version__}, file)


if __name__ == "__main__":
    main(sys.argv[1])
