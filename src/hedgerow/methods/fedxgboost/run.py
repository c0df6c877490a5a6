"""Agreements, roles, shares of one table and merged models of FedXGBoost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.methods.fedxgboost.bins import some_columns
from hedgerow.methods.fedxgboost.model import Part, merged
from hedgerow.methods.fedxgboost.predicting import PredictionRole
from hedgerow.methods.fedxgboost.role import VerticalRole
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.methods.fedxgboost.statements import disclosures
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Disclosure, of_schema
from hedgerow.protocol.roles import Agreement, Store

PREDICTION = "fedxgboost-predict"


def agreement_for(schema: Schema, settings: VerticalSettings, run: str) -> Agreement:
    """What all parties agree on before the first step of a training."""
    settings.check(schema)
    return Agreement(
        run,
        settings.role,
        schema.hash,
        tuple(sorted(settings.parties)),
        settings.to_dict(),
        (*disclosures(settings), *of_schema(schema)),
        {settings.active: float(settings.epsilon)} if settings.protection == "ldp" else {},
    )


def prediction_agreement(
    schema: Schema, settings: VerticalSettings, model: str, run: str
) -> Agreement:
    """What all parties agree on before a joint prediction by the model of an earlier run."""
    settings.check(schema)
    return Agreement(
        run,
        PREDICTION,
        schema.hash,
        tuple(sorted(settings.parties)),
        {**settings.to_dict(), "model": model},
        prediction_disclosures(),
    )


def prediction_disclosures() -> tuple[Disclosure, ...]:
    """What a joint prediction shows."""
    return (
        Disclosure(
            "the active party", "columns of passive parties",
            "which way each row goes at the splits that it reaches, and the predictions; one that "
            "lies about splits of others chooses the splits of one path in each tree",
        ),
        Disclosure(
            "passive parties", "all rows",
            "which rows reach which of their own splits, hence something of others' columns",
        ),
        Disclosure("the coordinator", "the run", "the number of rows, and the lengths of letters"),
    )  # fmt: skip


def vertical_role(
    name: str, rows: Rows, schema: Schema, agreement: Agreement, store: Store
) -> VerticalRole:
    """A party's side of a training: the factory that an engine calls."""
    settings = VerticalSettings.from_dict(agreement.settings)
    settings.check(schema)
    agreed = agreement_for(schema, settings, agreement.run)
    if agreement != agreed:
        raise FormatError(
            "the agreement does not name what this role shows, or other parties than its "
            "owners. Nothing was sent. Make it again with this version of hedgerow."
        )
    return VerticalRole(name, rows, schema, agreement, store)


def prediction_role(
    name: str, rows: Rows, schema: Schema, agreement: Agreement, store: Store
) -> PredictionRole:
    """A party's side of a joint prediction."""
    values = dict(agreement.settings)
    model = str(values.pop("model", ""))
    settings = VerticalSettings.from_dict(values)
    if agreement != prediction_agreement(schema, settings, model, agreement.run):
        raise FormatError("the agreement does not name what a prediction shows. Nothing was sent.")
    return PredictionRole(name, rows, schema, agreement, store)


def merged_from_reports(reports: Mapping[str, Sequence[bytes]]) -> Ensemble:
    """The merged model, where all owners have agreed to hand their parts over."""
    parts = []
    for name, found in reports.items():
        part = Part.from_bytes(found[-1]) if found else None
        if part is None or part.party != name:
            raise FormatError(f"{name} has not handed over its part; there is no merged model")
        parts.append(part)
    return merged(parts)


def shares_of(rows: Rows, schema: Schema, settings: VerticalSettings) -> dict[str, Rows]:
    """One table dealt to the owners of its columns; the active party gets the labels."""
    grid, found = base_grid(schema), {}
    for name in settings.parties:
        columns = settings.columns_of(name, schema)
        codes = some_columns(rows.codes, grid, columns)
        target = rows.target if name == settings.active else np.empty(0)
        found[name] = Rows(codes, target, None, schema.hash, columns)
    return found
