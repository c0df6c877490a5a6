"""`hedgerow evaluate`: how good a model is on a table with labels. The numbers are not private."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TITLES = {"auc": "AUC", "rmse": "RMSE", "mae": "mean absolute error"}
WARNING = (
    "These numbers are computed from exact rows and are NOT private: the model's guarantee does "
    "not cover them. Treat them like the rows themselves."
)


def evaluate(
    model: options.ModelFile,
    data: Annotated[Path, typer.Option("--data", help="A table with the label column.")],
    json: options.Json = False,
) -> None:
    """Measure a model on a table with labels. These numbers are NOT private."""
    measured = measure(model, data)
    if json:
        print_json({**measured, "private": False, "warning": WARNING})
        return
    shown = table(f"{model} on {data}", "what", "value", right=("value",))
    shown.add_row("rows", f"{measured['rows']:,}")
    for name, value in measured.items():
        if name == "rows":
            continue
        text = "undefined: one class only" if value is None else f"{value:.4f}"
        shown.add_row(_TITLES.get(name, name.replace("_", " ")), text)
    results().print(shown)
    show(WARNING, style="yellow")


def measure(model: Path, data: Path) -> dict[str, Any]:
    """Exact measures of a model on a table: AUC for two classes, errors for numbers.

    Numbers outside the label's bounds count as the nearer bound, as they do in training.
    """
    import numpy as np

    from hedgerow.errors import TableError
    from hedgerow.model.io import read_model
    from hedgerow.tables import read_table, target_of

    trained = read_model(model)
    label, rows = trained.schema.label, read_table(data)
    if rows.column_names.count(label.name) != 1:
        found = rows.column_names.count(label.name)
        raise TableError(
            f"{data} needs the label column {label.name!r} once to be measured on, and has it "
            f"{found} times; add it, or use `hedgerow predict` for rows without labels."
        )
    if rows.num_rows == 0:
        raise TableError(
            f"{data} has 0 rows, so there is nothing to measure; give a table with rows."
        )
    target = target_of(rows.column(label.name), label, str(data))
    predicted = trained.predict(rows)  # (row, class), or (row,) for numbers
    if label.lower is not None and label.upper is not None:
        errors = predicted - (label.lower + (label.upper - label.lower) * target)
        return {
            "rows": len(target),
            "rmse": float(np.sqrt(np.mean(errors**2))),
            "mae": float(np.mean(np.abs(errors))),
        }
    return {"rows": len(target), **_class_measures(target.astype(np.int64), predicted)}


def _class_measures(
    target: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> dict[str, float | None]:
    import numpy as np
    from sklearn.metrics import roc_auc_score

    true = np.maximum(probabilities[np.arange(len(target)), target], 1e-15)
    measured: dict[str, float | None] = {}
    if probabilities.shape[1] == 2:
        both = len(np.unique(target)) == 2
        measured["auc"] = float(roc_auc_score(target, probabilities[:, 1])) if both else None
    measured["accuracy"] = float(np.mean(probabilities.argmax(axis=1) == target))
    measured["log_loss"] = float(-np.mean(np.log(true)))
    return measured
