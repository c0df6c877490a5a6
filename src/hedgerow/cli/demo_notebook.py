"""`hedgerow demo --notebook`: the demonstration as a notebook that runs from top to bottom."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Cells = Sequence[tuple[str, str]]  # kind ("markdown" or "code") and text

THREE_HOSPITALS: Cells = (
    ("markdown", """
# Three hospitals, one private model

Three hospitals want to know who comes back within 30 days. None may show the others a row. Here
they are three parties of one process, with made-up patients; between real sites the same model is
trained by `hedgerow train`.
"""),
    ("code", """
import numpy as np

import hedgerow
from hedgerow import Categorical, Label, Numeric, Schema

rng = np.random.default_rng(7)
n = 6000
patients = {
    "age": rng.integers(18, 100, n),
    "pressure": rng.normal(135, 20, n),
    "ward": rng.choice(["surgery", "heart", "other"], n),
}
risk = 0.05 * (patients["age"] - 60) + 0.03 * (patients["pressure"] - 135)
risk = risk + 1.2 * (patients["ward"] == "heart") - 0.7
returned = np.where(rng.random(n) < 1 / (1 + np.exp(-risk)), "yes", "no")
hospital = rng.choice(["north", "river", "summit"], n)
"""),
    ("markdown", """
## Public facts

The schema is agreed before anything is asked. Bounds and categories come from documentation,
never from the rows.
"""),
    ("code", """
schema = Schema(
    (
        Numeric("age", 0, 110, integer=True),
        Numeric("pressure", 60, 240),
        Categorical("ward", ("surgery", "heart", "other")),
    ),
    Label("returned", ("no", "yes")),
)
schema
"""),
    ("markdown", "Every hospital looks at what the schema does to its own rows, for its own eyes:"),
    ("code", """
at_north = hospital == "north"
schema.check({name: values[at_north] for name, values in patients.items()}, returned[at_north])
"""),
    ("markdown", """
## The cost, before paying

A plan fixes what is asked and what it may cost. Nobody has been asked yet.
"""),
    ("code", """
from hedgerow import Privacy, plan_for

plan_for(schema, Privacy(epsilon=1.0, delta=1e-6, trust="parties"))
"""),
    ("markdown", """
## Training

Parties send sums over their rows, masked so that only the total can be read, with noise already in
them. A ledger adds up what all fits on these rows cost.
"""),
    ("code", """
ledger = hedgerow.Ledger.in_memory()  # Ledger.open(path) keeps it
model = hedgerow.PrivateBoostingClassifier(
    schema, epsilon=1.0, delta=1e-6, ledger=ledger, verbose=1
)
model.fit(patients, returned, parties=hospital)
"""),
    ("markdown", """
## What has it learnt?

Effects follow from released values, so looking at them costs nothing. Bands show the noise.
"""),
    ("code", """
explanation = model.explain()
explanation
"""),
    ("code", """
explanation.plot("age")
"""),
    ("markdown", """
## How good is it?

An exact score would be a function of private rows. A private evaluation is charged to the
same ledger.
"""),
    ("code", """
hedgerow.evaluate_privately(
    model, patients, returned, parties=hospital, epsilon=0.5, delta=1e-6, ledger=ledger
)
"""),
    ("code", """
ledger
"""),
    ("markdown", """
## Keep it

The file holds the model and its statement, and comes back as a fitted estimator.
"""),
    ("code", """
model.save("returns.hedge")
again = hedgerow.load("returns.hedge")
again.predict_proba({"age": [35, 80], "pressure": [120.0, 170.0], "ward": ["other", "heart"]})
"""),
)  # fmt: skip


def notebook_text(cells: Cells = THREE_HOSPITALS) -> str:
    """The text of a notebook file (format 4.5), without outputs, as Jupyter itself writes it."""
    made: list[dict[str, Any]] = [
        {
            "cell_type": kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": text.strip("\n").splitlines(keepends=True),
            **({"execution_count": None, "outputs": []} if kind == "code" else {}),
        }
        for number, (kind, text) in enumerate(cells, start=1)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
