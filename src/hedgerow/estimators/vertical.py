"""scikit-learn estimators over columns of several parties; what they show is in `statement_`."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.sessions import Session
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.data.values import Value
from hedgerow.engines.local_session import local_session
from hedgerow.errors import FitWarning, SettingsError
from hedgerow.estimators.base import Classifier, Estimator, Regressor, scope_of
from hedgerow.estimators.inputs import is_named
from hedgerow.estimators.keywords import explained, refuse_keywords
from hedgerow.estimators.progress import FitProgress, say
from hedgerow.methods.fedxgboost.model import Part, part_name
from hedgerow.methods.fedxgboost.run import (
    agreement_for,
    merged_from_reports,
    prediction_agreement,
    prediction_role,
    shares_of,
    vertical_role,
)
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.methods.fedxgboost.statements import counted_alone
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.roles import MemoryStore

LONG_ROWS = 50_000  # encryptions, rows times trees, from which on the time is looked at unasked
LONG_SECONDS = 600.0  # and from which on a fit warns


class _VerticalBoosting(Estimator):
    """What classifier and regressor share."""

    protection: str
    _OWN = ("protection", "n_trees", "max_depth", "learning_rate", "allow_unsafe")
    _FURTHER = frozenset(f.name for f in fields(VerticalSettings)) - {"owners", "active", "merge"}

    def fit(
        self,
        X: Any,
        y: Any = None,
        owners: Mapping[str, str] | None = None,
        active: str = "active",
        **unknown: Any,
    ) -> Self:
        """Train on one table whose columns belong to several parties, all in this process.

        Parameters
        ----------
        X, y : the table; `y` may be left out when it has the schema's label column
        owners : the party of each column; columns not named belong to the active party
        active : the party that holds the labels
        unknown : other keywords, refused with what to do instead
        """
        refuse_keywords(unknown, ("X", "y", "owners", "active"))
        schema, rows = self._read(X, y)
        settings = self._vertical(schema, owners, active, {"ids": "agreed"})
        agreement = agreement_for(schema, settings, secrets.token_hex(8))
        tables = shares_of(rows, schema, settings)
        self._tell_time(schema, settings, rows.n_rows)
        with self._open_ledger() as ledger:
            told = FitProgress(self.verbose, "tree", settings.n_trees)
            done = local_session(
                agreement, vertical_role, tables, schema, ledger, observe=told.reported
            )
            self._keep_merged(done.reports, agreement.run, ledger, named=is_named(X))
            told.end(len(self.model_.trees))
        self.parts_: dict[str, Part] = {
            name: role.part for name, role in done.roles.items() if role.part is not None
        }
        asking = done.roles[active].asking
        self.sent_ = {"to passive": asking.sent, "to active": asking.received}
        return self

    def fit_federation(
        self, federation: Federation, owners: Mapping[str, str], active: str
    ) -> Self:
        """Train over parties that exist already, each with its own columns, here or elsewhere.

        Every owner hands over its part, so its limits must name the role with "-merged". What was
        agreed on goes onto the ledger before anything is shown.
        """
        schema = self._begin_over(federation)
        if unknown := sorted({active, *(owners or {}).values()} - {*federation.names}):
            raise SettingsError(
                f"{unknown[0]!r} is no party of this federation, which has "
                f"{', '.join(federation.names)}. Nothing was sent. Correct owners or active."
            )
        settings = self._vertical(schema, owners, active, {})
        agreement = agreement_for(schema, settings, secrets.token_hex(8))
        self._tell_time(schema, settings, 0)
        with self._open_ledger(federation) as ledger:
            told = FitProgress(self.verbose, "tree", settings.n_trees)
            seconds = federation.step_seconds
            reports = Session(federation, agreement, ledger, told.reported, seconds).run()
            self._keep_merged(reports, agreement.run, ledger, federation.simulated)
            told.end(len(self.model_.trees))
        return self

    def _tell_time(self, schema: Schema, settings: VerticalSettings, n_rows: int) -> None:
        """How long Paillier will take, before anything is sent; unasked only if it is long.

        Rows of a federation are not known here: there it is told with `verbose` alone.
        """
        likely_long = n_rows * settings.n_trees >= LONG_ROWS
        if settings.protection != "paillier" or not (self.verbose or likely_long):
            return
        from hedgerow.methods.fedxgboost.estimate import estimate

        time = estimate(schema, settings, n_rows)
        if self.verbose:
            say(time.words())
        elif time.seconds >= LONG_SECONDS:
            warnings.warn(time.words(), FitWarning, stacklevel=3)

    def _keep_merged(
        self,
        reports: Mapping[str, Sequence[bytes]],
        run: str,
        ledger: Ledger,
        simulated: bool = True,
        named: bool = True,
    ) -> None:
        """The merged model of the parts that were reported, and what can be said of it here."""
        model = merged_from_reports(reports)
        statement = replace(model.statement, simulated=simulated, scope=scope_of(ledger, run))
        if simulated and self.ledger is None and ledger.path is None:
            statement = counted_alone(statement)
        self._keep(replace(model, statement=statement), named)

    def _vertical(
        self, schema: Schema, owners: Mapping[str, str] | None, active: str, values: dict[str, Any]
    ) -> VerticalSettings:
        if not owners:
            raise SettingsError(
                "owners is missing: say which party holds which column, such as "
                'owners={"income": "bank"}. Nothing was sent.'
            )
        given = self._given()
        if "epsilon" in given and self.protection != "ldp":
            raise SettingsError(
                f"epsilon belongs to protection ldp; the protection is {self.protection}, which "
                "has none. Nothing was sent. Leave it out, or choose ldp."
            )
        if given.get("merge", True) is not True:
            raise SettingsError(
                "merge is false, and an estimator holds the merged model. Nothing was sent. Leave "
                "it out, or train with `hedgerow vertical train`, where parts stay apart."
            )
        belongs = {**dict.fromkeys(schema.names, active), **owners}
        fixed = {"owners": belongs, "active": active, "merge": True}
        settings = VerticalSettings.from_dict({**values, **given, **fixed})
        settings.check(schema)
        return settings

    def predict_jointly(self, X: Any) -> NDArray[np.float64]:
        """Scores (row, output) by all parties' parts in turn, as between real parties.

        What it shows goes onto the ledger, like a fit.
        """
        model = self._fitted(X)
        if not hasattr(self, "parts_"):
            raise SettingsError(
                "parts of this model are with their parties; predict jointly there, with `hedgerow "
                "vertical predict`, or use predict: the model is merged"
            )
        schema, settings = model.schema, VerticalSettings.from_record(model.record)
        (run,) = {part.run for part in self.parts_.values()}
        agreement = prediction_agreement(schema, settings, run, secrets.token_hex(8))
        stores = {name: MemoryStore() for name in self.parts_}
        for name, part in self.parts_.items():
            stores[name].put(part_name(run), part.to_bytes())
        tables = shares_of(rows_of(X, schema, with_label=False), schema, settings)
        with self._open_ledger() as ledger:
            done = local_session(agreement, prediction_role, tables, schema, ledger, stores)
        scores = done.roles[settings.active].scores
        assert scores is not None
        return scores


class VerticalBoostingClassifier(_VerticalBoosting, Classifier):
    """Boosted trees for classes over parties that hold different columns (FedXGBoost).

    Parameters
    ----------
    schema : Schema, path to a schema file, or None when `bounds` and `classes` are given
    protection : of the statistics of splits: "paillier", "ldp", "smm-1", "smm-2" or "none"
    n_trees, max_depth, learning_rate : of the model
    allow_unsafe : accept a protection that measurements have shown to protect nothing
    settings : further settings by name, e.g. ``{"epsilon": 2.0}`` of protection "ldp"
    bounds : (low, high) for every column, or {column: (low, high)}; instead of a schema
    classes : the classes, with `bounds`; "public" declares the classes found in y public
    ledger : Ledger or path, which adds up what labels pay in all fits; None is that of the
        `with` block around the fit, or counts it alone
    verbose : 1 prints some lines while a fit runs, 2 one for every step; 0 is silent

    Notes
    -----
    "paillier" encrypts every row for every tree. About how long that takes is printed with
    `verbose` before anything is sent, and warned of if it is more than ten minutes.

    Only "ldp" has an epsilon, for labels alone; what parties see is in `statement_` and in
    docs/vertical.md. `parts_` holds each party's part, `model_` the merged model of this process.

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import VerticalBoostingClassifier
    >>> X = np.linspace(-1, 1, 600).reshape(-1, 2)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = VerticalBoostingClassifier(
    ...     bounds=(-1, 1), classes=[0, 1], protection="none", n_trees=10)
    >>> bool(model.fit(X, y, owners={"x1": "shop"}, active="bank").score(X, y) > 0.95)
    True
    >>> sorted(model.parts_), model.statement_.guarantee
    (['bank', 'shop'], 'none')
    """

    @explained
    def __init__(
        self,
        schema: Schema | str | None = None,
        protection: str = "paillier",
        n_trees: int = 50,
        max_depth: int = 4,
        learning_rate: float = 0.2,
        allow_unsafe: bool = False,
        settings: Mapping[str, Any] | None = None,
        bounds: Any = None,
        classes: Sequence[Value] | str | None = None,
        ledger: Ledger | str | None = None,
        verbose: int = 0,
    ) -> None:
        self.schema = schema
        self.protection = protection
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.allow_unsafe = allow_unsafe
        self.settings = settings
        self.bounds = bounds
        self.classes = classes
        self.ledger = ledger
        self.verbose = verbose


class VerticalBoostingRegressor(_VerticalBoosting, Regressor):
    """Boosted trees for a number between public bounds over parties with different columns.

    Parameters are those of `VerticalBoostingClassifier`, with `label_bounds` (low, high) in place
    of `classes`. Labels outside the bounds are clipped to them.

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import VerticalBoostingRegressor
    >>> X = np.linspace(-1, 1, 600).reshape(-1, 2)
    >>> model = VerticalBoostingRegressor(bounds=(-1, 1), label_bounds=(0, 1), protection="none")
    >>> model = model.fit(X, X[:, 0] ** 2, owners={"x1": "shop"}, active="bank")
    >>> bool(model.score(X, X[:, 0] ** 2) > 0.9)
    True
    """

    @explained
    def __init__(
        self,
        schema: Schema | str | None = None,
        protection: str = "paillier",
        n_trees: int = 50,
        max_depth: int = 4,
        learning_rate: float = 0.2,
        allow_unsafe: bool = False,
        settings: Mapping[str, Any] | None = None,
        bounds: Any = None,
        label_bounds: tuple[float, float] | None = None,
        ledger: Ledger | str | None = None,
        verbose: int = 0,
    ) -> None:
        self.schema = schema
        self.protection = protection
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.allow_unsafe = allow_unsafe
        self.settings = settings
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.ledger = ledger
        self.verbose = verbose
