"""The relay as an NVFlare recipe: a job to export, or to submit to a deployment that runs."""

from __future__ import annotations

from nvflare.job_config.api import FedJob
from nvflare.recipe.spec import Recipe

from hedgerow.engines.nvflare.controller import RelayController
from hedgerow.engines.nvflare.executor import RelayExecutor
from hedgerow.errors import SettingsError


class HedgerowRecipe(Recipe):
    """Hedgerow's messages through an NVFlare deployment, where a recipe for XGBoost would train.

    The job carries bytes that are signed already, with sealed answers; it holds no code, no path
    and no parameter of the training. Sites run it without `byoc`, once their administrators allow
    the classes of `hedgerow.engines.nvflare.`.

    Parameters
    ----------
    name : of the job
    min_clients : sites without which NVFlare does not start the job
    idle_seconds : the job ends when nothing was carried for so long
    """

    def __init__(self, name: str, min_clients: int, idle_seconds: float = 600.0) -> None:
        if min_clients < 1 or idle_seconds <= 0:
            raise SettingsError(
                f"min_clients is {min_clients} and idle_seconds is {idle_seconds}; both must be "
                "above zero. Nothing was submitted."
            )
        job = FedJob(name=name, min_clients=min_clients)
        job.set_app_packages(["hedgerow"])  # else the package would travel as custom code
        job.to_server(RelayController(idle_seconds=idle_seconds), id="hedgerow_controller")
        job.to_clients(RelayExecutor(), id="hedgerow_executor", tasks=["hedgerow"])
        super().__init__(job)
