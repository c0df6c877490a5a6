"""`hedgerow predict`: class probabilities for the rows of a table."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, tell
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hedgerow.model.ensemble import Ensemble


def predict(
    model: options.ModelFile,
    data: Annotated[Path, typer.Option("--data", help="The table, Parquet or CSV.")],
    out: Annotated[str, typer.Option("--out", help="CSV file for the predictions; - is stdout.")],
    json: options.Json = False,
) -> None:
    """Write one probability per class and the likelier class for every row, in the same order."""
    from hedgerow.cli.files import check_writable, write_text
    from hedgerow.model.io import read_model
    from hedgerow.tables import read_table

    if out == "-" and json:
        raise SettingsError("--json and --out - both write to stdout; keep one of the two")
    if out != "-":
        check_writable(Path(out))
    trained = read_model(model)
    probabilities = trained.predict(read_table(data))
    text = predictions_csv(trained, probabilities)
    if out == "-":
        sys.stdout.write(text)
        return
    write_text(Path(out), text)
    if json:
        print_json({"rows": len(probabilities), "out": out})
    else:
        tell(f"{len(probabilities):,} predictions written to {out}.")


def predictions_csv(model: Ensemble, probabilities: NDArray[np.float64]) -> str:
    """Predictions as CSV: a column for every class, then the likelier class."""
    from hedgerow.schema import text_of

    classes = [text_of(value) for value in model.schema.label.classes]
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    if not classes:
        writer.writerow(["predicted"])
        writer.writerows([f"{value:.9g}"] for value in probabilities.tolist())
        return file.getvalue()
    writer.writerow([*(f"probability_{name}" for name in classes), "predicted"])
    likelier = probabilities.argmax(axis=1)
    for row, best in zip(probabilities.tolist(), likelier.tolist(), strict=True):
        writer.writerow([*(f"{p:.9g}" for p in row), classes[best]])
    return file.getvalue()
