"""The scikit-learn estimator of the one readable tree under pure epsilon."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.data.values import Value
from hedgerow.data.weights import refuse_weight
from hedgerow.errors import FitWarning
from hedgerow.estimators.boosting import PrivateBoostingClassifier
from hedgerow.estimators.keywords import explained, refuse_keywords
from hedgerow.inspection.drawing import Picture
from hedgerow.inspection.tree_view import TreeView, export_rules, export_text, plot_tree
from hedgerow.methods.private_tree import caution_of
from hedgerow.methods.registry import check_party_count, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy, PrivateTreeSettings, spare_for

_PROMISES = frozenset({"colluding", "minimum_parties", "spare"})


class PrivateTreeClassifier(PrivateBoostingClassifier):
    """One decision tree to be read and argued about, under pure epsilon-differential privacy.

    Parameters
    ----------
    epsilon : the guarantee; there is no delta
    schema : Schema, path to a schema file, or None when `bounds` and `classes` are given
    max_depth : depth of the tree; it stops earlier where there are too few rows for the noise
    min_samples_leaf : sides with fewer (noisy) rows are not split off
    n_bins : pieces into which a numeric column is cut, by public bounds
    leaf_share, bounds_share : parts of a path's and of a node's epsilon; None = by a public rule
    save_budget : rank columns first, ask few of them, hand down what is left
    trust : "coordinator" or "parties"; None = the parties where there are several
    settings : further settings by name, e.g. ``{"category_split": "equality"}``
    bounds, classes, ledger : as for `PrivateBoostingClassifier`
    random_state : seeds which columns are tried where nothing is known, never the noise
    verbose : 1 prints some lines while a fit runs, 2 one for every step; 0 is silent

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import PrivateTreeClassifier
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> tree = PrivateTreeClassifier(epsilon=2.0, bounds=(-1, 1), classes=[0, 1], max_depth=2)
    >>> bool(tree.fit(X, y).score(X, y) > 0.9)
    True
    >>> tree.statement_.guarantee
    'pure'
    """

    delta = 0.0
    method = "private-tree"
    monotone = None
    warm_start_from = None
    warm_start_is_public = False
    class_weight = None
    max_weight = None
    _REGRESSOR = "PrivateBoostingRegressor"
    _OWN = ("max_depth", "min_samples_leaf", "n_bins", "leaf_share", "bounds_share", "save_budget")
    _FURTHER = _PROMISES | set(PrivateTreeSettings.names())

    @explained
    def __init__(
        self,
        epsilon: float = 1.0,
        schema: Schema | str | None = None,
        max_depth: int = 5,
        min_samples_leaf: int = 10,
        n_bins: int = 16,
        leaf_share: float | None = None,
        bounds_share: float | None = None,
        save_budget: bool = True,
        trust: str | None = None,
        random_state: int | None = None,
        settings: Mapping[str, Any] | None = None,
        bounds: Any = None,
        classes: Sequence[Value] | str | None = None,
        ledger: Ledger | str | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.n_bins = n_bins
        self.leaf_share = leaf_share
        self.bounds_share = bounds_share
        self.save_budget = save_budget
        self.trust = trust
        self.random_state = random_state
        self.settings = settings
        self.bounds = bounds
        self.classes = classes
        self.ledger = ledger
        self.verbose = verbose

    # Without weights, which scikit-learn reads from the signature: counts have noise of whole
    # numbers, which weights would not be.
    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, parties: Any = None, **unknown: Any
    ) -> Self:
        """Train on one table; see `PrivateBoostingClassifier.fit`. Rows have no weights here."""
        refuse_keywords(unknown, ("X", "y", "parties"))
        return super().fit(X, y, parties)

    def _keep(self, model: Ensemble, named: bool) -> None:
        super()._keep(model, named)
        if told := caution_of(model):
            warnings.warn(told, FitWarning, stacklevel=2)

    @property
    def view_(self) -> TreeView:
        """The tree with noisy counts and their intervals, for pictures and for programs."""
        return TreeView.of(self._fitted_model())

    def export_text(self) -> str:
        """The tree as indented text."""
        return export_text(self._fitted_model())

    def export_rules(self) -> list[str]:
        """Every leaf as a plain sentence: IF ... AND ... THEN ..."""
        return export_rules(self._fitted_model())

    def plot(self) -> Picture:
        """The picture of the tree: a notebook shows it, `save("tree.svg")` writes it."""
        return plot_tree(self._fitted_model())

    def _public(self, X: Any, y: Any) -> Schema:
        schema = self._schema(X, y)
        refuse_weight(schema.weight, type(self).__name__)
        return schema

    def _plan(
        self, schema: Schema, privacy: Privacy, tables: Mapping[str, Rows] | None = None
    ) -> Plan:
        self._start = None
        return plan_for(schema, privacy, self.method, self._method_settings(), self._seed())

    def _privacy(
        self, n_parties: int, trust: str, given: Mapping[str, Any] | None = None
    ) -> Privacy:
        further = {k: v for k, v in (self.settings or {}).items() if k in _PROMISES}
        values: dict[str, Any] = {"spare": spare_for(1), **further, **(given or {})}
        promise = Privacy(self.epsilon, 0.0, trust, accounting="pure", **values)
        check_party_count(promise, n_parties)
        return promise
