"""Runs that several formats are made from, each run once in a process."""

from __future__ import annotations

from functools import cache

from hedgerow.model.ensemble import Ensemble
from tests.golden import runs

# Runs whose messages are stored whole; of all others their hashes are.
WHOLE = (("random-trees", "binary"), ("private-tree", "binary"), ("dp-xgboost", "regression"))


@cache
def trained(method: str, task: str) -> runs.Run:
    return runs.train(method, task, forgetful=3 if (method, task) == WHOLE[0] else -1)


@cache
def measured(task: str) -> runs.Run:
    method = "random-trees" if task in ("binary", "multiclass", "regression") else "auto"
    return runs.measure(model_of(trained(method, task)), task)


@cache
def similar() -> runs.Run:
    return runs.similarity()


@cache
def split(protection: str) -> runs.Run:
    return runs.vertical(protection)


def model_of(run: runs.Run) -> Ensemble:
    assert run.model is not None
    return run.model


def parts_of(protection: str) -> dict[str, bytes]:
    """Each party's part of a vertical model, as it handed it over."""
    return {name: found[-1] for name, found in split(protection).reports.items()}
