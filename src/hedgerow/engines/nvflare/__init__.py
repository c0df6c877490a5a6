"""A relay through a stock NVFlare deployment: public interfaces only. Needs the extra `nvflare`.

A job of two components carries bytes: the controller beside the coordinator, the executor beside
every party. Neither reads a message, and nothing of what they do is up to the job's submitter.

executor.py    a party's end
controller.py  the coordinator's end
recipe.py      the job, to export or to submit
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError

if TYPE_CHECKING:
    from hedgerow.engines.nvflare.recipe import HedgerowRecipe as HedgerowRecipe

__all__ = ["HedgerowRecipe"]


def __getattr__(name: str) -> Any:
    """The recipe on demand: importing NVFlare's takes `--export` away from a program's words."""
    if name == "HedgerowRecipe":
        try:
            from hedgerow.engines.nvflare.recipe import HedgerowRecipe
        except ModuleNotFoundError as error:
            raise HedgerowError(
                "the relay through NVFlare needs NVFlare, which is not installed. Nothing was "
                "done. Run: pip install 'hedgerow[nvflare]'"
            ) from error
        return HedgerowRecipe
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
