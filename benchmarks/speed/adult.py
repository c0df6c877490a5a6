"""The default method and DP-EBM on adult, each at its defaults, told the same public facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console

from speed.clock import timed
from speed.tables import data_folder

OURS_ADULT, EBM_ADULT = "ours, auto", "DP-EBM"
EPSILON, DELTA = 1.0, 1e-5  # DP-EBM's own defaults


def adult_cells(console: Console) -> dict[str, Callable[[], dict[str, Any]]] | None:
    """Both fits, warmed up; None where the table is not at hand."""
    if data_folder("adult.parquet", "adult.toml") is None:
        console.print("adult is left out: HEDGEROW_DATA names no folder with its files")
        return None
    from interpret.privacy import DPExplainableBoostingClassifier
    from sklearn.metrics import roc_auc_score

    from accuracy.data import frame_for_ebm, load
    from hedgerow import PrivateBoostingClassifier

    data = load("adult")
    plain = data.table.select(list(data.schema.names)).to_pandas()
    frame, types, bounds = frame_for_ebm(data)

    def ours(n: int | None = None) -> Any:
        model = PrivateBoostingClassifier(data.schema, epsilon=EPSILON, delta=DELTA)
        return model.fit(plain.iloc[:n], data.truth[:n])

    def ebm(n: int | None = None) -> Any:
        model = DPExplainableBoostingClassifier(
            feature_names=list(frame.columns), feature_types=types, privacy_bounds=bounds,
            epsilon=EPSILON, delta=DELTA,
        )  # fmt: skip
        return model.fit(frame.iloc[:n], data.truth[:n])

    def cell(fit: Callable[[], Any], table: Any) -> Callable[[], dict[str, Any]]:
        def run() -> dict[str, Any]:
            figures, model = timed(fit)
            found = roc_auc_score(data.truth, model.predict_proba(table)[:, 1])
            return {**figures, "auc": round(float(found), 4)}

        return run

    ours()
    ebm(500)
    return {OURS_ADULT: cell(ours, plain), EBM_ADULT: cell(ebm, frame)}
