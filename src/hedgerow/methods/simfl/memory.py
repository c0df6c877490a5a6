"""What parties of one process keep of their similar rows between fits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hedgerow.errors import SettingsError
from hedgerow.methods.simfl.kept import place_of
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.protocol.roles import MemoryStore

_FIXED = ("seed", "n_hashes", "window")  # what hash functions follow from


class SimilarityMemory:
    """Hashes and most similar rows of parties, for fits on the same tables with rows added.

    Give the same object to every fit. The first one fills it; a later one takes tables whose first
    rows are those of the last fit, in their order, and looks for similar rows only where a row was
    added. It holds hashes of all rows, so keep it where the rows may be.

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import SimilarityBoostingClassifier, SimilarityMemory
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    >>> y, parties = (X[:, 0] > 0).astype(int), np.arange(300) % 2
    >>> model = SimilarityBoostingClassifier(bounds=(-1, 1), classes=[0, 1], n_trees=5)
    >>> memory = SimilarityMemory()
    >>> before = model.fit(X[:280], y[:280], parties=parties[:280], memory=memory).sent_["0"]
    >>> after = model.fit(X, y, parties=parties, memory=memory).sent_["0"]
    >>> before["tables"], after["tables"]
    (1210, 169)
    """

    def __init__(self) -> None:
        self.run = ""  # the last one
        self._fixed: dict[str, Any] = {}
        self._stores: dict[str, MemoryStore] = {}

    def continued(self, settings: SimilaritySettings) -> SimilaritySettings:
        """The settings of the next run: it continues the last one, if there is one.

        A memory that has a run fixes the hash functions; settings that name others are refused.
        """
        for name, value in self._fixed.items():
            if getattr(settings, name) != value:
                raise SettingsError(
                    f"{name} is {getattr(settings, name)!r}, and the memory's hashes were made "
                    f"with {value!r}. Nothing was sent. Give {value!r}, or another memory."
                )
        return replace(settings, keep=True, continues=self.run)

    @property
    def seed(self) -> int | None:
        """The seed of the hash functions, once there are some."""
        return self._fixed.get("seed")

    def stores(self, parties: Iterable[str]) -> dict[str, MemoryStore]:
        return {name: self._stores.setdefault(name, MemoryStore()) for name in parties}

    def done(self, run: str, settings: SimilaritySettings) -> None:
        """Keep this run, and drop the one before."""
        self.run, self._fixed = run, {name: getattr(settings, name) for name in _FIXED}
        for name, store in self._stores.items():
            self._stores[name] = fresh = MemoryStore()
            if (data := store.get(place_of(run))) is not None:
                fresh.put(place_of(run), data)
