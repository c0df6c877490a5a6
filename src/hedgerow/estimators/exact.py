"""What estimators without differential privacy share: parameters that are settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedgerow.errors import SettingsError
from hedgerow.estimators.fitted import Fitted


class ExactBoosting(Fitted):
    """Settings by parameters and by `settings`, each given once."""

    settings: Mapping[str, Any] | None
    _OWN: tuple[str, ...] = ("n_trees", "max_depth", "learning_rate")  # settings by parameters

    def _given(self) -> dict[str, Any]:
        further = dict(self.settings or {})
        if twice := sorted(set(self._OWN) & set(further)):
            raise SettingsError(f"{twice[0]!r} is a parameter of its own; take it out of settings")
        return {**{name: getattr(self, name) for name in self._OWN}, **further}
