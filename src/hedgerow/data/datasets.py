"""A made-up world for the demonstration: three hospitals and who comes back within 30 days.

Nothing here is about real people. Everything is drawn from `hedgerow.data.rng`, so a seed gives the
same patients everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.rng import Generator, stream
from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema, Unit

Table = dict[str, NDArray[Any]]
WARDS = ("general", "cardiology", "surgery", "oncology", "orthopaedics", "neurology", "lung")
FRAILTY = ("fit", "managing", "mild", "moderate", "severe")
SMOKING = ("never", "former", "current")
ADMISSION = ("emergency", "planned", "transfer")

HOSPITAL_SCHEMA = Schema(
    name="hospital stays",
    columns=(
        Numeric("age", 18, 100, integer=True),
        Categorical("sex", ("female", "male")),
        Categorical("admission", ADMISSION),
        Categorical("ward", WARDS),
        Ordinal("triage", (1, 2, 3, 4, 5)),
        Ordinal("frailty", FRAILTY),
        Numeric("stay_days", 0, 60),
        Numeric("previous_stays", 0, 20, integer=True),
        Numeric("medications", 0, 30, integer=True),
        Numeric("creatinine", 20, 620),
        Numeric("haemoglobin", 50, 200),
        Numeric("systolic_pressure", 60, 240),
        Numeric("body_mass_index", 12, 60),
        Categorical("smoking", SMOKING),
        Categorical("lives_alone", ("no", "yes")),
    ),
    label=Label("readmitted", ("no", "yes")),
)
# The same columns where patients come again: what is protected is a patient, of whom a hospital
# uses at most two visits.
VISIT_SCHEMA = replace(
    HOSPITAL_SCHEMA, name="hospital visits", unit=Unit("person", "patient", at_most=2)
)
VISITS = 2.0  # mean visits of a patient


@dataclass(frozen=True)
class Hospital:
    """Size and case mix of one hospital."""

    n_patients: int
    age: float  # mean
    wards: tuple[float, ...]
    emergency: float  # part of all admissions
    unmeasured: float  # part of laboratory values that are missing
    base: float  # added to everyone's log-odds


HOSPITALS: Mapping[str, Hospital] = {
    "northgate": Hospital(13_000, 63, (30, 18, 16, 8, 10, 10, 8), 0.62, 0.08, 0.0),
    "riverside": Hospital(10_000, 56, (20, 6, 34, 4, 28, 4, 4), 0.35, 0.20, 0.2),
    "st-anne": Hospital(7_000, 70, (22, 26, 4, 26, 2, 6, 14), 0.55, 0.04, 0.1),
}


def hospital_tables(seed: int) -> dict[str, Table]:
    """One table for each hospital, with the label column "readmitted".

    >>> tables = hospital_tables(seed=1)
    >>> {name: len(table["age"]) for name, table in tables.items()}
    {'northgate': 13000, 'riverside': 10000, 'st-anne': 7000}
    """
    return {name: _patients(h, stream(seed, "hospital", name)) for name, h in HOSPITALS.items()}


def visit_tables(seed: int) -> dict[str, Table]:
    """The same hospitals with twice as many rows, which are visits, and a column "patient".

    >>> table = visit_tables(seed=1)["st-anne"]
    >>> len(table["patient"]), len(set(table["patient"])) < 8000
    (14000, True)
    """
    larger = {name: replace(h, n_patients=2 * h.n_patients) for name, h in HOSPITALS.items()}
    return {
        name: _patients(h, stream(seed, "visits", name), visits=True) for name, h in larger.items()
    }


def split_table(
    table: Table, test_share: float, rng: Generator, person: str | None = None
) -> tuple[Table, Table]:
    """A table cut at random into one to train on and one to test on, persons kept whole."""
    n_rows = len(next(iter(table.values())))
    units = (
        np.arange(n_rows) if person is None else np.unique(table[person], return_inverse=True)[1]
    )
    order = rng.permutation(int(units.max()) + 1)
    n_test = round(test_share * len(order))
    tested = np.isin(units, order[:n_test])
    return {k: v[~tested] for k, v in table.items()}, {k: v[tested] for k, v in table.items()}


def joined(tables: list[Table]) -> Table:
    """Tables with the same columns, one below the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _patients(hospital: Hospital, rng: Generator, visits: bool = False) -> Table:
    n = hospital.n_patients
    age = np.clip(rng.normal(hospital.age, 16, n), 18, 100).round()
    old = (age - 60) / 20
    weights = np.array(hospital.wards, dtype=float)
    ward = rng.choice(len(WARDS), n, p=weights / weights.sum())
    planned = (1 - hospital.emergency) * 0.85
    admission = rng.choice(3, n, p=[hospital.emergency, planned, 1 - hospital.emergency - planned])
    frailty = np.clip(np.floor(1.2 + 0.9 * old + rng.normal(0, 1.1, n)), 0, 4).astype(int)
    triage = np.clip(np.round(3.2 - 0.8 * (admission == 0) + rng.normal(0, 1, n)), 1, 5).astype(int)
    previous = np.clip(rng.negative_binomial(0.9, 0.42, n) + (frailty >= 3), 0, 20)
    stay = np.clip(rng.lognormal(1.1 + 0.16 * frailty, 0.7, n), 0.2, 60).round(1)
    numbers: Table = {
        "age": age,
        "stay_days": stay,
        "previous_stays": previous.astype(float),
        "medications": np.clip(rng.poisson(3.5 + 1.7 * frailty), 0, 30).astype(float),
        "creatinine": np.clip(rng.lognormal(4.4 + 0.08 * old, 0.38, n), 20, 620).round(),
        "haemoglobin": np.clip(rng.normal(134 - 7 * old, 17, n), 50, 200).round(),
        "systolic_pressure": np.clip(rng.normal(131 + 4 * old, 20, n), 60, 240).round(),
        "body_mass_index": np.clip(rng.normal(27, 5, n), 12, 60).round(1),
    }
    codes: Table = {
        "sex": rng.integers(0, 2, n),
        "admission": admission,
        "ward": ward,
        "triage": triage - 1,
        "frailty": frailty,
        "smoking": rng.choice(3, n, p=[0.5, 0.3, 0.2]),
        "lives_alone": (rng.random(n) < 0.18 + 0.09 * np.clip(old, 0, 2)).astype(int),
    }
    patient = rng.integers(0, round(n / VISITS), n) if visits else np.arange(n)
    _same_person(numbers, codes, patient)
    risk = hospital.base + _log_odds(numbers, codes)
    readmitted = (rng.random(n) < 1 / (1 + np.exp(-risk))).astype(int)
    table = _written_down(numbers, codes, readmitted, hospital, rng)
    return {"patient": np.array([f"p{i:05d}" for i in patient]), **table} if visits else table


def _same_person(numbers: Table, codes: Table, patient: NDArray[Any]) -> None:
    """What does not change between the visits of a patient is that of the first visit."""
    _, first, which = np.unique(patient, return_index=True, return_inverse=True)
    for table, names in ((numbers, ("age",)), (codes, ("sex", "smoking", "lives_alone"))):
        for name in names:
            table[name] = table[name][first][which]


def _log_odds(numbers: Table, codes: Table) -> NDArray[np.float64]:
    """What decides: effects of single columns, steps, and interactions."""
    age, previous = numbers["age"], numbers["previous_stays"]
    alone, frail = codes["lives_alone"] == 1, codes["frailty"]
    ward = codes["ward"]
    cardiology, oncology = ward == WARDS.index("cardiology"), ward == WARDS.index("oncology")
    lung, planned = ward == WARDS.index("lung"), codes["admission"] == 1
    kidneys = numbers["creatinine"] > 120
    anaemic = numbers["haemoglobin"] < 110
    by_ward = np.array([0.0, 0.15, -0.35, 0.45, -0.55, -0.1, 0.3])[ward]
    risk = -3.9 + 1.4 * by_ward + 0.75 * np.sqrt(previous) + 0.4 * frail - 0.7 * planned
    risk += 0.75 * kidneys + 0.7 * anaemic + 0.05 * numbers["medications"]
    risk += 0.02 * np.clip(age - 50, 0, 35) - 0.2 * (codes["triage"] - 2)
    risk += 1.1 * (alone & (age > 72)) + 1.3 * (kidneys & cardiology)
    risk += 1.0 * (anaemic & oncology) + 1.3 * (lung & (codes["smoking"] == 2))
    risk += 1.0 * ((numbers["stay_days"] < 2.5) & (frail >= 3))  # sent home too early
    risk += 0.8 * (numbers["systolic_pressure"] < 100) + 0.5 * (numbers["body_mass_index"] < 19)
    return np.asarray(risk)


def _written_down(
    numbers: Table, codes: Table, label: NDArray[Any], hospital: Hospital, rng: Generator
) -> Table:
    """Codes become texts, and what a hospital did not measure is missing."""
    n = len(label)
    laboratory = ("creatinine", "haemoglobin", "body_mass_index")
    table: Table = {}
    for column in HOSPITAL_SCHEMA.columns:
        if isinstance(column, Numeric):
            part = hospital.unmeasured if column.name in laboratory else 0.01
            table[column.name] = np.where(rng.random(n) < part, np.nan, numbers[column.name])
        else:
            part = 0.12 if column.name == "smoking" else 0.0
            values = np.array([*column.categories, None], dtype=object)
            known = np.where(rng.random(n) < part, len(column.categories), codes[column.name])
            table[column.name] = values[known]
    table["readmitted"] = np.array(HOSPITAL_SCHEMA.label.classes, dtype=object)[label]
    return table
