"""scikit-learn estimators: one table, several parties in one process, or a federation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hedgerow.errors import SchemaError, SettingsError, TableError
from hedgerow.federation.base import Federation
from hedgerow.federation.local import local_federation
from hedgerow.gate import Gate, Progress
from hedgerow.model.ensemble import Ensemble
from hedgerow.presets import method_named, plan_for
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.plan import Plan
from hedgerow.schema import Schema, Value
from hedgerow.settings import Privacy, spare_for
from hedgerow.statement import Statement
from hedgerow.tables import Rows, rows_of

_PRIVACY = {f.name for f in fields(Privacy)} - {"epsilon", "delta", "trust"}


class PrivateBoostingClassifier(ClassifierMixin, BaseEstimator):
    """Boosted trees under differential privacy, for one table or for parties of one process.

    Parameters
    ----------
    schema : Schema, path to a schema file, or None when `bounds` and `classes` are given
    epsilon, delta : the guarantee; delta well below 1 / rows
    method : name of a method, see `hedgerow.presets`; "auto" is the best one
    trust : "coordinator", "parties" or "nobody"; None = the parties where there are several
    n_trees, max_depth, learning_rate, n_bins : None = the method's own choice
    settings : further settings by name, e.g. ``{"batch_size": 10, "minimum_parties": 2}``
    bounds : (low, high) for every column, or {column: (low, high)}; instead of a schema
    classes : the two classes, with `bounds`
    ledger : Ledger or path; None counts this fit alone
    random_state : seeds the questions (which trees are tried), never the noise

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import PrivateBoostingClassifier
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = PrivateBoostingClassifier(bounds=(-1, 1), classes=[0, 1], epsilon=2.0, n_trees=20)
    >>> bool(model.fit(X, y).score(X, y) > 0.8)
    True
    """

    def __init__(
        self,
        schema: Schema | str | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        method: str = "auto",
        trust: str | None = None,
        n_trees: int | None = None,
        max_depth: int | None = None,
        learning_rate: float | None = None,
        n_bins: int | None = None,
        settings: Mapping[str, Any] | None = None,
        bounds: Any = None,
        classes: Sequence[Value] | None = None,
        ledger: Ledger | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.trust = trust
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.n_bins = n_bins
        self.settings = settings
        self.bounds = bounds
        self.classes = classes
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, parties: Any = None) -> PrivateBoostingClassifier:
        """Train on one table; `parties` gives each row's party and makes it a federation.

        `y` may be left out when the table has the schema's label column.
        """
        schema = self._schema(X)
        rows = rows_of(X, schema, y)
        tables = {"all": rows} if parties is None else _split(rows, parties)
        privacy = self._privacy(len(tables))
        ledger = self._ledger()
        federation = local_federation(
            tables, schema, ledger, privacy.colluding, privacy.minimum_parties
        )
        return self._train(federation, privacy, ledger)

    def fit_federation(
        self, federation: Federation, observe: Callable[[Progress], None] | None = None
    ) -> PrivateBoostingClassifier:
        """Train over a federation that exists already; its roster says who may collude."""
        roster = federation.roster
        given = {"colluding": roster.colluding, "minimum_parties": roster.minimum}
        privacy = self._privacy(len(federation.names), given)
        return self._train(federation, privacy, self._ledger(), observe)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log-odds of the second class."""
        check_is_fitted(self)
        return self.model_.decision_function(X)[:, 0]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities (row, class) in the order of `classes_`."""
        check_is_fitted(self)
        return self.model_.predict_proba(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class of each row."""
        labels: NDArray[Any] = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return labels

    def _train(
        self,
        federation: Federation,
        privacy: Privacy,
        ledger: Ledger,
        observe: Callable[[Progress], None] | None = None,
    ) -> PrivateBoostingClassifier:
        plan = self._plan(federation.schema, privacy)
        gate = Gate(federation, plan, ledger, observe=observe)
        self.model_: Ensemble = method_named(plan.method).grow(gate)
        self.plan_: Plan = plan
        self.statement_: Statement = self.model_.statement
        self.classes_ = np.array(federation.schema.label.classes)
        self.n_features_in_ = len(federation.schema.columns)
        self.feature_names_in_ = np.array(federation.schema.names, dtype=object)
        return self

    def _plan(self, schema: Schema, privacy: Privacy) -> Plan:
        chosen = {
            "n_trees": self.n_trees,
            "max_depth": self.max_depth,
            "learning_rate": self.learning_rate,
            "n_bins": self.n_bins,
        }
        further = {k: v for k, v in (self.settings or {}).items() if k not in _PRIVACY}
        twice = [name for name in further if chosen.get(name) is not None]
        if twice:
            raise SettingsError(f"{twice[0]!r} is given twice, as parameter and in settings")
        return plan_for(schema, privacy, self.method, {**chosen, **further}, self.random_state)

    def _privacy(self, n_parties: int, given: Mapping[str, Any] | None = None) -> Privacy:
        trust = self.trust or ("parties" if n_parties > 1 else "coordinator")
        further = {k: v for k, v in (self.settings or {}).items() if k in _PRIVACY}
        values: dict[str, Any] = {"spare": spare_for(1), **further, **(given or {})}
        privacy = Privacy(self.epsilon, self.delta, trust, **values)  # type: ignore[arg-type]
        check_party_count(privacy, n_parties)
        return privacy

    def _schema(self, X: Any) -> Schema:
        if self.schema is not None:
            return self.schema if isinstance(self.schema, Schema) else Schema.read(self.schema)
        if self.bounds is None or self.classes is None:
            raise SchemaError(
                "the public facts are missing: give schema=Schema.read(path), or both bounds and "
                "classes. They are never read from the rows, because that would leak them."
            )
        if isinstance(self.bounds, Mapping):
            return Schema.from_bounds(self.bounds, classes=self.classes)
        names = [str(c) for c in getattr(X, "columns", [])] or [
            f"x{j}" for j in range(np.asarray(X).shape[-1])
        ]
        return Schema.from_bounds(dict.fromkeys(names, tuple(self.bounds)), classes=self.classes)

    def _ledger(self) -> Ledger:
        if isinstance(self.ledger, Ledger):
            return self.ledger
        return Ledger.in_memory() if self.ledger is None else Ledger.open(self.ledger)


def check_party_count(privacy: Privacy, n_parties: int) -> None:
    """Refuse a secure sum over too few parties, before anything is asked."""
    if privacy.trust != "parties":
        return
    least = privacy.minimum_parties
    if n_parties < least:
        raise SettingsError(
            f"trust in the parties needs at least {least} parties and there are {n_parties}. "
            "Nothing was asked. Trust the coordinator instead, or lower minimum_parties openly; "
            "with two parties each can subtract its own part from a sum, and the statement says so."
        )


def _split(rows: Rows, parties: Any) -> dict[str, Rows]:
    """Rows by party label; labels must be party names."""
    labels = np.asarray(parties).astype(str)
    if labels.shape != (rows.n_rows,):
        raise TableError(
            f"parties has shape {labels.shape}; give one party name for each of {rows.n_rows} rows"
        )
    return {str(name): rows.take(np.flatnonzero(labels == name)) for name in np.unique(labels)}
