"""scikit-learn estimators: one table, several parties in one process, or a federation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from os import PathLike
from typing import Any, Self

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate, Progress
from hedgerow.data.counts import refuse_unusual
from hedgerow.data.habits import did_you_mean
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.data.values import Value
from hedgerow.engines.local import local_federation
from hedgerow.errors import SettingsError
from hedgerow.estimators.base import Classifier, Estimator
from hedgerow.estimators.inputs import check_weights, is_dask, is_named, split_rows, with_cap
from hedgerow.estimators.keywords import explained, refuse_keywords
from hedgerow.estimators.progress import FitProgress, both
from hedgerow.estimators.scoring import selection_disclosures
from hedgerow.estimators.weights import check_class_weight, weighted
from hedgerow.methods.registry import check_party_count, method_named, plan_for, with_exact_cuts
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Disclosure
from hedgerow.model.trust import trust_named, usual_trust
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.cautions import warn_of
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import DEFAULTS, Privacy, spare_for

_MANY = 1000  # parties, more than any plan asks for
_PRIVACY = frozenset(f.name for f in fields(Privacy)) - {"epsilon", "delta", "trust"}


class PrivateBoosting(Estimator):
    """What classifier and regressor share: the promise, the plan, the gate."""

    epsilon: float
    delta: float
    method: str
    trust: str | None
    monotone: Mapping[str, int] | None
    warm_start_from: Ensemble | str | None
    warm_start_is_public: bool
    class_weight: Mapping[Value, float] | str | None = None
    _start: Ensemble | None
    _OWN: tuple[str, ...] = ("n_trees", "max_depth", "learning_rate", "n_bins")
    _FURTHER = _PRIVACY | set(DEFAULTS)

    def fit(
        self,
        X: Any,
        y: Any = None,
        parties: Any = None,
        sample_weight: Any = None,
        **unknown: Any,
    ) -> Self:
        """Train on one table; `parties` gives each row's party and makes it a federation.

        `y` may be left out when the table has the schema's label column. Dask frames are trained
        on where they lie: with the current Dask client, or on a cluster of this machine.
        `sample_weight` says how often each row counts: private numbers, clamped to 0 and
        `max_weight` (or the schema's cap) and never divided by their sum. All noise grows with
        that cap. Weights can also be a column that the schema names.

        Look at `schema.check(X, y)` first. It counts what the schema's bounds and lists do to the
        rows, for their owner's eyes alone; a fit must not, and trains on what a wrong schema
        leaves of them without a word. What looks wrong by public facts alone is a `PlanWarning`.
        """
        refuse_keywords(unknown, ("X", "y", "parties", "sample_weight"))
        if is_dask(X) or is_dask(y):
            return self._fit_on_cluster(X, y, parties, sample_weight)
        schema, rows = self._read(X, y, sample_weight)
        tables = {"all": rows} if parties is None else split_rows(rows, parties)
        trust = self.trust or usual_trust(len(tables))
        privacy = self._privacy(len(tables), trust)
        agreed = (privacy.colluding, privacy.minimum_parties, privacy.trust)
        with self._open_ledger() as ledger:
            federation = local_federation(tables, schema, ledger, *agreed)
            plan = self._plan(schema, privacy, tables)
            return self._train(federation, plan, ledger, named=is_named(X))

    def _fit_on_cluster(self, X: Any, y: Any, parties: Any, sample_weight: Any) -> Self:
        from hedgerow.engines.dask.engine import dask_federation
        from hedgerow.engines.dask.fitting import check_frames, cluster_rows

        check_frames(X, y, parties, self.trust, sample_weight)
        schema = self._public(X._meta, y)  # its columns, without a row
        check_weights(schema, None, X._meta, None)  # a cluster reads them from the frame alone
        privacy = self._privacy(1, "coordinator")
        refuse_unusual(schema.label, "a Dask cluster")
        plan = self._plan(schema, privacy)
        with cluster_rows(X, y, schema) as rows, self._open_ledger() as ledger:
            federation = dask_federation(rows, schema, privacy, ledger)
            return self._train(federation, plan, ledger, named=is_named(X))

    def fit_federation(
        self, federation: Federation, observe: Callable[[Progress], None] | None = None
    ) -> Self:
        """Train over a federation that exists already; its roster says who may collude.

        Over one of `hedgerow.open_federation` the site's ledger pays. A fit that was interrupted is
        gone on with by the same fit, and nothing that was released is paid twice.
        """
        schema, roster = self._begin_over(federation), federation.roster
        if self.trust not in (None, roster.trust):
            raise SettingsError(f"trust is {self.trust!r}; the roster says {roster.trust!r}")
        given = {"colluding": roster.colluding, "minimum_parties": roster.minimum}
        n_parties, further = len(federation.names), self.settings or {}
        if not federation.engine.simulated and "spare" not in further:  # parties may drop out
            given["spare"] = spare_for(n_parties)
        privacy = self._privacy(n_parties, roster.trust, given)
        if with_cap(schema, self.max_weight) != schema:
            raise SettingsError(
                f"max_weight is {self.max_weight:g}, and the federation's schema has no weights; "
                "agree on a schema with [weight], or leave max_weight out. Nothing was asked."
            )
        plan = self._plan(schema, privacy)
        with (
            self._open_ledger(federation) as ledger,
            federation.drive(plan, ledger, any_seed=self.random_state is None) as driven,
        ):
            return self._train(federation, driven, ledger, observe)

    def _train(
        self,
        federation: Federation,
        plan: Plan,
        ledger: Ledger,
        observe: Callable[[Progress], None] | None = None,
        named: bool = True,
    ) -> Self:
        warn_of(plan, federation.schema)
        if self.class_weight is not None:
            check_class_weight(self.class_weight, plan, federation.schema.label)
        told = FitProgress(self.verbose, "release", plan.n_slots)
        observe = both(told.released, observe)
        gate = Gate(federation, plan, ledger, observe=observe, start=self._start)
        model = method_named(plan.method).grow(gate)
        told.end(len(model.trees))
        if self.class_weight is not None:
            model = weighted(model, self.class_weight, gate.label_sums)
        alone = model.statement.scope == "this fit alone"
        if disclosures := (*self._disclosures(), *selection_disclosures(alone)):
            shown = (*model.statement.disclosures, *disclosures)
            model = replace(model, statement=replace(model.statement, disclosures=shown))
        self.plan_: Plan = plan
        self._keep(model, named)
        return self

    def _plan(
        self, schema: Schema, privacy: Privacy, tables: Mapping[str, Rows] | None = None
    ) -> Plan:
        chosen, seed = self._method_settings(), self._seed()
        given = {**chosen, **self._beginning(chosen)}
        if tables is not None:
            given = with_exact_cuts(schema, self.method, given, tables.values)
        return plan_for(schema, privacy, self.method, given, seed)

    def _method_settings(self) -> dict[str, Any]:
        """What is given of the method's settings; one that no method has is refused."""
        chosen = self._given(elsewhere=_PRIVACY)
        if unknown := [name for name in chosen if name not in DEFAULTS]:
            known = sorted(self._FURTHER)
            hint = did_you_mean(unknown[0], known)
            raise SettingsError(f"unknown setting {unknown[0]!r}{hint}; known: {', '.join(known)}")
        return chosen

    def _beginning(self, further: Mapping[str, Any]) -> dict[str, Any]:
        """What parameters of their own say of the settings `monotone` and `warm_start`."""
        if self.monotone is not None and "monotone" in further:
            raise SettingsError("'monotone' is given twice, as parameter and in settings")
        if {"warm_start", "warm_start_says"} & set(further):
            raise SettingsError("give the model itself: warm_start_from, not warm_start")
        start = self.warm_start_from
        self._start = Ensemble.load(start) if isinstance(start, (str, PathLike)) else start
        given: dict[str, Any] = {} if self.monotone is None else {"monotone": self.monotone}
        if self._start is not None:
            given["warm_start"] = self._start.hash
            says = self._start.statement.promise()
            given["warm_start_says"] = "public" if self.warm_start_is_public else says
        return given

    def _privacy(
        self, n_parties: int, trust: str, given: Mapping[str, Any] | None = None
    ) -> Privacy:
        further = {k: v for k, v in (self.settings or {}).items() if k in _PRIVACY}
        values: dict[str, Any] = {"spare": spare_for(1), **further, **(given or {})}
        privacy = Privacy(self.epsilon, self.delta, trust, **values)
        check_party_count(privacy, n_parties)
        return privacy

    def _planned(self, X: Any, y: Any) -> Plan:
        """The plan of a fit to such rows, of which columns alone are looked at; nobody is asked."""
        trust = self.trust or usual_trust(1)
        several = trust_named(trust).masked  # how many changes nothing of what a plan costs
        return self._plan(self._public(X, y), self._privacy(_MANY if several else 1, trust))

    def _public(self, X: Any, y: Any) -> Schema:
        return with_cap(self._schema(X, y), self.max_weight)

    def _disclosures(self) -> tuple[Disclosure, ...]:
        return ()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise is never seeded
        return tags


class PrivateBoostingClassifier(Classifier, PrivateBoosting):
    """Boosted trees for classes, under differential privacy.

    Parameters
    ----------
    schema : Schema, path to a schema file, or None when `bounds` and `classes` are given
    epsilon, delta : the guarantee; delta well below 1 / rows
    method : name of a method, see `hedgerow methods`; "auto" is the best one
    trust : "coordinator", "parties" or "nobody"; None = the parties where there are several
    n_trees, max_depth, learning_rate, n_bins : None = the method's own choice
    settings : further settings by name, e.g. ``{"batch_size": 10, "minimum_parties": 2}``
    bounds : (low, high) for every column, or {column: (low, high)}; instead of a schema
    classes : the classes, with `bounds`; "public" declares the classes found in y public
    ledger : Ledger or path; None is that of the `with` block around the fit, or this fit alone
    random_state : seeds the questions (which trees are tried), never the noise
    monotone : 1 or -1 by column, for effects that may only rise or fall; costs nothing
    warm_start_from : a model (or its file) to build on, made from public or already paid-for rows
    warm_start_is_public : you declare that it was made from public rows
    verbose : 1 prints some lines while a fit runs, 2 one for every step; 0 is silent
    class_weight : how often classes count, {class: weight}, or "balanced": by released counts
    max_weight : the public cap on `sample_weight` of `fit`, which all noise grows with

    Notes
    -----
    Weights of classes raise their scores, after training; they cost no budget and no noise.

    Every `fit` spends its epsilon: `cross_val_score` with five folds spends five times. A ledger
    adds it up: `with Ledger.open(path, epsilon=4):` charges every fit inside, also those in
    threads and in processes of joblib, and refuses what exceeds the budget before it asks.

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import PrivateBoostingClassifier
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = PrivateBoostingClassifier(bounds=(-1, 1), classes=[0, 1], epsilon=2.0)
    >>> bool(model.fit(X, y).score(X, y) > 0.8)
    True
    """

    @explained
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
        classes: Sequence[Value] | str | None = None,
        ledger: Ledger | str | None = None,
        random_state: int | None = None,
        monotone: Mapping[str, int] | None = None,
        warm_start_from: Ensemble | str | None = None,
        warm_start_is_public: bool = False,
        verbose: int = 0,
        class_weight: Mapping[Value, float] | str | None = None,
        max_weight: float | None = None,
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
        self.monotone = monotone
        self.warm_start_from = warm_start_from
        self.warm_start_is_public = warm_start_is_public
        self.verbose = verbose
        self.class_weight = class_weight
        self.max_weight = max_weight

    def _disclosures(self) -> tuple[Disclosure, ...]:
        if self.schema is not None or not isinstance(self.classes, str):
            return ()
        return (Disclosure("everyone", "all rows", "the list of classes, read from the labels"),)
