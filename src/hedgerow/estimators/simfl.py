"""scikit-learn estimators of boosting by similarity: no differential privacy, and they say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from hedgerow.data.rng import fresh_seed
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.data.values import Value
from hedgerow.errors import SettingsError
from hedgerow.estimators.exact import ExactBoosting
from hedgerow.estimators.fitted import FittedClassifier, FittedRegressor
from hedgerow.estimators.inputs import check_fit, is_named, split_rows
from hedgerow.methods.simfl.memory import SimilarityMemory
from hedgerow.methods.simfl.run import train
from hedgerow.methods.simfl.settings import SimilaritySettings


class _SimilarityBoosting(ExactBoosting):
    """What classifier and regressor share."""

    random_state: int | None

    def fit(
        self,
        X: Any,
        y: Any = None,
        parties: Any = None,
        memory: SimilarityMemory | None = None,
    ) -> Self:
        """Train on one table; `parties` gives each row's party and makes it a federation.

        `y` may be left out when the table has the schema's label column. With a `memory` that has
        been given to an earlier fit, only rows that were added since are hashed and looked for.
        """
        y = check_fit(X, y)
        schema = self._schema(X, y)
        settings = SimilaritySettings.from_dict({**self._given(), "seed": self._seed(memory)})
        rows = rows_of(X, schema, y)
        tables = {"all": rows} if parties is None else split_rows(rows, parties)
        model, programs = train(tables, schema, settings, memory)
        self.sent_: dict[str, dict[str, int]] = {n: dict(p.sent) for n, p in programs.items()}
        self._keep(model, is_named(X))
        return self

    def _seed(self, memory: SimilarityMemory | None) -> int:
        if "seed" in (self.settings or {}):
            raise SettingsError(
                "'seed' is a parameter of its own, random_state; take it out of settings"
            )
        seed = self.random_state
        if seed is None and memory is not None:
            seed = memory.seed
        if seed is not None and not isinstance(seed, (int, np.integer)):
            raise SettingsError("random_state is a whole number or None")
        return fresh_seed() if seed is None else int(seed)


class SimilarityBoostingClassifier(_SimilarityBoosting, FittedClassifier):
    """Boosted trees for classes over several parties, by similar rows; NOT differentially private.

    Parameters
    ----------
    schema : Schema, path to a schema file, or None when `bounds` and `classes` are given
    n_trees, max_depth, learning_rate : of all parties together
    random_state : seeds the hash functions and ties, public to all parties; None draws a seed
    settings : further settings by name, e.g. ``{"leaves": "similar", "similar_weight": 1.0}``
    bounds : (low, high) for every column, or {column: (low, high)}; instead of a schema
    classes : the classes, with `bounds`; "public" declares the classes found in y public

    Notes
    -----
    What the parties show each other is in `statement_`, and in docs/simfl.md.

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import SimilarityBoostingClassifier
    >>> X = np.linspace(-1, 1, 600).reshape(-1, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = SimilarityBoostingClassifier(bounds=(-1, 1), classes=[0, 1], n_trees=20)
    >>> bool(model.fit(X, y, parties=np.arange(300) % 3).score(X, y) > 0.95)
    True
    >>> model.statement_.guarantee
    'none'
    """

    def __init__(
        self,
        schema: Schema | str | None = None,
        n_trees: int = 500,
        max_depth: int = 8,
        learning_rate: float = 0.03,
        random_state: int | None = None,
        settings: Mapping[str, Any] | None = None,
        bounds: Any = None,
        classes: Sequence[Value] | str | None = None,
    ) -> None:
        self.schema = schema
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.settings = settings
        self.bounds = bounds
        self.classes = classes


class SimilarityBoostingRegressor(_SimilarityBoosting, FittedRegressor):
    """Boosted trees for a number between public bounds, by similar rows; NOT private.

    Parameters are those of `SimilarityBoostingClassifier`, with `label_bounds` (low, high) in
    place of `classes`. Labels outside the bounds are clipped to them.

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import SimilarityBoostingRegressor
    >>> X = np.linspace(-1, 1, 600).reshape(-1, 2)
    >>> model = SimilarityBoostingRegressor(bounds=(-1, 1), label_bounds=(0, 1), n_trees=100)
    >>> bool(model.fit(X, X[:, 0] ** 2, parties=np.arange(300) % 3).score(X, X[:, 0] ** 2) > 0.8)
    True
    """

    def __init__(
        self,
        schema: Schema | str | None = None,
        n_trees: int = 500,
        max_depth: int = 8,
        learning_rate: float = 0.03,
        random_state: int | None = None,
        settings: Mapping[str, Any] | None = None,
        bounds: Any = None,
        label_bounds: tuple[float, float] | None = None,
    ) -> None:
        self.schema = schema
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.settings = settings
        self.bounds = bounds
        self.label_bounds = label_bounds
