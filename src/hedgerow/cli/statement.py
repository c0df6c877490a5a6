"""`hedgerow statement`: what a model promises about the rows it was trained on."""

from __future__ import annotations

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, show


def statement(model: options.ModelFile, json: options.Json = False) -> None:
    """Print a model's guarantee: the numbers, who is trusted, and what is not covered."""
    from hedgerow.model.ensemble import Ensemble

    promised = Ensemble.load(model).statement
    if json:
        print_json({**promised.to_dict(), "words": promised.words()})
    else:
        show(promised.words())
