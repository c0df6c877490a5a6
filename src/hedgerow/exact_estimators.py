"""What estimators without differential privacy share: parameters that are settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.errors import SettingsError
from hedgerow.fitted import Fitted
from hedgerow.rng import fresh_seed


class ExactBoosting(Fitted):
    """Settings by parameters and by `settings`, each given once."""

    settings: Mapping[str, Any] | None
    random_state: int | None
    _OWN: tuple[str, ...] = ("n_trees", "max_depth", "learning_rate")  # settings by parameters

    def _given(self) -> dict[str, Any]:
        further = dict(self.settings or {})
        if twice := sorted({*self._OWN, "seed"} & set(further)):
            raise SettingsError(f"{twice[0]!r} is a parameter of its own; take it out of settings")
        seed = self.random_state
        if seed is not None and not isinstance(seed, (int, np.integer)):
            raise SettingsError("random_state is a whole number or None")
        own = {name: getattr(self, name) for name in self._OWN}
        own["seed"] = fresh_seed() if seed is None else int(seed)
        return {**own, **further}
