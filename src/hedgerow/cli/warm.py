"""`hedgerow warm`: compiles loops ahead of time, for an image or before a demonstration."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, show


def warm(
    method: Annotated[
        list[str] | None,
        typer.Option("--method", help="A method to compile for; again for more. Default: all."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Compile the loops of methods once, so that no first fit has to wait for it.

    They are kept where NUMBA_CACHE_DIR says, else beside the installed source. Nothing is spent:
    the rows are made up.
    """
    from hedgerow.deployment.warming import warm as warm_methods

    done = warm_methods(method or ())
    if json:
        print_json(asdict(done))
    elif done.compiled:
        show(f"Compiled {done.compiled} loops in {done.seconds:.0f} s.")
    else:
        show("All loops were on disk already.")
