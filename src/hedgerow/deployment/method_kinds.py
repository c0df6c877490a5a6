"""Which kinds of queries a method can ask: declared in its plan, and adaptive ones."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from itertools import product
from typing import Any

from hedgerow.data.schema import Label, Schema
from hedgerow.errors import HedgerowError
from hedgerow.evaluation.program import declared_queries
from hedgerow.methods.registry import METHODS, Method
from hedgerow.party.limits import Kinds
from hedgerow.privacy.accounting.plan import EVALUATION
from hedgerow.privacy.settings import CANDIDATE_METHODS

_CHOICES = {
    "split": ("totally-random", "partially-random", "histogram"),
    "candidates": CANDIDATE_METHODS,
    "reuse_histogram": (True, False),
    "update": ("newton", "averaging"),
    "batch_fraction": (0.0,),  # learned splits go with one tree a round only
    "n_trees": (2,),
    "cycles": (0,),
}


@cache
def method_kinds() -> dict[str, Kinds]:
    """Of every method, over all settings that it has; found by asking it what it declares."""
    return {**{name: _kinds(method) for name, method in METHODS.items()}, EVALUATION: _measuring()}


def _measuring() -> Kinds:
    """Of evaluations, whatever the label is."""
    of_numbers: tuple[dict[str, Any], ...]
    facts: tuple[dict[str, Any], ...] = (
        {"classes": [0, 1]}, {"classes": [0, 1, 2]}, {"label_bounds": (0, 1)},
    )  # fmt: skip
    schemas = [Schema.from_bounds({"x": (0, 100)}, **label) for label in facts]
    of_numbers = ({"loss": "poisson"}, {"loss": "quantile", "quantile": 0.5})
    schemas += [schemas[0].with_label(Label("y", lower=0, upper=1, **of)) for of in of_numbers]
    kinds = {declared.kind for schema in schemas for declared in declared_queries(schema)}
    return frozenset(kinds), frozenset()


def _kinds(method: Method) -> Kinds:
    schema = Schema.from_bounds({"x": (0, 100), "y": (0, 100)}, classes=[0, 1])
    free = {name: values for name, values in _CHOICES.items() if name in method.uses}
    listed: set[str] = set()
    adaptive: set[str] = set()
    for values in product(*free.values()):
        chosen = dict(zip(free, values, strict=True))
        with suppress(HedgerowError):  # settings that do not go together
            settings = method.settings(chosen)
            declared = method.grower.declared_queries(schema, settings)
            listed |= {query.kind for query in declared}
            if (later := method.grower.adaptive_queries(schema, settings)) is not None:
                adaptive |= set(later.kinds)
    return frozenset(listed), frozenset(adaptive)
