"""`hedgerow export`: a model in the format of another library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, size_text, tell
from hedgerow.errors import SettingsError

To = Annotated[
    str,
    typer.Option(
        "--to",
        help="xgboost (JSON), onnx, sklearn (arrays, .npz) or treelite; onnx and treelite need "
        "the extra export.",
    ),
]
Out = Annotated[Path, typer.Option("--out", help="The file to write.")]


def export(model: options.ModelFile, to: To, out: Out, json: options.Json = False) -> None:
    """Write a model for XGBoost, ONNX runtimes, scikit-learn's trees or Treelite.

    It holds released values and public facts only, and carries the model's statement.
    """
    from hedgerow.cli.files import check_writable
    from hedgerow.export import FORMATS
    from hedgerow.model.ensemble import Ensemble

    if to not in FORMATS:
        raise SettingsError(f"--to {to!r} is not a format; known: {', '.join(FORMATS)}")
    trained = Ensemble.load(model)
    check_writable(out)
    exported = FORMATS[to](trained, out)
    if json:
        print_json({**exported.to_dict(), "statement": trained.statement.to_dict()})
        return
    size = size_text(out.stat().st_size)
    tell(f"{exported.trees:,} trees, {exported.nodes:,} nodes, {size}, written to {out}.")
    for note in exported.notes:
        tell(f"- {note}")
