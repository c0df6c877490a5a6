"""What a model's record says of shapes that were changed by hand."""

from __future__ import annotations

from typing import Any

from hedgerow.errors import FormatError
from hedgerow.model.ensemble import Ensemble


def edits_of(model: Ensemble) -> list[dict[str, Any]]:
    """What the record says was changed by hand."""
    edits = model.record.get("edits", [])
    try:
        return [
            {
                **edit,
                **{name: int(edit[name]) for name in ("tree", "output", "direction")},
                "column": str(edit["column"]),
                "cells": [str(label) for label in edit["cells"]],
                "reason": str(edit["reason"]),
                "from": str(edit["from"]),
            }
            for edit in edits
            if 0 <= int(edit["tree"]) < len(model.trees)
            and 0 <= int(edit["output"]) < model.loss.n_outputs
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError("the model's record of changes by hand is not readable") from error
