"""Compiles loops ahead of time: for the image of a container, or before a party says it is ready.

Loops are compiled by small fits of made-up rows, which go through all that a real fit does, and are
kept on disk where Numba keeps them (`NUMBA_CACHE_DIR`, else beside the source).
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import clock
from hedgerow.data.rng import stream
from hedgerow.data.schema import Categorical, Label, Numeric, Schema
from hedgerow.errors import SettingsError
from hedgerow.failpoints import uncounted
from hedgerow.kernels.compiling import n_compiled

ROWS = 4096
VERTICAL, SIMILARITY = "fedxgboost", "simfl"
PARTY_METHODS = ("auto", "dp-gbm")  # what these ask of rows is what all methods ask
_LABELS = {
    "binary": Label("y", (0, 1)),
    "multiclass": Label("y", (0, 1, 2)),
    "regression": Label("y", lower=0.0, upper=3.0),
}
TASKS = tuple(_LABELS)
_TASKS_OF = {"private-tree": ("binary", "multiclass"), "dp-xgboost": ("binary", "regression")}


@dataclass(frozen=True)
class Warmed:
    """What was done: how many loops had to be compiled, and how long it took."""

    methods: tuple[str, ...]
    compiled: int
    seconds: float


def method_names() -> tuple[str, ...]:
    """Every method that `warm` knows."""
    from hedgerow.methods.registry import METHODS

    return (*METHODS, VERTICAL, SIMILARITY)


def task_of(label: Label) -> str:
    """The task of a label that is trained in its place: binary, multiclass or regression."""
    if label.task == "survival":  # its own loop is one; the others are those of numbers
        return "regression"
    return "regression" if not label.classes else TASKS[len(label.classes) > 2]


def warm(methods: Iterable[str] = (), tasks: Iterable[str] = TASKS) -> Warmed:
    """Compile what methods need, all of them if none is named; what is on disk is not compiled."""
    known, chosen = method_names(), tuple(methods)
    for name in chosen:
        if name not in known:
            raise SettingsError(f"no method {name!r}; choose among {', '.join(known)}")
    chosen, before, begun = chosen or known, n_compiled(), clock.monotonic()
    temporary = tempfile.TemporaryDirectory(prefix="hedgerow-")
    with temporary as folder, warnings.catch_warnings(), uncounted():
        warnings.simplefilter("ignore")  # made-up rows promise nothing to anybody
        for task in tasks:
            for name in (name for name in chosen if task in _TASKS_OF.get(name, TASKS)):
                _fit(name, task, Path(folder) / f"{name}-{task}.sqlite")
    return Warmed(chosen, n_compiled() - before, clock.monotonic() - begun)


def _table() -> dict[str, Any]:
    rng = stream(0, "warming")
    table: dict[str, Any] = {name: rng.normal(size=ROWS) for name in ("a", "b", "c")}
    table["a"][::17] = np.nan
    table["kind"] = rng.choice(list("uvwxyz"), ROWS)
    return table


def _fit(name: str, task: str, ledger: Path) -> None:
    table = _table()
    score = table["b"] + table["b"] * table["c"] + (table["kind"] == "u")
    y = np.clip(score + 1.0, 0.0, 3.0) if task == "regression" else (score > 0).astype(np.int64)
    y = np.digitize(score, [-0.5, 0.5]) if task == "multiclass" else y
    numbers = [Numeric(name, -4, 4) for name in "abc"]
    schema = Schema((*numbers, Categorical("kind", tuple("uvwxyz"))), _LABELS[task])
    model, fit_settings = _estimator(name, task, schema, ledger)
    model.fit(table, y, **fit_settings).predict(table)


def _estimator(name: str, task: str, schema: Schema, ledger: Path) -> tuple[Any, dict[str, Any]]:
    """An estimator, and what its `fit` takes beside the table."""
    import hedgerow as package
    from hedgerow.methods.registry import METHODS

    kind = "Regressor" if task == "regression" else "Classifier"
    given: dict[str, Any] = {"schema": schema, "ledger": str(ledger)}
    if name == VERTICAL:
        model = getattr(package, f"VerticalBoosting{kind}")(
            **given, protection="none", n_trees=2, max_depth=2
        )
        return model, {"owners": {"a": "other"}}
    if name == SIMILARITY:
        model = getattr(package, f"SimilarityBoosting{kind}")(**given, n_trees=2)
        return model, {"parties": np.arange(ROWS) % 2}
    if name == "private-tree":
        return package.PrivateTreeClassifier(epsilon=4.0, **given), {}
    method = METHODS[name]
    settings = {"n_trees": 8} if "n_trees" in method.uses else {}
    model = getattr(package, f"PrivateBoosting{kind}")(
        epsilon=4.0, **given, method=name, settings=settings, trust=method.trust
    )
    return model, {}
