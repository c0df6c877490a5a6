"""`hedgerow predict`: class probabilities for the rows of a table."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, tell
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hedgerow.data.schema import Schema


def predict(
    *,
    model: options.ModelFile,
    data: Annotated[Path, typer.Option("--data", help="The table, Parquet or CSV.")],
    out: Annotated[str, typer.Option("--out", help="CSV file for the predictions; - is stdout.")],
    csv: options.CsvOptions,
    json: options.Json = False,
) -> None:
    """Write one probability per class and the likelier class for every row, in the same order.

    For times to an event: the risk, the median time and survival at the schema's cuts.
    """
    from hedgerow.cli.files import check_writable, write_text
    from hedgerow.data.readers import stream_of
    from hedgerow.model.ensemble import Ensemble

    if out == "-" and json:
        raise SettingsError("--json and --out - both write to stdout; keep one of the two")
    if out != "-":
        check_writable(Path(out))
    trained = Ensemble.load(model)
    probabilities = trained.predict(stream_of(data, str(data), csv.applied(trained.schema.csv)))
    text = predictions_csv(trained.schema, probabilities)
    if out == "-":
        sys.stdout.write(text)
        return
    write_text(Path(out), text)
    if json:
        print_json({"rows": len(probabilities), "out": out})
    else:
        tell(f"{len(probabilities):,} predictions written to {out}.")


def predictions_csv(
    schema: Schema, probabilities: NDArray[np.float64], ids: Sequence[str] | None = None
) -> str:
    """Predictions as CSV: ids if there are any, a column for every class, the likelier class."""
    from hedgerow.data.values import text_of

    classes = [text_of(value) for value in schema.label.classes]
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    first: list[list[str]] = [[] for _ in probabilities] if ids is None else [[i] for i in ids]
    head = [] if ids is None else ["id"]
    if schema.label.task == "survival":
        _write_survival(writer, schema, head, first, probabilities)
        return file.getvalue()
    if not classes:
        writer.writerow([*head, "predicted"])
        for cells, value in zip(first, probabilities.tolist(), strict=True):
            writer.writerow([*cells, f"{value:.9g}"])
        return file.getvalue()
    writer.writerow([*head, *(f"probability_{name}" for name in classes), "predicted"])
    likelier = probabilities.argmax(axis=1)
    for cells, row, best in zip(first, probabilities.tolist(), likelier.tolist(), strict=True):
        writer.writerow([*cells, *(f"{p:.9g}" for p in row), classes[best]])
    return file.getvalue()


def _write_survival(
    writer: Any,
    schema: Schema,
    head: list[str],
    first: list[list[str]],
    survival: NDArray[np.float64],
) -> None:
    """The risk, the median time (inf beyond the horizon) and survival at every cut."""
    from hedgerow.evaluation.survival import medians, risks

    cuts = schema.label.cuts
    writer.writerow([*head, "risk", "median", *(f"survival_{cut:g}" for cut in cuts)])
    columns = zip(first, risks(survival), medians(survival, cuts), survival, strict=True)
    for cells, risk, median, row in columns:
        writer.writerow([*cells, *(f"{value:.9g}" for value in (risk, median, *row))])
