"""Weights of classes, put onto a model's scores. Nothing is asked for them.

Where rows of class k count w_k times, the best probabilities are in proportion to w_k p_k (Elkan
2001): the score of class k is higher by log w_k. That is added to a model which has been paid for.
Weights inside the gradients would let a row of the heaviest class move every sum by the largest
weight, and all noise would grow by as much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Label
from hedgerow.data.values import key_of, text_of
from hedgerow.errors import PlanError, SettingsError
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import single_leaf
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.reservation import Release
from hedgerow.privacy.settings import AutoSettings, BoostingSettings

Floats = NDArray[np.float64]
MOST = 1e6  # times that a class may count, and as small a part of once
BALANCED = "balanced"


def check_class_weight(given: Any, plan: Plan, label: Label) -> None:
    """Refuse weights that say nothing, or nothing to the method, before anything is asked."""
    settings = plan.settings
    forest = isinstance(settings, BoostingSettings) and settings.update == "averaging"
    if forest or not isinstance(settings, (AutoSettings, BoostingSettings)):
        raise SettingsError(
            f"class_weight shifts log-odds, and method {plan.method!r} has none to shift. Nothing "
            'was asked. Choose method "auto", or leave class_weight out.'
        )
    if not isinstance(given, str):
        _listed(given, label)
        return
    if given != BALANCED:
        raise SettingsError(
            f'class_weight is {given!r}; it is "balanced", or a weight for each class such as '
            f"{{{label.classes[-1]!r}: 5}}. Nothing was asked."
        )
    counts = not settings.public_rows
    if isinstance(settings, BoostingSettings):
        counts = settings.start_share > 0
    if not counts:
        raise SettingsError(
            "class_weight is 'balanced', and this plan buys no count of the classes (rows_hint is "
            "set, or start_share is 0). Nothing was asked. Give weights by class, leave rows_hint "
            "out, or set start_share, such as 0.02."
        )


def _listed(given: Any, label: Label) -> Floats:
    """Weights by class in the label's order; a class that is not named counts once."""
    if not isinstance(given, Mapping):
        raise SettingsError(
            f'class_weight is a {type(given).__name__}; it is "balanced" or a dict. Nothing was '
            "asked."
        )
    places = {key_of(value): place for place, value in enumerate(label.classes)}
    weights = np.ones(len(places))
    for name, weight in given.items():
        place = places.get(key_of(name))
        if place is None:
            known = ", ".join(text_of(value) for value in label.classes)
            raise SettingsError(
                f"class_weight names {name!r}, which is no class; the classes are {known}. "
                "Nothing was asked."
            )
        number = isinstance(weight, (int, float, np.number)) and not isinstance(weight, bool)
        if not number or not 1 / MOST <= weight <= MOST:
            raise SettingsError(
                f"class_weight gives {name!r} the weight {weight!r}; it must be a number from "
                f"{1 / MOST:g} to {MOST:g}. Nothing was asked."
            )
        weights[place] = float(weight)
    return weights


def weighted(model: Ensemble, given: Any, label_sums: Release | None) -> Ensemble:
    """The model with one more tree, a constant: public weights, or those of released counts."""
    label = model.schema.label
    if given == BALANCED:
        if label_sums is None:
            raise PlanError(
                "the count of the classes was lost with its slot, and class_weight 'balanced' "
                "follows from it. What was charged stays so. Give weights by class."
            )
        # A count below its own noise says nothing: as for the base rate, two deviations are least.
        counts = np.maximum(label_sums.values, max(1.0, 2 * label_sums.unit))
        weights = counts.sum() / (len(counts) * counts)
        noise = label_sums.unit / counts
    else:
        weights, noise = _listed(given, label), np.zeros(len(label.classes))
    shift = np.log(weights)
    if label.task == "binary":
        shift, noise = shift[1:] - shift[:1], np.array([math.hypot(*noise)])
    record = {
        "given": given if given == BALANCED else "listed",
        "weights": [float(weight) for weight in weights],
    }
    trees = (*model.trees, single_leaf(shift, noise))
    return replace(model, trees=trees, record={**model.record, "class_weight": record})


def class_weight_of(model: Ensemble) -> Any:
    """What was given when the model was trained: None, "balanced", or a weight for each class."""
    record = model.record.get("class_weight")
    if record is None or record["given"] == BALANCED:
        return record and BALANCED
    return dict(zip(model.schema.label.classes, record["weights"], strict=True))
