"""Exports of models trained on real tables, with missing values and categories planted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow import PrivateBoostingClassifier, PrivateBoostingRegressor, PrivateTreeClassifier
from hedgerow.data.schema import Categorical, Label, Schema
from hedgerow.data.tables import read_table
from hedgerow.export import FORMATS, to_matrix
from hedgerow.model.ensemble import Ensemble
from tests.export.runs import predictions

N_ROWS = 1200
NAMES = ("very low", "low", "high", "very high")
Table = dict[str, list[Any]]


def sample(folder: Path, name: str) -> tuple[Schema, Table]:
    """Some rows of a table; in every column but the label some values are taken away."""
    rng = np.random.default_rng(4)
    whole = read_table(folder / f"{name}.parquet")
    rows = np.sort(rng.choice(whole.num_rows, N_ROWS, replace=False))
    schema, table = Schema.read(folder / f"{name}.toml"), whole.take(rows).to_pydict()
    for column in schema.names:
        for i in np.flatnonzero(rng.random(N_ROWS) < 0.1):
            table[column][i] = None
    if name == "covtype":
        label = read_table(folder / "covtype_multiclass_label.parquet").take(rows)
        table["label"] = label.column(0).to_pylist()
        schema = schema.with_label(Label("label", tuple(range(1, 8))))
    return schema, table


def with_a_category(schema: Schema, table: Table) -> tuple[Schema, Table]:
    """The first column cut at three values, given as one of four names, or of none of them."""
    first = schema.columns[0]
    cuts = np.array([2.0, 3.5, 5.0])
    names = [
        None if v is None else "no answer" if i % 17 == 0 else NAMES[int(np.sum(cuts <= v))]
        for i, v in enumerate(table[first.name])
    ]
    columns = (Categorical(first.name, NAMES, other="category"), *schema.columns[1:])
    return Schema(columns, schema.label), {**table, first.name: names}


CASES: dict[str, tuple[str, Callable[[Schema], Any]]] = {
    "adult": ("adult", lambda s: PrivateBoostingClassifier(s, epsilon=8.0)),
    "adult, a forest": (
        "adult", lambda s: PrivateBoostingClassifier(s, 8.0, method="dp-rf", n_trees=20),
    ),
    "adult, one tree": ("adult", lambda s: PrivateTreeClassifier(8.0, s)),
    "covtype": ("covtype", lambda s: PrivateBoostingClassifier(s, epsilon=8.0)),
    "covtype, a forest": (
        "covtype", lambda s: PrivateBoostingClassifier(s, 8.0, method="dp-rf", n_trees=10),
    ),
    "california": ("california", lambda s: PrivateBoostingRegressor(s, epsilon=8.0)),
    "california, random trees": (
        "california",
        lambda s: PrivateBoostingRegressor(s, 8.0, method="dp-tr-newton", n_trees=30, max_depth=5),
    ),
}  # fmt: skip


def trained(case: str, folder: Path) -> tuple[Ensemble, Table]:
    name, estimator = CASES[case]
    schema, table = sample(folder, name)
    if name == "california":
        schema, table = with_a_category(schema, table)
    return estimator(schema).fit(table).model_, table


@pytest.mark.parametrize("case", CASES)
def test_every_format_agrees_on_a_real_table(case: str, data_folder: Path, tmp_path: Path) -> None:
    model, table = trained(case, data_folder)
    expected, X = model.predict(table), to_matrix(model, table)
    assert len(np.unique(expected.round(6))) > 10  # there is something to agree about
    apart = {n: np.abs(predictions(n, model, X, tmp_path) - expected).max() for n in FORMATS}
    assert max(apart.values()) < 1e-5, apart
