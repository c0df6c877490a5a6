"""Agreements, runs of one process and their models: FedXGBoost from the parties' programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.methods.fedxgboost.model import Part, merged, part_name
from hedgerow.methods.fedxgboost.predicting import PredictionProgram
from hedgerow.methods.fedxgboost.role import VerticalProgram
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.methods.fedxgboost.statements import disclosures
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Disclosure
from hedgerow.protocol.roles import Agreement, MemoryShelf, Shelf, talk

PREDICTION = "fedxgboost-predict"


def agreement_for(schema: Schema, settings: VerticalSettings, run: str = "local") -> Agreement:
    """What all parties agree on before the first step of a training."""
    settings.check(schema)
    return Agreement(
        run,
        settings.program,
        schema.hash,
        tuple(sorted(settings.parties)),
        settings.to_dict(),
        disclosures(settings),
        {settings.active: float(settings.epsilon)} if settings.protection == "ldp" else {},
    )


def prediction_agreement(
    schema: Schema, settings: VerticalSettings, model: str, run: str = "local-prediction"
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


def vertical_program(
    name: str, rows: Rows, schema: Schema, agreement: Agreement, shelf: Shelf
) -> VerticalProgram:
    """A party's side of a training: the factory that an engine calls."""
    settings = VerticalSettings.from_dict(agreement.settings)
    settings.check(schema)
    agreed = agreement_for(schema, settings, agreement.run)
    if agreement != agreed:
        raise FormatError(
            "the agreement does not name what this program shows, or other parties than its "
            "owners. Nothing was sent. Make it again with this version of hedgerow."
        )
    return VerticalProgram(name, rows, schema, agreement, shelf)


def prediction_program(
    name: str, rows: Rows, schema: Schema, agreement: Agreement, shelf: Shelf
) -> PredictionProgram:
    """A party's side of a joint prediction."""
    values = dict(agreement.settings)
    model = str(values.pop("model", ""))
    settings = VerticalSettings.from_dict(values)
    if agreement != prediction_agreement(schema, settings, model, agreement.run):
        raise FormatError("the agreement does not name what a prediction shows. Nothing was sent.")
    return PredictionProgram(name, rows, schema, agreement, shelf)


def train(
    tables: Mapping[str, Rows], schema: Schema, settings: VerticalSettings, run: str = "local"
) -> tuple[dict[str, Part], dict[str, VerticalProgram]]:
    """Train over parties of this process; returns every party's part and program."""
    agreement = agreement_for(schema, settings, run)
    if set(tables) != set(agreement.parties):
        raise FormatError(f"there are tables of {sorted(tables)}; owners: {agreement.parties}")
    programs = {
        name: vertical_program(name, tables[name], schema, agreement, MemoryShelf())
        for name in agreement.parties
    }
    talk(programs)
    parts = {name: program.part for name, program in programs.items()}
    assert all(part is not None for part in parts.values())
    return {name: part for name, part in parts.items() if part is not None}, programs


def predict_jointly(
    parts: Mapping[str, Part], tables: Mapping[str, Rows], ids: str = "agreed"
) -> tuple[NDArray[np.float64], NDArray[np.int64], PredictionProgram]:
    """Scores (row, output) by all parties together, and which of the active party's rows they are.

    The third is the active party's program, which knows what was sent.
    """
    active = next(part for part in parts.values() if part.is_active)
    settings = replace(VerticalSettings.from_record(active.record), ids=ids)
    agreement = prediction_agreement(active.schema, settings, active.run)
    programs: dict[str, PredictionProgram] = {}
    for name, part in parts.items():
        shelf = MemoryShelf()
        shelf.put(part_name(active.run), part.to_bytes())
        programs[name] = prediction_program(name, tables[name], active.schema, agreement, shelf)
    talk(programs)
    done = programs[active.party]
    assert done.scores is not None
    assert done.index is not None
    return done.scores, done.index, done


def merged_from_reports(reports: Mapping[str, Sequence[bytes]]) -> Ensemble:
    """The merged model, where all owners have agreed to hand their parts over."""
    parts = []
    for name, found in reports.items():
        part = Part.from_bytes(found[-1]) if found else None
        if part is None or part.party != name:
            raise FormatError(f"{name} has not handed over its part; there is no merged model")
        parts.append(part)
    return merged(parts)


def report_of(data: bytes) -> dict[str, Any]:
    """How far the active party says it is."""
    from hedgerow.packing import unpack

    return unpack(data)[0]
