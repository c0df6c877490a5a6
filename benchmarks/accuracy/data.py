"""Tables, splits and published figures of the accuracy benchmark."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sklearn.model_selection import train_test_split

from hedgerow import Schema
from hedgerow.data.schema import Label
from hedgerow.data.tables import Rows, rows_of
from hedgerow.data.values import text_of

BINARY = ("adult", "bank", "credit1", "credit2", "nomao6", "higgs", "a9a", "covtype")
SIX = BINARY[:6]  # the tables of Maddock et al.
REGRESSION = ("abalone", "california")
SBDT = ("sbdt-adult", "sbdt-abalone")  # the setting of S-BDT: delta 5e-8, complete rows only
DATASETS = (*BINARY, *REGRESSION, "covtype7", *SBDT)
PUBLISHED = Path(__file__).resolve().parents[1] / "published"


@dataclass(frozen=True, eq=False)
class Data:
    """One table: as hedgerow reads it, as Arrow, and the truth (class index, or number)."""

    name: str
    schema: Schema
    table: Any
    rows: Rows
    truth: np.ndarray


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of the training and of the test part."""

    seed: int
    train: np.ndarray
    test: np.ndarray


def file_of(dataset: str) -> str:
    """The name of the table's files: several datasets are views of one."""
    return {"covtype7": "covtype"}.get(dataset, dataset.removeprefix("sbdt-"))


def main_measure(dataset: str) -> str:
    if file_of(dataset) in REGRESSION:
        return "rmse"
    return "accuracy" if dataset == "covtype7" else "auc"


def measures(dataset: str) -> tuple[str, ...]:
    first = main_measure(dataset)
    further = {"auc": ("ece", "log_loss"), "accuracy": ("log_loss",), "rmse": ()}
    return (first, *further[first])


def is_present(dataset: str) -> bool:
    folder = Path(os.environ["HEDGEROW_DATA"])
    return (folder / f"{file_of(dataset)}.parquet").is_file()


@lru_cache(maxsize=1)
def load(dataset: str) -> Data:
    folder, name = Path(os.environ["HEDGEROW_DATA"]), file_of(dataset)
    schema, table = Schema.read(folder / f"{name}.toml"), pq.read_table(folder / f"{name}.parquet")
    if dataset == "covtype7":
        labels = pq.read_table(folder / "covtype_multiclass_label.parquet").column(0)
        schema = schema.with_label(Label("label", tuple(range(1, 8))))
        table = table.drop(["label"]).append_column("label", labels)
    if dataset in SBDT:
        table = table.filter(pa.array(_complete(table)))
    rows = rows_of(table, schema)
    if schema.label.classes:
        return Data(dataset, schema, table, rows, rows.target.astype(np.int64))
    truth = table.column(schema.label.name).to_numpy().astype(np.float64)
    return Data(dataset, schema, table, rows, truth)


def _complete(table: Any) -> np.ndarray:
    """Rows without a missing value, be it empty or written as "?"."""
    complete = np.ones(table.num_rows, dtype=bool)
    for column in table.columns:
        complete &= np.asarray(pc.is_valid(column))
        if pa.types.is_string(column.type):
            complete &= np.asarray(pc.fill_null(pc.not_equal(column, "?"), False))
    return complete


def split_of(data: Data, seed: int) -> Split:
    """70-30, stratified on the class."""
    train, test = train_test_split(
        np.arange(data.rows.n_rows),
        test_size=0.3,
        random_state=seed,
        stratify=data.truth if data.schema.label.classes else None,
    )
    return Split(seed, np.sort(train), np.sort(test))


def delta_of(dataset: str, n_train: int) -> float:
    return float(sbdt()["delta"]) if dataset in SBDT else 1.0 / n_train


@lru_cache(maxsize=1)
def frame_for_trees(data: Data) -> pd.DataFrame:
    """Columns for XGBoost: categories as such, ordered text by its place in the list."""
    frame: pd.DataFrame = data.table.select(list(data.schema.names)).to_pandas()
    for column in data.schema.columns:
        if column.kind == "categorical":
            frame[column.name] = frame[column.name].astype("category")
        elif column.kind == "ordinal" and isinstance(column.categories[0], str):
            frame[column.name] = _places(frame[column.name], column.categories)
    return frame


@lru_cache(maxsize=1)
def frame_for_ebm(data: Data) -> tuple[pd.DataFrame, list[str], dict[str, tuple[float, float]]]:
    """Columns, feature types and bounds for DP-EBM, all from the schema.

    Numbers are clipped to their bounds; ordered values are numbers from 0 to their count less one.
    """
    frame = data.table.select(list(data.schema.names)).to_pandas()
    types, bounds = [], {}
    for column in data.schema.columns:
        values = frame[column.name]
        if column.kind == "categorical":
            frame[column.name] = values.map(text_of)
            types.append("nominal")
            continue
        types.append("continuous")
        if column.kind == "numeric":
            bounds[column.name] = (float(column.lower), float(column.upper))
            frame[column.name] = values.astype("float64").clip(column.lower, column.upper)
        else:
            bounds[column.name] = (0.0, float(len(column.categories) - 1))
            frame[column.name] = _places(values, column.categories)
    return frame, types, bounds


def _places(values: pd.Series, categories: tuple[Any, ...]) -> pd.Series:
    place = {text_of(value): i for i, value in enumerate(categories)}
    return values.map(lambda value: place.get(text_of(value), np.nan)).astype("float64")


@lru_cache(maxsize=1)
def sbdt() -> dict[str, Any]:
    return _read("sbdt2024.toml")


def sbdt_line(dataset: str) -> dict[float, float]:
    """The published figures of S-BDT by epsilon."""
    part = sbdt()[file_of(dataset)]
    return dict(zip(part["epsilons"], part["sbdt"], strict=True))


@lru_cache(maxsize=1)
def maddock_best() -> dict[str, float]:
    """The best figure of Maddock et al. at epsilon 1 by dataset."""
    return dict(_read("maddock2022_best.toml")["best"])


def _read(name: str) -> dict[str, Any]:
    with (PUBLISHED / name).open("rb") as file:
        return tomllib.load(file)
