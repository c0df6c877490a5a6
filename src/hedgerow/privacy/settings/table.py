"""Settings as plan files and models say them: one table with the settings of every family.

Such a table (plan format 1) has every name once, in one order. A plan's method has some of them;
the others stand there at their defaults, and with any other value a plan is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from hedgerow.data.habits import did_you_mean
from hedgerow.errors import SettingsError
from hedgerow.privacy.settings.base import Settings
from hedgerow.privacy.settings.boosting import BoostingSettings
from hedgerow.privacy.settings.fields import Kind
from hedgerow.privacy.settings.methods import (
    AutoSettings,
    DPXGBoostSettings,
    EvaluationSettings,
    PrivateTreeSettings,
)

_BOOSTING = (
    "random-trees", "dp-tr-newton", "dp-tr-newton-literal", "dp-tr-newton-ih",
    "dp-tr-newton-ih-ebm", "dp-tr-batch-newton-ih-ebm", "dp-ebm", "dp-ebm-newton", "dp-gbm",
    "feverless", "dp-rf", "ldp",
)  # fmt: skip
# Which settings a plan of a method has.
FAMILIES: dict[str, type[Settings]] = {
    "auto": AutoSettings,
    **dict.fromkeys(_BOOSTING, BoostingSettings),
    "private-tree": PrivateTreeSettings,
    "dp-xgboost": DPXGBoostSettings,
    "evaluation": EvaluationSettings,
}
_ORDER = (
    "n_trees", "cycles", "max_depth", "learning_rate", "n_bins", "reg_lambda", "leaf_clip",
    "floor_deviations", "shrinkage", "split", "split_caution", "gain_penalty", "min_hessian",
    "reuse_histogram", "update", "candidates", "candidate_rounds", "candidate_share", "cuts",
    "batch_size", "batch_fraction", "features_per_tree", "feature_order", "category_split",
    "rows_hint", "monotone", "warm_start", "warm_start_says", "start_share", "min_samples_leaf",
    "leaf_share", "bounds_share", "save_budget", "sketch_share", "level_growth", "sample_rate",
    "sample_by", "utility", "selector", "leaf_rule", "gradient_bound", "gradient_rule", "loss",
    "rounds",
)  # fmt: skip
_LATER = ("rounds",)  # than plan format 1
_FIELDS = {entry.name: entry for family in FAMILIES.values() for entry in fields(family)}
# Every setting of any method with its default, in the order of plan files.
DEFAULTS: dict[str, Any] = {name: _FIELDS[name].default for name in _ORDER}
MEANINGS: dict[str, str] = {name: _FIELDS[name].metadata["meaning"] for name in _ORDER}
_KINDS: dict[str, Kind] = {name: _FIELDS[name].metadata["kind"] for name in _ORDER}


@dataclass(frozen=True, kw_only=True)
class OtherSettings(Settings):
    """Of a method that this version does not know: a party answers its queries all the same."""

    table: tuple[tuple[str, Any], ...]

    def __post_init__(self) -> None:
        checked = {name: _KINDS[name].checked(name, value) for name, value in self.table}
        object.__setattr__(self, "table", tuple(checked.items()))

    @property
    def public_rows(self) -> int:
        return int(self.to_dict()["rows_hint"])

    @property
    def model(self) -> str:
        return str(self.to_dict()["warm_start"])

    @property
    def model_says(self) -> str:
        return str(self.to_dict()["warm_start_says"])

    @property
    def reads_rows(self) -> bool:
        return bool(self.to_dict()["candidates"] == "quantiles-not-private")

    def to_dict(self) -> dict[str, Any]:
        return {**DEFAULTS, **dict(self.table)}


def settings_table(settings: Settings) -> dict[str, Any]:
    """What a plan file says of settings, with the defaults of all that they do not have.

    Settings that came later stand there only where they are not at their defaults: plans without
    them stay what they were, byte by byte.
    """
    table = {**DEFAULTS, **settings.to_dict()}
    table = {n: v for n, v in table.items() if n not in _LATER or v != DEFAULTS[n]}
    return {**table, "cuts": [list(cuts) for cuts in table["cuts"]]}


def settings_from(method: str, table: Mapping[str, Any]) -> Settings:
    """The settings of a plan of a method; unknown names are refused with the known ones."""
    for name in table:
        if name not in DEFAULTS:
            known = ", ".join(sorted(DEFAULTS))
            hint = did_you_mean(name, DEFAULTS)
            raise SettingsError(f"unknown setting {name!r}{hint}; known: {known}")
    family = FAMILIES.get(method)
    if family is None:
        other = OtherSettings(table=tuple(table.items()))
        return Settings() if other.to_dict() == DEFAULTS else other
    own = set(family.names())
    for name, value in table.items():
        if name not in own and _KINDS[name].checked(name, value) != DEFAULTS[name]:
            raise SettingsError(
                f"method {method!r} does not use {name!r}, and the plan sets it to {value!r}. It "
                f"uses: {', '.join(sorted(own))}"
            )
    return family(**{name: table.get(name, DEFAULTS[name]) for name in own})
