"""scikit-learn estimators of boosting by similarity: no differential privacy, and they say so."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Self

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.sessions import Session
from hedgerow.data.rng import fresh_seed
from hedgerow.data.schema import Schema
from hedgerow.data.values import Value
from hedgerow.engines.local_session import local_session
from hedgerow.errors import SettingsError
from hedgerow.estimators.base import Classifier, Estimator, Regressor, scope_of
from hedgerow.estimators.inputs import is_named, split_rows
from hedgerow.estimators.keywords import explained, refuse_keywords
from hedgerow.estimators.progress import FitProgress
from hedgerow.methods.simfl.memory import SimilarityMemory
from hedgerow.methods.simfl.run import agreement_for, model_of, similarity_role
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.roles import Agreement


class _SimilarityBoosting(Estimator):
    """What classifier and regressor share."""

    _FURTHER = frozenset(f.name for f in fields(SimilaritySettings)) - {"seed"}

    def fit(
        self,
        X: Any,
        y: Any = None,
        parties: Any = None,
        memory: SimilarityMemory | None = None,
        **unknown: Any,
    ) -> Self:
        """Train on one table; `parties` gives each row's party and makes it a federation.

        `y` may be left out when the table has the schema's label column. With a `memory` that has
        been given to an earlier fit, only rows that were added since are hashed and looked for.
        Other keywords are refused with what to do instead.
        """
        refuse_keywords(unknown, ("X", "y", "parties", "memory"))
        schema, rows = self._read(X, y)
        tables = {"all": rows} if parties is None else split_rows(rows, parties)
        settings, stores = self._similarity(memory.seed if memory else None), None
        if memory is not None:
            settings, stores = memory.continued(settings), memory.stores(tables)
        agreement = agreement_for(schema, tuple(tables), settings, secrets.token_hex(8))
        with self._open_ledger() as ledger:
            told = FitProgress(self.verbose, "tree", settings.n_trees)
            done = local_session(
                agreement, similarity_role, tables, schema, ledger, stores, observe=told.reported
            )
            self._keep_reported(done.reports, schema, agreement, ledger, named=is_named(X))
            told.end(len(self.model_.trees))
        if memory is not None:
            memory.done(agreement.run, settings)
        self.sent_: dict[str, dict[str, int]] = {n: dict(r.sent) for n, r in done.roles.items()}
        return self

    def fit_federation(self, federation: Federation) -> Self:
        """Train over parties that exist already, here or elsewhere.

        Their limits must name the role "simfl". What was agreed on goes onto the ledger before
        anything is shown.
        """
        settings, schema = self._similarity(), self._begin_over(federation)
        agreement = agreement_for(schema, federation.names, settings, secrets.token_hex(8))
        with self._open_ledger(federation) as ledger:
            told = FitProgress(self.verbose, "tree", settings.n_trees)
            seconds = federation.step_seconds
            reports = Session(federation, agreement, ledger, told.reported, seconds).run()
            self._keep_reported(reports, schema, agreement, ledger, federation.simulated)
            told.end(len(self.model_.trees))
        return self

    def _keep_reported(
        self,
        reports: Mapping[str, Sequence[bytes]],
        schema: Schema,
        agreement: Agreement,
        ledger: Ledger,
        simulated: bool = True,
        named: bool = True,
    ) -> None:
        model = model_of(reports, schema, agreement, simulated)
        statement = replace(model.statement, scope=scope_of(ledger, agreement.run))
        self._keep(replace(model, statement=statement), named)

    def _similarity(self, known_seed: int | None = None) -> SimilaritySettings:
        """Settings; the seed of a memory's hash functions is taken unless another one is given."""
        if "seed" in (self.settings or {}):
            raise SettingsError(
                "'seed' is a parameter of its own, random_state; take it out of settings"
            )
        seed = self._seed()
        seed = known_seed if seed is None else seed
        return SimilaritySettings.from_dict(
            {**self._given(), "seed": fresh_seed() if seed is None else seed}
        )


class SimilarityBoostingClassifier(_SimilarityBoosting, Classifier):
    """Boosted trees for classes over several parties, by similar rows; NOT differentially private.

    Parameters
    ----------
    schema : Schema, path to a schema file, or None when `bounds` and `classes` are given
    n_trees, max_depth, learning_rate : of all parties together
    random_state : seeds the hash functions and ties, public to all parties; None draws a seed
    settings : further settings by name, e.g. ``{"leaves": "similar", "similar_weight": 1.0}``
    bounds : (low, high) for every column, or {column: (low, high)}; instead of a schema
    classes : the classes, with `bounds`; "public" declares the classes found in y public
    ledger : Ledger or path, where what parties show each other is put on record; None is that of
        the `with` block around the fit, or none
    verbose : 1 prints some lines while a fit runs, 2 one for every step; 0 is silent

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

    @explained
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
        ledger: Ledger | str | None = None,
        verbose: int = 0,
    ) -> None:
        self.schema = schema
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.settings = settings
        self.bounds = bounds
        self.classes = classes
        self.ledger = ledger
        self.verbose = verbose


class SimilarityBoostingRegressor(_SimilarityBoosting, Regressor):
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

    @explained
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
        ledger: Ledger | str | None = None,
        verbose: int = 0,
    ) -> None:
        self.schema = schema
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.settings = settings
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.ledger = ledger
        self.verbose = verbose
